"""Rows that say the same, each different one once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from acquatop.topk.contract import IntArray


def different_rows(columns: Sequence[IntArray]) -> tuple[IntArray, IntArray]:
    """Return the first row of each different tuple of codes, and each row's index among these.

    >>> firsts, which = different_rows([np.array([1, 0, 1]), np.array([2, 2, 2])])
    >>> firsts.tolist(), which.tolist()
    ([1, 0], [1, 0, 1])
    """
    tuples = columns[0]
    for codes in columns[1:]:
        _, tuples = np.unique(tuples, return_inverse=True)
        tuples = tuples * (1 + int(codes.max(initial=0))) + codes
    _, firsts, which = np.unique(tuples, return_index=True, return_inverse=True)
    return firsts, which
