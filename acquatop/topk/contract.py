"""What every top-k structure takes in and gives out, whichever way it works inside.

A structure is handed *arrivals*, pane by pane, as columns; it is told which keys' remote values
have changed; and it says, at a window's close, which are the window's best, and whether that is
certain. Time is not its business: a pane is known by the first and the last of the windows that
hold it, so windows by time and windows by count are the same to it (:mod:`acquatop.windows`).

**The one total order**: the greater merit, then the newer, then the smaller identity. A merit is
the score, or its negative where the smallest scores are wanted.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
AnyArray = npt.NDArray[Any]
"""A column of integers, of floats, or of objects (text)."""


@dataclass(frozen=True)
class Rows:
    """Equally long columns: what is known of each of some arrivals.

    ``identities`` say what replaces what: a newer arrival takes the place of the older one of the
    same identity. Where every arrival counts, each has an identity of its own. ``keys`` are what
    joins with the remote; a key that is an identity, too, has that one arrival only. Both are
    integers or objects with an order, such as text. ``parts`` are
    the scoring variables' values on the stream's side; ``carried`` goes along untouched.
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
        """Return the rows of at least one, one after the other."""
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
    """How arrivals become merits: handed to a structure, which knows neither the score nor the remote."""

    def merits(self, keys: AnyArray, parts: tuple[FloatArray, ...]) -> FloatArray:
        """Return the merit of each row with the remote's present values; NaN where there is none."""

    def reach(self, lows: tuple[float, ...], highs: tuple[float, ...], keys: AnyArray | None = None) -> float:
        """Return the best merit possible for parts within ranges.

        With ``keys`` for the present values of any of these, minus infinity if none has a value;
        without, for any value that the remote could have.
        """


class FirstPart:
    """The scoring of queries without a remote: the first part is the merit.

    >>> FirstPart().merits(np.array([7]), (np.array([2.5]),))
    array([2.5])
    """

    def merits(self, keys: AnyArray, parts: tuple[FloatArray, ...]) -> FloatArray:
        """Return the first part."""
        return np.asarray(parts[0], dtype=np.float64)

    def reach(self, lows: tuple[float, ...], highs: tuple[float, ...], keys: AnyArray | None = None) -> float:
        """Return the highest that the first part can be."""
        return highs[0]


class Certainty(enum.StrEnum):
    """Whether a window's best are certainly its best, for the values that the structure was given."""

    EXACT = "exact"
    APPROXIMATE = "approximate"


@dataclass(frozen=True)
class Top:
    """A window's best, best first, and how far they can be trusted.

    Where ``certainty`` is approximate, ``reason`` says why, and nothing that is missing has a
    merit above ``bound``.
    """

    window: int
    rows: Rows
    merits: FloatArray
    certainty: Certainty = Certainty.EXACT
    reason: str | None = None
    bound: float | None = None

    def __len__(self) -> int:
        return len(self.rows)


class TopK(Protocol):
    """The contract. Windows are integers that grow; those before the current one are closed.

    Not safe for use by several threads at once. Given the same calls, every structure that says
    *exact* gives the same rows; how a pane's arrivals are cut into several calls changes nothing.
    """

    rejected: int
    """How many arrivals had no merit: NaN is no score."""

    @property
    def k(self) -> int:
        """How many an answer has at most."""

    def add(self, first: int, last: int, arrivals: Rows) -> IntArray:
        """Take in arrivals that lie in the windows ``first`` to ``last``; return the positions of the rejected.

        Rejected is what has no merit (NaN); what it would replace is replaced all the same. Panes
        come in any order, as long as none of their windows has been asked for. After that only such
        arrivals may come as replace nothing and have been replaced by nothing since, as those that had
        no merit before. Raises ``ValueError`` for closed windows only.
        """

    def change(self, keys: AnyArray) -> Rows:
        """Score anew what joins with keys whose remote values have changed; return those without a merit by now.

        They are held no longer.
        """

    def remove(self, identities: AnyArray) -> None:
        """Take out what is no solution any more."""

    def top(self, window: int) -> Top:
        """Return the best k of a window that no later arrival is in. Windows are asked for oldest first."""

    def close_before(self, window: int) -> None:
        """Close all windows before this one."""

    def held(self) -> Rows:
        """Return all that is held, best first."""

    def snapshot(self) -> bytes:
        """Return everything that is needed to go on from here."""

    @classmethod
    def restore(cls, snapshot: bytes, scoring: Scoring) -> Self:
        """Return a structure that goes on from a snapshot; raises ``SnapshotError`` for any other bytes."""

    def _check(self) -> None:
        """Assert every invariant."""

    def __len__(self) -> int:
        """Return how many candidates are held."""


class NotANumberError(ValueError):
    """Arrivals without a score."""


def refuse(rejected: IntArray, arrivals: Rows) -> None:
    """Raise :class:`NotANumberError` if any arrival was rejected: for callers that expect none.

    >>> rows = Rows(np.array([5]), np.array(["a"]), np.array(["a"]), (np.array([np.nan]),))
    >>> refuse(np.array([0]), rows)
    Traceback (most recent call last):
    acquatop.topk.contract.NotANumberError: 1 of 1 arrivals have no score, first a at 5 (row 0, parts [nan]): \
a score must be a number; leave such arrivals out, or give them a value
    """
    if not len(rejected):
        return
    at = int(rejected[0])
    parts = [float(part[at]) for part in arrivals.parts]
    raise NotANumberError(
        f"{len(rejected)} of {len(arrivals)} arrivals have no score, first {arrivals.identities[at]} at "
        f"{arrivals.times[at]} (row {at}, parts {parts}): a score must be a number; leave such arrivals out, "
        "or give them a value"
    )
