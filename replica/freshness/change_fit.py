"""Regression of the steps of changing values: predicts the next step from those observed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from replica.freshness.arrays import FloatArray

_LARGEST = 1e120
_ROUNDS = 4
_OUTLIER = 2.5
_STEEPEST = 1.5
_FASTEST = 1.0
_FEW = 16
SPREADS = (1 / 64, 64.0)
"""Least and greatest factor by which a row moves compared with others."""


@dataclass(frozen=True)
class ChangeFit:
    """Step: ``intercept + slope · value + pull · offset + size(value, changes) · spread · z``.

    ``value`` is the value before the change (less ``origin``). ``offset`` is the mean of the row's
    values so far, less this value. ``spread`` is the row's scale compared with others (relative to
    ``centre``, their mean).

    The size of a step grows as a power of the value: 0 for noise of constant size, 1 for growth by
    a percentage. It also grows as a power, ``growth``, of the number of changes that one look finds
    together: 0 if each change draws the value anew, 0.5 for a random walk, 1 for a drift. The rest,
    ``z``, has no assumed distribution: ``residuals`` are those observed, ``usual`` the mean of
    their logarithms. ``still`` is the share of changes that left this value unchanged (a key has
    several).
    """

    origin: float = 0.0
    coefficients: tuple[float, float, float] = (0.0, 0.0, 0.0)
    unit: float = 1.0
    power: float = 0.0
    growth: float = 0.0
    residuals: tuple[float, ...] = ()
    usual: float = 0.0
    centre: float = 1.0
    still: float = 0.0
    rises: bool = False
    falls: bool = False

    def middle(self, values: FloatArray, offsets: FloatArray) -> FloatArray:
        """Return the expected step, without the mean of the residuals."""
        intercept, slope, pull = self.coefficients
        return np.asarray(intercept + slope * (values - self.origin) + pull * offsets)

    def size(self, values: FloatArray, changes: FloatArray | float = 1.0) -> FloatArray:
        """Return a step's size in a row of average spread, over some changes: never zero."""
        return np.asarray(self.unit * (1 + np.abs(values)) ** self.power * changes**self.growth)

    def figures(self) -> FloatArray:
        """Return the fit as one row of numbers."""
        parts = (
            self.origin,
            *self.coefficients,
            self.unit,
            self.power,
            self.growth,
            self.usual,
            self.centre,
            self.still,
            self.rises,
            self.falls,
        )
        return np.array([*parts, *self.residuals], np.float64)

    @classmethod
    def of_figures(cls, figures: list[float]) -> ChangeFit:
        """Return the fit of a row of numbers; raises ``ValueError`` if it is invalid."""
        origin, intercept, slope, pull, *others = figures
        unit, power, growth, usual, centre, still, rises, falls, *residuals = others
        return cls(
            origin,
            (intercept, slope, pull),
            unit,
            power,
            growth,
            tuple(residuals),
            usual,
            centre,
            still,
            bool(rises),
            bool(falls),
        )


def fit_changes(
    values: FloatArray,
    offsets: FloatArray,
    steps: FloatArray,
    spreads: FloatArray,
    changes: FloatArray,
) -> ChangeFit:
    """Fit the regression to observed steps, each over a number of changes. O(steps).

    Weighted least squares, in rounds. Each round weights a change by the step size that the
    previous round has fitted for it; outliers weigh less. Regularised by one extra step of size
    zero per coefficient, and by ten extra steps of equal size for all values, so that a few changes
    do not make a trend.

    >>> before = np.array([100.0, 200.0, 400.0, 300.0])
    >>> fit = fit_changes(before, np.zeros(4), 0.1 * before, np.ones(4), np.ones(4))
    >>> 0.05 < fit.coefficients[1] < 0.11
    True
    """
    still = 1 - float((steps != 0).mean()) if len(steps) else 0.0
    # Beyond these sizes squares and their inverses overflow.
    moved = (np.abs(steps) > 1 / _LARGEST) & (np.maximum(np.abs(values), np.abs(steps)) < _LARGEST)
    moved &= np.abs(offsets) < _LARGEST
    values, offsets, steps, spreads, changes = (
        each[moved] for each in (values, offsets, steps, spreads, changes)
    )
    if not len(steps):
        return ChangeFit(still=still)
    # Rows' spreads are only relative: without this, all could grow while the unit shrinks.
    centre = float(np.exp(np.log(spreads).mean()))
    spreads = spreads / centre
    origin = float(np.median(values))
    columns = np.column_stack([np.ones(len(steps)), values - origin, offsets])
    power, growth, unit, sizes, coefficients = (
        0.0,
        0.0,
        1.0,
        spreads * float(np.abs(steps).mean()),
        np.zeros(3),
    )
    logs, logs_of_changes = np.log1p(np.abs(values)), np.log(changes)
    left = steps
    for _ in range(_ROUNDS):
        coefficients = _least_squares(columns, steps, _weights(left, sizes))
        left = steps - columns @ coefficients
        magnitudes = np.maximum(np.abs(left), 1e-6 * np.abs(steps)) / spreads
        power = _power(logs, np.log(magnitudes) - growth * logs_of_changes, _STEEPEST)
        growth = _power(logs_of_changes, np.log(magnitudes) - power * logs, _FASTEST)
        shape = (1 + np.abs(values)) ** power * changes**growth
        unit = float(np.mean(magnitudes / shape))
        sizes = unit * shape * spreads
    residuals = left / sizes
    return ChangeFit(
        origin=origin,
        coefficients=(float(coefficients[0]), float(coefficients[1]), float(coefficients[2])),
        unit=unit,
        power=power,
        growth=growth,
        residuals=tuple(residuals.tolist()),
        usual=float(log_sizes(residuals).mean()),
        centre=centre,
        still=still,
        rises=len(steps) >= _FEW and bool((steps > 0).all()),
        falls=len(steps) >= _FEW and bool((steps < 0).all()),
    )


def log_sizes(residuals: FloatArray) -> FloatArray:
    """Return the logarithms of the residuals' sizes, clipped to the range of spreads."""
    return np.asarray(np.log(np.clip(np.abs(residuals), *SPREADS)))


def _weights(left: FloatArray, sizes: FloatArray) -> FloatArray:
    """Return the square root of each change's weight."""
    return np.asarray(1 / (sizes * np.sqrt(np.maximum(1.0, np.abs(left) / (_OUTLIER * sizes)))))


def _least_squares(columns: FloatArray, steps: FloatArray, weights: FloatArray) -> FloatArray:
    weighted = columns * weights[:, None]
    # Divide by the largest first: the squares of the columns may overflow.
    largest = np.abs(weighted).max(axis=0, initial=0.0)
    largest[largest == 0] = 1.0
    scales = largest * np.sqrt(((weighted / largest) ** 2).mean(axis=0))
    scales[scales == 0] = 1.0
    weighted /= scales
    normal = weighted.T @ weighted + np.eye(3)
    return np.asarray(np.linalg.solve(normal, weighted.T @ (steps * weights)) / scales)


def _power(logs: FloatArray, magnitudes: FloatArray, greatest: float) -> float:
    """Return the exponent of a power law between two quantities, given their logarithms."""
    logs = logs - logs.mean()
    slope = float(logs @ (magnitudes - magnitudes.mean())) / (float(logs @ logs) + 10.0)
    return float(np.clip(slope, 0.0, greatest))
