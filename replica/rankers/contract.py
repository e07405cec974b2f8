"""What every ranker is given and what it gives back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Candidates:
    """What may be refreshed, as arrays of one length, best-scored candidate first.

    ``k`` is how many results are wanted, so the border between what is reported and what is
    not lies between positions k-1 and k.
    """

    keys: tuple[str, ...]
    fetched_at: FloatArray
    k: int

    def __len__(self) -> int:
        return len(self.keys)


Ranker = Callable[[Candidates], IntArray]
"""Returns the positions of candidates in the order in which to refresh them; it may leave some out."""
