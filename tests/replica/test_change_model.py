"""Change model, compared with simulated changes of known truth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from replica.freshness import ChangeModel, History
from replica.freshness.arrays import BoolArray, FloatArray, IntArray

Random = np.random.Generator
NAME = "followers"
NOW = 40.0


@dataclass
class Looked:
    """A history after many looks, and what was said and came of it in the last three quarters of
    them.
    """

    history: History
    rates: FloatArray
    said: FloatArray
    came: BoolArray

    def worst_gap(self) -> float:
        """Return how far what was said lies from what came, in the worst of ten groups of some
        size.
        """
        groups = np.minimum((10 * self.said).astype(int), 9)
        gaps = [
            abs(self.said[groups == group].mean() - self.came[groups == group].mean())
            for group in range(10)
            if (groups == group).sum() >= 500
        ]
        return float(max(gaps))


def poisson(rates: FloatArray, since: FloatArray, now: float, random: Random) -> BoolArray:
    return random.random(len(rates)) < -np.expm1(-rates * (now - since))


def at_fixed_intervals(
    rates: FloatArray, since: FloatArray, now: float, random: Random
) -> BoolArray:
    """Say what has changed where rows change once in 1 / rate, beginning at a time that their rate
    decides.
    """
    phases = 1e4 * rates % 1
    return np.floor(now * rates + phases) > np.floor(since * rates + phases)


def look(
    rates: FloatArray,
    *,
    pause: Callable[[Random], float] = lambda random: random.exponential(20.0),
    changes: Callable[[FloatArray, FloatArray, float, Random], BoolArray] = poisson,
    times: int = 150,
    seed: int = 3,
) -> Looked:
    """Look at a fifth of the rows at a time, chosen by chance."""
    random, count = np.random.default_rng(seed), len(rates)
    history, now = History(()), 0.0
    history.grow(count)
    model = ChangeModel(history)
    history.observe(np.arange(count), now, np.ones(count, bool), {}, {})
    said, came = [], []
    for _ in range(times):
        now += pause(random)
        rows = random.choice(count, max(1, count // 5), replace=False)
        changed = changes(rates[rows], history.fetched_at[rows], now, random)
        said.append(model.chance(rows, now))
        came.append(changed)
        history.observe(rows, now, changed, {}, {})
    return Looked(
        history, rates, np.concatenate(said[times // 4 :]), np.concatenate(came[times // 4 :])
    )


def gamma_rates(shape: float, mean: float, count: int = 600) -> FloatArray:
    return np.random.default_rng(11).gamma(shape, mean / shape, count)


def test_rates_of_poisson_changes_are_found() -> None:
    looked = look(gamma_rates(1.0, 0.01))
    found = ChangeModel(looked.history).rates(np.arange(600))
    assert np.corrcoef(np.log(found), np.log(looked.rates))[0, 1] > 0.9
    assert found.mean() == pytest.approx(looked.rates.mean(), rel=0.1)
    assert np.median(found / looked.rates) == pytest.approx(1, abs=0.1)
    np.testing.assert_allclose(ChangeModel(looked.history).intervals(np.arange(600)), 1 / found)


@pytest.mark.parametrize("shape", [0.5, 1.0, 4.0])
def test_how_unlike_rows_are_is_learned(shape: float) -> None:
    prior = look(gamma_rates(shape, 0.01)).history.rates.prior
    assert shape / 1.6 < prior.shape < shape * 1.6
    assert prior.mean == pytest.approx(0.01, rel=0.2)


def test_rows_that_are_alike_are_taken_for_alike() -> None:
    looked = look(np.full(600, 0.01))
    found = ChangeModel(looked.history).rates(np.arange(600))
    assert looked.history.rates.prior.shape > 8
    assert found.mean() == pytest.approx(0.01, rel=0.05)
    assert found.std() < 0.002


def test_shrinkage_comes_closer_to_the_truth_than_counting_does() -> None:
    rates = gamma_rates(2.0, 0.01)
    looked = look(rates, times=25)
    shapes, seconds = looked.history.rates.changes, looked.history.rates.exposure
    seen = seconds > 0
    counted = shapes[seen] / seconds[seen]
    found = ChangeModel(looked.history).rates(np.flatnonzero(seen))
    assert np.square(found - rates[seen]).mean() < 0.5 * np.square(counted - rates[seen]).mean()


def every_hundred_seconds(random: Random) -> float:
    return 100.0


@pytest.mark.parametrize(
    ("rates", "pause", "changes"),
    [
        pytest.param(gamma_rates(1.0, 0.01), None, poisson, id="unlike rows"),
        pytest.param(gamma_rates(0.3, 0.01), None, poisson, id="very unlike rows"),
        pytest.param(gamma_rates(1.0, 0.1), None, poisson, id="many changes between looks"),
        pytest.param(np.full(600, 0.01), None, poisson, id="rows alike"),
        pytest.param(gamma_rates(2.0, 0.004), None, at_fixed_intervals, id="fixed intervals"),
        pytest.param(
            np.full(600, -np.log(0.76) / 100),
            every_hundred_seconds,
            poisson,
            id="each evaluation, 24 %",
        ),
        pytest.param(
            np.full(600, -np.log(0.05) / 100),
            every_hundred_seconds,
            poisson,
            id="each evaluation, 95 %",
        ),
        pytest.param(np.full(600, 1e-6), None, poisson, id="hardly ever"),
    ],
)
def test_of_what_is_said_to_have_a_chance_so_many_have_changed(
    rates: FloatArray, pause: Callable[[Random], float] | None, changes: Callable[..., BoolArray]
) -> None:
    looked = look(rates, changes=changes, **({"pause": pause} if pause else {}))
    assert looked.worst_gap() < 0.08
    assert looked.said.mean() == pytest.approx(looked.came.mean(), abs=0.015)


def test_two_kinds_of_rows_are_told_apart() -> None:
    rates = np.where(np.arange(600) % 5 == 0, 0.05, 1e-4)
    found = ChangeModel(look(rates).history).rates(np.arange(600))
    assert found[rates > 0.01].min() > 3 * found[rates < 0.01].max()


@given(
    shape=st.floats(0.05, 50),
    rate=st.floats(0.01, 100),
    age=st.floats(0.01, 1000),
    changed=st.booleans(),
)
@settings(max_examples=50)
def test_one_look_moves_the_mean_as_bayes_says(
    shape: float, rate: float, age: float, changed: bool
) -> None:
    history = History(())
    history.grow(1)
    evidence = history.rates
    # As if much were known: the prior stays as it is.
    looks = {"pooled": np.array([shape, rate, 1e6, 1e6, 1e6])}
    evidence.resume({**evidence.state(), **looks})
    evidence.observe(np.array([0]), np.array([age]), np.array([changed]), pushed=False)
    shapes, rates = evidence.posterior(np.array([0]))
    # By adding up over ln λ, which has the density λ^shape · e^(−rate·λ).
    logs = np.linspace(np.log(shape / rate) - 60 / min(shape, 1), np.log(shape / rate) + 6, 200_001)
    lambdas = np.exp(logs)
    weights = np.exp(shape * logs - rate * lambdas - shape * (np.log(shape / rate) - 1))
    weights *= -np.expm1(-lambdas * age) if changed else np.exp(-lambdas * age)
    assert shapes[0] / rates[0] == pytest.approx(
        (weights * lambdas).sum() / weights.sum(), rel=2e-3
    )


def test_how_often_a_row_changes_depends_on_what_its_value_is() -> None:
    """Zeros stay for long, other values do not, in the same rows: one rate per row cannot say so.

    A value is another one after a change; half of the changes of a row that is not at zero end
    there.
    """
    random, history, rows = np.random.default_rng(4), History((NAME,)), np.arange(300)
    history.grow(300)
    model, values = ChangeModel(history), np.zeros(300)
    said, came, zero = [], [], []
    known = values.copy()
    history.observe(rows, 0.0, np.ones(300, bool), {NAME: np.full(300, np.nan)}, {NAME: values})
    for now in range(20, 4_000, 20):
        moved = random.random(300) < np.where(values == 0, 0.02, 0.5)
        ends = (values != 0) & (random.random(300) < 0.5)
        anew = np.where(ends, 0.0, random.integers(1, 99, 300))
        values = np.where(moved, anew, values)
        looked = random.choice(rows, 60, replace=False)
        changed = values[looked] != known[looked]
        said.append(model.chance(looked, float(now)))
        came.append(changed)
        zero.append(known[looked] == 0)
        before, after = {NAME: known[looked]}, {NAME: values[looked]}
        history.observe(looked, float(now), changed, before, after)
        known[looked] = values[looked]
    chances, outcomes, is_zero = (np.concatenate(each[50:]) for each in (said, came, zero))
    for mine in (is_zero, ~is_zero):
        assert chances[mine].mean() == pytest.approx(outcomes[mine].mean(), abs=0.06)
    briers = [float(((each - outcomes) ** 2).mean()) for each in (chances, outcomes.mean())]
    assert briers[0] < 0.6 * briers[1]


def test_changes_that_are_announced_are_no_looks() -> None:
    """Waiting times until the next change always end with one; taken for looks they would mean
    endless change.
    """
    random, history = np.random.default_rng(2), History(())
    history.grow(50)
    rates = random.gamma(3.0, 0.01 / 3, 50)
    for row in range(50):
        now = 0.0
        for _ in range(60):
            history.observe(np.array([row]), now, np.array([True]), {}, {}, pushed=True)
            now += random.exponential(1 / rates[row])
    found = ChangeModel(history).rates(np.arange(50))
    assert np.median(found / rates) == pytest.approx(1, abs=0.1)
    assert history.rates.calibration.groups.sum() == 0


def test_a_row_that_begins_or_ceases_to_change_is_noticed() -> None:
    random, history = np.random.default_rng(1), History(())
    history.grow(100)
    rows, rates = np.arange(100), np.where(np.arange(100) < 50, 0.2, 0.002)
    for now in range(0, 10_000, 10):
        if now == 5_000:
            rates = rates[::-1].copy()
        history.observe(rows, float(now), random.random(100) < -np.expm1(-rates * 10), {}, {})
    found = ChangeModel(history).rates(rows)
    assert 0.1 < np.median(found[50:]) < 0.3
    assert np.median(found[:50]) < 0.01


def test_of_what_nothing_is_known_something_sane_is_said() -> None:
    history = History((NAME,))
    model = ChangeModel(history)
    nobody = np.array([-1, -1])
    assert model.chance(nobody, 5.0).tolist() == [1, 1]
    assert model.intervals(nobody).tolist() == [3600, 3600]
    assert model.chance(np.empty(0, int), 5.0).tolist() == []
    history.grow(3)
    history.observe(
        np.array([0]), 100.0, np.array([True]), {NAME: np.array([np.nan])}, {NAME: np.array([3.0])}
    )
    assert model.chance(np.array([0, 1, -1]), 100.0).tolist() == [0, 1, 1]
    assert model.chance(np.array([0]), 99.0).tolist() == [0]
    assert 0.4 < model.chance(np.array([0]), 3700.0)[0] < 0.6


def test_the_first_look_already_sets_the_pace() -> None:
    """A remote that is looked at every ten seconds is not one that changes every hour."""
    for changed, least, most in ((True, 0.5, 1.0), (False, 0.1, 0.5)):
        history = History(())
        history.grow(1)
        for now in (0.0, 10.0):
            history.observe(np.array([0]), now, np.array([changed]), {}, {})
        assert least < ChangeModel(history).chance(np.array([0]), 20.0)[0] < most


@given(st.lists(st.booleans(), max_size=30), st.floats(1e-3, 1e6))
@settings(max_examples=30)
def test_a_chance_never_falls_with_age(looks: list[bool], pause: float) -> None:
    history = History(())
    history.grow(1)
    for number, changed in enumerate(looks):
        history.observe(np.array([0]), pause * number, np.array([changed]), {}, {})
    last = max(0, len(looks) - 1) * pause
    chances = [
        ChangeModel(history).chance(np.array([0]), last + pause * step)[0]
        for step in (0, 0.1, 1, 5, 100, 1e9)
    ]
    assert chances == sorted(chances)
    assert 0 <= chances[0] <= chances[-1] <= 1
    assert np.isfinite(ChangeModel(history).rates(np.array([0]))[0])


# Where values go


Step = Callable[[Random, FloatArray, FloatArray, IntArray], FloatArray]


def jumped(
    step: Step, *, start: FloatArray, times: int = 40, seed: int = 4
) -> tuple[FloatArray, History, FloatArray]:
    """Let a third of the rows change at a time; return where the last truths lay among 200 draws,
    from 0 to 1.
    """
    random, count = np.random.default_rng(seed), len(start)
    history, values, places = History((NAME,)), start.copy(), []
    history.grow(count)
    model = ChangeModel(history)
    history.observe(
        np.arange(count), 0.0, np.ones(count, bool), {NAME: np.full(count, np.nan)}, {NAME: values}
    )
    for now in range(1, times):
        rows = random.choice(count, count // 3, replace=False)
        before, after = values[rows], step(random, values[rows], start[rows], rows)
        draws = model.draw(NAME, rows, before, 200, random, now=float(now))
        places.append(
            (draws < after).mean(axis=0) + random.random(len(rows)) * (draws == after).mean(axis=0)
        )
        history.observe(rows, float(now), after != before, {NAME: before}, {NAME: after})
        values[rows] = after
    return np.concatenate(places[8:]), history, values


AROUND_1000 = np.random.default_rng(8).normal(1000, 300, 300)
FOLLOWERS = np.rint(np.random.default_rng(9).lognormal(7, 1.5, 300))

PROCESSES: dict[str, tuple[Step, FloatArray]] = {
    "noise that adds up": (
        lambda random, v, start, rows: v + random.normal(0, 20, len(v)),
        AROUND_1000,
    ),
    "noise around what was": (
        lambda random, v, start, rows: start + random.normal(0, 50, len(v)),
        AROUND_1000,
    ),
    "drawn anew": (lambda random, v, start, rows: random.uniform(0, 1000, len(v)), AROUND_1000),
    "heavy tails": (
        lambda random, v, start, rows: v + 10 * random.standard_t(2, len(v)),
        AROUND_1000,
    ),
    "rows of two kinds": (
        lambda random, v, start, rows: v + random.normal(0, 1, len(v)) * np.where(rows % 2, 2, 100),
        AROUND_1000,
    ),
    "followers with noise": (
        lambda random, v, start, rows: np.rint(start * (1 + random.normal(0, 0.2, len(v)))),
        FOLLOWERS,
    ),
    "followers that grow": (
        lambda random, v, start, rows: (
            np.rint(v * (1 + 0.02 * random.standard_exponential(len(v)))) + 1
        ),
        FOLLOWERS,
    ),
    "a counter": (lambda random, v, start, rows: v + 1 + random.poisson(5, len(v)), FOLLOWERS),
}


@pytest.mark.parametrize("name", PROCESSES)
def test_draws_are_as_wide_as_the_truth(name: str) -> None:
    step, start = PROCESSES[name]
    places, _, _ = jumped(step, start=start)
    shares = np.histogram(places, 10, (0, 1))[0] / len(places)
    assert np.abs(shares - 0.1).max() < 0.05
    assert ((places > 0.1) & (places < 0.9)).mean() == pytest.approx(0.8, abs=0.06)


def test_a_row_that_moves_more_is_drawn_wider() -> None:
    step, start = PROCESSES["rows of two kinds"]
    _, history, values = jumped(step, start=start)
    wide = (
        ChangeModel(history)
        .draw(NAME, np.arange(300), values, 200, np.random.default_rng(0), now=NOW)
        .std(axis=0)
    )
    assert np.median(wide[1::2]) < 10
    assert np.median(wide[0::2]) > 70


@pytest.mark.parametrize(("pull", "growth"), [(0.0, 0.5), (1.0, 0.0)], ids=["walks", "drawn anew"])
def test_what_walks_is_drawn_the_wider_the_longer_nobody_has_looked(
    pull: float, growth: float
) -> None:
    random, count = np.random.default_rng(5), 400
    history, truth, start = History((NAME,)), np.full(count, 500.0), np.full(count, 500.0)
    known, places = truth.copy(), []
    history.grow(count)
    history.observe(
        np.arange(count),
        0.0,
        np.ones(count, bool),
        {NAME: np.full(count, np.nan)},
        {NAME: truth.copy()},
    )
    for now in np.arange(1.0, 60.0):
        moves = random.random(count) < 0.3
        truth = np.where(moves, truth + pull * (start - truth) + random.normal(0, 10, count), truth)
        rows = random.choice(
            count, 40, replace=False, p=np.arange(1, count + 1) / np.arange(1, count + 1).sum()
        )
        draws = ChangeModel(history).draw(NAME, rows, known[rows], 99, random, now=now)
        changed = truth[rows] != known[rows]
        places += [(draws < truth[rows]).mean(axis=0)[changed]]
        history.observe(rows, now, changed, {NAME: known[rows]}, {NAME: truth[rows]})
        known[rows] = truth[rows]
    assert history.value_changes[NAME].fit.growth == pytest.approx(growth, abs=0.15)
    seen = np.concatenate(places[15:])
    assert ((seen > 0.1) & (seen < 0.9)).mean() == pytest.approx(0.8, abs=0.07)


def test_a_row_of_which_nothing_is_known_is_drawn_as_wide_as_others() -> None:
    step, start = PROCESSES["noise that adds up"]
    for times in (10, 40, 150):
        _, history, _ = jumped(step, start=start, times=times)
        drawn = ChangeModel(history).draw(
            NAME, np.array([-1]), np.array([1000.0]), 2000, np.random.default_rng(0), now=NOW
        )
        assert drawn.std() == pytest.approx(20, rel=0.2)
        assert drawn.mean() == pytest.approx(1000, abs=4)


def test_a_large_account_is_drawn_wider_than_a_small_one() -> None:
    step, start = PROCESSES["followers with noise"]
    _, history, _ = jumped(step, start=start)
    assert history.value_changes[NAME].fit.power == pytest.approx(1, abs=0.15)
    fresh = np.array([-1, -1])  # rows of which nothing is known but what is given
    wide = (
        ChangeModel(history)
        .draw(NAME, fresh, np.array([100.0, 1e6]), 2000, np.random.default_rng(0), now=NOW)
        .std(axis=0)
    )
    assert wide[1] > 1000 * wide[0]


def test_values_around_which_a_row_swings_are_drawn_from_there() -> None:
    step, start = PROCESSES["noise around what was"]
    _, history, values = jumped(step, start=start)
    middle = np.median(
        ChangeModel(history).draw(
            NAME, np.arange(300), values, 99, np.random.default_rng(0), now=NOW
        ),
        axis=0,
    )
    assert np.abs(middle - start).mean() < 0.7 * np.abs(values - start).mean()


def test_what_held_for_all_that_was_seen_holds_for_draws() -> None:
    step, start = PROCESSES["a counter"]
    _, history, values = jumped(step, start=start)
    drawn = ChangeModel(history).draw(
        NAME, np.arange(300), values, 50, np.random.default_rng(0), now=NOW
    )
    assert (drawn >= values + 1).all()
    assert (drawn == np.rint(drawn)).all()
    step, start = PROCESSES["followers with noise"]
    _, history, values = jumped(step, start=start)
    drawn = ChangeModel(history).draw(
        NAME, np.arange(300), np.ones(300), 50, np.random.default_rng(0), now=NOW
    )
    assert drawn.min() >= 0


def test_a_change_may_have_left_this_value_alone() -> None:
    def seldom(random: Random, v: FloatArray, start: FloatArray, rows: IntArray) -> FloatArray:
        return np.where(random.random(len(v)) < 0.7, v, v + random.normal(0, 20, len(v)))

    random, values, history = np.random.default_rng(0), AROUND_1000.copy(), History((NAME,))
    history.grow(300)
    for now in range(20):
        after = seldom(random, values, values, np.arange(300))
        history.observe(
            np.arange(300), float(now), np.ones(300, bool), {NAME: values}, {NAME: after}
        )
        values = after
    drawn = ChangeModel(history).draw(NAME, np.arange(300), values, 50, random, now=NOW)
    assert (drawn == values).mean() == pytest.approx(0.7, abs=0.05)


def test_without_a_change_seen_values_are_drawn_from_those_known() -> None:
    history = History((NAME,))
    history.grow(3)
    model, random, rows = ChangeModel(history), np.random.default_rng(0), np.array([0, -1])
    values = np.array([5.0, np.nan])
    np.testing.assert_array_equal(
        model.draw(NAME, rows, values, 3, random, now=NOW), np.tile(values, (3, 1))
    )
    after = np.array([5.0, 6.0, np.nan])
    history.observe(np.arange(3), 1.0, np.ones(3, bool), {NAME: np.full(3, np.nan)}, {NAME: after})
    assert set(model.draw(NAME, rows, values, 99, random, now=NOW).ravel().tolist()) == {5.0, 6.0}
    assert model.draw(NAME, np.empty(0, int), np.empty(0), 4, random, now=NOW).shape == (4, 0)


def test_a_few_small_steps_are_told_from_values_drawn_anew() -> None:
    wide = {}
    for name in ("followers that grow", "drawn anew"):
        step, start = PROCESSES[name]
        random, history = np.random.default_rng(2), History((NAME,))
        history.grow(300)
        history.observe(
            np.arange(300), 0.0, np.ones(300, bool), {NAME: np.full(300, np.nan)}, {NAME: start}
        )
        rows = np.arange(0, 300, 60)
        after = step(random, start[rows], start[rows], rows)
        history.observe(rows, 1.0, np.ones(len(rows), bool), {NAME: start[rows]}, {NAME: after})
        untouched = np.arange(1, 300)
        drawn = ChangeModel(history).draw(
            NAME, untouched, start[untouched], 400, np.random.default_rng(0), now=NOW
        )
        usual = np.abs(np.random.default_rng(1).permutation(start)[1:] - start[1:]).mean()
        wide[name] = np.median(np.abs(drawn - start[untouched]), axis=0).mean() / usual
    assert wide["followers that grow"] < 0.1
    assert wide["drawn anew"] > 0.4


def test_how_wide_steps_are_is_unsure_while_few_have_been_seen() -> None:
    history = History((NAME,))
    history.grow(100)
    rows, start = np.arange(100), np.linspace(0.0, 10_000.5, 100)
    history.observe(rows, 0.0, np.ones(100, bool), {NAME: np.full(100, np.nan)}, {NAME: start})
    wide = []
    for now, many in ((1.0, 4), (2.0, 60)):
        some, after = rows[:many], start[:many] + np.where(rows[:many] % 2, 1.0, -1.0)
        history.observe(some, now, np.ones(many, bool), {NAME: start[:many]}, {NAME: after})
        drawn = ChangeModel(history).draw(
            NAME, rows[90:], start[90:], 4000, np.random.default_rng(0), now=NOW
        )
        lower, upper = np.quantile(drawn - start[90:], [0.05, 0.95])
        wide.append(upper - lower)
    assert wide[0] > 1.5 * wide[1]


def test_draws_depend_on_nothing_but_the_random_state() -> None:
    step, start = PROCESSES["drawn anew"]
    _, history, values = jumped(step, start=start, times=10)
    first, second = (
        ChangeModel(history).draw(
            NAME, np.arange(300), values, 5, np.random.default_rng(6), now=NOW
        )
        for _ in "ab"
    )
    np.testing.assert_array_equal(first, second)


anything = st.floats(-1e15, 1e15) | st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(st.tuples(anything, anything), min_size=1, max_size=20))
@example([(1e308, -1e308), (0.0, 1e-310), (1e-310, 0.0), (1e300, 1.0)])
@settings(max_examples=50)
def test_draws_are_finite_whatever_was_seen(steps: list[tuple[float, float]]) -> None:
    history = History((NAME,))
    history.grow(1)
    for now, (before, after) in enumerate(steps):
        changed = np.array([before != after])
        history.observe(
            np.array([0]),
            float(now),
            changed,
            {NAME: np.array([before])},
            {NAME: np.array([after])},
        )
    drawn = ChangeModel(history).draw(
        NAME, np.array([0, -1]), np.array([7.0, 7.0]), 50, np.random.default_rng(0), now=NOW
    )
    assert np.isfinite(drawn).all()
