"""Controller of the number of rows held beyond k, from observed costs of refills and updates."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Tuning:
    """Parameters of the controller. Defaults are the paper's, except for the last two.

    ``alpha`` is the factor by which the refill interval may miss its target. ``beta`` is the
    largest relative growth of the view at a time. ``gamma`` is the share of never needed rows that
    the view gives up at a time. ``smoothing`` is the weight of the latest observation in the costs.
    ``limit`` is the largest size.
    """

    alpha: float = 2.0
    beta: float = 0.5
    gamma: float = 0.5
    smoothing: float = 0.1
    limit: int = 1_000_000

    def __post_init__(self) -> None:
        if (
            self.alpha < 1
            or self.beta <= 0
            or not 0 < self.gamma < 1
            or not 0 < self.smoothing <= 1
        ):
            raise ValueError(
                "alpha must be at least 1, beta positive, gamma between 0 and 1, "
                "smoothing in (0, 1]"
            )


class Controller:
    """Choice of a view's size beyond k, so that refills and upkeep cost about the same.

    From the paper (*Efficient maintenance of materialized top-k views*, section 7 and Figure 7):
    the target for the number of updates between two refills is Z0 = C_refill / C_update, of
    observed costs. A refill after T < Z0/alpha updates lets the view grow to min(Z0/(alpha·T), 1 +
    beta)·kmax. T > alpha·Z0 updates without a refill shrink it by gamma·(kmin - k); kmin is the
    smallest number held since the last refill. T is then set to (1 - gamma)·alpha·Z0, and kmin is
    reduced by as much as the view.

    Repaired or added:

    - T = 0 counts as the largest growth.
    - Sizes are whole numbers; any growth or shrinking is by at least one.
    - The view never shrinks below k, nor if fewer than k were held.
    - It never grows above a limit, or above the number of rows available: a view that holds
      everything needs no refill.
    - It does not shrink before kmin has been observed.
    - Costs are smoothed exponentially. Those of updates are a ratio of sums, since updates come in
      batches of any size.
    - Until a refill has been observed, or if the clock shows no cost, a refill is assumed to cost
      as much as updating every available row.

    Upkeep grows with the size while refills become rarer. So if both cost the same, the total is at
    most twice the best possible, and at most 1 + alpha times at the edges of the tolerated range,
    if the workload stays the same and single intervals are like their mean.

    >>> controller = Controller(k=10, kmax=20)
    >>> controller.updated(100, seconds=1.0)
    >>> controller.refilled(controller.needs_refill(available=10_000), seconds=100.0)
    >>> controller.updated(100, seconds=1.0)
    >>> controller.kmax, controller.needs_refill(available=10_000)
    (30, 45)
    """

    def __init__(self, k: int, kmax: int, tuning: Tuning | None = None) -> None:
        if not 1 <= k <= kmax:
            raise ValueError("k must be at least 1, and kmax at least k")
        self.tuning = tuning or Tuning()
        self.k = k
        self.kmax = kmax
        self.updates = 0.0
        """T: number of updates since the last refill; reset when the view shrinks."""
        self._kmin: int | None = None
        self._refill_cost: float | None = None
        self._update_seconds = 0.0
        self._update_count = 0.0

    @property
    def n(self) -> int:
        """Number of rows to hold beyond k."""
        return self.kmax - self.k

    def serve(self, k: int, spare: int) -> None:
        """Serve another k: the view may hold ``spare`` more at least."""
        self.k = k
        self.kmax = max(self.kmax, k + spare)

    def target(self, available: int) -> float:
        """Return Z0 for ``available`` rows: the target number of updates between two refills."""
        cost = self._update_seconds / self._update_count if self._update_count else 0.0
        if not self._refill_cost or cost <= 0:
            return float(available)
        return self._refill_cost / cost

    def updated(self, count: int, seconds: float) -> None:
        """Note a number of updates and their total cost."""
        keep = 1 - self.tuning.smoothing
        self.updates += count
        self._update_seconds = keep * self._update_seconds + seconds
        self._update_count = keep * self._update_count + count

    def needs_refill(self, available: int) -> int:
        """Return the size to refill the view to, out of ``available`` rows.

        Call :meth:`refilled` next.
        """
        tuning, target = self.tuning, self.target(available)
        if self.updates * tuning.alpha >= target:
            return self.kmax
        factor = (
            min(target / (tuning.alpha * self.updates), 1 + tuning.beta)
            if self.updates
            else 1 + tuning.beta
        )
        return max(self.kmax, min(math.ceil(factor * self.kmax), tuning.limit, available))

    def refilled(self, kmax: int, seconds: float) -> None:
        """Note that the view was refilled to a size, and the cost."""
        self.rebuilt(seconds)
        self.kmax = kmax
        self.updates = 0.0
        self._kmin = None

    def rebuilt(self, seconds: float) -> None:
        """Note the cost of filling the view for a reason other than its size, as a refill's."""
        weight = self.tuning.smoothing if self._refill_cost is not None else 1.0
        self._refill_cost = weight * seconds + (1 - weight) * (self._refill_cost or 0.0)

    def held(self, count: int, available: int) -> int:
        """Note how many rows the view holds for certain; return its largest size from now on."""
        self._kmin = min(count, self.kmax if self._kmin is None else self._kmin)
        allowed = self.tuning.alpha * self.target(available)
        if self.updates > allowed:
            spare = math.ceil(self.tuning.gamma * max(0, self._kmin - self.k))
            self.kmax -= spare
            self._kmin -= spare
            self.updates = (1 - self.tuning.gamma) * allowed
        return self.kmax

    def state(self) -> dict[str, Any]:
        """Return the complete state as plain values."""
        names = ("alpha", "beta", "gamma", "smoothing", "limit")
        return {
            "tuning": {name: getattr(self.tuning, name) for name in names},
            "k": self.k,
            "kmax": self.kmax,
            "updates": self.updates,
            "kmin": self._kmin,
            "refill cost": self._refill_cost,
            "update seconds": self._update_seconds,
            "update count": self._update_count,
        }

    def resume(self, state: Mapping[str, Any]) -> None:
        """Continue from a state."""
        self.k, self.kmax = int(state["k"]), int(state["kmax"])
        self.tuning = Tuning(**state["tuning"])
        self.updates = float(state["updates"])
        self._kmin = state["kmin"]
        self._refill_cost = state["refill cost"]
        self._update_seconds = float(state["update seconds"])
        self._update_count = float(state["update count"])

    def _check(self) -> None:
        """Assert every invariant."""
        assert self.kmax >= self.k
        assert self._kmin is None or self._kmin <= self.kmax
        assert self.updates >= 0
