"""Events of the latency test: slide by slide, each followed by the event that closes its window."""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from benchmarks.spark_bench.data import TOP
from benchmarks.spark_bench.floor import Answers
from benchmarks.spark_bench.shapes import KEYED, Event, Shape

WIDTH_MS, SLIDE_MS = 9_000, 3_000
START_MS = 1_699_999_920_000


@dataclass(frozen=True)
class Slide:
    """Events before a window's close, and the first one after it, part of the next slide."""

    close: int
    events: tuple[Event, ...]
    closing: Event


@dataclass(frozen=True)
class Feed:
    """Slides of events of keys, and the keys' weights; 1 each unless they are joined."""

    slides: int
    events: int
    keys: int
    joined: bool = True
    shape: Shape = KEYED
    seed: int = 6

    @cached_property
    def weights(self) -> list[int]:
        """Weight of each key, by its number."""
        if not self.joined:
            return [1] * self.keys
        found: list[int] = (
            np.random.default_rng(self.seed).integers(1, 1_000_000, self.keys).tolist()
        )
        return found

    def __iter__(self) -> Iterator[Slide]:
        chance = np.random.default_rng((self.seed, 1))
        numbers = itertools.count()
        for close in range(START_MS + SLIDE_MS, START_MS + self.slides * SLIDE_MS + 1, SLIDE_MS):
            moments = np.sort(
                chance.integers(close - SLIDE_MS + 2, close, self.events - 1)
            ).tolist()
            keys, values = (
                chance.integers(0, self.keys, self.events),
                chance.integers(1, self.shape.greatest, self.events),
            )
            columns = [*moments, close + 1], keys.tolist(), values.tolist(), numbers
            found = list(map(Event, *columns))
            yield Slide(close, tuple(found[:-1]), found[-1])

    def answers(self) -> Answers:
        """Return the greatest scores of each window, times the weights if joined. O(events)."""
        panes: deque[list[Event]] = deque(maxlen=WIDTH_MS // SLIDE_MS)
        found: Answers = {}
        carried: list[Event] = []
        for slide in self:
            panes.append([*carried, *slide.events])
            carried = [slide.closing]
            scores = self.shape.scores(itertools.chain.from_iterable(panes))
            weighted = (
                (who, float(score * self.weights[who] if self.joined else score))
                for who, score in scores.items()
            )
            found[slide.close] = heapq.nsmallest(TOP, weighted, key=lambda pair: -pair[1])
        return found
