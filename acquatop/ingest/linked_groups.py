"""Groups of records that are linked: by a term that both have, or over others between them."""

from __future__ import annotations

import numpy as np

from acquatop.topk.contract import IntArray


def linked_groups(terms: IntArray) -> IntArray:
    """Return a number of the group of each record, given the codes of its terms in a row.

    The first term is always there; -1 stands for none. O(n log n), and more for long chains.

    >>> linked_groups(np.array([[5, 7], [1, -1], [7, -1], [2, 1]])).tolist()
    [2, 0, 2, 0]
    """
    count, width = terms.shape
    if not count:
        return np.empty(0, dtype=np.int64)
    filled = np.where(terms < 0, terms[:, :1], terms)
    _, flat = np.unique(filled, return_inverse=True)
    nodes = flat.reshape(count, width)
    least = np.arange(int(nodes.max()) + 1)
    while True:
        lower = least.copy()
        smallest = least[nodes].min(axis=1)
        for column in nodes.T:
            np.minimum.at(lower, column, smallest)
        lower = lower[lower]
        if np.array_equal(lower, least):
            break
        least = lower
    found: IntArray = least[nodes[:, 0]]
    return found
