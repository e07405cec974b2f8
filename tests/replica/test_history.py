"""History of each row: it is complete, and rows are not mixed up."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from replica.freshness import ChangeModel, History
from replica.freshness.arrays import NEVER

NAME = "followers"
looks = st.lists(
    st.tuples(st.floats(0, 100), st.sets(st.integers(0, 5), min_size=1), st.integers(0, 2**6 - 1)),
    max_size=12,
)


def observe(
    history: History, rows: list[int], now: float, changed: list[bool], *, pushed: bool = False
) -> None:
    """Report a refresh after which the changed rows have one more follower than the time says."""
    before = np.full(len(rows), 5.0)
    after = before + np.array(changed, bool) * (1.0 + now)
    history.observe(
        np.array(rows, int),
        now,
        np.array(changed, bool),
        {NAME: before},
        {NAME: after},
        pushed=pushed,
    )


def history_of(*, rows: int) -> History:
    history = History((NAME,))
    history.grow(rows)
    return history


@given(looks)
def test_it_knows_when_each_row_was_fetched_and_changed(
    history: list[tuple[float, set[int], int]],
) -> None:
    known, fetched, changed = history_of(rows=6), [NEVER] * 6, [NEVER] * 6
    for now, rows, bits in history:
        found = [bool(bits >> row & 1) for row in sorted(rows)]
        observe(known, sorted(rows), now, found)
        for row, is_other in zip(sorted(rows), found, strict=True):
            if now >= fetched[row]:
                changed[row] = now if is_other and fetched[row] > NEVER else changed[row]
                fetched[row] = now
    assert known.fetched_at.tolist() == fetched
    assert known.changed_at.tolist() == changed
    for column in known.state().values():
        assert not np.isnan(column.astype(float)).any()
    chances = ChangeModel(known).chance(np.arange(-1, 6), 100.0)
    assert ((chances >= 0) & (chances <= 1)).all()
    assert (chances[1:][np.array(fetched) == NEVER] == 1).all()


def test_the_first_fetch_says_nothing_of_change() -> None:
    history = history_of(rows=2)
    observe(history, [0, 1], 7.0, [True, True])
    assert history.changed_at.tolist() == [NEVER, NEVER]
    assert history.rates.exposure.tolist() == [0, 0]
    assert history.value_changes[NAME].changes.seen == 0
    assert history.value_changes[NAME].known.seen == 2


def test_an_answer_to_an_older_question_says_nothing() -> None:
    history = history_of(rows=2)
    observe(history, [0, 1], 7.0, [True, True])
    before = {
        name: column.copy() for name, column in history.state().items() if "pooled" not in name
    }
    observe(history, [0, 1], 6.0, [True, True])
    for name, column in before.items():
        np.testing.assert_array_equal(history.state()[name], column)


def test_two_looks_at_the_same_time_say_nothing_of_rates() -> None:
    history = history_of(rows=1)
    for _ in range(3):
        observe(history, [0], 7.0, [True])
    assert (history.rates.changes[0], history.rates.exposure[0], history.changed_at[0]) == (0, 0, 7)
    assert history.value_changes[NAME].changes.seen == 2


def test_growing_keeps_what_is_known() -> None:
    history = history_of(rows=1)
    observe(history, [0], 1.0, [True])
    observe(history, [0], 3.0, [False])
    history.grow(4)
    assert history.capacity == 4
    assert history.fetched_at.tolist() == [3, NEVER, NEVER, NEVER]
    assert history.rates.exposure.tolist() == [2, 0, 0, 0]
    observe(history, [3], 4.0, [True])
    assert history.fetched_at[3] == 4


def test_a_row_that_stands_for_another_key_starts_anew() -> None:
    history = history_of(rows=2)
    for now in range(1, 20):
        observe(history, [0, 1], float(now), [True, False])
    history.clear(np.array([0]))
    assert history.fetched_at.tolist() == [NEVER, 19]
    assert history.changed_at.tolist() == [NEVER, NEVER]
    model = ChangeModel(history)
    assert (
        model.rates(np.array([0]))[0] == model.rates(np.array([-1]))[0] == history.rates.prior.mean
    )
    offsets, spreads = history.value_changes[NAME].of(np.array([0]))
    assert (offsets[0], spreads[0]) == (0, 1)


def test_it_takes_at_most_33_bytes_per_row() -> None:
    small, large = history_of(rows=1_000), history_of(rows=101_000)
    assert large.nbytes - small.nbytes == 33 * 100_000
    assert small.nbytes < 33 * 1_000 + 100_000


def test_what_all_rows_share_does_not_grow() -> None:
    history = history_of(rows=3000)
    rows = list(range(3000))
    sizes = []
    for now in range(1, 8):
        observe(history, rows, float(now), [True] * 3000)
        sizes.append(history.nbytes)
    assert sizes[2] == sizes[-1] < 33 * 3000 + 60_000


def test_a_snapshot_goes_on_exactly_where_it_was_taken() -> None:
    random = np.random.default_rng(5)
    first = history_of(rows=9)
    for now in range(1, 30):
        observe(first, list(range(9)), float(now), (random.random(9) < 0.4).tolist())
    again = History((NAME,))
    again.resume({name: column.copy() for name, column in first.state().items()})
    for history in (first, again):
        observe(history, [1, 2, 3], 31.0, [True, False, True])
    for name, column in first.state().items():
        np.testing.assert_array_equal(again.state()[name], column)
    rows, values = np.arange(9), np.arange(9.0)
    draws = [
        ChangeModel(each).draw(NAME, rows, values, 5, np.random.default_rng(1), now=40.0)
        for each in (first, again)
    ]
    assert draws[0].shape == draws[1].shape == (5, 9)


@pytest.mark.parametrize(
    "lost", ["fetched_at", "rates:changes", "rates:pooled", "jumps:followers:known"]
)
def test_what_is_no_snapshot_is_refused(lost: str) -> None:
    columns = history_of(rows=2).state()
    del columns[lost]
    with pytest.raises(ValueError, match="is missing"):
        History((NAME,)).resume(columns)


@pytest.mark.parametrize("name", ["changed_at", "rates:exposure", "jumps:followers:spreads"])
def test_columns_that_do_not_fit_together_are_refused(name: str) -> None:
    columns = {**history_of(rows=2).state(), name: np.zeros(3)}
    with pytest.raises(ValueError, match="differ in length"):
        History((NAME,)).resume(columns)


def test_a_key_may_have_no_numbers_or_several() -> None:
    plain, both = History(()), History(("a", "b"))
    for history in (plain, both):
        history.grow(1)
        for now, value in ((1.0, 5.0), (2.0, 5.0), (3.0, 6.0)):
            numbers = {"a": np.array([value]), "b": np.array([np.nan])}
            history.observe(np.array([0]), now, np.array([value == 6.0]), numbers, numbers)
    assert plain.changed_at.tolist() == both.changed_at.tolist() == [3]
    assert (both.value_changes["a"].changes.seen, both.value_changes["b"].changes.seen) == (1, 0)


def test_nothing_observed_changes_nothing() -> None:
    history = history_of(rows=1)
    observe(history, [], 1.0, [])
    assert history.fetched_at.tolist() == [NEVER]
