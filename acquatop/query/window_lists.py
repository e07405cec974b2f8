"""K-list and N-list of each open window, from what a ranking holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from acquatop.answer.window_lists import Listed, WindowLists
from acquatop.topk.columns import newest_of
from acquatop.topk.contract import FloatArray, Rows
from acquatop.topk.order import ranking
from acquatop.windows import Windows

MOST = 100
"""Number of windows shown, the oldest first."""


def lists_of(
    rows: Rows,
    merits: FloatArray,
    windows: Windows,
    first: int,
    sizes: tuple[int, int],
    score_of: Callable[[float], float],
    terms: Callable[[Rows, int], Mapping[str, str]],
) -> Iterator[WindowLists]:
    """Yield the lists of the windows from ``first`` on that hold a row, oldest first.

    ``sizes`` are K and N; ``score_of`` returns the score of a merit, ``terms`` those of a row. Of
    an identity the newest row in a window counts. O(rows) per window.
    """
    at = np.flatnonzero(~np.isnan(merits))
    if not len(at):
        return
    rows, merits = rows.take(at), merits[at]
    order = ranking(merits, rows.times, rows.identities)
    rows, merits = rows.take(order), merits[order]
    firsts, lasts = windows.spans(rows.times)
    last = min(int(lasts.max()), max(first, int(firsts.min())) + MOST - 1)
    for window in range(max(first, int(firsts.min())), last + 1):
        inside = np.flatnonzero((firsts <= window) & (window <= lasts))
        if not len(inside):
            continue
        held = rows.take(inside)
        newest = np.sort(newest_of(held.identities, held.times))
        listed = [
            Listed(
                int(held.times[each]),
                score_of(float(merits[inside[each]])),
                terms(held, each),
            )
            for each in newest[: sum(sizes)].tolist()
        ]
        k_list, n_list = tuple(listed[: sizes[0]]), tuple(listed[sizes[0] :])
        yield WindowLists(window, *windows.bounds(window), k_list, n_list)
