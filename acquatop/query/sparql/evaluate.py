"""Evaluation of a query over windows' content by a SPARQL engine: equal content, equal bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeGuard

from pyoxigraph import (
    BlankNode,
    Literal,
    NamedNode,
    QueryBoolean,
    QueryResultsFormat,
    QuerySolution,
    parse_query_results,
)

from acquatop.catalog.graphs import is_static
from acquatop.instants import instant_text
from acquatop.query.sparql.engine import Graphs, SparqlEngine
from acquatop.query.sparql.limited import LimitedRows
from acquatop.query.sparql.template import construct
from acquatop.query.sparql.terms import Solution, Term, text_of
from acquatop.query.sparql.total_order import totally_ordered
from acquatop.query.sparql.written_out_groups import with_written_out_groups
from acquatop.query.sparql.zero_length import with_zero_lengths
from replica.terms import is_blank
from rspql import ast
from rspql.ast import rewritten
from rspql.forms import rows_of
from rspql.plan import RemotePart, StreamPast
from rspql.printer import query_text

Answers = Mapping[ast.ServicePattern, ast.Values]
"""Solutions of the remotes' replicas, for each pattern that is asked of a remote."""


@dataclass(frozen=True)
class SparqlResult:
    """Result of a query: rows, or a boolean, or triples, sorted, each a line of N-Triples.

    ``names`` are the variables that rows may bind, in the order of their selection.
    """

    rows: tuple[Solution, ...] = ()
    names: tuple[str, ...] = ()
    boolean: bool | None = None
    triples: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Found:
    """Result of the engine: the variables that may be bound, and the solutions."""

    names: tuple[str, ...]
    solutions: list[Solution]


class Evaluator:
    """Evaluator of one query over one engine's content, again and again.

    The named graphs are the ``windows`` and those of FROM NAMED; the default graph is made of those
    of FROM. ``NOW()`` is the time that is given.

    Results have a total order (:mod:`acquatop.query.sparql.total_order`). CONSTRUCT and DESCRIBE
    are evaluated as the SELECT of their variables, and the triples are made of its rows. The
    description of a resource is all triples about it, in any graph, and those about the blank nodes
    in them. RAND, UUID and STRUUID give other values each time, as they must. Rows that differ only
    in blank nodes made by BNODE have no order.

    Raises :class:`~acquatop.errors.EvaluationError`, at once for a query that the engine does not
    accept.
    """

    def __init__(
        self,
        query: ast.Query,
        engine: SparqlEngine,
        *,
        windows: Sequence[str] = (),
        remotes: Sequence[RemotePart | StreamPast] = (),
    ) -> None:
        self.form = type(query.form).__name__.lower()
        self._query = query
        self._engine = engine
        self._graphs = Graphs(
            tuple(graph.value for graph in query.default_graphs),
            (*windows, *(graph.value for graph in query.named_graphs)),
        )
        self._nothing = {
            part.pattern: ast.Values(tuple(map(ast.Variable, part.columns)), ()) for part in remotes
        }
        select = with_zero_lengths(query if self.form == "ask" else rows_of(query))
        select = with_written_out_groups(select)
        self._limited = None if query.cut is None else LimitedRows(select, self._visible)
        if self._limited is None:
            self._select = totally_ordered(select, self._visible, always=self.form == "select")
            self._names = self._visible(self._select)
        else:
            self._select, *_ = self._limited.queries
            self._visible(self._select)
            self._names = self._limited.names
        self._sources: dict[tuple[str, ast.Group], ast.Query] = {}

    def evaluate(self, answers: Answers, at_ms: int) -> SparqlResult:
        """Return the result of the query over the store's content, at a time."""
        solutions = self._solutions(answers, at_ms)
        match self._query.form:
            case ast.Ask():
                return SparqlResult(boolean=bool(solutions))
            case ast.Construct(template):
                texts = ({name: text_of(row[name]) for name in row} for row in solutions)
                return SparqlResult(triples=construct(template, texts))
            case ast.Describe(targets):
                return SparqlResult(
                    triples=tuple(self._engine.describe(_resources(targets, solutions)))
                )
            case ast.Select():
                return SparqlResult(rows=tuple(_relabelled(solutions)), names=self._names)

    def _solutions(self, answers: Answers, at_ms: int) -> list[Solution]:
        if self._limited is None:
            return self._run(self._select, answers, at_ms).solutions
        found = (self._run(query, answers, at_ms) for query in self._limited.queries)
        return self._limited.kept([each.solutions for each in found])

    def keys(self, key: str, source: ast.Group, answers: Answers, at_ms: int) -> list[str]:
        """Return a pattern's terms of a variable as sorted N-Triples text, without blank nodes."""
        query = self._source(key, source)
        terms = (solution.get(key) for solution in self._run(query, answers, at_ms).solutions)
        texts = (text_of(term) for term in terms if isinstance(term, NamedNode | Literal))
        return sorted(text for text in texts if not is_blank(text))

    def rows(
        self, names: Sequence[str], source: ast.Group, answers: Answers, at_ms: int
    ) -> list[dict[str, str]]:
        """Return a pattern's distinct solutions as N-Triples texts, without blank nodes."""
        form = ast.Select(tuple(map(ast.Variable, names)), "DISTINCT")
        query = with_zero_lengths(ast.Query(form, source))
        found = []
        for solution in self._run(query, answers, at_ms).solutions:
            row = {
                name: text_of(term)
                for name, term in solution.items()
                if isinstance(term, NamedNode | Literal)
            }
            found.append(row)
        return found

    def _source(self, key: str, source: ast.Group) -> ast.Query:
        """Return the query for the keys of a pattern.

        Its sub-selects are cut as in the query itself.
        """
        if (key, source) not in self._sources:
            keys = ast.Query(ast.Select((ast.Variable(key),), "DISTINCT"), source)
            query = with_zero_lengths(keys)
            self._sources[key, source] = totally_ordered(query, self._visible, always=False)
        return self._sources[key, source]

    def _visible(self, query: ast.Query) -> tuple[str, ...]:
        return self._run(query, self._nothing, 0, on_nothing=True).names

    def _run(
        self, query: ast.Query, answers: Answers, at_ms: int, *, on_nothing: bool = False
    ) -> _Found:
        bare = replace(
            query, windows=(), default_graphs=(), named_graphs=(), registration=None, output=None
        )
        answered = _answered(answers, bare)
        text = query_text(_at(at_ms, answered) if any(map(_is_now, ast.walk(bare))) else answered)
        results = parse_query_results(
            self._engine.select(text, self._graphs, on_nothing=on_nothing), QueryResultsFormat.JSON
        )
        if isinstance(results, QueryBoolean):
            return _Found((), [{}] if results else [])
        names = tuple(variable.value for variable in results.variables)
        return _Found(names, [_solution(names, row) for row in results])


def _answered(answers: Answers, query: ast.Query) -> ast.Query:
    """Return a query with known solutions in place of each SERVICE pattern.

    No SERVICE may be left in it: the engine would send requests itself.
    """
    return rewritten(
        query, lambda node: answers[node] if _is_service(node) else node, opaque=_is_service
    )


def _is_service(node: ast.Node) -> TypeGuard[ast.ServicePattern]:
    return isinstance(node, ast.ServicePattern)


def _at(time_ms: int, query: ast.Query) -> ast.Query:
    """Return a query with a time in place of NOW()."""
    now = ast.Literal(instant_text(time_ms), ast.XSD + "dateTime")
    return rewritten(query, lambda node: now if _is_now(node) else node)


def _is_now(node: ast.Node) -> bool:
    return isinstance(node, ast.Call) and node.function == "now"


def _solution(names: Sequence[str], row: QuerySolution) -> Solution:
    return {name: term for name in names if isinstance(term := row[name], Term)}


def _resources(
    targets: Sequence[ast.Variable | ast.Iri], solutions: Sequence[Solution]
) -> list[str]:
    """Return the resources to describe, as N-Triples text."""
    named = [f"<{target.value}>" for target in targets if isinstance(target, ast.Iri)]
    if targets and not any(isinstance(target, ast.Variable) for target in targets):
        return named
    terms = (term for solution in solutions for term in solution.values())
    found = (text_of(term) for term in terms if not isinstance(term, Literal))
    return list(dict.fromkeys((*named, *found)))


def _relabelled(solutions: Sequence[Solution]) -> Iterator[Solution]:
    """Yield solutions with the engine's own blank nodes relabelled in order of occurrence."""
    labels: dict[str, BlankNode] = {}
    for solution in solutions:
        yield {
            name: labels.setdefault(term.value, BlankNode(f"b{len(labels)}"))
            if isinstance(term, BlankNode) and not is_static(term)
            else term
            for name, term in solution.items()
        }
