"""Measure each ranker's time to order many candidates, compared with a sort by a key function."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.table import Figure, report
from replica.rankers import DEFAULT_RANKERS, Candidates, Ranker
from replica.rankers.battery import sample_candidates


@dataclass(frozen=True)
class _Item:
    position: int
    fetched_at: float
    best_before: float
    score: int


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="run bench rankers", description=__doc__)
    parser.add_argument(
        "--candidates", type=int, default=100_000, help="how many candidates (%(default)s)"
    )
    parser.add_argument("--times", type=int, default=20, help="how often each (%(default)s)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args()
    candidates = _candidates(options.candidates)
    items = _items(candidates)
    work: dict[str, Callable[[], object]] = {
        "floor: a copy of the times, sorted": lambda: np.sort(candidates.fetched_at)
    }
    for name, ranker in DEFAULT_RANKERS.items():
        work[name] = _ranking(ranker(), candidates)
    work["LRU as a sort of objects by a key function"] = lambda: sorted(
        items, key=lambda each: each.fetched_at
    )
    work["WBM as a sort of objects by a key function"] = lambda: sorted(items, key=_as_in_wbm)
    figures: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(1 + options.times):
        for name, each in work.items():
            started = time.perf_counter()
            each()
            figures[name].append(time.perf_counter() - started)
    report(
        f"Ranking {options.candidates:,} candidates",
        # The first round is a warm-up.
        [_figure(name, taken[1:]) for name, taken in figures.items()],
        ["numpy"],
        as_json=options.json,
    )


def _figure(name: str, taken: list[float]) -> Figure:
    median = float(np.median(taken))
    return Figure(f"{name}: {1000 * median:.2f} ms", median * len(taken), len(taken))


def _candidates(count: int) -> Candidates:
    """Return candidates whose times all differ: ties are faster to sort."""
    random = np.random.default_rng(1)
    return replace(
        sample_candidates(count),
        fetched_at=random.uniform(0, 1000, count),
        intervals=random.exponential(300.0, count),
    )


def _items(candidates: Candidates) -> list[_Item]:
    best_before = candidates.fetched_at + candidates.intervals
    columns = (candidates.fetched_at.tolist(), best_before.tolist(), candidates.remaining.tolist())
    return [_Item(position, *each) for position, each in enumerate(zip(*columns, strict=True))]


def _as_in_wbm(item: _Item) -> tuple[bool, float, float]:
    is_fresh = item.best_before > 1000.0
    return is_fresh, item.best_before if is_fresh else -item.score, item.fetched_at


def _ranking(ranker: Ranker, candidates: Candidates) -> Callable[[], object]:
    return lambda: ranker(candidates)


if __name__ == "__main__":
    main()
