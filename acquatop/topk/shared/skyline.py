"""Skyband pruning without counters: a superset of the rows with fewer than k dominators."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, overload

import numpy as np

from acquatop.topk.contract import AnyArray, FloatArray, IntArray
from acquatop.topk.order import Identities, best
from acquatop.topk.pane_top import Scored

STEPS = 32
"""Largest number of labels whose k-th best younger row is looked up."""


def youngest_best(scored: Scored, labels: IntArray, k: int) -> IntArray:
    """Return the positions, in order, of rows that may have fewer than k dominators.

    Rows are in time order. A row is dominated by a better one that leaves no earlier, as the labels
    tell. Rows are compared by stretches that double in length backwards in time: a row no better
    than the k best of all later stretches is dominated. In random order about k·(2 + log2(n/k))
    rows are returned, with at most k of a label that fills a stretch. O(n).

    >>> from acquatop.topk.contract import Rows
    >>> at, merits = np.arange(6), np.array([1.0, 9.0, 5.0, 2.0, 6.0, 3.0])
    >>> youngest_best(
    ...     Scored(merits, Rows(at, at, at, ())), np.array([0, 0, 1, 2, 2, 3]), 1
    ... ).tolist()
    [1, 4, 5]
    """
    found: list[IntArray] = []
    for start, stop, at in _unbeaten(scored.merits, labels, k, of_ties=False):
        if len(at) > k and labels[start] == labels[stop - 1]:
            rows = scored.rows
            chosen = best(k, scored.merits[at], rows.times[at], rows.identities[at])
            chosen.sort()
            at = at[chosen]
        found.append(at)
    return np.concatenate(found[::-1]) if found else np.empty(0, np.int64)


def undominated_within(merits: FloatArray, ends: IntArray, k: int) -> IntArray:
    """Return the positions, in order, of rows that may be in the best k of a wide window.

    The window is no narrower than the span of all rows. Rows are in time order, and ``ends`` are
    the ends of their panes. Such a window holds all rows before a row that it holds, or all rows
    after it, so a row with k better ones on both sides is not needed. About twice as many rows are
    returned as by :func:`youngest_best`; of equal rows, all that may be needed. O(n).

    >>> undominated_within(np.array([1.0, 9.0, 5.0, 2.0, 6.0, 3.0, 7.0]), np.arange(7), 1).tolist()
    [0, 1, 6]
    """
    stays = np.zeros(len(merits), dtype=bool)
    for _, _, at in _unbeaten(merits, ends, k, of_ties=False):
        stays[at] = True
    # Backwards in time: if a row ties with an older one, it is the better of the two.
    for _, _, at in _unbeaten(merits[::-1], -ends[::-1], k, of_ties=True):
        stays[len(stays) - 1 - at] = True
    return stays.nonzero()[0]


class Column(Identities, Protocol):
    """Column of identities that can be sliced. Identities are made only if they are read."""

    @overload
    def __getitem__(self, at: slice, /) -> Identities: ...
    @overload
    def __getitem__(self, at: IntArray, /) -> AnyArray: ...


def best_of_panes(
    k: int, merits: FloatArray, times: IntArray, identities: AnyArray | Column, ends: IntArray
) -> IntArray:
    """Return the positions, in order, of the best k of each pane. Rows are in time order.

    >>> times = np.arange(5)
    >>> best_of_panes(
    ...     1, np.array([3.0, 4.0, 2.0, 7.0, 8.0]), times, times, np.array([1, 1, 2, 4, 4])
    ... ).tolist()
    [1, 2, 4]
    """
    edges = np.concatenate(([0], np.flatnonzero(np.diff(ends)) + 1, [len(ends)]))
    stays = np.ones(len(ends), dtype=bool)
    for pane in (np.diff(edges) > k).nonzero()[0].tolist():
        at = slice(int(edges[pane]), int(edges[pane + 1]))
        chosen = best(k, merits[at], times[at], identities[at])
        stays[at] = False
        stays[at.start + chosen] = True
    return stays.nonzero()[0]


def _unbeaten(
    merits: FloatArray, labels: IntArray, k: int, *, of_ties: bool
) -> Iterator[tuple[int, int, IntArray]]:
    """Yield stretches of whole labels, last first, and the rows that k later ones do not beat.

    Later rows are those of the stretches after. With ``of_ties`` a later row of the same merit does
    not beat a row.
    """
    bar, leaders = -np.inf, np.empty(0)
    for start, stop in _stretches(labels, k):
        part = merits[start:stop]
        passes = part >= bar if of_ties else part > bar
        at = passes.nonzero()[0] if len(leaders) == k else np.arange(len(part))
        yield start, stop, at + start
        leaders = np.concatenate((leaders, part[at]))
        if len(leaders) >= k:
            leaders = np.partition(leaders, len(leaders) - k)[len(leaders) - k :]
            bar = float(leaders[0])


def _stretches(labels: IntArray, k: int) -> Iterator[tuple[int, int]]:
    """Yield start and stop of stretches of whole labels, last first.

    Each is at least as long as all those after it.
    """
    stop, size = len(labels), k
    while stop:
        start = int(np.searchsorted(labels, labels[max(0, stop - size)], side="left"))
        yield start, stop
        size, stop = len(labels) - start, start


def undominated(labels: IntArray, moments: IntArray, ks: IntArray) -> IntArray:
    """Return the positions of rows that may have fewer dominators than are asked for.

    Rows are ordered best first. ``ks`` holds, per moment, the number asked for of rows from that
    moment up to the next. Rows older than all moments are not returned, nor are rows with k better
    ones that are no older: exactly so for up to 32 labels, nearly so for more. O(n) for each of at
    most 32 labels.

    >>> undominated(np.array([3, 5, 3, 4, 1]), np.array([2]), np.array([1])).tolist()
    [0, 1]
    """
    if not len(moments):
        return np.empty(0, np.int64)
    alive: IntArray = (labels >= moments[0]).nonzero()[0]
    labels = labels[alive]
    if not len(labels):
        return alive
    in_order = np.sort(labels)
    samples = in_order[np.flatnonzero(np.diff(in_order, append=in_order[-1] + 1))]
    if len(samples) > STEPS:
        samples = samples[np.linspace(0, len(samples) - 1, STEPS).astype(np.int64)]
    wanted = ks[np.searchsorted(moments, samples, side="right") - 1]
    younger = len(labels) - np.searchsorted(in_order, samples, side="left")
    limits = np.full(len(samples), len(labels))
    for step in (younger > wanted).nonzero()[0].tolist():
        k = int(wanted[step])
        limits[step] = first_after(
            labels, int(samples[step]) - 1, k, float(younger[step]) / len(labels)
        )[k - 1]
    # The k best rows no older than a label dominate all lower rows no younger than it.
    return alive[np.arange(len(labels)) <= limits[np.searchsorted(samples, labels, side="left")]]


def first_after(times: IntArray, opens: int, k: int, share: float) -> IntArray:
    """Return the positions of the first k times that are after a moment. Rows are best first.

    ``share`` is the fraction of times expected to be after it. A wrong guess costs only time.

    >>> first_after(np.array([4, 9, 2, 7, 8]), 5, 2, 0.5).tolist()
    [1, 3]
    """
    size = int(1.1 * k / max(share, 1e-3)) + 64
    while True:
        found = (times[:size] > opens).nonzero()[0]
        if len(found) >= k or size >= len(times):
            return found[:k]
        size *= 4


def bar_of(minus: FloatArray, times: IntArray, opens: int, k: int) -> float:
    """Return the negative merit of the k-th row after a moment; infinity if there are fewer."""
    found = first_after(times, opens, k, 1.0)
    return float(minus[found[-1]]) if len(found) == k else np.inf
