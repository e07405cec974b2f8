"""Events of the latency test: slide by slide, each followed by the event that closes its window."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from benchmarks.spark_bench.data import TOP
from benchmarks.spark_bench.floor import Answers

NS = "http://example.org/"
WIDTH_MS, SLIDE_MS = 9_000, 3_000
START_MS = 1_699_999_920_000
INTEGER = "http://www.w3.org/2001/XMLSchema#integer"

Event = tuple[int, int, int]
"""Time, key, and value."""


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
        for close in range(START_MS + SLIDE_MS, START_MS + self.slides * SLIDE_MS + 1, SLIDE_MS):
            moments = np.sort(
                chance.integers(close - SLIDE_MS + 2, close, self.events - 1)
            ).tolist()
            keys, values = (
                chance.integers(0, self.keys, self.events),
                chance.integers(1, 100_000, self.events),
            )
            found = list(zip([*moments, close + 1], keys.tolist(), values.tolist(), strict=True))
            yield Slide(close, tuple(found[:-1]), found[-1])

    def answers(self) -> Answers:
        """Return the keys with the greatest sum times weight, of each window. O(events).

        Equal pairs of key and value in a window are one triple, as in any RDF graph.
        """
        panes: deque[list[tuple[int, int]]] = deque(maxlen=WIDTH_MS // SLIDE_MS)
        found: Answers = {}
        carried: list[tuple[int, int]] = []
        for slide in self:
            panes.append([*carried, *((key, value) for _, key, value in slide.events)])
            carried = [slide.closing[1:]]
            totals: dict[int, int] = {}
            for key, value in {each for pane in panes for each in pane}:
                totals[key] = totals.get(key, 0) + value
            scores = ((key, float(total * self.weights[key])) for key, total in totals.items())
            found[slide.close] = heapq.nsmallest(TOP, scores, key=lambda pair: -pair[1])
        return found
