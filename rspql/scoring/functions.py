"""The functions that a score may call, each in two forms: over arrays and over intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Interval:
    """All values from ``low`` to ``high``; infinite where nothing bounds them."""

    low: float
    high: float

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high


EVERYTHING = Interval(-np.inf, np.inf)


@dataclass(frozen=True)
class ScoringFunction:
    """A function of a fixed number of numbers.

    ``apply`` works on whole arrays, with NaN for an error; ``bounds`` returns an interval that
    holds every value ``apply`` can give for arguments from the given intervals.
    """

    arity: int
    apply: Callable[..., FloatArray]
    bounds: Callable[..., Interval]
    signature: str


def _norm(value: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore", invalid="ignore"):
        scaled = np.clip((value - low) / (high - low), 0.0, 1.0)
    return np.where(high > low, scaled, np.nan)


def _norm_bounds(value: Interval, low: Interval, high: Interval) -> Interval:
    if low.low != low.high or high.low != high.high or not high.low > low.low:
        return Interval(0.0, 1.0)
    ends = _norm(np.array([value.low, value.high]), np.array(low.low), np.array(high.low))
    return Interval(float(ends[0]), float(ends[1]))


def _abs_bounds(value: Interval) -> Interval:
    ends = sorted((abs(value.low), abs(value.high)))
    return Interval(0.0 if 0.0 in value else ends[0], ends[1])


FUNCTIONS: Mapping[str, ScoringFunction] = {
    "norm": ScoringFunction(3, _norm, _norm_bounds, "norm(value, low, high)"),
    "abs": ScoringFunction(1, np.abs, _abs_bounds, "ABS(value)"),
}
