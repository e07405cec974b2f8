"""The controller of how many more than k to hold, against the best fixed size in simulated random
walks.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acquatop.topk.refill.controller import Controller, Tuning
from tests.support.refill_model import bounds, expected_frequency, expected_interval

K = 10
TABLE = 20_000
SECONDS_PER_REFILL_ROW = 0.5e-6


def upkeep(kmax: int) -> float:
    """Return the cost of an update in a view of a size: it grows with the levels of its tree."""
    return (1 + 0.3 * math.log2(kmax)) * 1e-6


def refill(kmax: int) -> float:
    return TABLE * SECONDS_PER_REFILL_ROW + kmax * 1e-7


def fixed_cost(kmax: int, p: float, q: float, cost: Callable[[int], float]) -> float:
    """The expected cost of an update in a view of a fixed size, by Lemma 1."""
    return cost(kmax) + refill(kmax) / expected_interval(kmax - K + 1, p, q)


def best_fixed(p: float, q: float, cost: Callable[[int], float]) -> float:
    sizes = [*range(K, 100), *range(100, 2000, 20), *range(2000, TABLE, 500)]
    return min(fixed_cost(size, p, q, cost) for size in sizes)


class Walk:
    """A view of which bad updates take one out, and good ones put one back; the paper's random
    walk.
    """

    def __init__(self, controller: Controller, cost: Callable[[int], float] = upkeep) -> None:
        self.controller = controller
        self.cost = cost
        self.size = controller.kmax
        self.refills = 0
        self.sizes: list[int] = []

    def run(self, steps: int, p: float, q: float, random: np.random.Generator) -> float:
        """Go a number of steps and return what one cost, on average."""
        spent, controller = 0.0, self.controller
        for draw in random.random(steps).tolist():
            if draw < p:
                self.size -= 1
            elif draw < p + q:
                self.size = min(self.size + 1, controller.kmax)
            spent += (seconds := self.cost(controller.kmax))
            controller.updated(1, seconds)
            spent += self._answer()
            self.sizes.append(controller.kmax)
        controller._check()
        return spent / steps

    def _answer(self) -> float:
        controller = self.controller
        if self.size >= K:
            self.size = min(self.size, controller.held(self.size, TABLE))
            return 0.0
        self.size = controller.needs_refill(TABLE)
        self.refills += 1
        controller.refilled(self.size, refill(self.size))
        return refill(self.size)


WALKS = {
    "even": (0.1, 0.1),
    "strictly origin-tending": (0.1, 0.2),
    "end-tending": (0.12, 0.1),
    "certain loss": (0.3, 0),
}


@pytest.mark.parametrize("start", [K, K + 1, 60, 3000])
@pytest.mark.parametrize("walk", WALKS)
def test_the_cost_settles_near_that_of_the_best_fixed_size(walk: str, start: int) -> None:
    p, q = WALKS[walk]
    random = np.random.default_rng(7)
    simulated = Walk(Controller(K, start))
    simulated.run(150_000, p, q, random)
    cost = simulated.run(150_000, p, q, random)
    best = best_fixed(p, q, upkeep)
    print(
        f"{walk:24} from {start:4}: {cost / best:.2f} of the best, kmax {simulated.controller.kmax}"
    )
    assert cost <= 2.5 * best


@pytest.mark.parametrize("walk", WALKS)
def test_the_cost_settles_where_upkeep_grows_with_the_size(walk: str) -> None:
    def linear(kmax: int) -> float:
        return kmax * 1e-7

    p, q = WALKS[walk]
    random = np.random.default_rng(8)
    simulated = Walk(Controller(K, 100), linear)
    simulated.run(100_000, p, q, random)
    cost = simulated.run(100_000, p, q, random)
    print(
        f"{walk:24}: {cost / best_fixed(p, q, linear):.2f} of the best, kmax "
        f"{simulated.controller.kmax}"
    )
    assert cost <= 3 * best_fixed(p, q, linear)


@pytest.mark.parametrize(
    ("before", "after"), [("even", "certain loss"), ("certain loss", "strictly origin-tending")]
)
def test_the_cost_settles_anew_when_the_workload_changes(before: str, after: str) -> None:
    random = np.random.default_rng(9)
    simulated = Walk(Controller(K, 60))
    simulated.run(100_000, *WALKS[before], random)
    settled = simulated.controller.kmax
    simulated.run(100_000, *WALKS[after], random)
    cost = simulated.run(100_000, *WALKS[after], random)
    print(
        f"{before} then {after}: {cost / best_fixed(*WALKS[after], upkeep):.2f}, kmax "
        f"{settled} then",
        end=" ",
    )
    print(simulated.controller.kmax)
    assert cost <= 2.5 * best_fixed(*WALKS[after], upkeep)


def test_neither_refills_nor_upkeep_dominate() -> None:
    random = np.random.default_rng(10)
    simulated = Walk(Controller(K, 60))
    simulated.run(100_000, 0.1, 0.1, random)
    simulated.refills = 0
    simulated.sizes.clear()
    simulated.run(200_000, 0.1, 0.1, random)
    mean = round(sum(simulated.sizes) / len(simulated.sizes))
    interval, target = 200_000 / simulated.refills, refill(mean) / upkeep(mean)
    print(
        f"interval {interval:.0f}, target {target:.0f}, kmax {min(simulated.sizes)} to "
        f"{max(simulated.sizes)}"
    )
    assert target / 2 < interval < 2 * target


def settled(**changed: float) -> Controller:
    """A controller that has seen one refill of 1 s and 100 updates of 10 ms: its target is 100."""
    controller = Controller(10, 100, Tuning(**changed))  # type: ignore[arg-type]
    controller.updated(100, 1.0)
    controller.refilled(100, 1.0)
    return controller


def test_it_grows_after_a_refill_that_came_too_soon() -> None:
    controller = settled()
    assert controller.target(10**6) == pytest.approx(100)
    controller.updates = 40
    assert controller.needs_refill(10**6) == 125
    controller.updates = 50
    assert controller.needs_refill(10**6) == 100
    controller.updates = 1
    assert controller.needs_refill(10**6) == 150


def test_no_update_at_all_since_the_last_refill_is_the_largest_growth() -> None:
    assert settled().needs_refill(10**6) == 150


def test_it_grows_neither_above_a_limit_nor_above_what_there_is() -> None:
    assert settled(limit=120).needs_refill(10**6) == 120
    assert settled().needs_refill(130) == 130
    assert settled().needs_refill(90) == 100, "what is not there does no harm"


def test_it_shrinks_by_half_of_what_was_never_needed() -> None:
    controller = settled()
    controller.updates = 199
    assert controller.held(30, 10**6) == 100
    controller.updates = 201
    assert controller.held(90, 10**6) == 90
    assert controller.updates == pytest.approx(100)
    controller.updates = 201
    assert controller.held(90, 10**6) == 85


def test_it_never_shrinks_below_k() -> None:
    controller = settled()
    for held in (3, 10, 0, 11, 100):
        controller.updates = 500
        controller.held(held, 10**6)
        assert controller.kmax == 100, "fewer than k are held where a window has no more"
    controller.refilled(100, 1.0)
    for _ in range(20):
        controller.updates = 500
        controller.held(1000, 10**6)
    assert controller.kmax == 10


def test_without_costs_a_refill_is_taken_to_cost_what_an_update_of_everything_does() -> None:
    controller = Controller(10, 20)
    assert controller.target(500) == 500
    controller.updated(10, 0.0)
    controller.refilled(20, 0.0)
    assert controller.target(500) == 500


def test_costs_follow_what_is_observed_latest() -> None:
    controller = settled()
    for _ in range(60):
        controller.updated(1000, 20.0)
        controller.refilled(100, 4.0)
    assert controller.target(10**6) == pytest.approx(200, rel=0.01)


@pytest.mark.parametrize("wrong", [{"alpha": 0.5}, {"beta": 0}, {"gamma": 1}, {"smoothing": 0}])
def test_senseless_tuning_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="alpha must be"):
        Tuning(**wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="k must be"):
        Controller(5, 4)


@settings(max_examples=200, deadline=None)
@given(
    events=st.lists(
        st.tuples(
            st.sampled_from("uhr"), st.integers(0, 50), st.floats(0, 10), st.integers(0, 300)
        ),
        max_size=60,
    ),
    k=st.integers(1, 20),
    more=st.integers(0, 50),
    at=st.integers(0, 60),
)
def test_whatever_is_observed_the_size_stays_within_its_limits(
    events: list[tuple[str, int, float, int]], k: int, more: int, at: int
) -> None:
    controller = Controller(k, k + more, Tuning(limit=200))
    for step, (what, count, seconds, available) in enumerate(events):
        if step == at:
            state = json.loads(json.dumps(controller.state()))
            controller = Controller(1, 1)
            controller.resume(state)
        before = controller.kmax
        if what == "u":
            controller.updated(count, seconds)
            assert controller.kmax == before
        elif what == "h":
            assert k <= controller.held(count, available) <= before
        else:
            kmax = controller.needs_refill(available)
            assert before <= kmax <= max(before, min(200, available, math.ceil(1.5 * before)))
            controller.refilled(kmax, seconds)
        controller._check()


# The model ------------------------------------------------------------------------------------


@given(
    n=st.integers(1, 12),
    p=st.fractions(Fraction(1, 50), Fraction(1, 2), max_denominator=50),
    q=st.fractions(0, Fraction(1, 2), max_denominator=50),
)
def test_lemma_1_is_its_closed_form_and_solves_the_walks_equations(
    n: int, p: Fraction, q: Fraction
) -> None:
    t = q / p
    h = []
    for i in range(n):
        if p == q:
            h.append(Fraction((n + i + 1) * (n - i)) / (2 * p))
        else:
            h.append(((n - i) * (1 - t) - t ** (i + 1) + t ** (n + 1)) / (p * (1 - t) ** 2))
        assert expected_interval(n, float(p), float(q), i) == pytest.approx(float(h[i]), rel=1e-9)
    h.append(Fraction(0))
    assert h[0] == 1 + p * h[1] + (1 - p) * h[0]
    for i in range(1, n):
        assert h[i] == 1 + p * h[i + 1] + q * h[i - 1] + (1 - p - q) * h[i]


def test_what_never_gets_worse_is_never_refilled() -> None:
    assert expected_interval(3, 0.0, 0.2) == math.inf
    assert expected_interval(5000, 0.01, 0.02) == math.inf
    with pytest.raises(ValueError, match="start"):
        expected_interval(3, 0.1, 0.1, 4)


@pytest.mark.parametrize(
    ("table", "n", "lower", "upper"),
    [
        (100, 30, 0.9556, 1.1037),
        (1000, 100, 0.9730, 1.2426),
        (10**4, 400, 0.9987, 1.0322),
        (10**5, 1300, 0.9991, 1.0650),
        (10**6, 4500, 0.9998, 1.0355),
    ],
)
def test_table_1(table: int, n: int, lower: float, upper: float) -> None:
    assert tuple(round(bound, 4) for bound in bounds(n, table)) == (lower, upper)


def frequency_by_hand(n: int, p: float, q: float, steps: int) -> float:
    """Return the expectation of 1/Z from the chance of every state after every step."""
    chances, frequency = {0: 1.0}, 0.0
    for step in range(1, steps + 1):
        after = dict.fromkeys(range(n + 1), 0.0)
        for lost, chance in chances.items():
            after[lost + 1] += p * chance
            after[max(0, lost - 1)] += q * chance
            after[lost] += (1 - p - q) * chance
        frequency += after.pop(n) / step
        chances = after
    return frequency


@pytest.mark.parametrize(
    ("n", "p", "q"), [(1, 0.3, 0.2), (3, 0.5, 0.5), (4, 0.4, 0.1), (3, 0.2, 0.3), (2, 1.0, 0.0)]
)
def test_the_refill_frequency_is_the_walk_s(n: int, p: float, q: float) -> None:
    assert expected_frequency(n, p, q) == pytest.approx(frequency_by_hand(n, p, q, 3000), rel=1e-4)
    # As 1/Z is convex, its mean is at least that of the mean; of certain loss they are the same.
    assert expected_frequency(n, p, q) >= (1 - 1e-9) / expected_interval(n, p, q)


def test_the_refill_frequency_of_one_step_is_known() -> None:
    assert expected_frequency(1, 0.3, 0.2, 1e-9) == pytest.approx(
        -0.3 / 0.7 * math.log(0.3), rel=1e-6
    )


def test_refills_are_no_more_frequent_than_table_1_says() -> None:
    assert 100 * expected_frequency(30, 0.5, 0.5) <= bounds(30, 100)[1]


@pytest.mark.parametrize("wrong", [(0, 0.5, 0.5), (3, 0.0, 0.5), (3, 0.6, 0.5), (3, 0.5, -0.1)])
def test_a_walk_that_is_none_is_refused(wrong: tuple[int, float, float]) -> None:
    with pytest.raises(ValueError, match="n must be"):
        expected_frequency(*wrong)
