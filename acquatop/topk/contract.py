"""Contract of the top-k structures: their input and output.

A structure is given *arrivals*, pane by pane, as columns, and is told the keys with changed remote
values. When a window closes it returns the window's best, and says if they are certain. It knows
nothing of time: a pane is identified by the first and the last window that hold it, so time-based
and count-based windows look the same (:mod:`acquatop.windows`).

**The one total order**: greater merit first, then newer, then smaller identity. A merit is the
score, or its negative if the smallest scores are wanted.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
AnyArray = npt.NDArray[Any]
"""Column of integers, of floats, or of objects (text)."""


@dataclass(frozen=True)
class Rows:
    """Columns of equal length that describe arrivals.

    ``identities`` tell which arrivals replace each other: a newer arrival replaces the older one of
    the same identity. If every arrival counts, each has its own identity. ``keys`` join with the
    remote; a key that is also the identity belongs to that one arrival only. Both are integers or
    ordered objects, such as text. ``parts`` are the stream-side values of the scoring variables.
    ``carried`` columns are passed along untouched.
    """

    times: IntArray
    identities: AnyArray
    keys: AnyArray
    parts: tuple[FloatArray, ...]
    carried: tuple[AnyArray, ...] = ()

    def __len__(self) -> int:
        return len(self.times)

    def take(self, at: IntArray | slice) -> Rows:
        """Return the rows at some positions."""
        return Rows(
            self.times[at],
            self.identities[at],
            self.keys[at],
            tuple(part[at] for part in self.parts),
            tuple(column[at] for column in self.carried),
        )

    @classmethod
    def together(cls, several: Iterable[Rows]) -> Rows:
        """Concatenate one or more sets of rows."""
        each = list(several)
        return cls(
            np.concatenate([rows.times for rows in each]),
            np.concatenate([rows.identities for rows in each]),
            np.concatenate([rows.keys for rows in each]),
            tuple(map(np.concatenate, zip(*(rows.parts for rows in each), strict=True))),
            tuple(map(np.concatenate, zip(*(rows.carried for rows in each), strict=True))),
        )


NO_ROWS = Rows(np.empty(0, np.int64), np.empty(0, object), np.empty(0, object), ())


class Scoring(Protocol):
    """Computation of merits. It hides the score and the remote from the structures."""

    def merits(self, keys: AnyArray, parts: tuple[FloatArray, ...]) -> FloatArray:
        """Return each row's merit with the present remote values; NaN if it has none."""

    def reach(
        self, lows: tuple[float, ...], highs: tuple[float, ...], keys: AnyArray | None = None
    ) -> float:
        """Return the best merit possible for parts within ranges.

        With ``keys``, consider the present values of any of these; minus infinity if none has a
        value. Without, consider any value that the remote could have.
        """


class FirstPart:
    """Scoring for queries without a remote: the first part is the merit.

    >>> FirstPart().merits(np.array([7]), (np.array([2.5]),))
    array([2.5])
    """

    def merits(self, keys: AnyArray, parts: tuple[FloatArray, ...]) -> FloatArray:
        """Return the first part."""
        return np.asarray(parts[0], dtype=np.float64)

    def reach(
        self, lows: tuple[float, ...], highs: tuple[float, ...], keys: AnyArray | None = None
    ) -> float:
        """Return the upper end of the first part's range."""
        return highs[0]


class Certainty(enum.StrEnum):
    """Certainty of an answer: is it the window's best, for the values given to the structure?"""

    EXACT = "exact"
    APPROXIMATE = "approximate"


@dataclass(frozen=True)
class Top:
    """A window's best, best first, with their certainty.

    If ``certainty`` is approximate, ``reason`` explains it, and no missing row has a merit above
    ``bound``. A row with a merit below the ``bar`` would not be one of them; without a bar, it is
    the merit of the k-th.
    """

    window: int
    rows: Rows
    merits: FloatArray
    certainty: Certainty = Certainty.EXACT
    reason: str | None = None
    bound: float | None = None
    bar: float | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, at: IntArray) -> Top:
        """Return the rows at some positions."""
        return replace(self, rows=self.rows.take(at), merits=self.merits[at])


class TopK(Protocol):
    """Contract of a top-k structure over windows.

    Windows are increasing integers; those before the current one are closed.

    Not safe for use by several threads at once. Given the same calls, all structures that say
    *exact* return the same rows. Splitting a pane's arrivals over several calls changes nothing.
    """

    rejected: int
    """Number of arrivals without a merit: NaN is no score."""

    @property
    def k(self) -> int:
        """Largest number of rows in an answer."""

    def add(self, first: int, last: int, arrivals: Rows) -> IntArray:
        """Add arrivals of the windows ``first`` to ``last``; return the positions of the rejected.

        An arrival without a merit (NaN) is rejected; it still replaces the older one of its
        identity. Panes may come in any order until one of their windows has been asked for. Later,
        only arrivals that replace nothing, and that nothing has replaced since, may be added, such
        as those that had no merit before. Raise ``ValueError`` if all these windows are closed.
        """

    def change(self, keys: AnyArray) -> Rows:
        """Rescore the rows of keys whose remote values changed; return those now without a merit.

        The returned rows are no longer held.
        """

    def remove(self, identities: AnyArray) -> None:
        """Remove rows that are no longer solutions."""

    def top(self, window: int) -> Top:
        """Return the best k of a complete window. Ask for windows oldest first."""

    def close_before(self, window: int) -> None:
        """Close all windows before this one."""

    def held(self) -> Rows:
        """Return all rows that are held, best first."""

    def snapshot(self) -> bytes:
        """Return the complete state as bytes."""

    def resume(self, snapshot: bytes) -> None:
        """Continue from a snapshot, before anything is added.

        Raise ``SnapshotError`` for any other bytes.
        """

    def _check(self) -> None:
        """Assert every invariant."""

    def __len__(self) -> int:
        """Return the number of candidates held."""


class NotANumberError(ValueError):
    """Arrivals without a score."""


def refuse(rejected: IntArray, arrivals: Rows) -> None:
    """Raise :class:`NotANumberError` if any arrival was rejected. For callers that expect none.

    >>> rows = Rows(np.array([5]), np.array(["a"]), np.array(["a"]), (np.array([np.nan]),))
    >>> refuse(np.array([0]), rows)
    Traceback (most recent call last):
    acquatop.topk.contract.NotANumberError: 1 of 1 arrivals have no score, first a at 5 (row 0, \
parts [nan]): a score must be a number; leave such arrivals out, or give them a value
    """
    if not len(rejected):
        return
    at = int(rejected[0])
    parts = [float(part[at]) for part in arrivals.parts]
    raise NotANumberError(
        f"{len(rejected)} of {len(arrivals)} arrivals have no score, first "
        f"{arrivals.identities[at]} at {arrivals.times[at]} (row {at}, parts {parts}): "
        "a score must be a number; leave such arrivals out, or give them a value"
    )
