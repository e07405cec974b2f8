"""Checks of a query without running it: its text, its plan, the names that it uses in a catalog."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from acquatop.plan.reading_order import ReadInACircle, reading_order
from rspql import ast
from rspql.compiler import Analysis, analyse
from rspql.diagnostics import QueryError
from rspql.parser import parse
from rspql.plan import TopKPlan
from rspql.scoring import DEFAULT_FUNCTIONS, FunctionRegistry

if TYPE_CHECKING:
    from acquatop.catalog.catalog import Catalog
    from acquatop.plan.strategy import Choice


def check_query(
    text: str,
    *,
    catalog: Catalog | None = None,
    functions: FunctionRegistry = DEFAULT_FUNCTIONS,
    bare_unit: str | None = None,
    file: str = "<query>",
) -> Analysis:
    """Return the analysis of a query; with a catalog, it covers the names looked up there, too."""
    prefixes: Mapping[str, str] = catalog.prefixes if catalog else {}
    if catalog is not None and catalog.functions:
        from acquatop.catalog.functions import with_declared

        functions = with_declared(functions, catalog.functions)
    analysis = analyse(
        text,
        prefixes=prefixes,
        functions=functions,
        records=catalog.records if catalog else (),
        bare_unit=bare_unit,
        file=file,
    )
    if catalog is None or analysis.plan is None:
        return analysis
    from acquatop.plan.bind import bind_plan

    try:
        bound = bind_plan(analysis.plan, catalog, text=text, file=file)
    except QueryError as error:
        return replace(analysis, plan=None, diagnostics=analysis.diagnostics + error.diagnostics)
    analysis = replace(analysis, diagnostics=analysis.diagnostics + bound.warnings)
    if bound.reason is not None:
        return replace(analysis, plan=bound.plan, reason=bound.reason)
    plan = bound.plan
    if isinstance(plan, TopKPlan) and (plan.score.only_place or plan.gathered or plan.on_terms):
        return replace(analysis, plan=plan)
    return analysis


def check_together(
    texts: Sequence[tuple[str, str]],
    *,
    catalog: Catalog | None = None,
    bare_unit: str | None = None,
) -> tuple[list[Analysis], Catalog | None]:
    """Return the analyses of queries that may read each other's answers, and the catalog of all.

    ``texts`` are names of files and texts. The catalog has the streams that the queries make.
    """
    known = {} if catalog is None else catalog.streams
    parsed = [_parsed(text, catalog, bare_unit) for _, text in texts]
    circle: ReadInACircle | None = None
    try:
        order = reading_order(parsed, known)
    except ReadInACircle as found:
        circle, order = found, list(range(len(texts)))
    analyses: dict[int, Analysis] = {}
    for at in order:
        file, text = texts[at]
        analysis = check_query(text, catalog=catalog, bare_unit=bare_unit, file=file)
        if circle is not None and circle.query == at:
            analysis = Analysis(text, file, (circle.finding,), analysis.query)
        catalog = _with_stream_of(analysis, catalog)
        analyses[at] = analysis
    return [analyses[at] for at in range(len(texts))], catalog


def _parsed(text: str, catalog: Catalog | None, bare_unit: str | None) -> ast.Query | None:
    prefixes = catalog.prefixes if catalog is not None else {}
    try:
        return parse(text, prefixes=prefixes, bare_unit=bare_unit)
    except QueryError:
        return None


def _with_stream_of(analysis: Analysis, catalog: Catalog | None) -> Catalog | None:
    if catalog is None or analysis.plan is None or not analysis.ok:
        return catalog
    from acquatop.plan.answers_stream import made_by, with_answers
    from acquatop.plan.bind import bind_plan

    bound = bind_plan(analysis.plan, catalog, text=analysis.text, file=analysis.file)
    return with_answers(catalog, [made_by(bound)])


def answers_in(analysis: Analysis, catalog: Catalog | None) -> dict[str, str]:
    """Return the queries whose answers a query reads, by their streams."""
    if catalog is None or analysis.query is None:
        return {}
    streams = (catalog.streams.get(each.stream.value) for each in analysis.query.windows)
    return {each.iri: each.query for each in streams if each is not None and each.query is not None}


def check_syntax(text: str, *, bare_unit: str | None = None, file: str = "<query>") -> Analysis:
    """Return the syntax errors of a text as RSP-QL.

    Relative IRIs and unknown names are no errors.
    """
    try:
        query = parse(text, bare_unit=bare_unit, file=file)
    except QueryError as error:
        return Analysis(text, file, error.diagnostics)
    return Analysis(text, file, (), query)


def replicas_of(catalog: Catalog | None) -> dict[str, dict[str, Any]]:
    """Return the refresh settings of each service, by its IRI, for an explanation."""
    if catalog is None:
        return {}
    return {
        iri: {
            "policy": service.refresh.policy,
            "proposer": service.refresh.policy.partition("-")[0],
            "ranker": service.refresh.policy.partition("-")[2],
            "n": None if service.refresh.chooses_n else service.refresh.n,
            "solutions": service.solutions,
            "items": service.refresh.budget.items,
            "requests": service.refresh.budget.requests,
            "deadline_ms": round(1000 * service.refresh.budget.seconds),
            "shared": service.refresh.shared,
        }
        for iri, service in catalog.services.items()
    }


def structure_of(analysis: Analysis, catalog: Catalog | None) -> dict[str, Any] | None:
    """Return the structure for a top-k query's candidates, and the reason.

    None without a choice.
    """
    if catalog is None or analysis.plan is None:
        return None
    from acquatop.catalog.vocabulary import Strategy
    from acquatop.plan.bind import bind_plan
    from acquatop.plan.bound import BoundTable
    from acquatop.plan.grouping import can_share, choice_among, fewest_that_share

    bound = bind_plan(analysis.plan, catalog, text=analysis.text, file=analysis.file)
    if isinstance(bound, BoundTable):
        return {**_chosen(bound.structure), "kmax": bound.kmax}
    if not can_share(bound):
        return None if bound.structure is None else _chosen(bound.structure)
    choice, fewest = choice_among(bound), fewest_that_share(bound)
    if fewest is None or fewest == 1:
        return _chosen(choice)
    together = f"{fewest} like it or more share a {Strategy.SHARED}"
    return _chosen(replace(choice, why=f"{choice.why}; {together}"))


def sent_of(analysis: Analysis, catalog: Catalog | None) -> str | None:
    """Return what executors send to the driver for a query; None without a catalog.

    None, too, if it reads only answers of other queries, which are in the driver.
    """
    if catalog is None or analysis.plan is None:
        return None
    from acquatop.plan.bind import bind_plan
    from acquatop.plan.sent import sent_for

    bound = bind_plan(analysis.plan, catalog, text=analysis.text, file=analysis.file)
    return None if all(each.query for each in bound.streams) else sent_for(bound)


def _chosen(choice: Choice) -> dict[str, Any]:
    error = {} if choice.error is None else {"error": choice.error}
    name, because = str(choice.strategy), choice.why
    return {"name": name, "because": because, "shared": choice.is_shared, **error}
