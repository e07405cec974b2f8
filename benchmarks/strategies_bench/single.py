"""MinTopk's experiments (EDBT 2011, section 6): one query, with k, window, slide and rate varied.

Windows are a tenth of the paper's, as its list structures take hours for the rest.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import pairwise

import numpy as np

from acquatop.topk.contract import FloatArray, Rows, TopK
from acquatop.topk.pane_dominance import PaneDominance
from acquatop.topk.papers.mintopk.mintopk import MinTopk
from acquatop.topk.papers.mintopk.pretopk import PreTopk
from acquatop.windows import Windows
from benchmarks.core import Step, Stream, Way, structure, timed
from benchmarks.strategies_bench.figures import Point
from benchmarks.strategies_bench.streams import distances, trade_times, trades

WIDTH, K = 100_000, 100
ARRAYS, LIST, VIEWS, ANEW = (
    "pane dominance (arrays)",
    "MinTopk (list)",
    "PreTopk (lists)",
    "each window anew (numpy)",
)


class Scored(Stream):
    """A stream of given scores."""

    def __init__(
        self, scores: Callable[[int], FloatArray], window: int, slide: int, slides: int
    ) -> None:
        super().__init__(window, slide, slides)
        self.scores = scores(len(self.scores))


def anew(stream: Stream, k: int) -> Step:
    """Return the step of finding the best of the whole window."""
    return lambda number: np.partition(stream.scores[stream.content(number)], stream.window - k)[
        -k:
    ]


def ways(k: int) -> Mapping[str, Way]:
    """Return the ways to answer one query."""
    return {
        ARRAYS: partial(structure, made=partial(PaneDominance, k, distinct=True, fixed=True)),
        LIST: partial(structure, made=partial(MinTopk, k)),
        VIEWS: partial(structure, made=partial(PreTopk, k)),
        ANEW: partial(anew, k=k),
    }


def points(quick: bool) -> Iterator[Point]:
    """Yield the cost of each way, along each axis."""
    for k in (10, 100) if quick else (10, 100, 1_000):
        yield from _timed("k", k, Scored(trades, WIDTH, WIDTH // 10, 6), ways(k))
    for width in (1_000, 10_000) if quick else (1_000, 10_000, 100_000, 1_000_000):
        slides = 6 if width > WIDTH else 40
        yield from _timed("window", width, Scored(distances, width, width // 10, slides), ways(K))
    for slide in (10_000, 1_000) if quick else (10_000, 1_000, 100, 10):
        # Structures that update all open windows take minutes to fill if there are thousands.
        least = {VIEWS: 1_000, LIST: 100}
        of = {name: way for name, way in ways(K).items() if slide >= least.get(name, 0)}
        yield from _timed(
            "slide", slide, Scored(trades, WIDTH, slide, 6 if slide > 1_000 else 60), of
        )
    for seconds in (100, 10) if quick else (100, 10, 1):
        yield from _responses(seconds)


def _timed(axis: str, at: int, stream: Stream, of: Mapping[str, Way]) -> Iterator[Point]:
    for way, nanoseconds in timed(stream, of, stream.slides).items():
        yield Point("one query", axis, at, way, nanoseconds)


def _responses(slide_s: int) -> Iterator[Point]:
    """Yield the time from a window's last arrival to its answer, at a varying rate."""
    windows = Windows(1_000_000, 1_000 * slide_s)
    closes = 30
    times = trade_times(1_000 + closes * slide_s, 100)
    amounts = trades(len(times))
    made: Mapping[str, Callable[[], TopK]] = {
        ARRAYS: partial(PaneDominance, K, distinct=True, fixed=True),
        LIST: partial(MinTopk, K),
    }
    for way, make in made.items():
        held, spent = make(), []
        for close in range(closes + 1):
            until = 1_000_000 + close * windows.slide_ms
            start = int(
                np.searchsorted(times, until - windows.slide_ms if close else 0, side="right")
            )
            stop = int(np.searchsorted(times, until, side="right"))
            window = windows.first(until)
            started = time.perf_counter()
            _hand_in(
                held,
                windows,
                Rows(times[start:stop], *2 * (np.arange(start, stop),), (amounts[start:stop],)),
                window,
            )
            held.top(window)
            held.close_before(window + 1)
            if close:
                spent.append(time.perf_counter() - started)
        each = [1e3 * seconds for seconds in spent]
        note = f"{min(each):.2f} to {max(each):.2f} ms, deviation {statistics.pstdev(each):.2f}"
        yield Point(
            "one query",
            "response, slide in s",
            slide_s,
            way,
            1e6 * statistics.mean(each),
            note=note,
        )


def _hand_in(held: TopK, windows: Windows, rows: Rows, oldest: int) -> None:
    firsts, lasts = windows.spans(rows.times)
    edges = [0, *(np.flatnonzero(np.diff(lasts)) + 1).tolist(), len(rows)]
    for start, stop in pairwise(edges):
        if start < stop:
            held.add(
                max(oldest, int(firsts[start])), int(lasts[start]), rows.take(slice(start, stop))
            )
