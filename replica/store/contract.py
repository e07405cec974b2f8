"""Types that the stores take and return."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

Solution = Mapping[str, str]
"""A remote's solution: variable name → N-Triples term."""

NEVER = float("-inf")
"""Fetch time of a key never fetched."""

WHOLE = ""
"""Only key of a pattern that is fetched whole; no term has an empty text."""


@dataclass(frozen=True)
class Stored:
    """Effect of one delivery of solutions: the keys whose values are new or changed.

    ``first`` are those of them that were unknown before.
    """

    changed: tuple[str, ...]
    ambiguous: int
    first: tuple[str, ...] = ()
