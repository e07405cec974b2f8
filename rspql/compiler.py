"""Compiler from text to plan: runs the passes in order."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from rspql import ast
from rspql.diagnostics import Diagnostic, QueryError, in_source_order
from rspql.forms import rows_of
from rspql.parser import parse
from rspql.passes.analyse_score import analyse_score
from rspql.passes.ask_for_stars import ask_for_stars
from rspql.passes.at_close import timed_ranking
from rspql.passes.check_names import check_names
from rspql.passes.check_windows import check_windows
from rspql.passes.exact_calls import ExactCalls
from rspql.passes.filters_in_digits import filters_in_digits
from rspql.passes.look_back import look_back, with_past
from rspql.passes.nest_groups import nest_groups
from rspql.passes.normalise import normalise
from rspql.passes.not_incremental import NotIncremental
from rspql.passes.plan_incremental import plan_incremental
from rspql.passes.plan_windowed import plan_windowed
from rspql.passes.read_table import plan_table, service_alone, with_clock
from rspql.passes.recognise_topk import Ranking, recognise_topk
from rspql.passes.split_sources import split_sources
from rspql.passes.stream_past import with_stream_past
from rspql.plan import Plan, TopKPlan, WindowedPlan
from rspql.scoring import DEFAULT_FUNCTIONS, Direction, FunctionRegistry, Interval


@dataclass(frozen=True)
class Analysis:
    """Result of analysing a query: its plan, unless it has errors, and how the plan was made.

    ``is_topk`` is True if the query was recognised as top-k. ``reason`` is the first reason why it
    was not, or why a top-k query is evaluated window by window all the same.
    """

    text: str
    file: str
    diagnostics: tuple[Diagnostic, ...]
    query: ast.Query | None = None
    plan: Plan | None = None
    is_topk: bool = False
    reason: Diagnostic | None = None
    ranking: Ranking | None = None
    directions: Mapping[str, Direction] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """True if the query can be run."""
        return not any(found.is_error for found in self.diagnostics)


def analyse(
    text: str,
    *,
    prefixes: Mapping[str, str] | None = None,
    base: str = "",
    bare_unit: str | None = None,
    functions: FunctionRegistry = DEFAULT_FUNCTIONS,
    records: Collection[str] = (),
    file: str = "<query>",
) -> Analysis:
    """Return the analysis of a query; never raise for errors in the text.

    ``prefixes`` are known without being declared (a catalog's). ``functions`` are those that
    expressions may call besides SPARQL's own. ``records`` are the IRIs of services that have
    records instead of SPARQL. For the rest see :func:`rspql.parser.parse`.
    """
    try:
        query = parse(text, prefixes=prefixes, base=base, bare_unit=bare_unit, file=file)
    except QueryError as error:
        return Analysis(text, file, error.diagnostics)
    found: list[Diagnostic] = []
    normal = normalise(ask_for_stars(query, records))
    service = service_alone(normal)
    if service is not None:
        return _of_table(Analysis(text, file, ()), query, with_clock(normal, service), functions)
    check_windows(normal, found)
    check_names(normal, functions, found)
    normal, past = look_back(normal, found)
    normal = nest_groups(normal)
    sources = split_sources(normal, found)
    remotes, of_stream = with_past(sources.remotes, past, found)
    normal, before = with_stream_past(normal, of_stream, found)
    sources = replace(sources, remotes=remotes, records=frozenset(records), before=before)
    ranked = rows_of(normal) if _makes_something_of_rows(normal) else normal
    recognised = recognise_topk(ranked, found)
    ranking = recognised if isinstance(recognised, Ranking) else None
    plan: Plan | None = None
    reason = None if isinstance(recognised, Ranking) else recognised
    directions: dict[str, Direction] = {}
    scored = functions
    if not any(each.is_error for each in found):
        output = _output(query)
        windowed = plan_windowed(normal, sources, ranking, output, functions)
        if ranking is not None:
            exact = plan_windowed(
                normal, sources, ranking, output, functions, calls=ExactCalls(functions)
            )
            windowed = replace(windowed, exact=exact if exact.computed else None)
        plan = windowed
        if ranking is not None:
            try:
                timed = timed_ranking(ranked, ranking, before, functions)
                scored = timed.functions if timed else functions
                plan = plan_incremental(
                    timed.query if timed else ranked,
                    sources,
                    timed.ranking if timed else ranking,
                    windowed,
                    scored,
                    found,
                    timed.at_close if timed else None,
                )
                ranking = timed.ranking if timed else ranking
                if plan.roll_up is not None:
                    ranking = replace(ranking, expression=plan.score.expression)
                calls = ExactCalls(functions)
                alike = filters_in_digits(normal, sources, functions, calls)
                in_digits = plan_windowed(
                    *alike, ranking, output, functions, calls=calls, is_numeric=True
                )
                form = normal.form if isinstance(normal.form, ast.Construct | ast.Ask) else None
                plan = _of_form(plan, in_digits, form)
            except NotIncremental as refusal:
                reason = refusal.reason
            if ranking.expression is not None and not any(each.is_error for each in found):
                # The score's direction matters for remote values that are not known yet. Without a
                # remote there are none, and whole windows that look back use what is known.
                said = found if sources.remotes and not past else []
                directions = analyse_score(ranking.expression, scored, _ranges(plan), said)
    return Analysis(
        text,
        file,
        tuple(in_source_order(found)),
        query,
        plan=None if any(each.is_error for each in found) else plan,
        is_topk=ranking is not None,
        reason=reason,
        ranking=ranking,
        directions=directions,
    )


def _of_table(
    empty: Analysis, query: ast.Query, normal: ast.Query, functions: FunctionRegistry
) -> Analysis:
    """Return the analysis of a query that ranks what one SERVICE says, with the clock's window."""
    found: list[Diagnostic] = []
    check_names(normal, functions, found)
    service = service_alone(replace(normal, windows=()))
    assert service is not None, "it is what the clock's window was made for"
    planned = plan_table(normal, service, _output(query), functions, found)
    made = replace(empty, diagnostics=tuple(in_source_order(found)), query=query)
    if planned is None or not made.ok:
        return made
    plan, ranking = planned
    return replace(made, plan=plan, is_topk=True, ranking=ranking)


def compile_query(
    text: str,
    *,
    prefixes: Mapping[str, str] | None = None,
    base: str = "",
    bare_unit: str | None = None,
    functions: FunctionRegistry = DEFAULT_FUNCTIONS,
    records: Collection[str] = (),
    file: str = "<query>",
) -> Plan:
    """Return the plan of an RSP-QL query; as :func:`analyse`, but raise its errors.

    Raises :class:`~rspql.diagnostics.QueryError` with every error; warnings are left out.
    """
    analysis = analyse(
        text,
        prefixes=prefixes,
        base=base,
        bare_unit=bare_unit,
        functions=functions,
        records=records,
        file=file,
    )
    if analysis.plan is None:
        raise QueryError([each for each in analysis.diagnostics if each.is_error], text, file)
    return analysis.plan


def _of_form(
    plan: TopKPlan, in_digits: WindowedPlan, form: ast.Construct | ast.Ask | None
) -> TopKPlan:
    """Return a plan, and those for other values, with what an answer makes of the rows."""
    otherwise = (_of_form(each, in_digits, form) for each in plan.otherwise)
    return replace(plan, in_digits=in_digits, form=form, otherwise=tuple(otherwise))


def _makes_something_of_rows(query: ast.Query) -> bool:
    """Return True if a query is no SELECT, and an answer to it follows from its best rows alone."""
    is_cut = bool(query.order) and bool(query.limit)
    return is_cut and isinstance(query.form, ast.Construct | ast.Ask)


def _ranges(plan: Plan) -> Mapping[str, Interval]:
    return plan.score.ranges if isinstance(plan, TopKPlan) else {}


def _output(query: ast.Query) -> str:
    return query.output or (query.registration.output if query.registration else "RSTREAM")
