"""Budget of each evaluation, for several accounts that spend, in threads of their own."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, NamedTuple

from replica.budget import Budget
from replica.spending.ledger import Mark
from replica.spending.quota import UNLIMITED

IsDue = Callable[[int], bool]
"""Function that says whether a spender has an evaluation of some number."""

_MOST_PURSES = 10_000

_MOST_MISSED = 100
"""Evaluations after which nothing is kept for a spender that does not come."""


class Amount(NamedTuple):
    """Items and requests."""

    items: int
    requests: int

    def plus(self, other: Amount) -> Amount:
        """Return the sum."""
        return Amount(self.items + other.items, self.requests + other.requests)

    def less(self, other: Amount) -> Amount:
        """Return the difference, at least nothing."""
        return Amount(
            max(0, self.items - other.items),
            max(0, self.requests - other.requests),
        )

    def at_least(self, other: Amount) -> Amount:
        """Return the larger of each."""
        return Amount(max(self.items, other.items), max(self.requests, other.requests))

    def at_most(self, other: Amount) -> Amount:
        """Return the smaller of each."""
        return Amount(min(self.items, other.items), min(self.requests, other.requests))


NONE = Amount(0, 0)
_ALL = Amount(UNLIMITED, UNLIMITED)


@dataclass(eq=False)
class Spender:
    """One of those who spend: its weight among them, and the evaluations that it has."""

    weight: float = 1.0
    is_due: IsDue = field(default=lambda number: False)
    newest: int | None = None
    """Number of the latest evaluation that it has begun."""
    mark: Mark | None = None
    """Spending, before a restart, that the state may lack."""
    _owed: tuple[float, float] = (0.0, 0.0)
    _wanted: tuple[float, float] = (math.inf, math.inf)
    """Most that it is expected to ask for: what it took last, unless it took all it could."""
    _missed: int = 0

    def comes_to(self, number: int) -> bool:
        """Return True if it has still to begin an evaluation."""
        if self.newest is None or number <= self.newest or self._missed > _MOST_MISSED:
            return False
        return self.is_due(number)

    def begin(self, number: int) -> None:
        """Note that it has come."""
        self.newest = number if self.newest is None else max(self.newest, number)
        self._missed = 0

    def miss(self) -> None:
        """Note that others have begun an evaluation."""
        self._missed += 1

    def owe(self, budget: Budget, part: float) -> None:
        """Owe it a part of an evaluation's budget; what it does not claim, it is not owed long."""
        items, requests = budget.items * part, budget.requests * part
        self._owed = (
            min(self._owed[0] + items, items + 1),
            min(self._owed[1] + requests, requests + 1),
        )

    def pay(self, amount: Amount) -> None:
        """Note what it has spent."""
        self._owed = (
            max(0.0, self._owed[0] - amount.items),
            max(0.0, self._owed[1] - amount.requests),
        )

    def end(self, spent: Amount, rest: Amount) -> None:
        """Note what it has spent of an evaluation, and what it could have spent besides."""
        is_short = not (rest.items and rest.requests)
        wanted = (math.inf, math.inf) if is_short else (1.0 + spent.items, 1.0 + spent.requests)
        self._wanted = wanted

    @property
    def claim(self) -> Amount:
        """Return what is kept for it."""
        items, requests = map(min, self._owed, self._wanted)
        return Amount(int(items), int(requests))


@dataclass(eq=False)
class Purse:
    """Items and requests of one evaluation: those allowed, and those spent by all and by each."""

    number: int | None = None
    allowed: Amount = NONE
    spent: Amount = NONE
    _by_spender: dict[int, Amount] = field(default_factory=dict)

    @property
    def left(self) -> Amount:
        """Return what nobody has spent."""
        return self.allowed.less(self.spent)

    def spent_by(self, spender: Spender) -> Amount:
        """Return what one has spent."""
        return self._by_spender.get(id(spender), NONE)

    def are_of(self, spender: Spender) -> None:
        """Note that one has spent all that was spent."""
        self._by_spender = {id(spender): self.spent}

    def spend(self, spender: Spender, amount: Amount) -> None:
        """Note a spending."""
        self._by_spender[id(spender)] = self.spent_by(spender).plus(amount)
        self.spent = self.spent.plus(amount)


class SharedBudget:
    """Budget of each evaluation plus its part of the bank, shared by all who begin it.

    Evaluations with one number share one budget, in whatever thread, and at whatever time. What
    others with an evaluation of this number are owed by their weights is kept for them until they
    have come; the last one may spend all that is left. Evaluations are known as long as some have
    begun them and others have not (10 000 at most), and ``keeps`` of them longer, for those who
    join. ``lock`` is held for every step.

    >>> shared = SharedBudget(Budget(items=4, requests=4, seconds=1.0), Budget(0, 0, 0.0))
    >>> first, second = (Spender(is_due=lambda number: True, newest=0) for _ in range(2))
    >>> shared.join(first), shared.join(second)
    (None, None)
    >>> purse = shared.open(7, first)
    >>> shared.rest(purse, first)
    Amount(items=2, requests=2)
    >>> shared.spend(purse, first, Amount(1, 1))
    >>> shared.open(7, second) is purse, shared.rest(purse, second)
    (True, Amount(items=3, requests=3))
    """

    def __init__(self, budget: Budget, bank: Budget, *, keeps: int = 0) -> None:
        self.budget = budget
        self._keeps = keeps
        self.lock = threading.RLock()
        self._whole = Amount(budget.items, budget.requests)
        self._bank = Amount(bank.items, bank.requests)
        self._spenders: list[Spender] = []
        self._purses: dict[int, Purse] = {}
        self._latest = Purse()
        """Purse that was opened last: what is left of it goes to the bank."""

    def join(self, spender: Spender) -> None:
        """Let one more spend."""
        with self.lock:
            self._spenders = [*self._spenders, spender]

    def leave(self, spender: Spender) -> None:
        """Keep nothing for one any more."""
        with self.lock:
            self._spenders = self._but(spender)

    def part(self, purse: Purse, spender: Spender) -> float:
        """Return the part of an evaluation's budget that one gets by its weight."""
        with self.lock:
            others = sum(each.weight for each in self._others(spender, purse.number))
        return spender.weight / (spender.weight + others)

    def open(self, number: int | None, spender: Spender) -> Purse:
        """Return the purse of an evaluation that one begins; without a number it is a new one."""
        with self.lock:
            purse = None if number is None else self._purses.get(number)
            if purse is None:
                purse = self._new(number, spender)
            if number is not None:
                self._come(number, spender)
            return purse

    def know(self, mark: Mark, spender: Spender) -> Purse:
        """Return the purse of an evaluation of which a ledger has one's spending."""
        with self.lock:
            spender.mark, number = mark, mark.evaluation
            purse = self._purses.get(number)
            if purse is None:
                purse = self._new(number, spender)
                purse.are_of(spender)
            self.note(mark, purse, spender)
            self._come(number, spender)
            return purse

    def note(self, mark: Mark, purse: Purse, spender: Spender) -> None:
        """Note what other processes have spent of an evaluation."""
        with self.lock:
            purse.spend(spender, Amount(mark.items, mark.requests).less(purse.spent))

    def rest(self, purse: Purse, spender: Spender) -> Amount:
        """Return what one may spend now: what is left, less what is kept for those to come."""
        with self.lock:
            return purse.left.less(self._kept(purse, spender))

    def was_spent_before(self, purse: Purse, spender: Spender) -> bool:
        """Return True if nothing is left of a purse that none of the others has spent from."""
        with self.lock:
            others = self._but(spender)
            return not purse.left.items and all(purse.spent_by(each) == NONE for each in others)

    def spend(self, purse: Purse, spender: Spender, amount: Amount) -> None:
        """Note a spending."""
        with self.lock:
            purse.spend(spender, amount)
            spender.pay(amount)

    def end(self, purse: Purse, spender: Spender) -> None:
        """Note that one needs no more of an evaluation."""
        with self.lock:
            spender.end(purse.spent_by(spender), self.rest(purse, spender))

    # Purses ---------------------------------------------------------------------------------------

    def _new(self, number: int | None, spender: Spender) -> Purse:
        others = self._others(spender, number)
        purse = None if number is None else self._before(number, [spender, *others])
        if purse is None:
            latest = self._latest
            banked = latest.left.less(self._kept(latest, spender)).at_most(self._bank)
            self._move(banked)
            purse = Purse(number, self._whole.plus(banked).at_most(_ALL))
        if number is not None:
            self._purses[number] = purse
            self._owe(spender, others)
        self._latest = purse
        return purse

    def _before(self, number: int, spenders: Iterable[Spender]) -> Purse | None:
        """Return the purse of an evaluation that began before a restart; None if none did.

        Of one before a spender's last it is not known what was spent, so nothing is left.
        """
        marks = [each.mark for each in spenders if each.mark and number <= each.mark.evaluation]
        if any(number < mark.evaluation for mark in marks):
            return Purse(number)
        if not marks:
            return None
        last = max(marks, key=lambda mark: (mark.items, mark.requests))
        allowed = self._within_limits(Amount(last.allowed_items, last.allowed_requests))
        self._move(allowed.less(self._whole))
        return Purse(number, allowed, Amount(last.items, last.requests))

    def _move(self, banked: Amount) -> None:
        """Take from the latest purse what goes to the next one."""
        latest = self._latest
        latest.allowed = latest.allowed.less(banked.at_most(latest.left))

    def _come(self, number: int, spender: Spender) -> None:
        """Note who has come; drop the purses that nobody comes to any more."""
        spender.begin(number)
        if len(self._purses) <= self._keeps:
            return
        begun = [-math.inf if each.newest is None else each.newest for each in self._spenders]
        oldest = min(begun, default=number)
        spare = sorted(at for at in self._purses if at < oldest)
        gone = spare[: max(0, len(spare) - self._keeps)] or sorted(self._purses)[:-_MOST_PURSES]
        for at in gone:
            del self._purses[at]

    def _owe(self, spender: Spender, others: Iterable[Spender]) -> None:
        """Owe each that has an evaluation its part of the budget."""
        due = [spender, *others]
        weight = sum(each.weight for each in due)
        for each in due if len(due) > 1 else ():
            each.owe(self.budget, each.weight / weight)
            each.miss()

    def _kept(self, purse: Purse, spender: Spender) -> Amount:
        """Return what is kept of an evaluation for all but one."""
        if purse.number is None:
            return NONE
        claims = [each.claim for each in self._but(spender) if each.comes_to(purse.number)]
        return reduce(Amount.plus, claims, NONE)

    def _others(self, spender: Spender, number: int | None) -> list[Spender]:
        return (
            [] if number is None else [each for each in self._but(spender) if each.is_due(number)]
        )

    def _but(self, spender: Spender) -> list[Spender]:
        return [each for each in self._spenders if each is not spender]

    # State ----------------------------------------------------------------------------------------

    def state(self) -> list[list[Any]]:
        """Return the purses, as JSON."""
        with self.lock:
            return [[each.number, each.allowed, each.spent] for each in self._purses.values()]

    def resume(self, state: Iterable[Iterable[Any]]) -> None:
        """Restore a state; what is known already is not known less."""
        with self.lock:
            for number, allowed, spent in state:
                if number is not None:
                    self._latest = self._resumed(number, Amount(*allowed), Amount(*spent))

    def resumed(self, number: int | None, spender: Spender, allowed: Amount, mine: Amount) -> Purse:
        """Return the purse of an evaluation that one has begun before, and spent something of."""
        with self.lock:
            if number is None:
                purse = self._latest = Purse(None, self._within_limits(allowed), mine)
            else:
                purse = self._resumed(number, allowed, mine)
            purse.spent = purse.spent.less(mine)
            purse.spend(spender, mine)
            return purse

    def _resumed(self, number: int, allowed: Amount, spent: Amount) -> Purse:
        allowed = self._within_limits(allowed)
        known = self._purses.setdefault(number, Purse(number, allowed))
        known.spent = known.spent.at_least(spent)
        known.allowed = known.allowed.at_most(allowed)
        return known

    def _within_limits(self, allowed: Amount) -> Amount:
        """Return the allowance of another process, limited to the most that is possible here."""
        return allowed.at_most(self._whole.plus(self._bank))
