"""Choose the strategy: plan a top-k query for the incremental operators, or say why not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from rspql import ast
from rspql.diagnostics import Diagnostic
from rspql.passes.beside_windows import FromStream, is_of_stream, joins_more
from rspql.passes.check_names import calls_own
from rspql.passes.computed_columns import computed_columns
from rspql.passes.finish import finish
from rspql.passes.gather_aggregates import Gathering, gatherings, with_gathered
from rspql.passes.join_services import JOINED, JoinedServices, join_services
from rspql.passes.join_windows import JoinedParts, push_to_parts, read_windows, window_parts
from rspql.passes.not_incremental import JoinsMore, NotIncremental
from rspql.passes.numbers_alone import check_arithmetic, check_conditions, check_remote_values
from rspql.passes.order_by_term import by_term, with_place
from rspql.passes.plan_windowed import VOLATILE, expander
from rspql.passes.planned_score import check_numeric, planned_score
from rspql.passes.push_filters import PushedFilters, push_filters
from rspql.passes.read_stream import StreamPart, read_stream
from rspql.passes.recognise_topk import Ranking, last_binds, written_out
from rspql.passes.record_pattern import as_evaluated, check_bound, with_binds
from rspql.passes.roll_up import groups_the_join, rolled_up
from rspql.passes.split_sources import Sources
from rspql.passes.stream_filters import check_stream_filters
from rspql.plan import AtClose, Join, PlannedService, RollUp, Score, TopKPlan, WindowedPlan
from rspql.scope import Names, certain, selected, used_in, visible
from rspql.scoring import FunctionRegistry, check_expression, to_sparql, with_ordered_nan


def plan_incremental(
    query: ast.Query,
    sources: Sources,
    ranking: Ranking,
    windowed: WindowedPlan,
    functions: FunctionRegistry,
    found: list[Diagnostic],
    at_close: AtClose | None = None,
) -> TopKPlan:
    """Return the plan of a normalised top-k query: WINDOW, ⋈ SERVICE if any, EXTEND, ORDER, LIMIT.

    Other plans order by the first key as a term, and gather solutions for aggregates of terms: they
    are taken if the first cannot be had, or :attr:`~TopKPlan.otherwise`. Raises
    :class:`NotIncremental` with the first reason why the query does not have that form. Appends
    mistakes in the score to ``found``.
    """
    mistakes: list[Diagnostic] = []
    plans: list[TopKPlan] = []
    refusals: list[NotIncremental] = []
    for asked, each in _ways(query, ranking, at_close):
        own: list[Diagnostic] = []
        try:
            plan = _ranked(asked.query, sources, each, windowed, functions, own, at_close)
            made = with_gathered(plan, query, asked, functions)
        except NotIncremental as refusal:
            refusals.append(refusal)
            continue
        if each is ranking and not plans:
            mistakes = own
        if not own or not plans:
            plans.append(made)
    if at_close is None and not groups_the_join(query):
        try:
            plans.append(_on_terms(query, sources, ranking, windowed, functions))
        except NotIncremental as refusal:
            refusals.append(refusal)
    if not plans:
        raise refusals[0]
    found += mistakes
    first, *others = plans
    return replace(first, otherwise=tuple(others))


def _ways(
    query: ast.Query, ranking: Ranking, at_close: AtClose | None
) -> Iterator[tuple[Gathering, Ranking]]:
    """Yield the queries to plan, with what is gathered beside each, and the ranking to take."""
    plain = Gathering(query)
    yield plain, ranking
    if at_close:
        return
    term = by_term(query, ranking)
    yield plain, term
    tried: list[Gathering] = []
    for each in (ranking, term):
        for gathering in gatherings(query, each):
            if gathering in tried:
                continue
            tried.append(gathering)
            if each is ranking:
                yield gathering, ranking
            yield gathering, by_term(gathering.query, ranking)


def _on_terms(
    query: ast.Query,
    sources: Sources,
    ranking: Ranking,
    windowed: WindowedPlan,
    functions: FunctionRegistry,
) -> TopKPlan:
    """Return the plan that computes with values of any kind, per distinct tuple of terms."""
    refusal = NotIncremental("it needs terms of aggregates or of several windows", query)
    joined = _joined(query, sources, ranking, functions, refusal, None, None, on_terms=True)
    stars = replace(sources, records=sources.records | {JOINED.value})
    found: list[Diagnostic] = []
    plan = _with_one_service(
        joined.query, stars, joined.ranking, windowed, functions, found, None, joined.join, None
    )
    if found:
        raise NotIncremental(found[0].message, query)
    return replace(plan, on_terms=True)


def _ranked(
    query: ast.Query,
    sources: Sources,
    ranking: Ranking,
    windowed: WindowedPlan,
    functions: FunctionRegistry,
    mistakes: list[Diagnostic],
    at_close: AtClose | None,
) -> TopKPlan:
    """Return the plan of a query with its ranking; appends mistakes in the score."""
    roll_up: RollUp | None = None
    if groups_the_join(query):
        if at_close:
            raise NotIncremental("it groups a join by time", query)
        groups = rolled_up(query)
        roll_up = groups.roll_up
        is_by_term = ranking.only_place
        query, ranking = groups.query, groups.ranking
        ranking = by_term(query, ranking) if is_by_term else ranking
    try:
        _check_past(sources)
        plan = _with_one_service(
            query, sources, ranking, windowed, functions, mistakes, at_close, roll_up=roll_up
        )
    except NotIncremental as refusal:
        mistakes.clear()
        stars = replace(sources, records=sources.records | {JOINED.value})
        try:
            joined = _joined(query, sources, ranking, functions, refusal, at_close, roll_up)
            plan = _with_one_service(
                joined.query,
                stars,
                joined.ranking,
                windowed,
                functions,
                mistakes,
                at_close,
                joined.join,
                roll_up,
            )
        except NotIncremental as other:
            raise (other if refusal.joins_more else refusal) from None
    return plan


def _check_past(sources: Sources) -> None:
    """Raise if past values of a remote are needed: they are joined here."""
    for part in sources.remotes:
        for each in part.past:
            raise JoinsMore(f"it looks back at ?{each.variable}", part.pattern)


def _joined(
    query: ast.Query,
    sources: Sources,
    ranking: Ranking,
    functions: FunctionRegistry,
    refusal: NotIncremental,
    at_close: AtClose | None,
    roll_up: RollUp | None,
    *,
    on_terms: bool = False,
) -> JoinedServices:
    """Return a query whose remotes' side is joined here, if it was refused as it is.

    Raises the refusal again if the query asks no service, and reads no static graph.
    """
    assert query.where is not None
    windows = [each for each in query.where.elements if is_of_stream(each)]
    if not windows or not (joins_more(query) or on_terms):
        raise refusal
    _check_clauses(query, ranking)
    part = read_windows(windows, at_close)
    if on_terms and _needs_more(part, windows):
        raise refusal

    def is_numeric(expression: ast.Expression, is_condition: bool) -> bool:
        if is_condition and roll_up is not None:
            return False  # what it lets pass is added up, so it is decided before
        try:
            if is_condition:
                check_conditions((expression,), functions)
            else:
                check_arithmetic(expression, functions)
                problems: list[Diagnostic] = []
                check_expression(expression, problems, functions=functions)
                if problems:
                    return False
            check_remote_values(expression, part.bound, is_condition=is_condition)
        except NotIncremental:
            return False
        return True

    past = {part.pattern: part.past for part in sources.remotes}
    keys = part.aggregate.keys if part.aggregate else None
    needed = roll_up.keys if roll_up else ()
    return join_services(
        query,
        ranking,
        windows,
        part.bound,
        functions,
        is_numeric,
        past,
        sources.records,
        keys=keys,
        needed=needed,
        on_terms=on_terms,
    )


def _needs_more(part: StreamPart | JoinedParts, windows: list[FromStream]) -> bool:
    """Return True if more than terms of one window is scored, or quotients that lack digits."""
    if isinstance(part, JoinedParts) or part.aggregate is not None:
        return True
    nodes = (node for window in windows for node in ast.walk(window))
    return any(isinstance(node, ast.Binary) and node.operator == "/" for node in nodes)


def _with_one_service(
    query: ast.Query,
    sources: Sources,
    ranking: Ranking,
    windowed: WindowedPlan,
    functions: FunctionRegistry,
    found: list[Diagnostic],
    at_close: AtClose | None,
    join: Join | None = None,
    roll_up: RollUp | None = None,
) -> TopKPlan:
    """Return the plan of a query that asks one service at most, which may stand for several."""
    _check_clauses(query, ranking)
    elements, service, filters = _parts(query)
    part = read_windows(elements, at_close)
    if ranking.only_place:
        ranking = with_place(ranking, part, functions)
    for element, each in zip(elements, map(read_stream, elements), strict=True):
        if each.group is not None and ranking.expression is not None:
            ranking = replace(ranking, expression=with_binds(ranking.expression, each.group))
        _check_scopes(query, element, each)
    outputs = dict.fromkeys(join.outputs) if join else {}
    remote = {**visible(service.group), **outputs} if service else {}
    inputs = join.inputs if join else tuple(name for name in part.bound if name in remote)
    if service and not join:
        _check_join(inputs, service, part)
    decided = _decided_by(service, sources)
    written = [_written(each, query) for each in filters]
    joined = part if isinstance(part, JoinedParts) else None
    pushed, own = push_to_parts(joined, written, decided) if joined else (None, ())
    pushed = pushed or _pushed(part, written, decided)
    _check_decidable([*written, *pushed.stream, *pushed.joined])
    check_stream_filters(pushed.stream, functions)
    if part.aggregate or not service:
        check_numeric(ranking, functions)
    score = planned_score(ranking, pushed, part, remote, functions, found)
    if roll_up:
        _check_roll_up(roll_up, part, remote, score)
    if part.group is not None and part.aggregate is None:
        matched = join.matched_inputs if join else inputs
        check_bound(part.group, matched, pushed.joined, score.expression, is_all=True)
    return TopKPlan(
        name=windowed.name,
        output=windowed.output,
        window=next(each for each in sources.windows if each.name == part.window),
        stream_pattern=part.pattern,
        stream_variables=tuple(part.solved),
        stream_filters=() if joined else pushed.stream,
        aggregate=part.aggregate,
        service=_asked(service, remote, pushed.remote, functions) if service else None,
        join_variables=inputs,
        score=score,
        k=ranking.k,
        offset=ranking.offset,
        projection=tuple(selected(query)),
        windowed=windowed,
        in_digits=windowed,
        computed=computed_columns(query, score.variable, functions, ranking.more_keys),
        finish=finish(query, ranking, part, remote, functions, roll_up),
        stream_group=None if part.group is None else as_evaluated(part.group, functions),
        join=join,
        parts=window_parts(joined, own, sources.windows, inputs, pushed.joined, score, functions)
        if joined
        else (),
        is_linked=part.is_linked,
        roll_up=roll_up,
        at_close=at_close,
    )


def _check_roll_up(roll_up: RollUp, part: StreamPart, remote: Names, score: Score) -> None:
    """Raise if groups of a join depend on more than its rows say, or if a score does."""
    if score.remote_variables:
        raise JoinsMore("a score of groups needs what a SERVICE says", score.expression)
    for key in roll_up.keys:
        if key not in remote and key not in part.bound:
            raise JoinsMore(f"?{key}, which it groups by, is computed", score.expression)


def _check_clauses(query: ast.Query, ranking: Ranking) -> None:
    """Raise if the query has clauses for which there is no incremental operator."""
    assert isinstance(query.form, ast.Select)
    if query.group_by or query.having:
        what = (
            "groups the joined solutions"
            if joins_more(query)
            else "orders groups by what is neither grouped by nor aggregated"
        )
        raise NotIncremental(f"it {what}", query)
    if query.values:
        raise NotIncremental("VALUES stands behind the query", query)


def _parts(
    query: ast.Query,
) -> tuple[list[FromStream], ast.ServicePattern | None, list[ast.Expression]]:
    """Return the patterns on windows, the one service, if any, and their filters."""
    assert query.where is not None
    elements = query.where.elements
    for element in elements:
        # Assigned names are replaced by their expressions where they are used: in the score or in
        # another expression.
        is_plain = isinstance(element, ast.ServicePattern | ast.Filter | ast.Assignment)
        if not is_plain and not is_of_stream(element):
            raise JoinsMore(_why_not(element), element)
    if len(last_binds(query)) < sum(isinstance(element, ast.Assignment) for element in elements):
        raise NotIncremental("a BIND stands before what it is joined with", elements[0])
    windows = [element for element in elements if is_of_stream(element)]
    services = [element for element in elements if isinstance(element, ast.ServicePattern)]
    if not windows:
        raise NotIncremental("it matches no pattern against a window", query.where)
    if len(services) > 1:
        raise JoinsMore("it asks several services", services[1])
    filters = [each.expression for each in elements if isinstance(each, ast.Filter)]
    return windows, services[0] if services else None, filters


def _why_not(element: ast.Pattern) -> str:
    if isinstance(element, ast.OptionalPattern) and any(
        isinstance(each, ast.ServicePattern) for each in ast.walk(element)
    ):
        return "the SERVICE is optional"
    if any(isinstance(each, ast.SubSelect) for each in ast.walk(element)):
        return "there is more than a sub-query within the braces around it"
    return "there is more beside the WINDOW and SERVICE patterns"


def _check_scopes(query: ast.Query, element: ast.Pattern, part: StreamPart) -> None:
    """Raise if a name hidden in a sub-query has another meaning outside it."""
    assert query.where is not None
    others = [each for each in query.where.elements if each is not element]
    windows = [each for each in others if is_of_stream(each)]
    rest = (query.form, *(each for each in others if each not in windows), *query.order)
    outside = {**visible(ast.Group(tuple(windows)))}
    outside.update((name, None) for node in rest for name in used_in(node))
    for name in part.hidden:
        if name in outside:
            raise NotIncremental(
                f"?{name} within the sub-query is not the ?{name} outside it", element
            )


def _decided_by(service: ast.ServicePattern | None, sources: Sources) -> Names:
    """Return the variables that a service can filter by: none if it has records."""
    if service is None or not isinstance(service.service, ast.Iri):
        return {}
    return {} if service.service.value in sources.records else certain(service.group)


def _pushed(part: StreamPart, filters: list[ast.Expression], remote: Names) -> PushedFilters:
    """Return the filters of a query by where they are decided, including those in the WINDOW.

    On arrival only the key of an aggregate's solution is known. Filters that need only the
    variables ``remote`` are sent to the remote.
    """
    on_arrival = part.bound if part.aggregate is None else dict.fromkeys(part.aggregate.keys)
    pushed = push_filters([*filters, *part.later], on_arrival, remote)
    inside = push_filters(part.filters, part.solved, {})
    return replace(pushed, stream=pushed.stream + inside.stream)


def _check_join(join: tuple[str, ...], service: ast.ServicePattern, part: StreamPart) -> None:
    if len(join) > 1:
        shown = ", ".join(f"?{name}" for name in join)
        raise NotIncremental(f"it joins on more than one variable ({shown})", service)
    if not join:
        raise NotIncremental("the WINDOW and SERVICE patterns share no variable", service)
    if join[0] not in certain(service.group):
        raise NotIncremental(f"the SERVICE does not always bind ?{join[0]}", service)
    if part.aggregate and part.aggregate.more_keys:
        raise JoinsMore("it groups by several keys, and joins on one of them", service)
    if part.aggregate and join[0] != part.aggregate.key:
        raise NotIncremental(f"it joins on ?{join[0]}, which is an aggregate", service)


def _written(expression: ast.Expression, query: ast.Query) -> ast.Expression:
    # A filter is decided before SELECT computes anything.
    written = written_out(expression, query, selected=False)
    if written is None:
        raise NotIncremental("an expression is too large with all names written out", expression)
    return written


def _check_decidable(filters: list[ast.Expression]) -> None:
    """Raise for filters that must be decided here, at the window's close."""
    for each in filters:
        for node in ast.walk(each):
            if isinstance(node, ast.Exists) or (
                isinstance(node, ast.Call) and node.function in VOLATILE
            ):
                raise NotIncremental("a filter is decided at the window's close", node)


def _plain(expression: ast.Expression, functions: FunctionRegistry) -> ast.Expression:
    plain = to_sparql(expression, functions)
    if plain is None or calls_own(plain):
        raise NotIncremental(
            "the remote does not know a function that filters what it has", expression
        )
    return with_ordered_nan(plain, keeps_only_true=True)


def _asked(
    pattern: ast.ServicePattern,
    variables: Names,
    filters: tuple[ast.Expression, ...],
    functions: FunctionRegistry,
) -> PlannedService:
    """Return the request to a remote: the pattern, and the filters that it can decide alone."""
    assert isinstance(pattern.service, ast.Iri), "split_sources lets only IRIs pass"
    own = ast.rewritten(pattern.group, expander(functions)).elements
    inner = own + tuple(ast.Filter(_plain(each, functions)) for each in filters)
    return PlannedService(pattern.service, ast.Group(inner), tuple(variables))
