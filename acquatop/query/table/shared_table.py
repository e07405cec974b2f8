"""The top k of a table for all queries that rank it alike, each with a k of its own."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from acquatop.answer.answer import Status
from acquatop.answer.certificate import Certificate
from acquatop.query.table.merits import Merits
from acquatop.query.table.rows import TableRows, as_column, subject_of
from acquatop.query.table.source import Changes, HeldTable, RowSource
from acquatop.refresh.ranked_remote import BestReply
from acquatop.topk.contract import AnyArray, FloatArray
from acquatop.topk.order import ranking
from acquatop.topk.papers.views.table_view import TableView
from acquatop.topk.snapshot import State, pack, pack_parts, reading, unpack, unpack_parts
from replica.budget import Spending
from replica.clocks import Clock
from replica.feeds.subscription import Subscription
from replica.store import Solution

_KIND, _VERSION = "table", 1
_MOST_PUSHED = 100_000
_NEAR = 1e-12
"""Relative error up to which a remote may compute other scores than are computed here."""
_UNSEEN = -1
"""Number of gaps that no feed has."""


@dataclass
class Look:
    """Effect of one look at the table: what it has cost, and what went wrong."""

    spending: Spending = field(default_factory=Spending)
    failure: str | None = None
    rejected: Counter[str] = field(default_factory=Counter)


class SharedTable:
    """View of a table, changed by what a feed says, and refilled by its source.

    The view holds the best k' rows for the largest k of its members. Without a ``feed``, and while
    it is interrupted, the best are asked for at each look. Thread-safe: queries of several
    paces share it.
    """

    def __init__(
        self,
        key: str,
        merits: Merits,
        source: RowSource,
        view: TableView,
        *,
        feed: Subscription | None,
        recomputes: bool,
        spare: int,
        clock: Clock,
    ) -> None:
        self.view = view
        self.source = source
        self._key = key
        self._merits = merits
        self._feed = feed
        self._recomputes = recomputes
        self._spare = spare
        self._clock = clock
        self._rows = TableRows(key)
        self._ks: dict[str, int] = {}
        self._lock = threading.Lock()
        self._looked_ms: int | None = None
        self._since: dict[str, Sequence[Solution]] = {}
        """Changes since the request that is under way was sent: it may not have them."""
        self._gaps_at_request = self._gaps_at_fill = _UNSEEN
        self._filled_in_look = False
        self._known_at: float | None = None
        """Time of the last look at which the table was known."""
        self._is_resumed = False

    # Members --------------------------------------------------------------------------------------

    def join(self, name: str, k: int) -> None:
        """Let a query take part, with a k of its own."""
        with self._lock:
            self._ks[name] = k
            self._set_k()

    def leave(self, name: str) -> bool:
        """Let a query leave; return True if it was the last: then the feed is stopped."""
        with self._lock:
            self._ks.pop(name, None)
            if self._ks:
                self._set_k()
                return False
            if self._feed is not None:
                self._feed.stop()
            return True

    def _set_k(self) -> None:
        self.view.controller.serve(max(self._ks.values()), 0 if self._recomputes else self._spare)

    # Looks ----------------------------------------------------------------------------------------

    def look(self, at_ms: int, longest_wait: float) -> Look:
        """Take in what has changed, and refill the view if that is needed.

        Of several members that look at one time the first does it for all.
        """
        with self._lock:
            if self._looked_ms is not None and at_ms <= self._looked_ms:
                return Look()
            self._looked_ms = at_ms
            started = self._clock()
            until = started + longest_wait
            self._receive(0.0)
            self.source.begin(at_ms)
            self._take_changes()
            is_asked_now = self._ask()
            is_filled = self.source.is_asked and self._receive(until - self._clock())
            # An earlier request may have been answered before what has changed since.
            self._filled_in_look = is_asked_now and is_filled
            self._take_changes()
            if self.view.is_filled and self._staleness() is None:
                self._known_at = self._clock()
            feed = self._feed.failure if self._feed is not None else None
            spent = replace(self.source.take_spending(), seconds=self._clock() - started)
            return Look(
                spent,
                self.source.failure or feed,
                self.source.take_rejected(),
            )

    def best(self, k: int) -> tuple[list[Solution], Certificate]:
        """Return the best k rows, best first, and how far they can be trusted."""
        with self._lock:
            rows = self.view.first(k)[0].tolist()
            return [self._rows[row] for row in rows], self._certificate(k)

    def held(self) -> list[tuple[float, Solution]]:
        """Return the scores and the solutions of all rows in the view, best first."""
        with self._lock:
            rows, merits = self.view.first(len(self.view))
            scores = map(self._merits.score, merits.tolist())
            return [
                (score, self._rows[row]) for score, row in zip(scores, rows.tolist(), strict=True)
            ]

    def _ask(self) -> bool:
        """Ask for the rows that are wanted, if any; return True if a request is sent."""
        wanted, gaps = self._wanted(), self._gaps()
        if wanted is None or not self.source.ask(wanted + 1):
            return False
        self._since, self._gaps_at_request = {}, gaps
        return True

    def _wanted(self) -> int | None:
        """Return the number of rows to ask for; None if none are needed."""
        controller = self.view.controller
        if self._recomputes:
            return controller.k
        is_silent = self._feed is not None and self._feed.failure is not None
        if (is_silent or self._has_missed()) and not isinstance(self.source, HeldTable):
            return controller.kmax
        return self.view.wanted

    def _gaps(self) -> int:
        return 0 if self._feed is None else self._feed.gaps

    def _has_missed(self) -> bool:
        """Return True if the feed may have said something that has not been heard."""
        if isinstance(self.source, HeldTable):
            return self._gaps() > (0 if self._is_resumed else 1)
        return self._gaps() != self._gaps_at_fill

    # Changes --------------------------------------------------------------------------------------

    def _take_changes(self) -> None:
        for pushed in self._feed.drain(_MOST_PUSHED) if self._feed is not None else ():
            changes: dict[str, list[Solution]] = {key: [] for key in pushed.asked}
            for each in pushed.solutions:
                changes[each[self._key]].append(each)
            if isinstance(self.source, HeldTable):
                self.source.take(changes)
            elif self.source.is_asked:
                self._since.update(changes)
            if self.view.is_filled and not self._recomputes:
                self._apply(changes)

    def _apply(self, changes: Changes) -> None:
        gone = self._rows.of(changes)
        self._rows.let_go(changes)
        solutions = [each for several in changes.values() for each in several]
        rows, merits = self._distinct(solutions)
        there = set(rows.tolist())
        gone = [row for row in gone if row not in there]
        self.view.changed(
            np.concatenate((rows, as_column(gone))),
            np.concatenate((merits, np.full(len(gone), np.nan))),
        )
        self._rows.keep(self.view.first(len(self.view))[0])

    def _distinct(self, solutions: Sequence[Solution]) -> tuple[AnyArray, FloatArray]:
        """Hold solutions; return their rows, each once, and their merits."""
        rows, merits = self._rows.hold(solutions), self._merits(solutions)
        known = dict(zip(rows.tolist(), merits.tolist(), strict=True))
        return as_column(list(known)), np.array(list(known.values()), dtype=np.float64)

    # Refills --------------------------------------------------------------------------------------

    def _receive(self, wait: float) -> bool:
        """Take in the reply to a request, if it comes; return True if it has filled the view."""
        reply = self.source.reply(wait)
        return reply is not None and self._fill(reply)

    def _fill(self, reply: BestReply) -> bool:
        """Take the rows of a reply; return False if the remote orders them in another way."""
        merits = self._merits(reply.rows.solutions)
        counts = (~np.isnan(merits)).nonzero()[0].tolist()
        solutions = [reply.rows.solutions[at] for at in counts]
        merits = merits[counts]
        if not _are_ordered(merits):
            self.source.failure = "the remote does not order by the score as it is computed here"
            return False
        in_order = _order_ties(merits, [subject_of(each, self._key) for each in solutions])
        self._rows = TableRows(self._key)
        rows, merits = self._distinct(solutions)
        at = ranking(merits, np.zeros(len(rows), np.int64), rows)
        rows, merits = rows[at], merits[at]
        if self._recomputes:
            kept = min(len(rows), self.view.controller.k)
        elif reply.rows.whole:
            kept = len(rows)
        else:
            kept = self._certain(rows, merits, by_key=reply.rows.ties_by_key and in_order)
        whole = reply.rows.whole and kept == len(rows)
        self.view.fill(
            rows[:kept], merits[:kept], reply.count - 1, is_whole=whole, seconds=reply.seconds
        )
        self._rows.keep(self.view.first(len(self.view))[0])
        self._gaps_at_fill = self._gaps_at_request
        since, self._since = self._since, {}
        if since and not self._recomputes:
            self._apply(since)
        return True

    def _certain(self, rows: AnyArray, merits: FloatArray, *, by_key: bool) -> int:
        """Return the number of rows before the last, and before those that tie with it.

        Of these the remote may have more, that it has not sent.
        """
        if not len(rows):
            return 0
        tied = (
            merits <= merits[-1] + _NEAR * abs(merits[-1]) if not by_key else merits == merits[-1]
        )
        if by_key:
            last = subject_of(self._rows[rows[-1]], self._key)
            same = [subject_of(self._rows[row], self._key) == last for row in rows.tolist()]
            tied &= np.array(same)
        return len(rows) - int(tied.sum())

    # Certainty ------------------------------------------------------------------------------------

    def _certificate(self, k: int) -> Certificate:
        view = self.view
        if isinstance(self.source, HeldTable) and not self.source.has_heard:
            return Certificate(Status.APPROXIMATE, "the feed has said nothing yet", np.inf)
        if not view.is_filled:
            return Certificate(Status.APPROXIMATE, "the table has not answered yet", np.inf)
        if view.lacks(k):
            message = f"{len(view)} of the best {k} are known, as others have left"
            return Certificate(Status.APPROXIMATE, message, self._merits.score(view.bound))
        stale = self._staleness()
        if stale is None:
            return Certificate(Status.EXACT)
        if self._known_at is not None:
            stale += f"; right as of {self._clock() - self._known_at:.0f} s ago"
        return Certificate(Status.CERTIFIED, stale)

    def _staleness(self) -> str | None:
        """Return why the table may have changed since it was known; None if it is known now."""
        feed = self._feed
        if self._filled_in_look and not isinstance(self.source, HeldTable):
            return None
        if self._recomputes:
            return "the best of an earlier answer"
        if feed is not None and feed.failure is not None:
            return f"the feed does not tell what changes: {feed.failure}"
        return "changes may have been missed" if self._has_missed() else None

    # State ----------------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Return the whole state; a request under way is not part of it."""
        with self._lock:
            settings = {"view": self.view.state(), "rows": self._rows.state()}
            return pack_parts(
                {
                    "state": pack(_KIND, _VERSION, State(settings, {})),
                    "source": self.source.snapshot(),
                }
            )

    def resume(self, snapshot: bytes) -> None:
        """Continue from a state, the first of several alike; what came since has been missed."""
        with reading(), self._lock:
            parts = unpack_parts(snapshot)
            settings = unpack(_KIND, _VERSION, parts["state"]).settings
            self.source.resume(parts["source"])
            if self._is_resumed or self.view.is_filled:
                return
            tuning = self.view.controller.tuning
            self.view.resume(settings["view"])
            self.view.controller.tuning = tuning  # the budget may be another now
            self._rows.hold(settings["rows"])
            self._set_k()
        self._is_resumed = True


def _are_ordered(merits: FloatArray) -> bool:
    """Return True if merits never grow, but for what rounding can do."""
    before, after = merits[:-1], merits[1:]
    with np.errstate(invalid="ignore"):
        return bool(np.all((after <= before) | (after - before <= _NEAR * np.abs(before))))


def _order_ties(merits: FloatArray, subjects: Sequence[str]) -> bool:
    """Return True if equal merits are in the order of their subjects, and none are out of order."""
    places = list(zip((-merits).tolist(), subjects, strict=True))
    return all(before <= after for before, after in pairwise(places))
