"""The pace of spending: what is saved, what is spent beyond the usual, and what never happens."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from replica.budget import Budget
from replica.rankers import ranked
from replica.rankers.battery import sample_candidates
from replica.rankers.imp import ExpectedImpact
from replica.snapshot import SnapshotError
from replica.spending.account import Account
from replica.spending.allowance import SPEND_ALL, ItemAllowance
from replica.spending.limit import Limit
from replica.spending.pace import SpendingPace
from replica.spending.quota import Quota

WORTHS = st.lists(
    st.lists(st.sampled_from([0.0, 0.01, 0.5, 1.0, 2.0]) | st.floats(0, 10), max_size=30),
    min_size=1,
    max_size=30,
)


def spending(
    worths: list[list[float]], budget: int, bank: int
) -> tuple[list[int], list[tuple[int, int]]]:
    """Return what is spent in each evaluation, and what each could have spent and saved."""
    pace, account = (
        SpendingPace(),
        Account(Budget(budget, budget, 1.0), quota=Quota(), bank=Budget(bank, bank, 0.0)),
    )
    spent, allowed = [], []
    for each in worths:
        account.begin()
        allowance = account.allowance(60.0, 1)
        asked = pace.worth_asking(-np.sort(-np.array(each)), allowance)
        count = min(int(asked.sum()), allowance.now)
        assert count == 0 or account.take(count, count)
        spent.append(count)
        allowed.append((allowance.now, allowance.keeps))
    return spent, allowed


@given(WORTHS, st.integers(1, 9), st.integers(0, 20))
def test_no_more_is_spent_than_allowed_in_any_stretch_of_time(
    worths: list[list[float]], budget: int, bank: int
) -> None:
    spent, allowed = spending(worths, budget, bank)
    assert all(count <= now for count, (now, _) in zip(spent, allowed, strict=True))
    for begin in range(len(spent)):
        for end in range(begin, len(spent)):
            assert sum(spent[begin : end + 1]) <= budget * (end - begin + 1) + bank


@given(WORTHS, st.integers(1, 9))
def test_without_a_bank_all_is_spent(worths: list[list[float]], budget: int) -> None:
    spent, _ = spending(worths, budget, 0)
    assert spent == [min(budget, len(each)) for each in worths]


def test_what_is_worth_little_is_saved_for_where_much_is_worth_it() -> None:
    quiet, busy = [1.0] * 2 + [0.001] * 20, [1.0] * 22
    # The marginal item of a quiet evaluation is worth next to nothing: it is spent on no others.
    spent, _ = spending(([quiet] * 3 + [busy]) * 10, 4, 12)
    assert np.mean(spent[23::4]) > 8
    assert np.mean(spent[20::4]) < 4


@given(st.integers(1, 9))
def test_a_part_is_spent_whatever_it_is_worth(budget: int) -> None:
    worths = [[9.0] * budget] * 4 + [[1e-9] * 30] * 40
    spent, _ = spending(worths, budget, 3 * budget)
    late = spent[4:]
    for begin in range(len(late) - 8):
        assert sum(late[begin : begin + 8]) >= budget


@given(WORTHS, WORTHS)
def test_it_goes_on_from_a_snapshot(before: list[list[float]], after: list[list[float]]) -> None:
    one, other, saving = SpendingPace(), SpendingPace(), ItemAllowance(2.5, 7, 5)
    for each in before:
        one.worth_asking(np.array(each), saving)
    other.resume(one.snapshot())
    for each in after:
        asked = (pace.worth_asking(np.array(each), saving).tolist() for pace in (one, other))
        assert next(asked) == next(asked)
    with pytest.raises(SnapshotError):
        other.resume(b"anything")


def test_limits_over_time_that_bind_are_paced_and_save() -> None:
    now = 0.0
    quota = Quota(
        [Limit.parse("30 items per 10m"), Limit.parse("5 requests per 1m")], time=lambda: now
    )
    account = Account(Budget(7, 7, 1.0), quota=quota)
    account.begin()
    assert account.allowance(60.0, 1) == ItemAllowance(3.0, 5, 30, 1.0)
    assert account.allowance(300.0, 10) == ItemAllowance(7.0, 7, 0)
    assert account.allowance(0.0, 1) == ItemAllowance(7.0, 5, 0)
    assert account.take(6, 2)
    assert account.allowance(60.0, 1) == ItemAllowance(3.0, 1, 30, 0.8)
    assert ItemAllowance(3.0, 4, 9).without(5) == ItemAllowance(0.0, 0, 9)


def test_the_default_ranker_leaves_out_what_is_not_worth_it_and_remembers() -> None:
    given_ = sample_candidates(50)
    whole = ranked(ExpectedImpact(), replace(given_, allowance=SPEND_ALL))
    assert sorted(whole.tolist()) == list(range(50))
    ranker, saving = ExpectedImpact(), ItemAllowance(3.0, 12, 9)
    some = ranked(ranker, replace(sample_candidates(50), allowance=saving))
    assert 0 < len(some) < 50
    assert set(some.tolist()) == set(whole[: len(some)].tolist())
    again = ExpectedImpact()
    again.resume(ranker.snapshot())
    assert again.snapshot() == ranker.snapshot() != ExpectedImpact().snapshot()
