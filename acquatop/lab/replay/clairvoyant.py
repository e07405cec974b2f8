"""Clairvoyant: knows stream and remote in advance, and spends the budget where it helps most.

Not a policy, but a yardstick: what a budget could buy if everything were known.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

import numpy as np
import numpy.typing as npt

from acquatop.errors import UserError
from acquatop.lab.replay.oracle import Oracle, WindowRows
from acquatop.lab.replay.remote_history import RemoteState
from acquatop.lab.replay.replay import Given
from acquatop.lab.replay.replayed_replicas import standing_still
from acquatop.lab.replay.right_join import OneSolution
from acquatop.lab.replay.setting import Setting, budget_of
from acquatop.lab.replay.trace import Trace
from acquatop.topk.contract import FloatArray, IntArray
from replica.clocks import EventTime
from replica.spending.account import Account
from replica.spending.quota import Quota

BoolArray = npt.NDArray[np.bool_]

AHEAD = 4
"""Number of later answers that count, each with ``_LATER`` times the weight of the one before."""

_LATER = 0.6
_NOTHING = 1e-9
_MOST, _MOST_IN_PAIRS = 256, 40
"""Most keys that are considered for a refresh, and most that are tried in pairs."""


class Clairvoyant:
    """Answers by a replica whose refreshes are chosen with knowledge of all that will come.

    In each evaluation refreshes are chosen one at a time, each time the one that improves this
    answer and the next ones most, as if nothing were refreshed later. If none helps alone, two are
    chosen that help together, or else all that are wrong among the best. What helps nothing is left
    unspent, for the bank. Choices are greedy, so the optimum may be better. The window's whole
    content is kept: N does not matter. The budget, its bank and the limits over time hold; the
    capacity of the replica does not.
    """

    def __init__(self, trace: Trace, oracle: Oracle) -> None:
        if not trace.has_one_solution:
            raise UserError(
                "the clairvoyant knows remotes with one solution per key, one of them in a query\n"
                "  hint: leave it out of the policies"
            )
        self._trace = trace
        self._oracle = oracle
        (history,) = trace.histories
        found = {key: place for place, key in enumerate(history.keys)}
        self._places = np.array([found.get(key, -1) for key in oracle.keys], dtype=np.int64)

    def answers(self, setting: Setting) -> Iterator[Given]:
        """Yield the answers in a setting, window by window."""
        assert self._trace.bound.service is not None
        service, now = self._trace.bound.service, EventTime()
        budget = budget_of(service, setting)
        account = Account(
            budget,
            quota=Quota(service.limits, time=now),
            bank=service.refresh.bank,
            clock=standing_still,
        )
        states = self._states()
        replica = next(states)
        if not service.load:
            replica.present[:] = False
        first, until = self._trace.bound.plan.offset, self._trace.bound.plan.offset + setting.k
        for coming in self._coming(states):
            due = coming[0]
            now.show(due.closes_ms)
            account.begin(due.closes_ms)
            answers = [
                self._answer(each, replica, due.remote, _LATER**ahead, slice(first, until))
                for ahead, each in enumerate(coming)
            ]
            chosen = _Choice(answers).best(account.left.items)
            asked, requests = _paid(account, chosen, service.block_size)
            _copy(due.remote, replica, asked)
            given = self._oracle.answer(
                due.window, due.closes_ms, due.content, OneSolution(self._places, replica)
            )
            yield Given(
                due.window,
                due.closes_ms,
                given.identities[first:until],
                given.merits[first:until],
                len(asked),
                requests,
                "approximate",
                float("nan"),
                None,
            )

    def _states(self) -> Iterator[RemoteState]:
        """Yield what the remote has at the start, and at each close."""
        (history,) = self._trace.histories
        bounds = self._trace.bound.windows
        closes = [bounds.bounds(window)[1] for window in self._trace.windows()]
        variables = self._trace.bound.plan.score.remote_variables
        for state in history.states([self._trace.start_ms, *closes], variables):
            numbers = {name: column.copy() for name, column in state.numbers.items()}
            yield RemoteState(state.present.copy(), numbers)

    def _coming(self, states: Iterator[RemoteState]) -> Iterator[Sequence[_Window]]:
        """Yield each window, together with those after it that are looked ahead to."""
        coming: deque[_Window | None] = deque()
        windows = (
            _Window(*each, remote)
            for each, remote in zip(self._oracle.contents(), states, strict=True)
        )
        for window in chain(windows, [None] * AHEAD):
            coming.append(window)
            if len(coming) > AHEAD:
                yield [each for each in coming if each is not None]
                coming.popleft()

    def _answer(
        self,
        window: _Window,
        replica: RemoteState,
        fetched: RemoteState,
        weight: float,
        shown: slice,
    ) -> _Answer:
        """Return a window's answer, as far as refreshes with what is ``fetched`` may change it."""
        content = window.content
        rows = self._oracle.tie_order(content)
        merits, fresh, true = (
            self._merits(content, state)[rows] for state in (replica, fetched, window.remote)
        )
        right = np.argsort(-true, kind="stable")[: shown.stop][shown]
        right = right[true[right] > -np.inf]
        relevance = np.zeros(len(rows))
        relevance[right] = 2.0 ** -np.arange(len(right)) - 2.0 ** -len(right)
        is_right = np.zeros(len(rows))
        is_right[right] = 1 / max(1, len(right))
        # Rows that are below enough others whatever is refreshed are never shown.
        least, most = np.minimum(merits, fresh), np.maximum(merits, fresh)
        kept = np.arange(len(rows))
        if len(rows) > shown.stop:
            kept = np.flatnonzero(most >= -np.partition(-least, shown.stop - 1)[shown.stop - 1])
        ideal = float((relevance[right] * _discounts(len(right))).sum())
        return _Answer(
            weight,
            shown,
            self._places[content.keys[rows[kept]]],
            merits[kept],
            fresh[kept],
            relevance[kept] / (ideal or 1.0),
            is_right[kept],
        )

    def _merits(self, content: WindowRows, state: RemoteState) -> FloatArray:
        """Return the merit of each row by what a remote or replica has; minus infinity if none."""
        joined = OneSolution(self._places, state).results(content.keys)
        merits = np.full(len(content.keys), -np.inf)
        of_joined = self._oracle.merits(content, joined)
        merits[joined.rows] = np.where(np.isnan(of_joined), -np.inf, of_joined)
        return merits


@dataclass(frozen=True)
class _Window:
    window: int
    closes_ms: int
    content: WindowRows
    remote: RemoteState
    """The remote at the close."""


@dataclass(frozen=True)
class _Answer:
    """One answer's rows, those first that win ties: their keys' places, and merits by replica.

    ``fresh`` are the merits after a refresh, ``relevance`` and ``is_right`` what a row contributes
    to nDCG, before the discount, and to precision.
    """

    weight: float
    shown: slice
    places: IntArray
    merits: FloatArray
    fresh: FloatArray
    relevance: FloatArray
    is_right: FloatArray

    @cached_property
    def changed(self) -> IntArray:
        """Places whose refresh may change this answer, the best first."""
        rows = np.flatnonzero(self.merits != self.fresh)
        order = np.argsort(-np.maximum(self.merits, self.fresh)[rows], kind="stable")
        return self.places[rows[order]]

    def worth(self, tried: BoolArray) -> FloatArray:
        """Return nDCG and precision, added, after each row of refreshes, marked by place."""
        merits = np.where(tried[:, self.places], self.fresh, self.merits)
        top = np.argsort(-merits, axis=1, kind="stable")[:, self.shown]
        gained = self.relevance[top] @ _discounts(top.shape[1]) + self.is_right[top].sum(axis=1)
        return np.asarray(self.weight * gained)


class _Choice:
    """Choice of the refreshes that improve some answers most."""

    def __init__(self, answers: Sequence[_Answer]) -> None:
        changed = np.concatenate([each.changed for each in answers])
        _, firsts = np.unique(changed, return_index=True)
        self._places = changed[np.sort(firsts)][:_MOST]
        at = {place: number for number, place in enumerate(self._places.tolist())}
        last = len(at)
        self._answers = [
            replace(each, places=np.array([at.get(p, last) for p in each.places.tolist()], int))
            for each in answers
        ]
        self._chosen = np.zeros(last + 1, dtype=np.bool_)
        """Marks of those chosen; the last stands for all that cannot be."""

    def best(self, most: int) -> IntArray:
        """Return the places to refresh, at most so many, the best first.

        What only the first answer gains from comes last: it may cost the others more, but these
        have budgets of their own.
        """
        order: list[int] = []
        for answers in (self._answers, self._answers[:1]):
            while len(order) < most and (more := self._next(answers, most - len(order))):
                self._chosen[more] = True
                order += more
        return self._places[order]

    def _next(self, answers: Sequence[_Answer], most: int) -> list[int]:
        """Return the next to choose: one, two, or all wrong ones of the best; or none."""
        left = self._left(answers)
        now = _sum(answers, self._chosen[None])[0] + _NOTHING
        sets = [left[:, None]]
        # Of two that help a later answer together, one may be bought now and the other then.
        if 1 < len(left) <= _MOST_IN_PAIRS and (most > 1 or len(answers) > 1):
            sets.append(left[np.column_stack(np.triu_indices(len(left), 1))])
        sets.append(left[None, :most])
        for several in sets:
            if not several.size:
                continue
            tried = np.tile(self._chosen, (len(several), 1))
            np.put_along_axis(tried, several, True, axis=1)
            worth = _sum(answers, tried)
            best = int(np.argmax(worth))
            if worth[best] > now:
                chosen: list[int] = several[best, :most].tolist()
                return chosen
        return []

    def _left(self, answers: Sequence[_Answer]) -> IntArray:
        """Return those not chosen yet that may change some answers, the best first."""
        matters = np.zeros(len(self._chosen), dtype=np.bool_)
        for each in answers:
            matters[each.places[each.merits != each.fresh]] = True
        return np.flatnonzero((matters & ~self._chosen)[:-1])


def _sum(answers: Sequence[_Answer], tried: BoolArray) -> FloatArray:
    return np.asarray(sum((each.worth(tried) for each in answers), np.zeros(len(tried))))


def _paid(account: Account, places: IntArray, block: int) -> tuple[IntArray, int]:
    """Return the first places that the account pays for, and the number of requests."""
    requests = 0
    for at in range(0, len(places), block):
        if not account.take(len(places[at : at + block]), 1):
            return places[:at], requests
        requests += 1
    return places, requests


def _copy(source: RemoteState, target: RemoteState, places: IntArray) -> None:
    target.present[places] = source.present[places]
    for name, column in source.numbers.items():
        target.numbers[name][places] = column[places]


def _discounts(count: int) -> FloatArray:
    return np.asarray(1 / np.log2(np.arange(count) + 2))
