"""MTopS' experiments (CIKM 2011, section 7): up to a thousand queries that differ."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from acquatop.topk.contract import FloatArray, Rows
from acquatop.topk.papers.mtops.mtop_band import MTopBand
from acquatop.topk.papers.mtops.mtop_list import MTopList
from acquatop.topk.shared.contract import ManyTopK, TopKRequest
from acquatop.topk.shared.shared_skyline import SharedSkyline
from acquatop.windows import Windows
from benchmarks.strategies_bench.figures import Point
from benchmarks.strategies_bench.streams import trades
from tests.support.independent import Independent

BATCH = 10_000
AXES = ("k", "slide", "window and slide", "window, slide and k")
EXTREMES = (AXES[0], AXES[-1])
ARRAYS: Mapping[str, Callable[[], ManyTopK]] = {
    "each by itself (arrays)": lambda: Independent(0),
    "shared skyline (arrays)": lambda: SharedSkyline(0),
}
LISTS: Mapping[str, Callable[[], ManyTopK]] = {
    "MTopList": lambda: MTopList(0),
    "MTopBand": lambda: MTopBand(0),
}


def asked(axis: str, count: int, scale: int, seed: int = 4) -> list[TopKRequest]:
    """Return random queries.

    Parameters in the axis are drawn from the paper's range, the others are at its upper end.
    """
    chance = np.random.default_rng(seed)

    def drawn(low: int, high: int, varies: bool) -> int:
        return int(chance.integers(low, high + 1)) if varies else high

    return [
        TopKRequest(
            Windows(
                drawn(100_000 // scale, 1_000_000 // scale, "window" in axis),
                drawn(10_000 // scale, 100_000 // scale, "slide" in axis),
            ),
            drawn(max(1, 10 // scale), max(10, 1_000 // scale), "k" in axis),
        )
        for _ in range(count)
    ]


@dataclass(frozen=True)
class Took:
    """Cost and sizes of a structure; ``is_least`` if the first window was not complete."""

    nanoseconds: float
    held: int
    nbytes: int | None
    is_least: bool = False


def run(
    held: ManyTopK,
    queries: list[TopKRequest],
    scores: FloatArray,
    *,
    warm: int,
    batch: int,
    seconds: float = 25.0,
) -> Took:
    """Answer queries over scores, and return the cost of arrivals after the first ``warm``.

    At most ``seconds`` are spent before that, and after it. If time ends before, the cost of the
    arrivals so far is a lower bound: the structure has not reached its full size.
    """
    for number, each in enumerate(queries):
        held.join(str(number), each)
    spent, done = [0.0, 0.0], [0, 0]
    for start in range(0, len(scores), batch):
        at = np.arange(start + 1, min(start + batch, len(scores)) + 1)
        rows = Rows(at, at, at, (scores[at - 1],))
        started = time.perf_counter()
        held.add(rows)
        for _ in held.advance(int(at[-1])):
            pass
        is_warm = start >= warm
        spent[is_warm] += time.perf_counter() - started
        done[is_warm] += len(at)
        if spent[is_warm] > seconds:
            break
    phase = 1 if done[1] else 0
    return Took(1e9 * spent[phase] / done[phase], len(held), _nbytes(held), is_least=not done[1])


def _nbytes(held: object) -> int | None:
    found = getattr(held, "nbytes", None)
    return None if found is None else int(found)


def points(quick: bool) -> Iterator[Point]:
    """Yield each way's cost for ten to a thousand queries; lists at a hundredth of the size."""
    most = (10, 100) if quick else (10, 100, 1_000)
    for axis in AXES:
        # The axes between the two extremes are not measured up to the largest number.
        counts = most if axis in EXTREMES else (10, 100)
        yield from _each_count("queries", axis, counts, ARRAYS, scale=1)
    for axis in EXTREMES:
        yield from _each_count(
            "a hundredth of the size", axis, most, {**ARRAYS, **LISTS}, scale=100
        )


def _each_count(
    experiment: str,
    axis: str,
    counts: Iterable[int],
    of: Mapping[str, Callable[[], ManyTopK]],
    *,
    scale: int,
) -> Iterator[Point]:
    warm = 1_000_000 // scale
    for count in counts:
        queries = asked(axis, count, scale)
        scores = trades(warm + max(100_000 // scale, 2_000))
        for way, made in of.items():
            took = run(made(), queries, scores, warm=warm, batch=BATCH // scale)
            note = "before the first window was full" if took.is_least else ""
            differ = f"queries that differ in {axis}"
            yield Point(
                experiment, differ, count, way, took.nanoseconds, took.held, took.nbytes, note
            )
