"""Answers of a SPARQL engine to the shapes of queries, over windows built anew.

A query's text becomes SPARQL by replacing words.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyoxigraph as ox

from acquatop.answer.answer import Answer, Status
from tests.support.queries.shape_world import ShapeWorld
from tests.support.queries.shaped import value_of

_WINDOW = re.compile(r"FROM NAMED WINDOW :(\w+) ON :(\w+) \[(\w+) (\d+)m?(?: STEP (\d+)m?)?\]")
_CUT = re.compile(r"LIMIT (\d+)(?: PER ((?:\?\w+ ?)+))?( ?WITH TIES)?\s*$")
_MINUTE = 60_000
_DECAY = ox.NamedNode("urn:tests:decay")
Row = Mapping[str, object]


def problems(world: ShapeWorld, text: str, answers: Sequence[Answer]) -> Iterator[str]:
    """Yield what is wrong with a query's answers, but for approximate ones."""
    for answer in answers:
        if answer.failure:
            yield f"{answer.closes_ms}: {answer.failure}"
        elif answer.status is not Status.APPROXIMATE:
            problem = _Judge(world, text, answer).problem()
            if problem:
                yield f"{answer.closes_ms}: {problem}"


def everything(world: ShapeWorld, text: str, answer: Answer) -> list[dict[str, Any]]:
    """Return all rows that a query without a LIMIT has at an answer's close."""
    return _Judge(world, text, answer).everything()


@dataclass(frozen=True)
class _Judge:
    world: ShapeWorld
    text: str
    answer: Answer

    def problem(self) -> str:
        """Return what is wrong with an answer; nothing if it is right."""
        text = self._plain()
        if "change:" in text:
            return ""  # of the past, of which windows say nothing
        found: Any = self._store().query(text, custom_functions={_DECAY: self._decayed})
        if self.answer.form == "ask":
            right = bool(found)
            return "" if right == self.answer.boolean else f"{self.answer.boolean}, not {right}"
        if self.answer.form != "select":
            return self._problem_of_triples(found)
        names = [each.value for each in found.variables]
        rows = [{name: each[name] for name in names if each[name] is not None} for each in found]
        return self._problem_of_rows(rows, self._keys(names))

    def everything(self) -> list[dict[str, Any]]:
        """Return all rows without the LIMIT, as terms."""
        found: Any = self._store().query(self._plain(), custom_functions={_DECAY: self._decayed})
        names = [each.value for each in found.variables]
        return [{name: each[name] for name in names if each[name] is not None} for each in found]

    def _problem_of_rows(self, rows: Sequence[Mapping[str, Any]], keys: Sequence[str]) -> str:
        everything = [
            {name: _value(name, term) for name, term in row.items()}
            for row in rows
            if keys[0] in row
        ]
        right = self._cut(everything, keys)
        shown = [
            {name: _value(name, term) for name, term in row.bindings.items()}
            for row in self.answer.rows
        ]
        possible = Counter(_frozen(row) for row in everything)
        if len(shown) != len(right):
            return f"{len(shown)} rows, not {len(right)}: {shown}, not {right}"
        if Counter(map(_frozen, shown)) - possible:
            return f"{shown} are not among {everything}"
        keys_of: dict[object, list[object]] = {}
        for row in everything:
            keys_of.setdefault(_frozen(row), []).append([row.get(name) for name in keys])
        for place, wanted in zip(shown, right, strict=True):
            if [wanted.get(name) for name in keys] not in keys_of[_frozen(place)]:
                return f"{place} is not at its place: {shown}, not {right}"
        per = self._per
        if Counter(_part(row, per) for row in shown) != Counter(_part(row, per) for row in right):
            return f"other groups: {shown}, not {right}"
        return ""

    def _keys(self, names: Sequence[str]) -> list[str]:
        """Return the columns that the results are ordered by."""
        order = self.text.rpartition("ORDER BY ")[2]
        return [
            name if (name := f"key_{number}") in names else key.removeprefix("?")
            for number, key in enumerate(_keys_of(_CUT.sub("", order)))
        ]

    def _problem_of_triples(self, found: Any) -> str:
        """Compare with all triples that results can say: those of equal merit are any of them."""
        possible = {" ".join(map(str, triple)) + " ." for triple in found}
        said = set(self.answer.triples)
        return "" if said <= possible and bool(said) == bool(possible) else f"{said}: {possible}"

    @property
    def _per(self) -> Sequence[str]:
        cut = _CUT.search(self.text)
        return re.findall(r"\w+", cut[2] or "") if cut else ()

    def _cut(self, rows: Sequence[Row], keys: Sequence[str]) -> list[Row]:
        """Return those of all rows, in order, that are within the limit of their group."""
        cut = _CUT.search(self.text)
        assert cut is not None
        kept: list[Row] = []
        for at, row in enumerate(rows):
            before = [each for each in rows[:at] if _part(each, self._per) == _part(row, self._per)]
            if cut[3]:
                before = [each for each in before if _part(each, keys) != _part(row, keys)]
            if len(before) < int(cut[1]):
                kept.append(row)
        return kept

    def _plain(self) -> str:
        """Return the query without its LIMIT, in SPARQL, with columns for its keys."""
        close = datetime.fromtimestamp(self.answer.closes_ms / 1000, UTC)
        text = f"PREFIX xsd: <{_XSD}> " + _WINDOW.sub("", self.text)
        text = text.replace("FROM NAMED :friends", "").replace("FROM :friends", "")
        text = text.replace("WINDOW :", "GRAPH :").replace("SERVICE :", "GRAPH :")
        text = text.replace("REDUCED", "").replace("change:decay", str(_DECAY))
        text = text.replace("NOW()", f'"{close:%Y-%m-%dT%H:%M:%SZ}"^^<{_XSD}dateTime>')
        body, _, order = text.rpartition("ORDER BY ")
        order = _CUT.sub("", order)
        if "SELECT" not in body.partition("{")[0]:
            described = body.replace("DESCRIBE ?user", "CONSTRUCT { ?user ?p ?o }")
            return body if described == body else f"{described[:-2]} GRAPH :w {{ ?user ?p ?o }} }}"
        columns = " ".join(
            f"({key} AS ?key_{number})"
            for number, key in enumerate(_keys_of(order))
            if f"AS {key})" not in body
        )
        head, brace, rest = body.partition("{")
        where = re.search(r"WHERE\s*$", head)
        head = head[: where.start()] if where else head
        return f"{head} {columns} WHERE {brace}{rest} ORDER BY {order}"

    def _decayed(self, instant: Any, half_life: Any) -> Any:
        """Return what is left of 1 after an age, of which half goes in so many minutes."""
        minutes = int(half_life.value.removeprefix("PT").removesuffix("M"))
        return ox.Literal(0.5 ** ((self.answer.closes_ms - int(instant.value)) / 60_000 / minutes))

    def _store(self) -> ox.Store:
        """Return the content of the answer's windows."""
        windows = []
        for name, stream, kind, width, _ in _WINDOW.findall(self.text):
            close = self.answer.closes_ms
            if kind == "ELEMENTS":
                times = [each["t"] for each in self.world.posts if each["t"] <= close]
                opens = times[-int(width)] - 1 if len(times) >= int(width) else 0
            else:
                opens = close - int(width) * _MINUTE
            windows.append((name, stream, opens, close))
        return _store(self.world, tuple(windows))


@functools.lru_cache(64)
def _store(world: ShapeWorld, windows: Sequence[tuple[str, str, int, int]]) -> ox.Store:
    return world.store(windows)


_XSD = "http://www.w3.org/2001/XMLSchema#"


def _keys_of(order: str) -> Iterator[str]:
    """Yield the expressions of an ORDER BY."""
    at = 0
    while at < len(order):
        if variable := re.compile(r"\s*(\?\w+)").match(order, at):
            yield variable[1]
            at = variable.end()
        elif opened := re.compile(r"\s*(?:ASC|DESC)?\s*\(").match(order, at):
            depth, end = 1, opened.end()
            while depth:
                depth += {"(": 1, ")": -1}.get(order[end], 0)
                end += 1
            yield order[opened.end() : end - 1]
            at = end
        else:
            at += 1


def _value(name: str, term: Any) -> object:
    if str(getattr(term, "datatype", "")).strip("<>") == f"{_XSD}double":
        return float(f"{float(getattr(term, 'value', term)):.12g}")
    if name == "all":  # GROUP_CONCAT takes any order
        return tuple(sorted(str(getattr(term, "value", term)).split()))
    return value_of(term)


def _part(row: Row, names: Sequence[str]) -> object:
    return tuple(row.get(name) for name in names)


def _frozen(row: Row) -> frozenset[tuple[str, object]]:
    return frozenset((name, each) for name, each in row.items() if not name.startswith("key_"))
