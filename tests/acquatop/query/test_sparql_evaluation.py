"""A query evaluated by window against brute force: windows built anew, the whole remote asked."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyoxigraph as ox
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from rdflib import BNode

from acquatop.answer.answer import Answer, Status
from acquatop.errors import EvaluationError, UserError
from acquatop.plan.bound import BoundWindowed
from acquatop.query.sparql.engine import LocalEngine
from acquatop.query.sparql.evaluate import Evaluator
from rspql.diagnostics import QueryError
from rspql.parser import parse
from tests.support.fed import Fed
from tests.support.queries.whole_windows import QUERIES, A, B, Replay, Shape, V, shapes
from tests.support.windowed import Record, at_work, batch, bound
from tests.support.worlds import NS, XSD


def rows_of(results: Any) -> list[tuple[tuple[str, str], ...]]:
    names = [variable.value for variable in results.variables]
    rows = [
        tuple((name, str(row[name])) for name in sorted(names) if row[name] is not None)
        for row in results
    ]
    return sorted(rows)


def rows_shown(answer: Answer) -> list[tuple[tuple[str, str], ...]]:
    def text(term: Any) -> str:
        if not hasattr(term, "datatype"):
            return f"<{term}>"
        datatype = ox.NamedNode(str(term.datatype)) if term.datatype else None
        return str(ox.Literal(str(term), datatype=datatype))

    return sorted(
        tuple((name, text(row.bindings[name])) for name in sorted(row.bindings))
        for row in answer.rows
    )


def assert_right(answer: Answer, results: Any) -> None:
    match answer.form:
        case "ask":
            assert answer.boolean == bool(results)
        case "construct":
            assert list(answer.triples) == sorted(
                {f"{each.subject} {each.predicate} {each.object} ." for each in results}
            )
        case _:
            assert rows_shown(answer) == rows_of(results)


@settings(max_examples=180)
@given(shapes)
def test_what_is_called_right_is_right(shape: Shape) -> None:
    replay = Replay(shape)
    instants = []
    for answer in replay.answers(shape.seed):
        instants.append(answer.closes_ms)
        assert answer.counts.late == 0
        assert answer.spending.items <= shape.items
        if answer.status is not Status.APPROXIMATE:
            assert_right(answer, replay.right(answer))
        if not replay.bound.remotes or shape.items == 99:
            assert answer.status is not Status.APPROXIMATE
        event(f"{answer.form} {answer.status}")
    assert instants == sorted(set(instants))
    assert instants == expected_instants(replay, instants)


def expected_instants(replay: Replay, instants: list[int]) -> list[int]:
    """Return when some window closes, from the first that does to the last that holds anything."""
    due: set[int] = set()
    for window in replay.bound.windows:
        records = replay.streams[window.stream.iri]
        if window.windows.t0_ms is None and not records:
            continue
        first = (
            0
            if window.windows.t0_ms is not None
            else window.windows.first(min(each.t for each in records))
        )
        closes = (window.windows.bounds(index)[1] for index in range(first, first + 200))
        due.update(each for each in closes if instants and each <= instants[-1])
    return sorted(due)


IN_ORDER = f"""SELECT (GROUP_CONCAT(?r) AS ?all) (SAMPLE(?s) AS ?one) {V}
               WHERE {{ WINDOW :v {{ ?s :r ?r }} }}"""


@settings(max_examples=100)
@given(shapes, st.sampled_from([*QUERIES, IN_ORDER]), st.integers(0, 2**32))
def test_no_cut_into_batches_changes_a_byte(shape: Shape, query: str, other_cut: int) -> None:
    shape = replace(shape, query=query, items=99, load=False)
    replay = Replay(shape)
    first, second = (
        [answer.canonical() for answer in replay.answers(cut)] for cut in (shape.seed, other_cut)
    )
    assert first == second


@settings(max_examples=100)
@given(shapes)
def test_what_is_exact_follows_a_remote_that_changes(shape: Shape) -> None:
    replay = Replay(replace(shape, items=99))
    for answer in replay.answers(shape.seed, changes=True):
        assert answer.status is Status.EXACT
        assert_right(answer, replay.right(answer))


ONE = "FROM NAMED WINDOW :w ON :a [RANGE 9ms STEP 3ms]"
JOIN = (
    f"SELECT ?s ?f {ONE} WHERE {{ WINDOW :w {{ ?s :p ?p }} SERVICE :people {{ ?s :friend ?f }} }}"
)


def friends(**known: str) -> ox.Store:
    store = ox.Store()
    for subject, names in known.items():
        for name in names:
            store.add(
                ox.Quad(
                    ox.NamedNode(NS + subject), ox.NamedNode(NS + "friend"), ox.NamedNode(NS + name)
                )
            )
    return store


def feed(query: Fed, bound_query: BoundWindowed, *records: Record, stream: str = A) -> list[Answer]:
    query.add(stream, batch(bound_query, stream, records))
    return list(query.advance(stream, max(each.t for each in records)))


def test_all_solutions_of_a_key_join_and_status_says_what_is_known() -> None:
    bound_query = bound(JOIN, start="start_ms = 0", items=1, requests=1)
    query, (remote,) = at_work(bound_query, friends(k="lm", l="k"))
    first, second, third = feed(
        query, bound_query, Record(4, "k", 1), Record(5, "l", 1), Record(15, "m", 1)
    )
    assert (first.status, len(first.rows)) == (Status.APPROXIMATE, 2)
    assert (
        first.reason
        == "1 of the keys to ask <http://example.org/people> for have no answer from it yet"
    )
    assert (second.status, len(second.rows)) == (Status.CERTIFIED, 3)
    assert (third.status, third.rows) == (Status.EXACT, ())
    assert [len(asked) for asked in remote.asked] == [1, 1, 1]


def test_a_failing_remote_costs_freshness_and_is_named() -> None:
    bound_query = bound(JOIN, start="start_ms = 0")
    query, (remote,) = at_work(bound_query, friends(k="lm"))
    (first,) = feed(query, bound_query, Record(1, "k", 1), Record(9, "k", 1))
    remote.failing = True
    (second,) = feed(query, bound_query, Record(12, "k", 1))
    assert (first.status, first.failure) == (Status.EXACT, None)
    assert (second.status, second.failure) == (Status.CERTIFIED, "the graph is out of order")
    assert [row.bindings for row in first.rows] == [row.bindings for row in second.rows]
    assert [row.refreshed for row in (*first.rows, *second.rows)] == [True, True, False, False]
    assert all(row.age_seconds is not None for row in second.rows)


def test_a_pattern_without_a_key_is_fetched_whole() -> None:
    text = f"""SELECT ?s ?a {ONE}
               WHERE {{ WINDOW :w {{ ?s :p ?p }} SERVICE :people {{ ?a :friend ?b }} }}"""
    bound_query = bound(text, start="start_ms = 0")
    query, (remote,) = at_work(bound_query, friends(k="l", m="k"))
    (answer,) = feed(query, bound_query, Record(1, "k", 1), Record(9, "k", 2))
    assert (answer.status, answer.refreshed, remote.asked) == (Status.EXACT, (), [[""]])
    assert len(answer.rows) == 4


def test_what_comes_too_late_is_counted_and_makes_windows_uncertain() -> None:
    bound_query = bound(
        f"SELECT ?s {ONE} WHERE {{ WINDOW :w {{ ?s :p ?p }} }}", start="start_ms = 0"
    )
    query, _ = at_work(bound_query)
    (first,) = feed(query, bound_query, Record(5, "k", 1), Record(10, "k", 1))
    query.add(A, batch(bound_query, A, [Record(8, "m", 1)]))
    later = list(query.finish(A))
    assert first.status is Status.EXACT
    assert [answer.status for answer in later] == [Status.APPROXIMATE] * 2 + [Status.EXACT]
    assert later[0].reason == "something that belongs into a window came too late"
    assert [answer.counts.late for answer in later] == [1, 0, 0]


def test_time_is_that_of_the_stream_that_lags_most() -> None:
    text = """SELECT ?s ?t
              FROM NAMED WINDOW :v ON :a [RANGE 10ms] FROM NAMED WINDOW :w ON :b [RANGE 4ms]
              WHERE { WINDOW :v { ?s :p ?x } WINDOW :w { ?t :p ?y } }"""
    bound_query = bound(text)
    query, _ = at_work(bound_query)
    assert feed(query, bound_query, Record(5, "k", 1), Record(25, "k", 1)) == []
    (at_4, at_8) = feed(
        query, bound_query, Record(3, "m", 1), Record(6, "n", 1), Record(9, "l", 1), stream=B
    )
    (at_10,) = feed(query, bound_query, Record(11, "l", 1), stream=B)
    assert [answer.closes_ms for answer in (at_4, at_8, at_10)] == [4, 8, 10]
    assert at_4.rows == at_8.rows == ()
    assert [(each.window, each.index, each.closes_ms) for each in at_10.windows] == [
        (NS + "v", 0, 10),
        (NS + "w", 1, 8),
    ]
    assert [str(row.bindings["t"]) for row in at_10.rows] == [NS + "n"]
    assert [answer.closes_ms for answer in query.finish(B)] == [12, 16, 20, 24]
    assert [answer.closes_ms for answer in query.finish(A)] == [28, 30]


def test_a_late_first_record_does_not_bring_a_window_back_that_was_passed_by() -> None:
    text = """SELECT ?s ?t
              FROM NAMED WINDOW :v ON :a [RANGE 10ms] FROM NAMED WINDOW :w ON :b [RANGE 10ms]
              WHERE { WINDOW :v { ?s :p ?x } WINDOW :w { ?t :p ?y } }"""
    bound_query = bound(text)
    query, _ = at_work(bound_query)
    assert feed(query, bound_query, Record(5, "k", 1), Record(45, "k", 1)) == []
    query.add(B, batch(bound_query, B, [Record(21, "m", 1)]))
    assert [answer.closes_ms for answer in query.advance(B, 20)] == [10, 20]
    # Its window would close at 10, for which :v has been answered.
    query.add(B, batch(bound_query, B, [Record(7, "n", 1)]))
    again = [*query.advance(B, 20), *query.advance(B, 30)]
    assert [answer.closes_ms for answer in again] == [30]
    assert again[0].counts.late == 1


def test_which_stream_ends_first_changes_no_answer_where_windows_leave_gaps() -> None:
    text = """SELECT ?s
              FROM NAMED WINDOW :v ON :a [RANGE 3ms STEP 10ms]
              FROM NAMED WINDOW :w ON :b [RANGE 2ms STEP 4ms]
              WHERE { WINDOW :v { ?s :p ?p } WINDOW :w { ?t :p ?p } }"""
    bound_query = bound(text, start="start_ms = 0")
    documents = []
    for first, second in ((A, B), (B, A)):
        query, _ = at_work(bound_query)
        answers = feed(query, bound_query, Record(2, "k", 1), Record(38, "k", 1))
        answers += feed(query, bound_query, Record(1, "l", 1), Record(2, "l", 1), stream=B)
        answers += [*query.finish(first), *query.finish(second)]
        documents.append([answer.canonical() for answer in answers])
    assert documents[0] == documents[1]
    assert len(documents[0]) > 3


def test_a_remote_s_blank_nodes_are_kept_and_shown_as_such() -> None:
    text = f"""SELECT ?s ?f (isBLANK(?f) AS ?is) {ONE}
              WHERE {{ WINDOW :w {{ ?s :p ?p }} SERVICE :people {{ ?s :friend ?f }} }}"""
    bound_query = bound(text, start="start_ms = 0")
    data = friends(l="k")
    for subject in "kl":
        data.add(
            ox.Quad(ox.NamedNode(NS + subject), ox.NamedNode(NS + "friend"), ox.BlankNode("b0"))
        )
    query, _ = at_work(bound_query, data)
    (answer,) = feed(query, bound_query, Record(1, "k", 1), Record(2, "l", 1), Record(9, "l", 1))
    found = [row.bindings["f"] for row in answer.rows]
    assert (answer.status, len(found), len(set(found))) == (Status.EXACT, 3, 3)
    assert [isinstance(term, BNode) for term in found].count(True) == 2
    assert {str(row.bindings["is"]) for row in answer.rows} == {
        "false"
    }  # a limit: the engine sees an IRI


def test_keys_match_whatever_their_characters() -> None:
    odd = "a\tb\x08\x0c\0\x01\x7f\"'\\\n\u00e9"
    text = f"""SELECT ?s ?r {ONE}
               WHERE {{ WINDOW :w {{ ?x :r ?r }} SERVICE :people {{ ?s :name ?r }} }}
               ORDER BY ?r LIMIT 2"""
    bound_query = bound(text, start="start_ms = 0")
    assert bound_query.remotes[0].part.key == "r"
    data = ox.Store()
    data.add(ox.Quad(ox.NamedNode(NS + "ann"), ox.NamedNode(NS + "name"), ox.Literal(odd)))
    query, _ = at_work(bound_query, data)
    (first,) = feed(query, bound_query, Record(1, "k", r=odd), Record(9, "k", 1))
    (second,) = feed(query, bound_query, Record(12, "k", 1))
    for answer in (first, second):
        assert [str(row.bindings["r"]) for row in answer.rows] == ([odd] if answer is first else [])
        assert answer.status is Status.EXACT
    assert [str(term) for term in first.refreshed] == [odd]


def test_ill_typed_literals_from_a_remote_break_nothing() -> None:
    text = f"""SELECT ?s ?n (?n + 1 AS ?m) {ONE}
              WHERE {{ WINDOW :w {{ ?s :p ?p }} SERVICE :people {{ ?s :name ?n }} }} ORDER BY ?n"""
    bound_query = bound(text, start="start_ms = 0")
    data = ox.Store()
    odd = [
        ("abc", "integer"),
        ("9" * 5000, "integer"),
        ("yesterday", "dateTime"),
        ("x", "hexBinary"),
        ("-", "duration"),
    ]
    for lexical, datatype in odd:
        literal = ox.Literal(lexical, datatype=ox.NamedNode(XSD + datatype))
        data.add(ox.Quad(ox.NamedNode(NS + "k"), ox.NamedNode(NS + "name"), literal))
    query, _ = at_work(bound_query, data)
    (answer,) = feed(query, bound_query, Record(1, "k", 1), Record(9, "l", 1))
    assert {str(row.bindings["n"]) for row in answer.rows} == {lexical for lexical, _ in odd}
    assert json.loads(json.dumps(answer.to_json()))["results"]


def test_a_query_that_joins_later_shows_only_windows_it_has_seen_from_their_start() -> None:
    bound_query = bound(
        f"SELECT ?s {ONE} WHERE {{ WINDOW :w {{ ?s :p ?p }} }}", start="start_ms = 0"
    )
    query, _ = at_work(bound_query)
    query.start_after(A, 10)
    answers = feed(query, bound_query, Record(11, "k", 1), Record(14, "l", 2), Record(30, "l", 2))
    assert answers[0].opens_ms == 12
    assert len(answers[0].rows) == 1
    assert {answer.counts.late for answer in answers} == {0}


def test_a_jump_in_time_skips_the_empty_windows_and_says_how_many() -> None:
    text = "SELECT ?s FROM NAMED WINDOW :w ON :a [RANGE 1ms] WHERE { WINDOW :w { ?s :p ?p } }"
    bound_query = bound(text, start="start_ms = 0")
    query, _ = at_work(bound_query)
    answers = feed(query, bound_query, Record(1, "k", 1), Record(10**12, "l", 2))
    assert [(answer.closes_ms, len(answer.rows)) for answer in answers] == [
        (1, 1),
        (2, 0),
        (10**12, 1),
    ]
    assert [answer.counts.skipped for answer in answers] == [0, 0, 10**12 - 3]


def test_istream_and_dstream_say_what_is_new_and_what_has_gone() -> None:
    where = "FROM NAMED WINDOW :w ON :a [RANGE 3ms] WHERE { WINDOW :w { ?s :p ?p } }"
    shown: dict[tuple[str, str], list[Any]] = {}
    for output in ("ISTREAM", "DSTREAM"):
        for form in ("SELECT ?s", "ASK", "CONSTRUCT { ?s :is [ :of ?p ] }"):
            bound_query = bound(f"REGISTER {output} :out AS {form} {where}", start="start_ms = 0")
            query, _ = at_work(bound_query)
            answers = feed(
                query,
                bound_query,
                Record(1, "k", 1),
                Record(4, "k", 1),
                Record(5, "l", 1),
                Record(12, "k", 1),
            )
            shown[output, form.split()[0]] = [
                len(answer.triples)
                if answer.form == "construct"
                else answer.boolean
                if answer.form == "ask"
                else [str(row.bindings["s"])[-1] for row in answer.rows]
                for answer in answers
            ]
    assert shown == {
        ("ISTREAM", "SELECT"): [["k"], ["l"], [], ["k"]],
        ("DSTREAM", "SELECT"): [[], [], ["k", "l"], []],
        ("ISTREAM", "ASK"): [True, False, False, True],
        ("DSTREAM", "ASK"): [False, False, True, False],
        ("ISTREAM", "CONSTRUCT"): [2, 2, 0, 2],
        ("DSTREAM", "CONSTRUCT"): [0, 0, 4, 0],
    }


def test_static_graphs_are_read_once_and_described_with_the_windows(tmp_path: Path) -> None:
    file = tmp_path / "static.ttl"
    file.write_text(
        "@prefix : <http://example.org/> .\n:k :lives [ :in :town ] ; :age 03 .\n:z :age 1 .\n"
    )
    graphs = f'[graphs."{NS}static"]\npath = "{file}"'
    text = f"DESCRIBE ?s {ONE} FROM :static WHERE {{ ?s :age ?age WINDOW :w {{ ?s :p ?p }} }}"
    bound_query = bound(text, start="start_ms = 0", graphs=graphs)
    query, _ = at_work(bound_query)
    file.unlink()
    (answer,) = feed(query, bound_query, Record(1, "k", 7), Record(9, "l", 2))
    assert answer.form == "describe"
    assert [line.replace(NS, "") for line in answer.triples] == [
        '<k> <age> "3"^^<http://www.w3.org/2001/XMLSchema#integer> .',
        "<k> <lives> _:g0b1 .",
        '<k> <p> "7"^^<http://www.w3.org/2001/XMLSchema#integer> .',
        "_:g0b1 <in> <town> .",
    ] or answer.triples[-1] == f"_:g0b0 <{NS}in> <{NS}town> ."
    with pytest.raises(
        UserError,
        match=r"static\.ttl: the graph <http://example.org/static> cannot be read: No such",
    ):
        at_work(bound_query)
    file.write_text("@prefix : <http://example.org/> .\n:k :lives\n")
    with pytest.raises(
        UserError, match=r"static\.ttl:\d: the graph <http://example.org/static> cannot be read"
    ):
        at_work(bound_query)


def test_now_is_when_the_window_closes() -> None:
    text = f"SELECT ?s (NOW() AS ?now) {ONE} WHERE {{ WINDOW :w {{ ?s :p ?p }} }}"
    bound_query = bound(text, start="start_ms = 0")
    (answer,) = feed(at_work(bound_query)[0], bound_query, Record(1, "k", 7), Record(9, "k", 7))
    assert [str(row.bindings["now"]) for row in answer.rows] == ["1970-01-01T00:00:00.009Z"]


def test_what_the_sparql_engine_does_not_know_is_said_before_anything_runs() -> None:
    query = parse("SELECT (<urn:nobody>(?p) AS ?x) WHERE { ?s <urn:p> ?p }")
    with pytest.raises(EvaluationError, match="custom function <urn:nobody> is not supported"):
        Evaluator(query, LocalEngine())


def test_what_the_catalog_lacks_is_said_with_what_is_near() -> None:
    text = """SELECT ?s FROM NAMED WINDOW :w ON :c [RANGE 9ms] FROM :static FROM NAMED :w
              WHERE { WINDOW :w { ?s :p ?p } SERVICE :peopel { ?s :friend ?f } }"""
    with pytest.raises(QueryError) as caught:
        bound(text)
    found = {each.code: each for each in caught.value.diagnostics}
    assert sorted(found) == ["duplicate-name", "unknown-graph", "unknown-service", "unknown-stream"]
    assert found["unknown-service"].hint == "did you mean <http://example.org/people>?"
    assert found["unknown-graph"].line == 2
