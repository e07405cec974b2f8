"""Explanation of a query for people: its plan as a tree, and as JSON."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rspql.compiler import Analysis
from rspql.explain_table import table_document, table_lines
from rspql.passes.recognise_topk import Ranking
from rspql.plan import (
    Aggregation,
    AnyWindow,
    CountWindow,
    Finish,
    PastValue,
    Plan,
    RemotePart,
    Score,
    StreamPast,
    TopKPlan,
    Window,
    WindowedPlan,
    WindowPart,
)
from rspql.printer import duration_text, expression_text, inside_text, pattern_text, query_text
from rspql.scoring import DEFAULT_FUNCTIONS, bounds

Document = dict[str, Any]
"""A JSON object: the explanation of a query, or a part of it."""


def explain(
    analysis: Analysis,
    remotes: Mapping[str, Document] | None = None,
    structure: Document | None = None,
    sent: str | None = None,
    answers: Mapping[str, str] | None = None,
) -> Document:
    """Return the explanation of a query that has a plan.

    ``remotes`` maps a service's IRI to the settings of its replica (``policy``, ``items``, ``n``,
    which is None if it is chosen while running, …). ``structure`` has the ``name`` of the structure
    that keeps the candidates, the reason for its choice (``because``), and whether several queries
    share it (``shared``), maybe also the share of answers that may miss a result (``error``).
    ``sent`` says what executors send to the driver. ``answers`` maps the streams that queries make
    to those queries' names. The explanation leaves out what is not given.
    """
    plan = analysis.plan
    assert plan is not None, "a query with errors has no plan to explain"
    known = remotes or {}
    body = (
        _topk(plan, analysis, known)
        if isinstance(plan, TopKPlan)
        else _windowed(plan, analysis, known, structure)
    )
    for window in body["windows"]:
        if answers and window["stream"] in answers:
            window["answers_of"] = answers[window["stream"]]
    return {
        "query": plan.name,
        "class": "top-k" if analysis.is_topk else "general",
        "strategy": _way(plan),
        "structure": structure,
        "sent": sent,
        "reason": _reason(analysis),
        "output": plan.output,
        **body,
        "warnings": [each.message for each in analysis.diagnostics if not each.is_error],
    }


def _way(plan: Plan) -> str:
    if isinstance(plan, TopKPlan):
        return "incremental"
    return "window by window" if plan.table is None else "over a table"


def _reason(analysis: Analysis) -> Document | None:
    found = analysis.reason
    return (
        None
        if found is None
        else {"message": found.message, "line": found.line, "column": found.column}
    )


# The top-k class, answered incrementally --------------------------------------------------------


def _topk(plan: TopKPlan, analysis: Analysis, known: Mapping[str, Document]) -> Document:
    asked = next(iter(plan.join.services), None) if plan.join else plan.service
    replica = known.get(asked.iri.value) if asked else None
    parts = plan.parts or (
        WindowPart(
            plan.window,
            plan.stream_pattern,
            plan.stream_variables,
            plan.stream_filters,
            plan.aggregate,
            plan.stream_group,
        ),
    )
    return {
        "windows": [
            {
                **_window(part.window),
                "pattern": pattern_text(part.pattern)
                if part.group is None
                else inside_text(part.group),
                "filters": [expression_text(each) for each in part.filters],
                "aggregate": _aggregate(part.aggregate) if part.aggregate else None,
            }
            for part in parts
        ],
        "looks_back": _of_stream(plan.at_close.past if plan.at_close else ()),
        "remotes": _asked(plan, known),
        **({"graphs": list(plan.join.graphs)} if plan.join and plan.join.graphs else {}),
        "score": _score(analysis),
        "result": {
            "k": plan.k,
            "offset": plan.offset,
            "variables": list(plan.projection),
            "form": "select" if plan.form is None else type(plan.form).__name__.lower(),
        },
        "computed": [
            {"variable": each.variable.name, "expression": expression_text(each.expression)}
            for each in (*plan.gathered, *plan.computed)
        ],
        "gathers": bool(plan.gathered),
        "finish": None if plan.finish is None else _finish(plan.finish),
        "groups": None if plan.roll_up is None else list(plan.roll_up.keys),
        "memory": _memory(plan, _window(plan.window)["open_at_once"], replica),
    }


def _finish(finish: Finish) -> Document:
    keys = [
        f"{'DESC' if each.descending else 'ASC'}({expression_text(each.expression)})"
        for each in finish.keys
    ]
    return {
        "keys": keys,
        "distinct": finish.is_distinct,
        "per": list(finish.per),
        "ties": finish.with_ties,
    }


def _aggregate(aggregate: Aggregation) -> Document:
    computed = {each.variable.name: expression_text(each.expression) for each in aggregate.derived}
    return {
        "keys": list(aggregate.keys),
        "columns": [
            {
                "variable": each.variable,
                "function": each.function,
                "of": each.of,
                "computed": each.of in computed,
            }
            for each in aggregate.columns
        ],
        "computed": computed,
        "identity": list(aggregate.identity),
    }


def _asked(plan: TopKPlan, known: Mapping[str, Document]) -> list[Document]:
    """Return the services that a plan asks, with the variable by which each is asked."""
    if plan.join is not None:
        several = [
            (each.iri, each.pattern.group, list(each.keys), each.past)
            for each in plan.join.services
        ]
    elif plan.service is not None:
        several = [(plan.service.iri, plan.service.group, list(plan.join_variables), ())]
    else:
        several = []
    return [
        {
            "service": iri.value,
            "pattern": inside_text(group),
            "join": keys,
            "solutions_per_key": (known.get(iri.value) or {}).get("solutions", "many"),
            "replica": known.get(iri.value),
            "is_shared": (known.get(iri.value) or {}).get("shared", True),
            **({"looks_back": _looks_back(past)} if past else {}),
        }
        for iri, group, keys, past in several
    ]


def _of_stream(several: Iterable[StreamPast]) -> list[Document]:
    return [
        {"keys": list(each.keys), "variable": past.variable, "ms": past.back_ms}
        for each in several
        for past in each.past
    ]


def _looks_back(past: Iterable[PastValue]) -> list[Document]:
    return [{"variable": each.variable, "ms": each.back_ms, "as": each.name} for each in past]


def _score(analysis: Analysis) -> Document | None:
    """Return the facts known about a top-k query's score; None if it is not arithmetic."""
    ranking, plan = analysis.ranking, analysis.plan
    if ranking is None or ranking.expression is None:
        return None
    score = plan.score if isinstance(plan, TopKPlan) else None
    if score and score.only_place:
        return _order(ranking, score)
    if not analysis.directions:
        return None
    functions = (
        score.functions
        if score
        else plan.functions
        if isinstance(plan, WindowedPlan)
        else DEFAULT_FUNCTIONS
    )
    reach = bounds(ranking.expression, score.ranges if score else {}, functions=functions)
    return {
        "variable": ranking.variable,
        "expression": expression_text(ranking.expression),
        "order": "highest first" if ranking.descending else "lowest first",
        "condition": expression_text(score.condition) if score and score.condition else None,
        "low": reach.low if math.isfinite(reach.low) else None,
        "high": reach.high if math.isfinite(reach.high) else None,
        "variables": [
            {"name": name, "from": _side(name, score), "direction": str(direction.value)}
            for name, direction in analysis.directions.items()
        ],
    }


def _order(ranking: Ranking, score: Score) -> Document:
    """Return the facts known about an order by a term that need not be a number."""
    assert ranking.expression is not None
    return {
        "variable": ranking.variable,
        "expression": expression_text(ranking.expression),
        "order": "descending" if ranking.descending else "ascending",
        "condition": expression_text(score.condition) if score.condition else None,
        "low": None,
        "high": None,
        "variables": [],
        "is_number": False,
    }


def _side(name: str, score: Score | None) -> str | None:
    if score is None:
        return None
    return "stream" if name in score.stream_variables else "remote"


def _memory(plan: TopKPlan, windows: int, replica: Document | None) -> Document | None:
    if (
        plan.aggregate
        or plan.finish
        or plan.parts
        or (plan.service and (replica is None or replica["n"] is None))
    ):
        return None
    kept = plan.k + plan.offset + (replica["n"] if replica else 0)
    harmonic = (
        sum(1 / at for at in range(1, windows + 1))
        if windows < 1_000
        else math.log(windows) + 0.5772
    )
    # A window that counts elements never holds more than that number of them.
    largest = plan.window.count if isinstance(plan.window, CountWindow) else math.inf
    expected, at_most = (
        min(largest, count) for count in (math.ceil(kept * harmonic), kept * windows)
    )
    return {"per_window": min(largest, kept), "expected": expected, "at_most": at_most}


# All other queries, window by window --------------------------------------------------------


def _windowed(
    plan: WindowedPlan,
    analysis: Analysis,
    known: Mapping[str, Document],
    structure: Document | None,
) -> Document:
    if plan.table is not None:
        (window,) = plan.windows
        assert isinstance(window, Window), "a clock's window is one of time"
        document = table_document(plan.table, window, structure)
        remotes = [_remote(part, known) for part in plan.remotes]
        return {"windows": [], "remotes": remotes, "score": None, "table": document}
    return {
        "windows": [_window(window) for window in plan.windows],
        "remotes": [_remote(part, known) for part in plan.remotes],
        "looks_back": _of_stream(plan.before),
        "score": _score(analysis),
        "evaluates": query_text(plan.query),
    }


def _remote(part: RemotePart, known: Mapping[str, Document]) -> Document:
    return {
        "service": part.iri.value,
        "pattern": inside_text(part.pattern.group),
        "join": [] if part.key is None else [part.key],
        "solutions_per_key": "many",
        "replica": known.get(part.iri.value),
        "looks_back": _looks_back(part.past),
    }


def _window(window: AnyWindow) -> Document:
    named = {"window": window.name.value, "stream": window.stream.value}
    if isinstance(window, CountWindow):
        open_at_once = -(-window.count // window.step)
        return {
            **named,
            "elements": window.count,
            "step": window.step,
            "open_at_once": open_at_once,
        }
    return {
        **named,
        "width_ms": window.width_ms,
        "slide_ms": window.slide_ms,
        "start_ms": window.start_ms,
        "pane_ms": math.gcd(window.width_ms, window.slide_ms),
        "open_at_once": -(-window.width_ms // window.slide_ms),
    }


# As text --------------------------------------------------------------------------------------


def render(document: Document) -> str:
    """Return an explanation as a tree, for people to read."""
    sections = _sections_of_table if "table" in document else _sections
    return "\n".join(_tree(_title(document), list(sections(document)))) + "\n"


_Branch = tuple[str, list[Any]]


def _tree(label: str, branches: list[_Branch]) -> Iterator[str]:
    yield label
    for at, (inner, more) in enumerate(branches):
        last = at == len(branches) - 1
        first, *rest = [line for each in _tree(inner, more) for line in each.split("\n")]
        yield ("└─ " if last else "├─ ") + first
        yield from (("   " if last else "│  ") + line for line in rest)


def _title(document: Document) -> str:
    name = f"<{document['query']}>" if document["query"] else "the query"
    kind = "a top-k query" if document["class"] == "top-k" else "a general query"
    return f"{name}: {kind}, {document['strategy']}, {document['output']}"


def _sections_of_table(document: Document) -> Iterator[_Branch]:
    yield from table_lines(document["table"], document["structure"])
    for remote in document["remotes"]:
        yield from _budget(remote["replica"], is_shared=False)
    yield from ((f"warning: {each}", []) for each in document["warnings"])


def _sections(document: Document) -> Iterator[_Branch]:
    yield _strategy(document)
    for window in document["windows"]:
        made = " that a query makes of its answers" if "answers_of" in window else ""
        yield (
            f"window <{window['window']}> over the stream <{window['stream']}>{made}",
            list(_window_lines(window)),
        )
    for past in document.get("looks_back", ()):
        back = duration_text(past["ms"])
        by = _variables(past["keys"])
        yield f"kept of ?{past['variable']}: its changes of the last {back}, by {by}", []
    yield from _joined(document)
    if document["score"]:
        yield _score_title(document["score"]), list(_score_lines(document["score"]))
    if "result" in document:
        yield from _result_lines(document)
    if "evaluates" in document:
        yield "evaluated by a SPARQL engine at every close", [(document["evaluates"], [])]
    if document["sent"] is not None:
        yield f"sent to the driver: {document['sent']}", []
    yield _certainty(document)
    for stream in dict.fromkeys(w["stream"] for w in document["windows"] if "answers_of" in w):
        yield f"never more certain than the answers of <{stream}> in the window", []
    for warning in document["warnings"]:
        yield f"warning: {warning}", []


def _joined(document: Document) -> Iterator[_Branch]:
    for remote in document["remotes"]:
        yield f"remote <{remote['service']}>", list(_remote_lines(remote))
    for graph in document.get("graphs", ()):
        yield f"static graph <{graph}>, joined once for each distinct value", []


def _strategy(document: Document) -> _Branch:
    reason = document["reason"]
    place = (
        ""
        if reason is None or reason["line"] is None
        else f" (line {reason['line']}, column {reason['column']})"
    )
    if document["strategy"] == "incremental":
        return _incremental(document)
    if document["class"] == "top-k":
        return f"class: top-k over windows{' and a service' if document['remotes'] else ''}", [
            (f"strategy: evaluated anew at every close, because {reason['message']}{place}", [])
        ]
    return "class: none that is answered incrementally", [
        (f"because {reason['message']}{place}" if reason else "", []),
        ("strategy: evaluated anew at every close", []),
    ]


def _incremental(document: Document) -> _Branch:
    aggregate = document["windows"][0]["aggregate"]
    matched = "WINDOW" + (" aggregated per key" if aggregate else "")
    more = ["SERVICE"] * bool(document["remotes"]) + ["static graphs"] * ("graphs" in document)
    joined = f" joined with {' and '.join(more)}" if more else ""
    if document["groups"] is not None:
        by = _variables(document["groups"])
        strategy = (
            f"what {_groups(aggregate)} adds up to is kept up to date, and added up "
            f"{'by ' + by if by else 'as a whole'} at every close"
        )
    elif aggregate:
        strategy = (
            f"what {_groups(aggregate)} adds up to is kept up to date as solutions come and go"
        )
    elif document["finish"]:
        strategy = "the open windows' solutions are kept, and ranked at every close"
    elif document["remotes"]:
        strategy = "Topk+N, a Super-MTK+N list keeps what can still reach an answer"
    elif _is_shared(document):
        strategy = (
            "one list keeps what can still reach an answer of any query that ranks the same by "
            "the same"
        )
    elif _is_nearest(document):
        strategy = "a grid finds the nearest for all queries that rank the same points by distances"
    elif "elements" in document["windows"][0]:
        strategy = "what can still be among the best of the last elements is kept"
    else:
        strategy = "MinTopk, a Super-MTK list keeps what can still reach an answer"
    return f"class: {matched}{joined}, scored, ordered, limited", [
        (f"strategy: {strategy}", []),
        *_structure_lines(document["structure"]),
    ]


def _is_shared(document: Document) -> bool:
    return document["structure"] is not None and bool(document["structure"]["shared"])


def _is_nearest(document: Document) -> bool:
    return document["structure"] is not None and document["structure"]["name"] == "nearest-grid"


def _structure_lines(structure: Document | None) -> Iterator[_Branch]:
    if structure is not None:
        yield f"structure: {structure['name']}, because {structure['because']}", []


def _window_lines(window: Document) -> Iterator[_Branch]:
    if "elements" in window:
        yield from _count_lines(window)
    else:
        width, slide, pane = (
            duration_text(window[name]) for name in ("width_ms", "slide_ms", "pane_ms")
        )
        yield (
            (
                f"{width} wide, one every {slide}; panes of {pane}; up to "
                f"{window['open_at_once']} open at once"
            ),
            [],
        )
    if "pattern" in window:
        yield f"matches {window['pattern']}", []
    for each in window.get("filters", ()):
        yield f"keeps what has {each}, on arrival", []
    if window.get("aggregate"):
        yield from _aggregate_lines(window["aggregate"])


def _count_lines(window: Document) -> Iterator[_Branch]:
    often = "every element" if window["step"] == 1 else f"every {window['step']} elements"
    yield (
        (
            f"the last {window['elements']} elements, one window with {often}; the first hold "
            "what there is"
        ),
        [],
    )
    yield (
        "an element is a record, be it matched or not; they are counted in the order of event time",
        [],
    )


def _aggregate_lines(aggregate: Document) -> Iterator[_Branch]:
    columns: list[_Branch] = [(_column_text(each), []) for each in aggregate["columns"]]

    def named(name: str) -> str:
        return str(aggregate["computed"].get(name, f"?{name}"))

    yield _group_text(aggregate), columns
    yield (
        (
            f"a solution is one {', '.join(map(named, aggregate['identity']))}: the same twice in "
            "a window counts once"
        ),
        [],
    )


def _group_text(aggregate: Document) -> str:
    if not aggregate["keys"]:
        return "for the whole window"
    computed = [
        f", where ?{name} = {aggregate['computed'][name]}"
        for name in aggregate["keys"]
        if name in aggregate["computed"]
    ]
    return f"for each {_variables(aggregate['keys'])}{''.join(computed)}"


def _column_text(column: Document) -> str:
    of = "*" if column["of"] is None else column["of"]
    is_name = column["of"] is not None and not column["computed"]
    return f"?{column['variable']} = {column['function'].upper()}({'?' if is_name else ''}{of})"


def _remote_lines(remote: Document) -> Iterator[_Branch]:
    yield "asked for", [(remote["pattern"], [])]
    if remote["join"]:
        many = (
            "one solution used"
            if remote["solutions_per_key"] == "one"
            else "any number of solutions"
        )
        yield f"joined on {_variables(remote['join'])}, {many} per key", []
    else:
        yield "no window binds a variable of it: fetched whole", []
    for past in remote.get("looks_back", ()):
        back = duration_text(past["ms"])
        yield f"kept of ?{past['variable']}: its changes of the last {back}, per key", []
    replica = remote["replica"]
    if replica is not None:
        n = "N chosen while running" if replica["n"] is None else f"N = {replica['n']}"
        yield (
            f"candidates proposed by {replica['proposer']}, ranked by {replica['ranker']}; {n}",
            [],
        )
        yield from _budget(replica, is_shared=bool(remote.get("is_shared")))


def _budget(replica: Document | None, *, is_shared: bool) -> Iterator[_Branch]:
    if replica is None:
        return
    items = f"{replica['items']} item{'' if replica['items'] == 1 else 's'}"
    requests = f"{replica['requests']} request{'' if replica['requests'] == 1 else 's'}"
    within = duration_text(replica["deadline_ms"])
    yield (
        f"budget per evaluation: {items} in {requests} within {within}",
        [("with all queries that ask this service", [])] if is_shared else [],
    )


def _score_title(score: Document) -> str:
    name = f"?{score['variable']}" if score["variable"] else "its expression"
    return f"{_what(score)}: {name}, {score['order']}"


def _what(score: Document) -> str:
    return "score" if score.get("is_number", True) else "order"


def _score_lines(score: Document) -> Iterator[_Branch]:
    yield score["expression"], []
    if score["condition"]:
        yield f"only where {score['condition']}", []
    for variable in score["variables"]:
        side = f" from the {variable['from']}" if variable["from"] else ""
        yield f"?{variable['name']}{side}: {variable['direction']}", []
    if _what(score) == "order":
        yield "terms of any kind, in SPARQL's order", []
        return
    low, high = (
        "unbounded" if score[end] is None else f"{score[end]:g}" for end in ("low", "high")
    )
    yield f"range: {low} to {high}", []


def _result_lines(document: Document) -> Iterator[_Branch]:
    result = document["result"]
    first = f"the first {result['k']}" + (f" after {result['offset']}" if result["offset"] else "")
    finish = document["finish"] or _finish(Finish())
    if finish["per"]:
        first += f" of each {_variables(finish['per'])}"
    if finish["ties"]:
        first += ", and what ties with the last"
    more = f"by {', '.join(finish['keys'])}, then " if finish["keys"] else ""
    order = f"equal scores: {more}the newer first, then by the terms' text"
    equal: list[_Branch] = [("equal rows are one", [])] if finish["distinct"] else []
    made = {
        "select": f"of {_variables(result['variables'])}",
        "construct": f"triples made of {_variables(result['variables'])}",
        "ask": "if there are any",
    }
    computed: list[_Branch] = [
        (f"?{each['variable']} = {each['expression']}, of these alone", [])
        for each in document["computed"]
    ]
    yield f"result: {first}, {made[result['form']]}", [(order, []), *equal, *computed]
    memory, aggregate = document["memory"], document["windows"][0]["aggregate"]
    if aggregate:
        yield (
            (
                f"memory: the aggregates of {_groups(aggregate)}, and "
                f"{'' if document['gathers'] else 'the identity of '}every solution in a window"
            ),
            [],
        )
    if memory and _is_shared(document):
        yield (
            "memory: what the widest window and the largest LIMIT need, for all queries together",
            [],
        )
    elif memory and _is_nearest(document) and "elements" in document["windows"][0]:
        yield "memory: the window's elements with their terms, once for all queries", []
    elif memory:
        yield (
            f"memory: {memory['per_window']} candidates per window; about "
            f"{memory['expected']} in all, "
            f"never more than {memory['at_most']}",
            [],
        )


def _certainty(document: Document) -> _Branch:
    error = (document["structure"] or {}).get("error")
    if error is not None:
        few = f"for up to {error:g} of the answers, which say that they miss a result by chance"
        return f"certainty: exact, but {few}, and for what comes too late", []
    if not document["remotes"]:
        return "certainty: exact, but for what comes too late", []
    return "certainty, said with each answer", [
        ("exact: all that could matter was fetched in that evaluation", []),
        ("certified: right for the replica's values, some of which are older", []),
        (
            "approximate: a value not fetched yet, or an event that came too late, could change it",
            [],
        ),
    ]


def _groups(aggregate: Document) -> str:
    return f"each {_variables(aggregate['keys'])}" if aggregate["keys"] else "the window"


def _variables(names: list[str]) -> str:
    return ", ".join(f"?{name}" for name in names)
