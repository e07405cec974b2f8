"""Floor and reference: the same answers from the same files by numpy alone, on one core."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.spark_bench.data import (
    SLIDE_MS,
    START_MS,
    TOP,
    WIDTH_MS,
    FloatArray,
    IntArray,
    World,
)

PANES = WIDTH_MS // SLIDE_MS
Answers = dict[int, list[tuple[int, float]]]
"""For each window's close, the members of the answer with their scores, best first."""
Block = tuple[IntArray, IntArray, IntArray, FloatArray]


def _read(world: World, *columns: str, files: int | None = None) -> Iterator[pa.Table]:
    for file in sorted(world.readings.iterdir())[:files]:
        yield pq.read_table(file, columns=list(columns), use_threads=False)


def _best(numbers: IntArray, scores: FloatArray) -> tuple[IntArray, FloatArray]:
    at = np.argpartition(-scores, TOP)[:TOP] if len(scores) > TOP else np.arange(len(scores))
    at = at[np.argsort(-scores[at], kind="stable")]
    return numbers[at], scores[at]


def _panes(moments: IntArray) -> IntArray:
    return (moments - START_MS - 1) // SLIDE_MS


def _weights(world: World) -> FloatArray:
    found: FloatArray = pq.read_table(world.weights, columns=["weight"])["weight"].to_numpy()
    return found


def sums(world: World, files: int | None = None) -> Answers:
    """Return the keys with the greatest sum times weight, of each window. O(rows + windows * keys).

    Of the first ``files`` files, or all.
    """
    weights = _weights(world)
    count = len(world.closes)
    totals = np.zeros((count, world.keys))
    for table in _read(world, "time_ms", "key_id", "value", files=files):
        moments, keys, values = (table[name].to_numpy() for name in ("time_ms", "key_id", "value"))
        panes = _panes(moments)
        # The last row only lets windows close: it is in none that is compared.
        kept = slice(None, int(np.searchsorted(panes, count)))
        first, last = int(panes[0]), int(panes[kept][-1])
        places = (panes[kept] - first) * world.keys + keys[kept]
        found = np.bincount(places, values[kept], (last - first + 1) * world.keys)
        totals[first : last + 1] += found.reshape(-1, world.keys)
    answers: Answers = {}
    for number, close in enumerate(world.closes):
        window = totals[max(0, number - PANES + 1) : number + 1].sum(axis=0)
        present = np.flatnonzero(window)
        if len(present):
            answers[close] = _pairs(*_best(present, window[present] * weights[present]))
    return answers


def events(world: World) -> Answers:
    """Return the readings with the greatest value times weight, of each window. O(rows)."""
    weights = _weights(world)
    count = len(world.closes)
    best: list[list[tuple[IntArray, FloatArray]]] = [[] for _ in range(count)]
    for table in _read(world, "event", "time_ms", "key_id", "value"):
        numbers, moments, keys, values = (
            table[name].to_numpy() for name in ("event", "time_ms", "key_id", "value")
        )
        scores = values * weights[keys]
        panes = _panes(moments)
        for pane in range(int(panes[0]), min(int(panes[-1]) + 1, count)):
            at = slice(*np.searchsorted(panes, (pane, pane + 1)))
            best[pane].append(_best(numbers[at], scores[at]))
    answers: Answers = {}
    for number, close in enumerate(world.closes):
        found = [each for pane in best[max(0, number - PANES + 1) : number + 1] for each in pane]
        numbers, scores = (np.concatenate(each) for each in zip(*found, strict=True))
        answers[close] = _pairs(*_best(numbers, scores))
    return answers


def _pairs(numbers: IntArray, scores: FloatArray) -> list[tuple[int, float]]:
    return list(zip(numbers.tolist(), scores.tolist(), strict=True))


def reading(world: World) -> None:
    """Read what AcquaTop has to read of the same files, with keys as a dictionary of texts."""
    columns = ["event", "time_ms", "key", "value"]
    for file in sorted(world.readings.iterdir()):
        pq.ParquetFile(file, read_dictionary=["key"]).read(columns, use_threads=False)


FLOORS: dict[str, Callable[[World], Answers]] = {"sums": sums, "events": events}
"""Function of each job, by name."""


def differences(expected: Answers, given: Answers) -> list[str]:
    """Return the windows in which an engine's answer differs from the expected one.

    >>> differences({3: [(1, 0.5)], 6: []}, {3: [(1, 0.25)], 9: []})
    ['the window that closes at 3: (1, 0.25) instead of (1, 0.5)']
    """
    found = []
    for close, rows in expected.items():
        have = [tuple(each) for each in given.get(close, [])]
        if have != rows:
            pairs = zip([*have, *[None] * len(rows)], [*rows, *[None] * len(have)], strict=False)
            one, other = next(each for each in pairs if each[0] != each[1])
            found.append(f"the window that closes at {close}: {one} instead of {other}")
    return found
