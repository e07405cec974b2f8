"""Join of what replicas and static graphs have, for tuples of the stream, by a SPARQL engine."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

import pyoxigraph as ox

from acquatop.catalog.graphs import StaticGraph, load_graphs
from acquatop.errors import EvaluationError
from replica.store import Solution
from replica.terms import is_term
from rspql import ast
from rspql.plan import Join
from rspql.printer import base_text, inside_text

Known = Sequence[Mapping[str, Sequence[Solution]]]
"""Solutions by key, for each service of a join."""

_MARK = "urn:acquatop:part:"
_PLACE = re.compile(rf"SERVICE <{re.escape(_MARK)}(\d+)> {{\s*}}")
_AT = "acquatop_at"
_MOST = 64
"""Number of tuples that are joined at once: the engine compares all rows with all others."""

_MOST_RESULTS = 1_000_000
"""Number of results of these tuples up to which they are kept."""


class LocalJoin:
    """Join of services' solutions and static graphs, as the query says, for some tuples at once.

    The engine has the ``graphs``. It gets the solutions as VALUES, and returns which of them make a
    result: their terms stay as the remotes wrote them. O(t · r) for t tuples and the r solutions of
    at most 64 of them.
    """

    def __init__(self, join: Join, graphs: Iterable[StaticGraph] = ()) -> None:
        self._join = join
        self._store = ox.Store()
        load_graphs(self._store, graphs)
        self._default = [ox.NamedNode(each.value) for each in join.default_graphs]
        self._named = [ox.NamedNode(each.value) for each in join.named_graphs]
        self._parts: list[int] = []
        """Service of each SERVICE pattern, in the order of the text."""
        patterns = {each.pattern: at for at, each in enumerate(join.services)}

        def mark(node: ast.Node) -> ast.Node:
            if not isinstance(node, ast.ServicePattern):
                return node
            self._parts.append(patterns[node])
            place = ast.Iri(f"{_MARK}{len(self._parts) - 1}")
            return ast.ServicePattern(place, ast.Group(()))

        marked = ast.rewritten(join.group, mark)
        base = ast.base_of(marked)
        self._prologue = "" if base is None else base_text(base)
        # In braces, as a sub-query alone would take the place of the whole query.
        self._text = inside_text(ast.Group((marked,)) if _is_sub_query(marked) else marked)
        said = {name for each in join.services for name in each.columns}
        also = _bound_here(marked)
        self._computed = [name for name in join.outputs if name not in said or name in also]
        rows = " ".join(f"?{_row(place)}" for place in range(len(self._parts)))
        computed = " ".join(f"?{name}" for name in self._computed)
        self._select = f"SELECT ?{_AT} {rows} {computed}"
        self.solutions({}, [{}] * len(join.services))

    def solutions(
        self, tuples: Mapping[str, tuple[Sequence[str], Sequence[Sequence[str]]]], known: Known
    ) -> Iterator[tuple[str, Solution]]:
        """Yield each tuple's name and a result.

        ``tuples`` has by name the terms of the join's inputs, empty if unbound, and for each
        service its keys. Raises :class:`~acquatop.errors.EvaluationError` for very many results.
        """
        usable = [
            (name, terms, keys)
            for name, (terms, keys) in tuples.items()
            if all(is_term(term) or not term for term in terms)
        ]
        for first in range(0, max(1, len(usable)), _MOST):
            yield from self._together(usable[first : first + _MOST], known)

    def _together(
        self, tuples: Sequence[tuple[str, Sequence[str], Sequence[Sequence[str]]]], known: Known
    ) -> Iterator[tuple[str, Solution]]:
        rows: list[list[Solution]] = []
        for at in range(len(self._join.services)):
            keys = dict.fromkeys(key for _, _, needed in tuples for key in needed[at])
            rows.append([each for key in keys for each in known[at][key]])
        found = self._store.query(
            self._query(tuples, rows),
            default_graph=[*self._default] or None,
            named_graphs=[*self._named],
        )
        assert isinstance(found, ox.QuerySolutions)
        for count, solution in enumerate(found, start=1):
            if count > _MOST_RESULTS:
                raise EvaluationError(
                    f"what the services say of {len(tuples)} solutions of the stream makes more "
                    f"than {_MOST_RESULTS} results\n"
                    "  hint: join the services by more variables"
                )
            at = solution[_AT]
            assert isinstance(at, ox.Literal)
            yield tuples[int(at.value)][0], self._terms(solution, rows)

    def _terms(self, solution: ox.QuerySolution, rows: Sequence[Sequence[Solution]]) -> Solution:
        terms: dict[str, str] = {}
        for place, part in enumerate(self._parts):
            row = solution[_row(place)]
            if isinstance(row, ox.Literal):
                said = rows[part][int(row.value)]
                terms.update({name: term for name, term in said.items() if name not in terms})
        for name in self._computed:
            value = solution[name]
            if value is not None and name not in terms:
                terms[name] = str(value)
        return {name: terms[name] for name in self._join.outputs if name in terms}

    def _query(
        self,
        tuples: Sequence[tuple[str, Sequence[str], Sequence[Sequence[str]]]],
        rows: Sequence[Sequence[Solution]],
    ) -> str:
        inputs = " ".join(f"?{name}" for name in self._join.inputs)
        said = " ".join(
            f"({at} {' '.join(term or 'UNDEF' for term in terms)})"
            for at, (_, terms, _) in enumerate(tuples)
        )

        def values(found: re.Match[str]) -> str:
            place = int(found[1])
            part = self._parts[place]
            return _values(_row(place), self._join.services[part].columns, rows[part])

        inside = _PLACE.sub(values, self._text)
        given = f"VALUES (?{_AT} {inputs}) {{ {said} }}"
        return f"{self._prologue} {self._select} WHERE {{ {given} {inside}\n}}"


def _is_sub_query(group: ast.Group) -> bool:
    return len(group.elements) == 1 and isinstance(group.elements[0], ast.SubSelect)


def _bound_here(group: ast.Group) -> set[str]:
    """Return the variables that BINDs and VALUES of a group bind."""
    found: set[str] = set()
    for node in ast.walk(group):
        if isinstance(node, ast.Assignment):
            found.add(node.variable.name)
        elif isinstance(node, ast.Values):
            found.update(each.name for each in node.variables)
    return found


def _row(place: int) -> str:
    """Return the variable for the solution that a SERVICE pattern adds."""
    return f"acquatop_row{place}"


def _values(row: str, variables: Sequence[str], solutions: Sequence[Solution]) -> str:
    names = " ".join(f"?{name}" for name in (row, *variables))
    said = (
        f"({at} {' '.join(each.get(name, 'UNDEF') for name in variables)})"
        for at, each in enumerate(solutions)
    )
    return f"VALUES ({names}) {{ {' '.join(said)} }}"
