"""Stream of mentions of users, as in the AcquaTop paper (section 6.1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from acquatop.lab.generate.contract import FloatArray, GeneratedMentions

_SLOT = 20.0
_DRAWS = 20
_SURGE_EVERY, _SURGE = 30, 12.0


@dataclass(frozen=True)
class SteadyMentions:
    """Mentions that come steadily, with occasional surges of mentions of one user.

    ``chance`` is that of each of a second's mentions. With the default, any 100 s hold about 38 of
    them, from some 26 to some 59. Of 400 users some 30 are mentioned in that time, a few many
    times, most once (:func:`popularity`). If they are ``weighed``, each mention has a number of its
    own with a long tail.

    >>> made = SteadyMentions()(400, 9_040.0, np.random.default_rng(1))
    >>> starts = np.arange(0, 9_000_000, 60_000)
    >>> bounds = np.searchsorted(made.times_ms, [starts, starts + 100_000], side="right")
    >>> counts = np.diff(bounds, axis=0)
    >>> bool(20 < counts.min() < 30 < np.median(counts) < 45 < counts.max() < 70)
    True
    """

    chance: float = 0.365
    weighed: bool = False

    def __call__(
        self, users: int, seconds: float, random: np.random.Generator
    ) -> GeneratedMentions:
        """Return mentions of so many users within so many seconds. O(n log n)."""
        slots = int(np.ceil(seconds / _SLOT))
        shares = popularity(users, random)
        counts = random.binomial(_DRAWS, self.chance, slots)
        surges = np.flatnonzero(random.random(slots) < 1 / _SURGE_EVERY)
        of_surges = random.poisson(_SURGE, len(surges))
        slot = np.concatenate([np.repeat(np.arange(slots), counts), np.repeat(surges, of_surges)])
        anyone = random.choice(users, int(counts.sum()), p=shares)
        talked_of = np.repeat(random.choice(users, len(surges), p=shares), of_surges)
        times = _SLOT * (slot + random.random(len(slot)))
        times_ms = np.ceil(1000 * times).astype(np.int64)
        order = np.argsort(times_ms, kind="stable")
        order = order[times_ms[order] <= 1000 * seconds]
        numbers = np.ones(len(order), dtype=np.int64)
        if self.weighed:
            numbers += np.floor(random.lognormal(3.0, 0.8, len(order))).astype(np.int64)
        return GeneratedMentions(
            times_ms[order], np.concatenate([anyone, talked_of])[order], numbers
        )


def popularity(users: int, random: np.random.Generator) -> FloatArray:
    """Return each user's share of the mentions: a long tail (Zipf-Mandelbrot), in random order."""
    shares = 1 / (np.arange(users) + 4.0)
    return np.asarray(random.permutation(shares / shares.sum()))
