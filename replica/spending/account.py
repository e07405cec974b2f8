"""Account of one query on one service, or of several together: the spending per evaluation."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from contextlib import AbstractContextManager

from replica.budget import Budget, Spending
from replica.snapshot import State, pack, pack_parts, reading, unpack, unpack_parts
from replica.spending.allowance import ItemAllowance
from replica.spending.ledger import Ledger, LedgerError, Mark
from replica.spending.quota import Quota
from replica.spending.shared_budget import NONE, Amount, Purse, SharedBudget, Spender

_KIND, _VERSION = "account", 1

NO_BANK = Budget(items=0, requests=0, seconds=0.0)


class Account:
    """Budget of each evaluation, plus its share of the bank, within the shared quota.

    The budget that an evaluation leaves unspent goes to the bank, up to the bank's cap, and is
    available to the next evaluation in addition to its own budget. So no evaluation can spend more
    than budget plus cap. Seconds are not banked.

    With a ledger, spending is on disk before :meth:`take` returns, and an evaluation that is
    repeated after a crash has only the rest of its budget. Evaluations come in the order of their
    numbers: one before the latest that spent anything may spend nothing more. So a recording that
    is replayed with the same ledger and query spends nothing. An evaluation without a number cannot
    be recognised: it is always a new one.

    Several queries may share an account: an evaluation then is all that is due at one time. The
    ledger has its spending under the name of each, so whichever of them a restart finds know it.
    Several accounts, each used by a thread of its own, may have one ``shared`` budget: it then is
    that of all their evaluations with one number, and what is allowed is what is left for one.

    For one thread at a time. If the ledger cannot be read or written, LedgerError is raised and
    nothing is spent.

    >>> budget, bank = (
    ...     Budget(items=10, requests=2, seconds=1.0),
    ...     Budget(items=5, requests=1, seconds=0),
    ... )
    >>> account = Account(budget, quota=Quota(), bank=bank, clock=lambda: 7.0)
    >>> account.begin(1)
    >>> account.take(items=4, requests=1), account.take(items=7, requests=1)
    (True, False)
    >>> account.left
    Budget(items=6, requests=1, seconds=1.0)
    >>> account.begin(2)
    >>> account.allowed
    Budget(items=15, requests=3, seconds=1.0)
    >>> account.deadline
    8.0
    """

    def __init__(
        self,
        budget: Budget,
        *,
        quota: Quota,
        query: str = "",
        bank: Budget = NO_BANK,
        ledger: Ledger | None = None,
        clock: Callable[[], float] = time.monotonic,
        shared: SharedBudget | None = None,
    ) -> None:
        self.budget = budget
        self.quota = quota
        self.spender = Spender()
        self.deadline = clock()
        self._bank = bank
        self._queries = [query]
        self._ledger = ledger
        self._clock = clock
        self._evaluation: int | None = None
        """Number of the evaluation begun last, if it has one."""
        self._may_spend = False
        self._newest: int | None = None
        """Highest number so far."""
        self._open: int | None = None
        """Number, if any, of the evaluation that ``_purse`` is about."""
        self._purse = Purse()
        self._shared = SharedBudget(budget, bank) if shared is None else shared
        self._shared.join(self.spender)
        self._note_mark()

    def _note_mark(self) -> None:
        """Let others know what queries of this account may have spent before a restart."""
        try:
            self.spender.mark = self._mark()
        except LedgerError:
            self.spender.mark = None  # then nothing can be spent either

    def add(self, query: str) -> None:
        """Let one more query share the account."""
        if query not in self._queries:
            self._queries.append(query)

    def remove(self, query: str) -> None:
        """Let a query leave, unless it is the last: then what it has spent stays under its name."""
        if len(self._queries) > 1:
            self._queries = [each for each in self._queries if each != query]

    def begin(self, evaluation: int | None = None) -> None:
        """Start an evaluation, unless it is the last one started. Its deadline counts from now."""
        if evaluation is not None and evaluation == self._evaluation:
            return
        self.deadline = self._clock() + self.budget.seconds
        self._shared.end(self._purse, self.spender)
        # If the ledger raises, nothing is allowed, and the same evaluation may be begun again.
        self._evaluation, self._may_spend = None, False
        self._catch_up()
        if evaluation is None or self._newest is None or evaluation > self._newest:
            self._purse, self._open = self._shared.open(evaluation, self.spender), evaluation
            self._newest = self._newest if evaluation is None else evaluation
        self._evaluation = evaluation
        self._may_spend = evaluation == self._open

    def close(self) -> None:
        """Let nothing be kept for it any more."""
        self._shared.leave(self.spender)

    @property
    def allowed(self) -> Budget:
        """Budget of this evaluation, including its share of the bank."""
        spent, rest = self._spent, self._rest()
        return Budget(*spent.plus(rest), self.budget.seconds)

    @property
    def was_spent_before(self) -> bool:
        """True if a former process, or a later evaluation, leaves nothing for this one.

        What others spend of it now is no such thing.
        """
        if not self._may_spend:
            return True
        return not self._rest().items and self._shared.was_spent_before(self._purse, self.spender)

    @property
    def spending(self) -> Spending:
        """Spending of this evaluation, including spending before a crash."""
        return Spending(*self._spent)

    @property
    def left(self) -> Budget:
        """Budget that is left now, with the seconds until the deadline."""
        free = self._rest().at_most(Amount(*self.quota.left()))
        return Budget(*free, max(0.0, self.deadline - self._clock()))

    def allowance(self, seconds: float, per_request: int) -> ItemAllowance:
        """Return the items that may be asked for, now and later, if evaluations are so far apart.

        If limits over time allow less than the budget, it is the tightest that saves what is left.
        """
        left = self.left
        now = min(left.items, left.requests * per_request)
        usual = self.budget.items * self._shared.part(self._purse, self.spender)
        requests = self.budget.requests + self._bank.requests
        keeps = min(self._bank.items, max(0, requests * per_request - self.budget.items))
        saved = min(1.0, max(0.0, now - usual) / keeps) if keeps else 0.0
        for limit, pace, rest in self.quota.paces(seconds) if seconds > 0 else ():
            size = per_request if limit.unit == "requests" else 1
            if limit.amount and pace * size < usual:
                usual, keeps, saved = pace * size, limit.amount * size, rest / limit.amount
        return ItemAllowance(usual, now, keeps, saved)

    def take(self, items: int, requests: int) -> bool:
        """Spend all of this if it is allowed; return True if so. Ignores the deadline."""
        if not self._may_spend:
            return False
        with self._shared.lock:
            is_taken = self._take(Amount(items, requests))
            if is_taken:
                self._shared.spend(self._purse, self.spender, Amount(items, requests))
        return is_taken

    def _take(self, asked: Amount) -> bool:
        """Return True if a spending is allowed, and written down where it must be."""
        with self._step():
            if self._is_behind():
                return False
            if asked.at_most(self._rest()) != asked or not self.quota.take(*asked):
                return False
            if self._ledger is not None and self._open is not None:
                spent, allowed = self._purse.spent.plus(asked), self._purse.allowed
                mark = Mark(self._open, *spent, *allowed)
                for query in self._queries:
                    self._ledger.set_mark(self.quota.service, query, mark)
        return True

    def snapshot(self) -> bytes:
        """Return all state needed to continue, including spending that counts towards the quota."""
        settings = {
            "evaluation": self._evaluation,
            "may spend": self._may_spend,
            "newest": self._newest,
            "open": self._open,
            "allowed": self._purse.allowed,
            "spent": self._purse.spent_by(self.spender),
            "purses": self._shared.state(),
        }
        return pack_parts(
            {"state": pack(_KIND, _VERSION, State(settings, {})), "quota": self.quota.snapshot()}
        )

    def resume(self, snapshot: bytes) -> None:
        """Continue from a snapshot; raises SnapshotError for any other bytes.

        The deadline has passed by then. Of the snapshots of several queries that share the account
        the latest counts.
        """
        with reading():
            parts = unpack_parts(snapshot)
            settings = unpack(_KIND, _VERSION, parts["state"]).settings
            self.quota.resume(parts["quota"])
            newest = settings["newest"]
            if self._newest is not None and (newest is None or newest < self._newest):
                return
            self._evaluation, self._may_spend = settings["evaluation"], settings["may spend"]
            self._newest, self._open = newest, settings["open"]
            allowed, spent = Amount(*settings["allowed"]), Amount(*settings["spent"])
        # Older snapshots have none.
        self._shared.resume(settings.get("purses", [[self._open, allowed, spent]]))
        self._purse = self._shared.resumed(self._open, self.spender, allowed, spent)
        if newest is not None:
            self.spender.begin(newest)

    @property
    def _spent(self) -> Amount:
        return self._purse.spent_by(self.spender) if self._may_spend else NONE

    def _rest(self) -> Amount:
        return self._shared.rest(self._purse, self.spender) if self._may_spend else NONE

    def _catch_up(self) -> None:
        """Read this query's progress from the ledger, made by an earlier or concurrent process."""
        mark = self._mark()
        if mark is None or (self._newest is not None and mark.evaluation <= self._newest):
            return
        self._open = self._newest = mark.evaluation
        self._purse = self._shared.know(mark, self.spender)

    def _is_behind(self) -> bool:
        """Read other processes' spending in this evaluation; return True if one is further on."""
        mark = self._mark()
        if mark is None or self._open is None:
            return False
        if mark.evaluation == self._open:
            self._shared.note(mark, self._purse, self.spender)
        return mark.evaluation > self._open

    def _mark(self) -> Mark | None:
        if self._ledger is None:
            return None
        marks = (self._ledger.mark(self.quota.service, query) for query in self._queries)
        return max(
            (mark for mark in marks if mark is not None),
            key=lambda mark: (mark.evaluation, mark.items, mark.requests),
            default=None,
        )

    def _step(self) -> AbstractContextManager[None]:
        return self._ledger.transaction() if self._ledger is not None else contextlib.nullcontext()
