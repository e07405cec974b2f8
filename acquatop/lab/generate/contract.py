"""Contracts of what makes the history of all users' values, and the stream of their mentions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

DECIMALS = 9
"""Decimal places of a value. With these, two values are equal only by an unlikely chance."""


@dataclass(frozen=True)
class GeneratedMentions:
    """Times of mentions in order, the number of the user mentioned, and each mention's own."""

    times_ms: IntArray
    users: IntArray
    numbers: IntArray

    def __len__(self) -> int:
        return len(self.times_ms)


@dataclass(frozen=True)
class GeneratedChanges:
    """Values of ``users`` (by number) from given times on, in time order; all have one at 0."""

    times_ms: IntArray
    users: IntArray
    values: FloatArray

    def __len__(self) -> int:
        return len(self.times_ms)


class KindOfChange(Protocol):
    """Generator of values that change in one way. The same random state makes the same values."""

    def __call__(
        self, users: int, seconds: float, random: np.random.Generator, /
    ) -> GeneratedChanges:
        """Return the values of ``users`` users over ``seconds`` seconds."""


class KindOfStream(Protocol):
    """Generator of mentions. The same random state makes the same mentions."""

    def __call__(
        self, users: int, seconds: float, random: np.random.Generator, /
    ) -> GeneratedMentions:
        """Return mentions of ``users`` users within ``seconds`` seconds."""


def in_order(times: FloatArray, users: IntArray, values: FloatArray) -> GeneratedChanges:
    """Return changes ordered by time, then user.

    Of a user's changes in the same millisecond, the last one given counts.

    >>> times, users, values = np.array([[1.0, 0.0, 1.0], [0, 0, 0], [5.0, 6.0, 7.0]])
    >>> in_order(times, users.astype(int), values).values.tolist()
    [6.0, 7.0]
    """
    times_ms = np.rint(1000 * times).astype(np.int64)
    order = np.lexsort((np.arange(len(times)), users, times_ms))
    times_ms, users, values = times_ms[order], users[order], np.round(values[order], DECIMALS)
    is_last = np.ones(len(times), dtype=np.bool_)
    is_last[:-1] = (np.diff(times_ms) != 0) | (np.diff(users) != 0)
    return GeneratedChanges(times_ms[is_last], users[is_last], values[is_last])


def at_random_times(
    rates: FloatArray, seconds: float, random: np.random.Generator, starts: FloatArray | None = None
) -> tuple[FloatArray, IntArray]:
    """Return times of Poisson processes, and their processes, ordered by process, then time.

    O(n log n) for n times. Each process lasts for ``seconds``, from 0 or from its start on.
    """
    counts = random.poisson(rates * seconds)
    whose = np.repeat(np.arange(len(rates)), counts)
    times = random.uniform(0.0, seconds, len(whose))
    if starts is not None:
        times += starts[whose]
    order = np.lexsort((times, whose))
    return times[order], whose
