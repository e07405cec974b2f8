"""A budget that several accounts share: what it allows, to whom, and after a crash."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from replica.budget import Budget
from replica.spending.account import Account
from replica.spending.ledger import Ledger
from replica.spending.quota import Quota
from replica.spending.shared_budget import IsDue, SharedBudget

NO_BANK = Budget(0, 0, 0.0)


def accounts(
    shared: SharedBudget, slides: list[int], ledger: Ledger | None = None
) -> list[Account]:
    """Return accounts with evaluations at multiples of a number of their own."""
    made = []
    for at, slide in enumerate(slides):
        account = Account(
            shared.budget, quota=Quota(service="s"), query=f"q{at}", ledger=ledger, shared=shared
        )
        account.spender.is_due = multiples(slide)
        made.append(account)
    return made


def multiples(slide: int) -> IsDue:
    return lambda number: number % slide == 0


@pytest.mark.parametrize("seed", range(40))
def test_no_evaluation_has_more_than_one_budget_in_whatever_order_they_come(seed: int) -> None:
    """Streams run ahead of each other; what one moves to the bank, no other spends again."""
    chance = Random(seed)
    budget = Budget(chance.randint(1, 7), chance.randint(1, 7), 1.0)
    bank = chance.choice([NO_BANK, Budget(4, 2, 0.0)])
    shared = SharedBudget(budget, bank)
    several = accounts(shared, [chance.choice([1, 2, 3]) for _ in range(chance.randint(1, 4))])
    reached = [0] * len(several)
    items: Counter[int] = Counter()
    requests: Counter[int] = Counter()
    for _ in range(120):
        at = chance.randrange(len(several))
        account = several[at]
        reached[at] = next(n for n in range(reached[at] + 1, 999) if account.spender.is_due(n))
        account.begin(reached[at])
        while chance.random() < 0.7:
            count = chance.randint(1, 4)
            left, allowed = account.left, account.allowed
            assert account.spending.items + left.items == allowed.items
            if account.take(count, 1):
                assert count <= left.items
                assert left.requests
                items[reached[at]] += count
                requests[reached[at]] += 1
    assert max(items.values(), default=0) <= budget.items + bank.items
    assert max(requests.values(), default=0) <= budget.requests + bank.requests


@pytest.mark.parametrize("items", [1, 2, 3, 10])
@pytest.mark.parametrize("weights", [(1.0, 1.0), (1.0, 1.0, 1.0), (3.0, 1.0)])
def test_each_gets_its_share_whoever_always_comes_first(
    items: int, weights: tuple[float, ...]
) -> None:
    shared = SharedBudget(Budget(items, items, 1.0), NO_BANK)
    several = accounts(shared, [1] * len(weights))
    for account, weight in zip(several, weights, strict=True):
        account.spender.weight = weight
    spent: Counter[int] = Counter()
    rounds = 120
    for number in range(1, rounds + 1):
        for at, account in enumerate(several):
            account.begin(number)
            while account.take(1, 1):
                spent[at] += 1
    assert sum(spent.values()) == items * rounds
    for at, weight in enumerate(weights):
        assert spent[at] >= 0.8 * items * rounds * weight / sum(weights) - items - 1


def test_what_one_does_not_need_the_other_has() -> None:
    shared = SharedBudget(Budget(10, 10, 1.0), NO_BANK)
    modest, greedy = accounts(shared, [1, 1])
    spent = 0
    for each in (modest, greedy):
        each.begin(0)
    for number in range(1, 40):
        greedy.begin(number)
        while greedy.take(1, 1):
            spent += 1
        modest.begin(number)
        assert modest.take(1, 1)
    assert spent >= 39 * 7


def test_one_that_has_gone_or_never_comes_is_kept_nothing() -> None:
    shared = SharedBudget(Budget(4, 4, 1.0), NO_BANK)
    stays, goes, waits = accounts(shared, [1, 1, 1])
    for each in (stays, goes):
        each.begin(1)
    stays.begin(2)
    assert stays.left.items < 4
    goes.close()
    waits.close()
    stays.begin(3)
    assert stays.left.items == 4


def test_threads_that_spend_at_once_spend_one_budget() -> None:
    shared = SharedBudget(Budget(50, 50, 1.0), NO_BANK)
    several = accounts(shared, [1] * 6)
    taken: Counter[int] = Counter()
    lock = threading.Lock()

    def spend(account: Account) -> None:
        for number in range(1, 30):
            account.begin(number)
            while account.take(1, 1):
                with lock:
                    taken[number] += 1

    threads = [threading.Thread(target=spend, args=[each]) for each in several]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(taken.values()) <= set(range(1, 51))


@pytest.mark.parametrize("seed", range(25))
def test_crashes_give_no_evaluation_its_budget_again(seed: int, tmp_path: Path) -> None:
    """Each process goes on from the last snapshot, or from none, and repeats what came after."""
    chance, budget = Random(seed), Budget(5, 5, 1.0)
    slides = [chance.choice([1, 2]) for _ in range(2)]
    items: Counter[int] = Counter()
    kept: list[tuple[int, bytes]] = []
    for _ in range(6):
        ledger = Ledger(tmp_path / "spent")
        several = accounts(SharedBudget(budget, NO_BANK), slides, ledger)
        reached = [0, 0]
        for at, (number, snapshot) in enumerate(kept):
            several[at].resume(snapshot)
            reached[at] = number
        for _ in range(chance.randrange(15)):
            at = chance.randrange(2)
            reached[at] += slides[at]
            several[at].begin(reached[at])
            while chance.random() < 0.7:
                count = chance.randint(1, 3)
                items[reached[at]] += count if several[at].take(count, 1) else 0
            if chance.random() < 0.3:
                kept = [(reached[n], each.snapshot()) for n, each in enumerate(several)]
        ledger.close()
    assert max(items.values(), default=0) <= budget.items
