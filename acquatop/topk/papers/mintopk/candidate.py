"""Candidates of the structures on sorted lists: one object per arrival, and columns of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from acquatop.topk.contract import AnyArray, FloatArray, Rows

Rank = tuple[float, int, Any]
"""Sort key, best candidate first: higher merit, then newer, then smaller identity."""


def best_rank(merit: float) -> Rank:
    """Return the best rank of any arrival with a merit.

    >>> best_rank(2.0) < Candidate("a", "a", time=10**15, merit=2.0, first=0, last=0).rank
    True
    """
    return (-merit, -(2**63), "")


@dataclass(slots=True, eq=False)
class Candidate:
    """An arrival that can still reach an answer.

    ``first`` and ``last`` are the windows it lies in; ``start`` is the first of them whose answer
    it can still reach (with ``last``, the window marks of the papers).
    """

    identity: Any
    key: Any
    time: int
    merit: float
    first: int
    last: int
    parts: tuple[float, ...] = ()
    carried: tuple[Any, ...] = ()
    start: int = 0
    rank: Rank = field(init=False)

    def __post_init__(self) -> None:
        self.set_merit(self.merit)

    def set_merit(self, merit: float) -> None:
        """Change the merit. Not allowed while the candidate is in a sorted structure."""
        self.merit = merit
        self.rank = (-merit, -self.time, self.identity)

    def covers(self, window: int) -> bool:
        """Return true if the candidate lies in a window."""
        return self.first <= window <= self.last


def rank_of(candidate: Candidate) -> Rank:
    """Return a candidate's rank, the sort key of the lists."""
    return candidate.rank


@dataclass(slots=True)
class Dropped:
    """Summary of a window's dropped candidates: best rank, and ranges of their parts.

    The ranges are unknown (None) once they include a NaN.
    """

    best: tuple[Any, ...]
    lows: tuple[float, ...] | None
    highs: tuple[float, ...] | None

    def add(
        self, rank: tuple[Any, ...], lows: tuple[float, ...] | None, highs: tuple[float, ...] | None
    ) -> None:
        """Include more dropped candidates."""
        self.best = min(self.best, rank)
        self.lows = None if self.lows is None or lows is None else tuple(map(min, self.lows, lows))
        self.highs = (
            None if self.highs is None or highs is None else tuple(map(max, self.highs, highs))
        )


def parts_range(candidate: Candidate) -> tuple[float, ...] | None:
    """Return a candidate's parts as the lows, and highs, of a range; None if one is NaN."""
    return None if any(map(math.isnan, candidate.parts)) else candidate.parts


@dataclass(frozen=True)
class Layout:
    """Columns of a structure's arrivals, to convert rows to candidates and back.

    >>> layout = Layout.of(Rows(np.array([7]), np.array(["a"]), np.array([3]), (np.array([0.5]),)))
    >>> [candidate] = layout.candidates(layout.empty, np.empty(0), 0, 0) or [
    ...     Candidate("b", 4, 8, 2.0, 0, 0, (1.5,))
    ... ]
    >>> layout.rows([candidate]).keys
    array([4])
    """

    empty: Rows

    @classmethod
    def of(cls, arrivals: Rows) -> Self:
        """Return the layout of some arrivals."""
        return cls(arrivals.take(slice(0, 0)))

    def widened(self, arrivals: Rows) -> Self:
        """Return a layout that also fits more arrivals: the wider type of each column."""
        nothing = arrivals.take(slice(0, 0))
        is_first = len(self.empty.parts) < len(nothing.parts) or len(self.empty.carried) < len(
            nothing.carried
        )
        return type(self)(nothing if is_first else Rows.together((self.empty, nothing)))

    def candidates(
        self, arrivals: Rows, merits: FloatArray, first: int, last: int
    ) -> list[Candidate]:
        """Return a candidate for each row."""
        return [
            Candidate(identity, key, time, merit, first, last, parts, carried)
            for identity, key, time, merit, parts, carried in zip(
                arrivals.identities.tolist(),
                arrivals.keys.tolist(),
                arrivals.times.tolist(),
                merits.tolist(),
                _tuples(arrivals.parts, len(arrivals)),
                _tuples(arrivals.carried, len(arrivals)),
                strict=True,
            )
        ]

    def rows(self, candidates: Iterable[Candidate]) -> Rows:
        """Return the rows of candidates."""
        each = list(candidates)
        return Rows(
            np.array([candidate.time for candidate in each], dtype=np.int64),
            _column([candidate.identity for candidate in each], self.empty.identities),
            _column([candidate.key for candidate in each], self.empty.keys),
            tuple(
                _column([candidate.parts[at] for candidate in each], of)
                for at, of in enumerate(self.empty.parts)
            ),
            tuple(
                _column([candidate.carried[at] for candidate in each], of)
                for at, of in enumerate(self.empty.carried)
            ),
        )

    def table(self, candidates: Iterable[Candidate]) -> dict[str, AnyArray]:
        """Return all fields of candidates as named columns."""
        each = list(candidates)
        rows = self.rows(each)
        columns = {"time": rows.times, "identity": rows.identities, "key": rows.keys}
        columns |= {f"part{at}": column for at, column in enumerate(rows.parts)}
        columns |= {f"carried{at}": column for at, column in enumerate(rows.carried)}
        columns["merit"] = np.array([candidate.merit for candidate in each], dtype=np.float64)
        for name in ("first", "last", "start"):
            columns[name] = np.array(
                [getattr(candidate, name) for candidate in each], dtype=np.int64
            )
        return columns

    def of_table(self, columns: Mapping[str, AnyArray]) -> Iterator[Candidate]:
        """Yield the candidates of a table."""
        size = len(columns["time"])
        parts = _tuples([columns[f"part{at}"] for at in range(len(self.empty.parts))], size)
        carried = _tuples([columns[f"carried{at}"] for at in range(len(self.empty.carried))], size)
        names = ("identity", "key", "time", "merit", "first", "last")
        yield from map(
            Candidate,
            *(columns[name].tolist() for name in names),
            parts,
            carried,
            columns["start"].tolist(),
        )

    def settings(self) -> dict[str, Any]:
        """Return the types of the columns as plain settings, for a snapshot."""
        empty = self.empty
        return {
            "identity": empty.identities.dtype.str,
            "key": empty.keys.dtype.str,
            "parts": [part.dtype.str for part in empty.parts],
            "carried": [column.dtype.str for column in empty.carried],
        }

    @classmethod
    def of_settings(cls, settings: Mapping[str, Any]) -> Self:
        """Return the layout of such settings."""
        return cls(
            Rows(
                np.empty(0, np.int64),
                np.empty(0, settings["identity"]),
                np.empty(0, settings["key"]),
                tuple(np.empty(0, kind) for kind in settings["parts"]),
                tuple(np.empty(0, kind) for kind in settings["carried"]),
            )
        )


NOTHING = Layout(Rows(np.empty(0, np.int64), np.empty(0, object), np.empty(0, object), ()))
"""Layout of a structure without arrivals."""


def _tuples(columns: Iterable[AnyArray], size: int) -> list[tuple[Any, ...]]:
    lists = [column.tolist() for column in columns]
    return list(zip(*lists, strict=True)) if lists else [()] * size


def _column(values: list[Any], of: AnyArray) -> AnyArray:
    """Return values as a column of another's type; text is as wide as needed."""
    if of.dtype.kind == "U":
        return np.array(values, dtype=np.str_)
    if of.dtype != object:
        return np.array(values, dtype=of.dtype)
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column
