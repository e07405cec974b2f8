"""What the stores take in and give out."""

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
"""When what was never fetched was fetched."""

WHOLE = ""
"""The one key of a pattern that is fetched whole; no term has an empty text."""


@dataclass(frozen=True)
class Stored:
    """What one delivery of solutions did: the keys whose values are new or other than before."""

    changed: tuple[str, ...]
    ambiguous: int
