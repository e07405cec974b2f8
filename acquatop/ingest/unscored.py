"""Solutions without a score yet: their key is unknown, or the remote has nothing for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass

import numpy as np

from acquatop.topk.contract import AnyArray, FloatArray, IntArray, Rows
from acquatop.topk.snapshot import State, pack, reading, table_of, unpack
from acquatop.topk.snapshot import rows_of as rows_of_table

_KIND, _VERSION = "waiting", 1

LIMIT = 10_000
"""Maximum number of waiting solutions; more are dropped, and the loss is remembered."""


@dataclass(frozen=True)
class Solution:
    """Solution and the windows that it lies in."""

    identity: str
    key: str
    time_ms: int
    numbers: tuple[float, ...]
    terms: tuple[str, ...]
    first: int
    last: int

    def covers(self, window: int) -> bool:
        """Return True if the solution lies in a window."""
        return self.first <= window <= self.last


class Unscored:
    """Waiting solutions by identity, the newest of each."""

    def __init__(self) -> None:
        self._solutions: dict[str, Solution] = {}

    def __len__(self) -> int:
        return len(self._solutions)

    def __iter__(self) -> Iterator[Solution]:
        return iter(self._solutions.values())

    def identities(self) -> Set[str]:
        """Return the identities of all waiting solutions."""
        return self._solutions.keys()

    def of(self, window: int) -> list[Solution]:
        """Return the waiting solutions of a window."""
        return [each for each in self if each.covers(window)]

    def put(self, solutions: Iterable[Solution]) -> list[Solution]:
        """Add waiting solutions; if too many wait now, remove and return the oldest of all."""
        self._solutions.update((each.identity, each) for each in solutions)
        if len(self._solutions) <= LIMIT:
            return []
        ordered = sorted(self, key=lambda each: (-each.time_ms, each.identity))
        return [self._solutions.pop(each.identity) for each in ordered[LIMIT:]]

    def remove(self, identities: Iterable[str]) -> None:
        """Remove the solutions with some identities."""
        for identity in identities:
            self._solutions.pop(identity, None)

    def take(self, keys: Set[str]) -> list[Solution]:
        """Remove and return the solutions that join with some keys."""
        taken = [each for each in self if each.key in keys]
        self.remove(each.identity for each in taken)
        return taken

    def close_before(self, window: int) -> None:
        """Drop solutions that lie only in earlier windows."""
        self.remove([each.identity for each in self if each.last < window])

    def snapshot(self) -> bytes:
        """Return the whole state."""
        waiting = list(self)
        spans = {
            "firsts": np.array([each.first for each in waiting], dtype=np.int64),
            "lasts": np.array([each.last for each in waiting], dtype=np.int64),
        }
        return pack(
            _KIND, _VERSION, State({}, {"spans": spans, "rows": table_of(rows_of(waiting))})
        )

    def resume(self, snapshot: bytes) -> None:
        """Continue from a snapshot; raises ``SnapshotError`` for any other bytes."""
        tables = unpack(_KIND, _VERSION, snapshot).tables
        with reading():
            spans = tables["spans"]
            waiting = solutions_of(rows_of_table(tables["rows"]), spans["firsts"], spans["lasts"])
            self._solutions = {each.identity: each for each in waiting}


def rows_of(solutions: list[Solution]) -> Rows:
    """Return solutions as columns."""
    return Rows(
        np.array([each.time_ms for each in solutions], dtype=np.int64),
        objects([each.identity for each in solutions]),
        objects([each.key for each in solutions]),
        numbers_of(solutions),
        tuple(objects(column) for column in zip(*(each.terms for each in solutions), strict=True)),
    )


def numbers_of(solutions: list[Solution]) -> tuple[FloatArray, ...]:
    """Return the stream numbers of solutions as columns."""
    return tuple(
        np.array(column) for column in zip(*(each.numbers for each in solutions), strict=True)
    )


def solutions_of(rows: Rows, firsts: IntArray, lasts: IntArray) -> list[Solution]:
    """Return rows as solutions, given the windows that each lies in."""
    numbers = (
        zip(*(part.tolist() for part in rows.parts), strict=True)
        if rows.parts
        else [()] * len(rows)
    )
    terms = (
        zip(*(column.tolist() for column in rows.carried), strict=True)
        if rows.carried
        else [()] * len(rows)
    )
    plain = (column.tolist() for column in (rows.identities, rows.keys, rows.times))
    return list(map(Solution, *plain, numbers, terms, firsts.tolist(), lasts.tolist()))


def objects(values: list[str] | tuple[str, ...]) -> AnyArray:
    """Return texts as a column of objects."""
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column
