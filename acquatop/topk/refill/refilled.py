"""Top-k structure whose holes are refilled from the windows' content, so that answers are exact."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np
import numpy.typing as npt

from acquatop.topk.columns import among, newest_of
from acquatop.topk.contract import (
    NO_ROWS,
    AnyArray,
    Certainty,
    FloatArray,
    IntArray,
    Rows,
    Scoring,
    Top,
    TopK,
)
from acquatop.topk.dropped_bounds import Rank, best_with
from acquatop.topk.order import best
from acquatop.topk.pane_top import Scored, place
from acquatop.topk.refill.content import PaneRows, WindowContent
from acquatop.topk.refill.controller import Controller
from acquatop.topk.refill.lifted_keys import LiftedKeys
from acquatop.topk.snapshot import State, pack, reading, unpack

BoolArray = npt.NDArray[np.bool_]

_KIND, _VERSION = "refilled", 1
_BEFORE_ALL = -(2**63)
_PARTS = ("content", "waiting", "woken", "structure")


class Resizable(TopK, Protocol):
    """Structure that holds ``n`` more than k."""

    n: int

    def resize(self, n: int) -> None:
        """Set the number of rows held beyond k."""


@runtime_checkable
class Accountable(Protocol):
    """Structure that reports its losses, from which the number of certain rows follows."""

    def lost(self, window: int) -> tuple[Any, tuple[float, ...], tuple[float, ...]] | None:
        """Return the best place, with a ``merit``, of a window's lost rows;

        None if there are none.
        """

    def covering(self, window: int) -> Rows:
        """Return the rows held of a window that has been asked for, best first."""

    def settle(self, window: int) -> None:
        """Merge all panes of a window into the rows held: they are complete."""

    def rescore(self, keys: AnyArray) -> Rows:
        """Rescore like ``change``, for a caller that adds again lost rows that may matter now."""

    def merit_at(self, place: int, first: int, last: int) -> float:
        """Return the merit at a place of the rows held that come with a pane or outlive it."""

    def holds_all(self, first: int, last: int) -> bool:
        """Return whether no arrival of a pane has been dropped."""

    def note_lost(
        self,
        first: int,
        last: int,
        merit: float,
        lows: tuple[float, ...],
        highs: tuple[float, ...],
        rank: Rank | None,
    ) -> None:
        """Note that windows have lost a row with a known place."""


Factory = Callable[[int], Resizable]
"""Constructor of an empty structure that holds a given number of rows beyond k."""


@dataclass
class _Loss:
    """A window's permanent losses: their largest merit, and the ranges of their parts if known."""

    merit: float
    lows: tuple[float, ...] = ()
    highs: tuple[float, ...] = ()


class Refilled:
    """Exact answers of a structure with holes: it is rebuilt from the open windows' content.

    If the structure's answer is not certain, it is rebuilt from the content with the present remote
    values, and asked again. So every answer is exact, except for losses noted with
    :meth:`note_lost`. An answer's rows depend neither on n nor on the time of refills. Arrivals
    without a merit are kept too, and join the answers once a change gives them one. Adding them
    again does no harm. The controller chooses the number of rows held beyond k
    (:class:`Controller`).

    With ``in_order`` the structure is rebuilt if a row of a pane comes, or gets its first merit,
    after a window that holds the pane has been asked for. This is for structures that join panes
    one after the other. A structure that inserts rows at any place does not need it.

    A refill costs O(content), plus adding it all to the structure. Without a refill, an arrival
    costs a copy of its columns in addition. An arrival older than the rows kept costs a lookup in
    the newer ones. A change of values costs a lookup in the rows without a merit; without
    ``in_order`` also a pass over the rows held, and a lookup in the content. Memory: the content of
    all open windows (:class:`WindowContent`), and a copy of the rows without a merit.
    """

    def __init__(
        self,
        factory: Factory,
        scoring: Scoring,
        controller: Controller,
        *,
        distinct: bool = False,
        in_order: bool = True,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.controller = controller
        self.rejected = 0
        self.refills = 0
        """Number of rebuilds of the structure."""
        self._factory = factory
        self._scoring = scoring
        self._distinct = distinct
        self._in_order = in_order
        self._clock = clock
        self._structure = factory(controller.n)
        if self._structure.k != controller.k:
            raise ValueError(
                f"the structure's k is {self._structure.k}, the controller's {controller.k}"
            )
        # Looking at all its methods takes time, and all structures of the factory are alike.
        self._is_accountable = isinstance(self._structure, Accountable)
        self._content = WindowContent(distinct=distinct)
        self._waiting = WindowContent(distinct=True)
        self._woken = WindowContent(distinct=True)
        self._losses: dict[int, _Loss] = {}
        self._current = _BEFORE_ALL
        self._asked = _BEFORE_ALL
        self._is_stale = False

    @property
    def k(self) -> int:
        """Largest number of rows in an answer."""
        return self.controller.k

    @property
    def n(self) -> int:
        """Number of rows that the structure holds at present beyond k."""
        return self._structure.n

    @property
    def updates(self) -> float:
        """Number of updates that the controller counts since the last refill."""
        return self.controller.updates

    def __len__(self) -> int:
        return len(self._structure)

    def held(self) -> Rows:
        """Return all rows that the structure holds, best first. The number depends on n."""
        return self._structure.held()

    def keys(self) -> set[Any]:
        """Return the keys of all rows in the open windows. O(content)."""
        return {key for pane in self._content.panes() for key in pane.rows.keys.tolist()}

    # Arrivals and changes -----------------------------------------------------------------------

    def add(self, first: int, last: int, arrivals: Rows) -> IntArray:
        """Add arrivals of windows ``first`` to ``last``; return the positions of the rejected."""
        if first > last or not len(arrivals):
            return np.empty(0, dtype=np.int64)
        if last < self._current:
            raise ValueError(
                f"the windows {first} to {last} are closed: note_lost tells the others of a loss"
            )
        started = self._clock()
        if self._is_plain(first):
            self._content.append(first, last, arrivals)
            rejected = self._structure.add(first, last, arrivals)
            self._waiting.append(first, last, arrivals.take(rejected))
            self.rejected += len(rejected)
            self.controller.updated(len(arrivals), self._clock() - started)
            return rejected
        new = self._new(first, last, arrivals)
        fresh = arrivals if len(new) == len(arrivals) else arrivals.take(new)
        goes_on = self._goes_on(first, last, fresh)
        self._content.append(first, last, fresh)
        passed = fresh if goes_on.all() else fresh.take(np.flatnonzero(goes_on))
        without = np.zeros(len(arrivals), dtype=bool)
        without[new[goes_on][self._structure.add(first, last, passed)]] = True
        if len(passed) < len(arrivals):
            apart = np.setdiff1d(np.arange(len(arrivals)), new[goes_on])
            without[apart] = np.isnan(self._merits(arrivals.take(apart)))
        self._wait(first, last, fresh, without[new])
        rejected = np.flatnonzero(without)
        self.rejected += len(rejected)
        self.controller.updated(len(arrivals), self._clock() - started)
        return rejected

    def change(self, keys: AnyArray) -> Rows:
        """Rescore rows of keys whose remote values changed; return those now without a merit.

        Only rows that were held are returned. They are kept, and a later change may bring them
        back.
        """
        started = self._clock()
        structure = self._accountable()
        if structure is not None and not self._in_order:
            lost = structure.rescore(keys)
            self._wake(keys)
            self._bring_back(keys, structure)
        else:
            lost = self._structure.change(keys)
            self._wake(keys)
        for pane in self._content.find(lost) if len(lost) else ():
            self._waiting.append(pane.first, pane.last, pane.rows)
        self._raise_losses(keys)
        self.controller.updated(len(keys), self._clock() - started)
        return lost

    def remove(self, identities: AnyArray) -> None:
        """Remove rows that are no longer solutions."""
        started = self._clock()
        for content in (self._content, self._waiting, self._woken):
            content.remove(identities)
        self._structure.remove(identities)
        self.controller.updated(len(identities), self._clock() - started)

    def note_lost(
        self,
        first: int,
        last: int,
        merit: float = math.inf,
        lows: tuple[float, ...] = (),
        highs: tuple[float, ...] = (),
    ) -> None:
        """Note that windows have lost a row that never came here, worth ``merit`` at most for now.

        It cannot be refilled. ``lows`` and ``highs`` are the ranges of its parts; they bound its
        merit after changes of values. Without them it is assumed to keep its merit. A loss that may
        have replaced another row must be noted without a limit to its merit: nothing is certain
        then.
        """
        for window in range(max(first, self._current), last + 1):
            loss = self._losses.get(window)
            if loss is None:
                self._losses[window] = _Loss(merit, lows, highs)
                continue
            loss.merit = max(loss.merit, merit)
            loss.lows = (
                tuple(map(min, loss.lows, lows)) if loss.lows and lows else loss.lows or lows
            )
            loss.highs = (
                tuple(map(max, loss.highs, highs)) if loss.highs and highs else loss.highs or highs
            )

    # Answers ------------------------------------------------------------------------------------

    def settle(self, window: int) -> None:
        """Note that all panes of a window are complete."""
        structure = self._accountable()
        if structure is not None:
            structure.settle(window)

    def lost(self, window: int) -> tuple[Any, tuple[float, ...], tuple[float, ...]] | None:
        """Return the best place, and the ranges of parts, of rows that the structure lacks.

        None if there are none.
        """
        structure = self._accountable()
        return None if structure is None else structure.lost(window)

    def covering(self, window: int) -> Rows:
        """Return the structure's rows of a window that has been asked for, best first."""
        structure = self._accountable()
        return NO_ROWS if structure is None else structure.covering(window)

    def top(self, window: int) -> Top:
        """Return the best k of a complete window. Ask for windows oldest first."""
        self._asked = max(self._asked, window)
        answer = None if self._is_stale else self._structure.top(window)
        if answer is None or answer.certainty is not Certainty.EXACT:
            answer = self._refill(window, has_hole=answer is not None)
        else:
            held = self.controller.held(self._certain(window), len(self._content))
            if held < self.k + self._structure.n:
                self._structure.resize(held - self.k)
        return self._with_losses(answer)

    def close_before(self, window: int) -> None:
        """Close all windows before this one."""
        self._current = max(self._current, window)
        self._structure.close_before(window)
        for content in (self._content, self._waiting, self._woken):
            content.close_before(window)
        for closed in [index for index in self._losses if index < window]:
            del self._losses[closed]

    # Internals ----------------------------------------------------------------------------------

    def _accountable(self) -> Accountable | None:
        """Return the structure if it reports its losses."""
        return cast(Accountable, self._structure) if self._is_accountable else None

    def _merits(self, rows: Rows) -> FloatArray:
        return self._scoring.merits(rows.keys, rows.parts)

    def _is_plain(self, first: int) -> bool:
        """Return whether arrivals of a pane cannot be late, replace others, or have come before."""
        return (
            self._distinct
            and not self._is_late(first)
            and not len(self._waiting)
            and not len(self._woken)
        )

    def _is_late(self, first: int) -> bool:
        return first <= self._asked and (self._in_order or self._asked >= self._current)

    def _new(self, first: int, last: int, arrivals: Rows) -> IntArray:
        """Return the positions of new arrivals.

        Those without a merit may have been added before.
        """
        is_new = np.ones(len(arrivals), dtype=bool)
        # If identities come again, a repeated arrival replaces itself.
        for content in (self._waiting, self._woken) if self._distinct else ():
            for pane in content.panes() if len(content) else ():
                if (pane.first, pane.last) == (first, last):
                    is_new &= ~among(arrivals.identities, pane.rows.identities)
        return np.flatnonzero(is_new)

    def _goes_on(self, first: int, last: int, arrivals: Rows) -> BoolArray:
        """Return a mask of the arrivals that the structure can take: those that no newer one hides.

        The structure may have dropped the newer ones. If an arrival is hidden in some windows only,
        or comes too late for its place, the structure is rebuilt before it is asked again.
        """
        until = self._content.hidden_from(first, arrivals)
        is_visible = until > max(first, self._current)
        goes_on = is_visible & (until > last) & (not self._is_late(first))
        self._is_stale |= bool((is_visible & ~goes_on).any())
        return goes_on

    def _wait(self, first: int, last: int, arrivals: Rows, without: BoolArray) -> None:
        """Let arrivals without a merit wait for one, unless a newer one of the batch hides them."""
        if not self._distinct:
            self._waiting.take_out(first, last, arrivals)
        if without.any():
            if not self._distinct:
                without = without & _are_at(
                    newest_of(arrivals.identities, arrivals.times), len(arrivals)
                )
            self._waiting.append(first, last, arrivals.take(np.flatnonzero(without)))

    def _wake(self, keys: AnyArray) -> None:
        """Add rows to the structure that waited for a merit and now have one."""
        for pane in self._waiting.with_keys(keys) if len(self._waiting) else ():
            has_merit = ~np.isnan(self._merits(pane.rows))
            if not has_merit.any():
                continue
            woken = pane.rows.take(np.flatnonzero(has_merit))
            self._waiting.take_out(pane.first, pane.last, woken)
            if self._distinct:
                self._woken.append(pane.first, pane.last, woken)
            goes_on = self._goes_on(pane.first, pane.last, woken)
            if goes_on.any():
                self._structure.add(pane.first, pane.last, woken.take(np.flatnonzero(goes_on)))

    def _bring_back(self, keys: AnyArray, structure: Accountable) -> None:
        """Add rows of some keys that the structure lacks and that may matter now."""
        ranges = self._content.ranges()
        if ranges is None:
            return
        lifted = LiftedKeys(self._scoring, keys, *ranges)
        for first, last in self._content.spans():
            if structure.holds_all(first, last):
                continue
            bar = structure.merit_at(self.k + self._structure.n, first, last)
            last_shown = structure.merit_at(self.k, first, last)
            some, bound = lifted.above(bar, limit=last_shown)
            pane = PaneRows(first, last, self._content.newest_with_keys((first, last), some))
            merits = self._merits(pane.rows)
            # Rows below the bar are dominated: a bound on their merits is all that matters.
            below = merits[merits < bar].max(initial=bound)
            if below > -math.inf:
                structure.note_lost(first, last, below, (), (), best_with(below))
            self._add_again(pane, merits, (merits >= bar).nonzero()[0], structure)

    def _add_again(
        self, pane: PaneRows, merits: FloatArray, at: IntArray, structure: Accountable
    ) -> None:
        """Add a pane's best of some rows, but for those that are held."""
        if not len(at):
            return
        capacity = self.k + self._structure.n
        if len(at) > capacity:
            rows = pane.rows.take(at)
            order = best(capacity + 1, merits[at], rows.times, rows.identities)
            rank = place(Scored(merits[at], rows), int(order[-1]))
            structure.note_lost(pane.first, pane.last, math.inf, (), (), rank)
            at = at[order[:capacity]]
        rows = pane.rows.take(at)
        back = rows.take((~self._are_held(rows)).nonzero()[0])
        goes_on = self._goes_on(pane.first, pane.last, back)
        self._structure.add(pane.first, pane.last, back.take(goes_on.nonzero()[0]))

    def _are_held(self, rows: Rows) -> BoolArray:
        """Return a mask of the rows that the structure holds."""
        mine = self._structure.held()
        mine = mine.take(among(mine.identities, rows.identities).nonzero()[0])
        held = set(zip(mine.identities.tolist(), mine.times.tolist(), strict=True))
        names = zip(rows.identities.tolist(), rows.times.tolist(), strict=True)
        return np.fromiter((name in held for name in names), dtype=bool, count=len(rows))

    def _refill(self, window: int, *, has_hole: bool) -> Top:
        started = self._clock()
        kmax = (
            self.controller.needs_refill(len(self._content)) if has_hole else self.controller.kmax
        )
        self._rebuild(kmax - self.k)
        answer = self._structure.top(window)
        if answer.certainty is not Certainty.EXACT:
            answer = self._from_content(window)
        self.refills += 1
        if has_hole:
            self.controller.refilled(kmax, self._clock() - started)
        else:
            self.controller.rebuilt(self._clock() - started)
        return answer

    def _rebuild(self, n: int) -> None:
        """Rebuild the structure pane by pane in order, as if nothing had come before."""
        structure = self._factory(n)
        structure.close_before(self._current)
        waited = list(self._waiting.panes()) if self._distinct else []
        waiting = WindowContent(distinct=True)
        waiting.close_before(self._current)
        for pane in self._content.newest():
            rejected = structure.add(pane.first, pane.last, pane.rows)
            waiting.append(pane.first, pane.last, pane.rows.take(rejected))
        for pane in waited:
            self._woken.append(pane.first, pane.last, pane.rows)
        self._structure, self._waiting, self._is_stale = structure, waiting, False

    def _from_content(self, window: int) -> Top:
        """Answer without the structure, if it is uncertain even right after a refill."""
        panes = [
            _with_merits(pane, self._merits(pane.rows)) for pane in self._content.newest(window)
        ]
        panes = [(rows, merits) for rows, merits in panes if len(rows)]
        if not panes:
            return replace(
                self._structure.top(window), certainty=Certainty.EXACT, reason=None, bound=None
            )
        rows, merits = (
            Rows.together(rows for rows, _ in panes),
            np.concatenate([merits for _, merits in panes]),
        )
        at = best(self.k, merits, rows.times, rows.identities)
        return Top(window, rows.take(at), merits[at])

    def _certain(self, window: int) -> int:
        """Return how many of a window's best are certain; at least k if there are as many.

        A structure that does not report losses is taken to be certain of all its rows: then n is
        halved while no refill happens.
        """
        structure = self._accountable()
        if structure is None:
            return self.controller.kmax
        rows, lost = structure.covering(window), structure.lost(window)
        count = min(len(rows), self.controller.kmax)
        if lost is None or count <= self.k:
            return count
        return max(self.k, int((self._merits(rows.take(slice(0, count))) > lost[0].merit).sum()))

    def _raise_losses(self, keys: AnyArray) -> None:
        for loss in self._losses.values():
            if loss.lows and loss.merit < math.inf:
                loss.merit = max(loss.merit, self._scoring.reach(loss.lows, loss.highs, keys))

    def _with_losses(self, answer: Top) -> Top:
        loss = self._losses.get(answer.window)
        if loss is None or loss.merit == -math.inf:
            return answer
        if (
            loss.merit < math.inf
            and len(answer) == self.k
            and float(answer.merits[-1]) > loss.merit
        ):
            return answer
        reason = "a solution that came too late could belong here"
        return replace(answer, certainty=Certainty.APPROXIMATE, reason=reason, bound=loss.merit)

    # Snapshots ----------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Return the complete state as bytes, including the controller's."""
        settings = {
            "controller": self.controller.state(),
            "rejected": self.rejected,
            "refills": self.refills,
            "distinct": self._distinct,
            "in order": self._in_order,
            "current": self._current,
            "asked": self._asked,
            "stale": self._is_stale,
            "losses": [
                [window, each.merit, each.lows, each.highs] for window, each in self._losses.items()
            ],
        }
        tables = {
            name: {"bytes": np.frombuffer(part.snapshot(), np.uint8)}
            for name, part in zip(_PARTS, self._parts(), strict=True)
        }
        return pack(_KIND, _VERSION, State(settings, tables))

    def resume(self, snapshot: bytes) -> None:
        """Continue from a snapshot, before anything is added.

        Raise ``SnapshotError`` for any other bytes.
        """
        state = unpack(_KIND, _VERSION, snapshot)
        settings = state.settings
        with reading():
            self.controller.resume(settings["controller"])
            self._distinct, self._in_order = settings["distinct"], settings["in order"]
            self.rejected, self.refills = int(settings["rejected"]), int(settings["refills"])
            self._current, self._asked = int(settings["current"]), int(settings["asked"])
            self._is_stale = bool(settings["stale"])
            self._losses = {
                window: _Loss(merit, tuple(lows), tuple(highs))
                for window, merit, lows, highs in settings["losses"]
            }
            for name, part in zip(_PARTS, self._parts(), strict=True):
                part.resume(state.tables[name]["bytes"].tobytes())

    def _parts(self) -> tuple[WindowContent | Resizable, ...]:
        return self._content, self._waiting, self._woken, self._structure

    def _check(self) -> None:
        """Assert every invariant."""
        for part in (*self._parts(), self.controller):
            part._check()
        assert self._structure.n == self.controller.n
        assert all(window >= self._current for window in self._losses)
        kept = _names(self._content.panes())
        assert _names(self._waiting.panes()) <= kept, "what waits is not in the content"
        assert _names(self._woken.panes()) <= kept, "what was woken is not in the content"


def _are_at(positions: IntArray, count: int) -> BoolArray:
    """Return a column that is true at some positions."""
    column = np.zeros(count, dtype=bool)
    column[positions] = True
    return column


def _with_merits(pane: PaneRows, merits: FloatArray) -> tuple[Rows, FloatArray]:
    at = np.flatnonzero(~np.isnan(merits))
    return pane.rows.take(at), merits[at]


def _names(panes: Iterable[PaneRows]) -> set[tuple[int, int, Any, int]]:
    return {
        (pane.first, pane.last, *name)
        for pane in panes
        for name in zip(pane.rows.identities.tolist(), pane.rows.times.tolist(), strict=True)
    }
