from __future__ import annotations

import itertools
import math
import sqlite3
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replica.budget import Budget
from replica.spending.account import Account
from replica.spending.ledger import Ledger, LedgerError
from replica.spending.limit import Limit
from replica.spending.quota import Quota

SERVICES = map(str, itertools.count())


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ledger]:
    ledger = Ledger(tmp_path_factory.mktemp("account") / "spending.db")
    yield ledger
    ledger.close()


budgets = st.builds(Budget, st.integers(0, 12), st.integers(0, 4), st.just(1.0))
moves = st.lists(
    st.one_of(
        st.tuples(st.just("begin"), st.one_of(st.none(), st.integers(0, 9))),
        st.tuples(st.just("take"), st.tuples(st.integers(0, 7), st.integers(1, 2))),
        st.tuples(st.just("take"), st.tuples(st.integers(0, 7), st.integers(1, 2))),
        st.tuples(st.just("crash"), st.none()),
    ),
    max_size=30,
)


class Counter:
    """Requests and items that a remote gets for each evaluation, from any sender."""

    def __init__(self) -> None:
        self.items: defaultdict[object, int] = defaultdict(int)
        self.requests: defaultdict[object, int] = defaultdict(int)

    def count(self, evaluation: object, items: int, requests: int) -> None:
        self.items[evaluation] += items
        self.requests[evaluation] += requests


@settings(max_examples=60)
@given(moves, budgets, st.sampled_from([Budget(0, 0, 0), Budget(5, 1, 0), Budget(100, 100, 0)]))
def test_no_evaluation_spends_more_than_it_may_however_often_it_is_begun_again_after_a_crash(
    ledger: Ledger, moves: list, budget: Budget, bank: Budget
) -> None:
    service, counter, unnumbered = next(SERVICES), Counter(), itertools.count()

    def new_account() -> Account:
        quota = Quota([Limit(60, 3600, "items")], time=lambda: 7.0, ledger=ledger, service=service)
        return Account(budget, quota=quota, query="q", bank=bank, ledger=ledger, clock=lambda: 7.0)

    account, current, newest = new_account(), None, -1
    for move, value in moves:
        if move == "crash":
            account, current = new_account(), None
            assert account.left == Budget(0, 0, 0.0)
        elif move == "begin":
            account.begin(value)
            current = ("unnumbered", next(unnumbered)) if value is None else value
        else:
            left, before = account.left, account.spending
            is_taken = account.take(*value)
            assert is_taken == (
                current is not None and value[0] <= left.items and value[1] <= left.requests
            )
            if is_taken:
                counter.count(current, *value)
                assert account.spending.items == before.items + value[0]
                newest = max(newest, current) if isinstance(current, int) else newest
        allowed, spent = account.allowed, account.spending
        assert allowed.items <= budget.items + bank.items
        assert spent.items <= allowed.items
        assert spent.requests <= allowed.requests
        if isinstance(current, int) and current < newest:
            assert account.left.items == account.left.requests == 0
    for evaluation in counter.items:
        assert counter.items[evaluation] <= budget.items + bank.items
        assert counter.requests[evaluation] <= budget.requests + bank.requests
    assert sum(counter.items.values()) <= 60


@settings(max_examples=40)
@given(moves.map(lambda all_: [each for each in all_ if each[0] != "crash"]), budgets)
def test_while_nothing_crashes_a_ledger_changes_nothing(
    ledger: Ledger, moves: list, budget: Budget
) -> None:
    service, bank = next(SERVICES), Budget(5, 1, 0)
    plain = Account(budget, quota=Quota(), bank=bank, clock=lambda: 7.0)
    strict = Account(
        budget, quota=Quota(service=service), bank=bank, ledger=ledger, clock=lambda: 7.0
    )
    for move, value in moves:
        if move == "begin":
            plain.begin(value)
            strict.begin(value)
        else:
            assert plain.take(*value) == strict.take(*value)
        assert (plain.left, plain.allowed, plain.spending) == (
            strict.left,
            strict.allowed,
            strict.spending,
        )


@given(
    budgets,
    st.integers(0, 10),
    st.integers(0, 3),
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3))),
)
def test_the_bank_holds_what_was_left_over_up_to_its_cap(
    budget: Budget, items: int, requests: int, wanted: list[tuple[int, int]]
) -> None:
    account = Account(budget, quota=Quota(), bank=Budget(items, requests, 9.0))
    banked = (0, 0)
    for evaluation, wants in enumerate(wanted):
        account.begin(evaluation)
        allowed = budget.items + banked[0], budget.requests + banked[1]
        assert account.allowed == Budget(*allowed, 1.0)
        is_taken = account.take(*wants)
        assert is_taken == (wants[0] <= allowed[0] and wants[1] <= allowed[1])
        spent = wants if is_taken else (0, 0)
        banked = min(items, allowed[0] - spent[0]), min(requests, allowed[1] - spent[1])


def test_the_bank_takes_from_the_evaluation_before_not_from_the_last_that_was_written_down(
    ledger: Ledger,
) -> None:
    quota = Quota(service=next(SERVICES))
    account = Account(Budget(10, 2, 1.0), quota=quota, bank=Budget(5, 0, 0), ledger=ledger)
    account.begin(1)
    assert account.take(10, 1)
    account.begin(None)
    assert account.allowed.items == 10
    account.begin(None)
    assert account.allowed.items == 15


def test_the_same_evaluation_again_is_nothing_new() -> None:
    now = 10.0
    account = Account(Budget(5, 2, 3.0), quota=Quota(), clock=lambda: now)
    account.begin(1)
    assert account.take(4, 1)
    now = 12.0
    account.begin(1)
    assert account.deadline == 13.0
    assert account.left == Budget(1, 1, 1.0)
    now = 20.0
    assert account.left == Budget(1, 1, 0.0)
    account.begin(2)
    assert account.deadline == 23.0
    assert account.left == Budget(5, 2, 3.0)


def test_an_evaluation_without_a_number_is_always_a_new_one() -> None:
    account = Account(Budget(5, 2, 1.0), quota=Quota())
    for _ in range(3):
        account.begin(None)
        assert account.take(5, 1)
        assert not account.take(1, 1)


def test_nothing_is_allowed_before_the_first_evaluation() -> None:
    account = Account(Budget(5, 2, 1.0), quota=Quota(), clock=lambda: 3.0)
    assert not account.take(1, 1)
    assert account.left == Budget(0, 0, 0.0)
    assert account.allowed.items == 0


def test_the_quota_is_shared_by_all_queries() -> None:
    quota = Quota([Limit.parse("3 requests per 1m")], time=lambda: 0.0)
    first, second = (Account(Budget(100, 2, 1.0), quota=quota) for _ in range(2))
    first.begin(1)
    second.begin(1)
    assert first.take(10, 2)
    assert second.left.requests == 1
    assert not second.take(10, 2)
    assert second.take(10, 1)
    assert not second.take(0, 1)
    assert second.spending.requests == 1


def test_what_is_refused_by_the_budget_does_not_touch_the_quota() -> None:
    quota = Quota([Limit.parse("3 requests per 1m")], time=lambda: 0.0)
    account = Account(Budget(5, 1, 1.0), quota=quota)
    account.begin(1)
    assert not account.take(6, 1)
    assert quota.left()[1] == 3


def test_nothing_can_be_given_back(ledger: Ledger) -> None:
    account = Account(Budget(5, 1, 1.0), quota=Quota(), ledger=ledger)
    account.begin(1)
    with pytest.raises(ValueError, match="given back"):
        account.take(-1, 0)


def test_a_budget_without_an_end_can_be_written_down(ledger: Ledger) -> None:
    quota = Quota(service=next(SERVICES))
    boundless = Budget(sys.maxsize, sys.maxsize, math.inf)
    account = Account(boundless, quota=quota, bank=boundless, ledger=ledger)
    for evaluation in range(3):
        account.begin(evaluation)
        assert account.take(10**9, 10**9)
    assert account.left.seconds == math.inf


def test_after_a_crash_there_is_what_was_left_and_earlier_evaluations_have_nothing(
    ledger: Ledger,
) -> None:
    quota = Quota(service=next(SERVICES))
    account = Account(Budget(10, 3, 1.0), quota=quota, query="q", ledger=ledger)
    account.begin(5)
    assert account.take(4, 1)
    again = Account(Budget(10, 3, 1.0), quota=quota, query="q", ledger=ledger)
    again.begin(4)
    assert not again.take(1, 1)
    assert again.allowed == Budget(0, 0, 1.0)
    again.begin(5)
    assert (again.left.items, again.left.requests) == (6, 2)
    assert again.spending.items == 4
    again.begin(6)
    assert again.take(10, 3)
    other = Account(Budget(10, 3, 1.0), quota=quota, query="other", ledger=ledger)
    other.begin(1)
    assert other.take(10, 3)


def test_a_budget_that_was_lowered_between_two_runs_counts(ledger: Ledger) -> None:
    quota = Quota(service=next(SERVICES))
    account = Account(Budget(10, 3, 1.0), quota=quota, ledger=ledger)
    account.begin(5)
    assert account.take(4, 1)
    lower = Account(Budget(5, 3, 1.0), quota=quota, ledger=ledger)
    lower.begin(5)
    assert lower.left.items == 1
    lowest = Account(Budget(3, 3, 1.0), quota=quota, ledger=ledger)
    lowest.begin(5)
    assert lowest.left.items == 0


def test_two_engines_that_run_one_query_share_its_budget(ledger: Ledger) -> None:
    quota = Quota(service=next(SERVICES))
    ahead, behind = (Account(Budget(10, 3, 1.0), quota=quota, ledger=ledger) for _ in range(2))
    ahead.begin(1)
    behind.begin(1)
    assert ahead.take(6, 1)
    assert not behind.take(5, 1)
    assert behind.take(4, 1)
    ahead.begin(2)
    assert ahead.take(1, 1)
    assert not behind.take(0, 1)


def test_nothing_is_allowed_while_the_ledger_cannot_be_used(tmp_path: Path) -> None:
    path = tmp_path / "spending.db"
    ledger = Ledger(path, longest_wait=0.0)
    quota = Quota([Limit.parse("5 requests per 1m")], time=lambda: 0.0, ledger=ledger)
    account = Account(Budget(10, 3, 1.0), quota=quota, ledger=ledger)
    account.begin(1)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(LedgerError, match="locked"):
        account.take(1, 1)
    assert account.spending.items == 0
    other.execute("ROLLBACK")
    other.close()
    assert account.take(1, 1)
    assert quota.left()[1] == 4
    ledger.close()
    with pytest.raises(LedgerError, match="nothing is spent"):
        account.begin(2)
    assert account.allowed.items == 0
    assert not account.take(0, 1)


def test_queries_that_share_an_account_spend_one_budget_also_after_a_crash(tmp_path: Path) -> None:
    """Whichever of them a restart finds, it knows what all have spent."""
    ledger = Ledger(tmp_path / "spent.sqlite")

    def made(*queries: str) -> Account:
        account = Account(
            Budget(5, 5, 1.0),
            quota=Quota(ledger=ledger, service="s"),
            query=queries[0],
            ledger=ledger,
        )
        for query in queries[1:]:
            account.add(query)
        return account

    first = made("a", "b")
    first.begin(7)
    assert first.take(3, 1)
    first.remove("a")
    assert first.take(1, 1)
    for again in (made("b"), made("c", "b")):
        again.begin(7)
        assert again.left.items == 1
    alone = made("c")
    alone.begin(7)
    assert alone.left.items == 5


def test_of_the_snapshots_of_those_who_share_an_account_the_latest_counts() -> None:
    account = Account(Budget(5, 5, 1.0), quota=Quota())
    account.begin(1)
    older = account.snapshot()
    account.begin(2)
    account.take(2, 1)
    for snapshots in ([older, account.snapshot()], [account.snapshot(), older]):
        again = Account(Budget(5, 5, 1.0), quota=Quota())
        for each in snapshots:
            again.resume(each)
        again.begin(2)
        assert again.left.items == 3
