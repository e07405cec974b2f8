"""Choice of how many items to ask for: as few as bring the expected quality to a target."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from acquatop.answer.estimate import Estimate, estimate
from acquatop.catalog.quality_target import QualityTarget
from acquatop.topk.contract import FloatArray, IntArray
from replica.rankers import Candidates

MeritsNow = Callable[[], FloatArray]
"""Function that returns the candidates' merits with the replica's present values."""

_CELLS = 1 << 15
_FEWEST, _MOST = 32, 256
"""Bounds of the number of sampled worlds: as many as make ``_CELLS`` cells, within these."""

_AUDITS_EVERY, _AUDIT, _AUDIT_RESULTS = 12, 4, 2
"""Evaluations from one audit to the next, and its items: as multiples of what is enough, and of the
results."""

_PRIOR, _MEMORY, _RATIOS = 0.1, 0.95, (1.0, 4.0)
"""Errors assumed to have been foreseen and found, what is left of an error's weight after an audit,
and bounds of the ratio."""

_STEP = 0.1
"""Share of a difference between target and expected quality that corrects the next aim."""


class EnoughItems:
    """Least number of a policy's first candidates that brings the expected quality to a target.

    Worlds are sampled in which each candidate has another merit with the chance that it has
    changed. Those that are asked for are known to the answer, others have their old merits; its
    quality against the world's best is averaged. What the answers are expected to have afterwards
    corrects the aim: they also know of what is no candidate. In an audit, every twelfth evaluation,
    more are asked for, which shows what would have been wrong without them: expected errors grow by
    the ratio of the errors found to those foreseen. O(log n) estimates.
    """

    def __init__(self, target: QualityTarget) -> None:
        self._target = target
        self._correction = 0.0
        """Quality that is aimed at beyond the target."""
        self._foreseen = self._found = _PRIOR
        """Errors in the audits, with less weight the older."""
        self._turn = 0
        self._audit: _Audit | None = None

    def of(self, candidates: Candidates, order: IntArray, merits_now: MeritsNow | None) -> int:
        """Return how many of the candidates in an order to ask for; all if none are enough.

        All if merits do not follow from the replica's values: then nothing is expected of answers.
        """
        self._audit = None
        if merits_now is None or not len(order):
            return len(order)
        order = order[: candidates.allowance.now or len(order)]
        worlds = _Worlds(candidates, order, self._target.metric)
        aim = 1 - max(0.0, 1 - self._target.least - self._correction) / self.ratio
        few, enough = -1, 0
        while enough < len(order) and worlds.quality(enough) < aim:
            few, enough = enough, min(len(order), max(1, 2 * enough))
        while enough - few > 1:
            middle = (few + enough) // 2
            few, enough = (few, middle) if worlds.quality(middle) >= aim else (middle, enough)
        self._turn += 1
        if self._turn % _AUDITS_EVERY != 1:
            return enough
        self._audit = _Audit(worlds, enough, merits_now)
        return min(len(order), _AUDIT * enough + _AUDIT_RESULTS * candidates.k)

    @property
    def ratio(self) -> float:
        """Factor of the errors that are expected: as many more were found than foreseen."""
        return float(np.clip(self._found / self._foreseen, *_RATIOS))

    def note(self, expected: Estimate) -> None:
        """Note the quality that an answer is expected to have after a refresh."""
        if self._audit is not None:
            self._foreseen = _MEMORY * self._foreseen + self._audit.foreseen
            self._found = _MEMORY * self._found + self._audit.found()
            self._audit = None
            return
        missing = 1 - float(getattr(expected, self._target.metric))
        room = 1 - self._target.least
        step = _STEP * (self.ratio * missing - room)
        self._correction = float(np.clip(self._correction + step, -room, room))

    def settings(self) -> list[float]:
        """Return what is remembered."""
        return [self._correction, self._foreseen, self._found, self._turn]

    def set(self, settings: Sequence[float]) -> None:
        """Restore what was remembered; nothing if there is nothing."""
        if settings:
            self._correction, self._foreseen, self._found, turn = settings
            self._turn = int(turn)


class _Audit:
    """Errors foreseen and found of an answer for which only ``enough`` had been asked for."""

    def __init__(self, worlds: _Worlds, enough: int, merits_now: MeritsNow) -> None:
        self.foreseen = 1 - worlds.quality(enough)
        self._worlds = worlds
        self._enough = enough
        self._merits_now = merits_now

    def found(self) -> float:
        """Return the errors that it would have had, by what is known now."""
        return 1 - self._worlds.quality_of(self._merits_now()[None, :], self._enough)


class _Worlds:
    """Candidates' old merits, and their merits in sampled worlds, one row each."""

    def __init__(self, candidates: Candidates, order: IntArray, metric: str) -> None:
        count = len(candidates)
        size = int(np.clip(_CELLS // count, _FEWEST, _MOST))
        changed = candidates.random.random((size, count)) < candidates.chances
        drawn = candidates.outlook(np.arange(count), size)
        self._old = candidates.merits
        self._true: FloatArray = np.where(changed, drawn, self._old)
        self._order = order
        self._k = candidates.k
        self._metric = metric

    def quality(self, asked: int) -> float:
        """Return the expected quality if the first candidates of the order are asked for."""
        return self.quality_of(self._true, asked)

    def quality_of(self, true: FloatArray, asked: int) -> float:
        """Return the mean quality in worlds with some true merits."""
        known = np.zeros(len(self._old), dtype=np.bool_)
        known[self._order[:asked]] = True
        shown = np.where(known, true, self._old)
        shown = np.where(np.isnan(shown), -np.inf, shown)
        places = np.argsort(-shown, axis=1, kind="stable")
        true = np.take_along_axis(true, places, axis=1)
        reported = min(self._k, true.shape[1])
        return float(getattr(estimate(true, reported, self._k), self._metric))
