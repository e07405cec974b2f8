"""Results of a window's rows with what the remotes had at its close.

One solution of one service is joined by arrays; all others by a SPARQL engine over an RDF graph for
each service, in which every solution is a node.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import pyoxigraph as ox

from acquatop.ingest.composite_keys import terms_of_key
from acquatop.lab.replay.past_solutions import with_past
from acquatop.lab.replay.remote_history import RemoteState, numbers_of
from acquatop.lab.replay.trace import Trace
from acquatop.topk.contract import AnyArray, FloatArray, IntArray
from replica.store import Solution
from replica.terms import is_term
from rspql import ast
from rspql.plan import Join, JoinedService, TopKPlan
from rspql.printer import inside_text

_MOST = 1_000
"""Number of keys that are joined at once."""


@dataclass(frozen=True)
class JoinedRows:
    """Results of some rows: the position of each one's row, and the remotes' numbers.

    If a row may have several results, ``terms`` has those of the remotes for each of them.
    """

    rows: IntArray
    numbers: Mapping[str, FloatArray]
    terms: Sequence[Solution] | None = None


class RightRemote(Protocol):
    """State of the remotes at a window's close."""

    def results(self, keys: IntArray) -> JoinedRows:
        """Return the results of rows with some keys, by their positions among all."""


def joined_names(plan: TopKPlan) -> Sequence[str]:
    """Return the variables that the remotes bind, without the key of a single one."""
    return _join_of(plan).outputs


def right_remotes(trace: Trace, keys: AnyArray, closes_ms: Sequence[int]) -> Iterator[RightRemote]:
    """Yield the remotes' state at each close; ``keys`` are the stream's."""
    if trace.has_one_solution:
        (history,) = trace.histories
        places = {key: place for place, key in enumerate(history.keys)}
        found = np.array([places.get(key, -1) for key in keys], dtype=np.int64)
        variables = trace.bound.plan.score.remote_variables
        return (OneSolution(found, state) for state in history.states(closes_ms, variables))
    return _several(trace, keys, closes_ms)


@dataclass(frozen=True)
class OneSolution:
    """Remote with one solution of a key; ``places`` has each key's position there."""

    places: IntArray
    state: RemoteState

    def results(self, keys: IntArray) -> JoinedRows:
        """Return a result for each row whose key has a solution."""
        places = self.places[keys]
        rows = np.flatnonzero(places >= 0)
        rows = rows[self.state.present[places[rows]]]
        numbers = {name: column[places[rows]] for name, column in self.state.numbers.items()}
        return JoinedRows(rows, numbers)


def _several(trace: Trace, keys: AnyArray, closes_ms: Sequence[int]) -> Iterator[RightRemote]:
    plan = trace.bound.plan
    join = _join_of(plan)
    graphs = _Graphs(join)
    state = _Several(plan, keys, graphs)
    histories = [
        with_past(each.past, history, closes_ms, since_ms=trace.start_ms)
        for each, history in zip(join.services, trace.histories, strict=True)
    ]
    for changes in zip(*histories, strict=True):
        for service, said in enumerate(changes):
            for key, solutions in said.items():
                graphs.put(service, key, solutions)
        if any(changes):
            state.known.clear()
        yield state


@dataclass
class _Several:
    """Remotes of a join, with the results of the keys that have been looked up."""

    plan: TopKPlan
    keys: AnyArray
    graphs: _Graphs
    known: dict[int, Sequence[Solution]] = field(default_factory=dict)

    def results(self, keys: IntArray) -> JoinedRows:
        """Return all results of each row."""
        new = [key for key in dict.fromkeys(keys.tolist()) if key not in self.known]
        for first in range(0, len(new), _MOST):
            some = new[first : first + _MOST]
            self.known.update(
                zip(some, self.graphs.join([self.keys[key] for key in some]), strict=True)
            )
        several = [self.known[key] for key in keys.tolist()]
        terms = [each for found in several for each in found]
        rows = np.repeat(np.arange(len(keys)), [len(found) for found in several])
        numbers = {name: numbers_of(terms, name) for name in self.plan.score.remote_variables}
        return JoinedRows(rows, numbers, terms)


class _Graphs:
    """RDF graph for each service of a join: a node for each solution, a property per variable."""

    def __init__(self, join: Join) -> None:
        self._join = join
        self._store = ox.Store()
        self._nodes: dict[tuple[int, str], list[ox.NamedNode]] = {}
        self._solutions: dict[str, Solution] = {}
        self._count = 0
        self._rows: list[str] = []
        patterns = {each.pattern: at for at, each in enumerate(join.services)}

        def matched(node: ast.Node) -> ast.Node:
            if not isinstance(node, ast.ServicePattern):
                return node
            row = ast.Variable(f"acquatop_row{len(self._rows)}")
            self._rows.append(row.name)
            service = patterns[node]
            triples = (
                ast.TriplePattern(row, ast.Iri(_property(name)), ast.Variable(name))
                for name in join.services[service].columns
            )
            return ast.GraphPattern(ast.Iri(_graph(service)), ast.Group(tuple(triples)))

        self._text = inside_text(ast.rewritten(join.group, matched))
        said = {name for each in join.services for name in each.columns}
        self._computed = [name for name in join.outputs if name not in said]

    def put(self, service: int, key: str, solutions: Sequence[Solution]) -> None:
        """Replace the solutions of a key."""
        graph = ox.NamedNode(_graph(service))
        for node in self._nodes.pop((service, key), ()):
            del self._solutions[node.value]
            for quad in list(self._store.quads_for_pattern(node, None, None, graph)):
                self._store.remove(quad)
        lines: list[str] = []
        for solution in solutions:
            self._count += 1
            node = ox.NamedNode(f"urn:acquatop:solution:{self._count}")
            self._nodes.setdefault((service, key), []).append(node)
            self._solutions[node.value] = solution
            lines += (
                f"{node} <{_property(name)}> {term} {graph} .\n" for name, term in solution.items()
            )
        self._store.load("".join(lines).encode(), format=ox.RdfFormat.N_QUADS)

    def join(self, keys: Sequence[str]) -> list[list[Solution]]:
        """Return the results of each key."""
        inputs = self._join.inputs
        tuples = [list(terms_of_key(inputs, key).values()) for key in keys]
        given = " ".join(
            f"({at} {' '.join(terms)})"
            for at, terms in enumerate(tuples)
            if all(map(is_term, terms))
        )
        names = " ".join(f"?{name}" for name in inputs)
        shown = " ".join(f"?{name}" for name in ("acquatop_at", *self._rows, *self._computed))
        found = self._store.query(
            f"SELECT {shown} {{ VALUES (?acquatop_at {names}) {{ {given} }} {self._text} }}"
        )
        assert isinstance(found, ox.QuerySolutions)
        results: list[list[Solution]] = [[] for _ in keys]
        for row in found:
            at = row["acquatop_at"]
            assert isinstance(at, ox.Literal)
            results[int(at.value)].append(self._terms(row))
        return results

    def _terms(self, row: ox.QuerySolution) -> Solution:
        terms: dict[str, str] = {}
        for name in self._rows:
            node = row[name]
            if isinstance(node, ox.NamedNode):
                terms = {**self._solutions[node.value], **terms}
        terms.update((name, str(row[name])) for name in self._computed if row[name] is not None)
        return {name: terms[name] for name in self._join.outputs if name in terms}


def _join_of(plan: TopKPlan) -> Join:
    """Return the join of a plan's services, or of its only one."""
    if plan.join is not None:
        return plan.join
    service = plan.service
    assert service is not None
    (key,) = plan.join_variables
    pattern = ast.ServicePattern(service.iri, service.group)
    asked = JoinedService(pattern, service.iri, service.variables, (key,), None)
    others = tuple(name for name in service.variables if name != key)
    return Join((key,), ast.Group((pattern,)), (asked,), others)


def _graph(service: int) -> str:
    return f"urn:acquatop:service:{service}"


def _property(name: str) -> str:
    return f"urn:acquatop:variable:{name}"
