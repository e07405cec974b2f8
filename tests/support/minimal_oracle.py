"""Answers to the queries of ``fixtures/defaults`` by rdflib, over windows built anew.

Nothing of the engine is used: a query's text becomes SPARQL by replacing words.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rdflib import Dataset, Literal, URIRef
from rdflib.namespace import XSD

from acquatop.answer.answer import Answer, Status
from tests.support.minimal_worlds import NS, STREAMS, people_triples

Row = frozenset[tuple[str, object]]
_DATATYPES = {"mentions": XSD.integer, "likes": XSD.double, "points": XSD.integer}
_NUMBERS = {XSD.integer, XSD.decimal, XSD.double}
_WINDOW = re.compile(r"FROM NAMED WINDOW :(\w+) ON :(\w+) \[(\w+) (\d+)s?(?: STEP (\d+)s?)?\]")
_UNITS_MS = 1_000


@dataclass(frozen=True)
class Window:
    """Window of a query, in milliseconds or elements."""

    name: str
    stream: str
    counts: bool
    width: int
    step: int

    def closes(self) -> list[int]:
        """Return the closes of all windows that hold anything, or positions."""
        if self.counts:
            return list(range(self.step, len(STREAMS[self.stream]) + 1, self.step))
        times = [record["t"] for record in STREAMS[self.stream]]
        # Windows open at multiples of the step.
        opens = range(-self.width // self.step * self.step, times[-1], self.step)
        every = (at + self.width for at in opens)
        return [close for close in every if times[0] <= close and close - self.width < times[-1]]

    def closed_at(self, close: int) -> int:
        """Return the time of a close or of a position."""
        return int(STREAMS[self.stream][close - 1]["t"]) if self.counts else close

    def records(self, close: int) -> Sequence[Mapping[str, Any]]:
        """Return what is in the window of a close, or of a position."""
        every = STREAMS[self.stream]
        if self.counts:
            return every[max(0, close - self.width) : close]
        return [record for record in every if close - self.width < record["t"] <= close]


def problems(text: str, answers: Sequence[Answer], until_ms: float = math.inf) -> list[str]:
    """Return what is wrong with the answers of a query, but for approximate ones.

    Only those at the closes before a time are judged, of which there must be all.
    """
    return list(_Judge(text, until_ms).problems(answers))


def closes(text: str, until_ms: int) -> list[int]:
    """Return the times of a query's answers before a time; none if it may leave some out."""
    judge = _Judge(text, until_ms)
    first = judge.windows[0]
    if first.counts and judge.output != "RSTREAM":
        return []
    return [first.closed_at(close) for close in judge.closes]


@dataclass(frozen=True)
class _Judge:
    text: str
    until_ms: float

    @property
    def windows(self) -> list[Window]:
        return [
            Window(
                name,
                stream,
                kind == "ELEMENTS",
                int(width) * (1 if kind == "ELEMENTS" else _UNITS_MS),
                int(step or width) * (1 if kind == "ELEMENTS" else _UNITS_MS),
            )
            for name, stream, kind, width, step in _WINDOW.findall(self.text)
        ]

    @property
    def output(self) -> str:
        found = re.search(r"REGISTER (\w+)", self.text)
        return found[1] if found else "RSTREAM"

    @property
    def closes(self) -> list[int]:
        """Return the closes before the judge's time, or the positions."""
        at = self.windows[0].closed_at
        every = {close for window in self.windows for close in window.closes()}
        return sorted(close for close in every if at(close) < self.until_ms)

    def problems(self, answers: Sequence[Answer]) -> Iterator[str]:
        """Return what is wrong with a query's answers, of which there must be all."""
        closes = self.closes
        answers = [answer for answer in answers if answer.closes_ms < self.until_ms]
        counts = self.windows[0].counts
        found = {
            (answer.window + 1) * self.windows[0].step if counts else answer.closes_ms: answer
            for answer in answers
        }
        if len(found) != len(answers):
            yield "two answers of one window"
        if sorted(found) != closes and not (counts and self.output != "RSTREAM"):
            yield f"answers at {sorted(found)}, not at {closes}"
        before: list[Row] = []
        for close in closes:
            everything = self._results(close)
            results = _changes(self.output, before, everything)
            before = everything
            if close in found:
                yield from self._compared(found[close], results, close)

    def _compared(self, answer: Answer, results: Any, close: int) -> Iterator[str]:
        if answer.failure:
            yield f"{close}: failure: {answer.failure}"
        if answer.status is Status.APPROXIMATE:
            return
        if answer.form == "ask":
            if answer.boolean != results:
                yield f"{close}: {answer.boolean}, not {results}"
            return
        if answer.form == "construct":
            if set(answer.triples) != results:
                yield f"{close}: {sorted(answer.triples)}, not {sorted(results)}"
            return
        shown = [_row(row.bindings) for row in answer.rows]
        if problem := self._difference(shown, results):
            yield f"{close}: {problem}: {_shown(shown)}, not {_shown(results)}"

    def _difference(self, shown: list[Row], results: list[Row]) -> str:
        """Compare rows with those that the query without its slice has."""
        first, most = self._slice
        right = results[first:][:most]
        if "REDUCED" in self.text:
            return "" if set(shown) == set(right) else "other rows"
        if self.output == "RSTREAM" and len(shown) != len(right):
            return "too many or too few"
        keys = re.findall(r"ORDER BY (.+?)(?= LIMIT| OFFSET|\n|$)", self._tail)
        names = re.findall(r"\?(\w+)", keys[-1]) if keys else []
        if self.output == "RSTREAM" and [_part(row, names) for row in shown] != [
            _part(row, names) for row in right
        ]:
            return "another order"
        allowed = Counter(results if self.output == "RSTREAM" else right)
        if self.output != "RSTREAM" and Counter(shown) != allowed:
            return "other changes"
        return "" if Counter(shown) <= allowed else "other rows"

    @property
    def _slice(self) -> tuple[int, int | None]:
        # A relation's changes are those of the relation that is cut.
        if self.output != "RSTREAM":
            return 0, None
        limit = re.search(r"LIMIT (\d+)", self._tail)
        offset = re.search(r"OFFSET (\d+)", self._tail)
        return int(offset[1]) if offset else 0, int(limit[1]) if limit else None

    @property
    def _tail(self) -> str:
        return self.text[self.text.rindex("}") :]

    def _results(self, close: int) -> Any:
        """Return the results at a close, without LIMIT and OFFSET if all of the relation counts."""
        text = _WINDOW.sub("", self.text)
        text = re.sub(r"REGISTER \w+ :\w+ AS", "", text)
        text = re.sub(r"\bWINDOW (:\w+)", r"GRAPH \1", text).replace("SERVICE", "GRAPH")
        if self.output == "RSTREAM":
            cut = text.rindex("}")
            text = text[:cut] + re.sub(r"(LIMIT|OFFSET) \d+", "", text[cut:])
        found = self._dataset(close).query(text)
        if found.type == "ASK":
            return found.askAnswer
        if found.type == "CONSTRUCT":
            return {" ".join(term.n3() for term in triple) + " ." for triple in found.graph or ()}
        names = [str(name) for name in found.vars or ()]
        return [
            _row({name: value for name, value in zip(names, row, strict=True) if value is not None})
            for row in found
        ]

    def _dataset(self, close: int) -> Dataset:
        store = Dataset()
        for window in self.windows:
            graph = store.graph(URIRef(NS + window.name))
            # With several windows, each shows its latest that has closed.
            at = max((each for each in _grid(window, close) if each <= close), default=close)
            for record in window.records(at):
                user = URIRef(f"{NS}user/{record['user']}")
                for name, value in record.items():
                    if name not in ("t", "user"):
                        graph.add((user, URIRef(NS + name), _object(name, value)))
        text = people_triples()
        store.graph(URIRef(NS + "people")).parse(data=text, format="turtle")
        return store


def _grid(window: Window, close: int) -> list[int]:
    if window.counts:
        return [close]
    return [close // window.step * window.step] if window.width % window.step == 0 else [close]


def _object(name: str, value: Any) -> Any:
    if name == "follows":
        return URIRef(f"{NS}user/{value}")
    return Literal(value, datatype=_DATATYPES.get(name))


def _changes(output: str, before: Any, now: Any) -> Any:
    if output == "RSTREAM":
        return now
    new, old = (now, before) if output == "ISTREAM" else (before, now)
    return list((Counter(new) - Counter(old)).elements())


def _row(bindings: Mapping[str, Any]) -> Row:
    return frozenset((name, _value(term)) for name, term in bindings.items())


def _value(term: Any) -> object:
    """Return a term as what can be compared.

    Numbers are compared by value: rdflib says that a product of integers is a decimal.
    """
    if isinstance(term, Literal) and term.datatype in _NUMBERS:
        return float(f"{float(term):.12g}")
    return str(term), "iri" if isinstance(term, URIRef) else "text"


def _part(row: Row, names: Sequence[str]) -> list[object]:
    return [dict(row).get(name) for name in names]


def _shown(rows: Sequence[Row]) -> str:
    return str([" ".join(f"{k}={v}" for k, v in sorted(row)) for row in rows])  # type: ignore[index]
