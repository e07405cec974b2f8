"""Answers of one query over windows that move with each element, from the changes of its best."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Protocol

import numpy as np
from rdflib.term import Identifier

from acquatop.answer.answer import Answer, Counts, Row
from acquatop.answer.assembly import Assembly, ClosedWindow
from acquatop.answer.certificate import Certificate
from acquatop.plan.bound import BoundQuery
from acquatop.query.formed import formed
from acquatop.query.schedule.every_position import EveryPosition
from acquatop.query.shown_rows import RankedSolution, ShownRows
from acquatop.topk.contract import AnyArray, IntArray
from acquatop.topk.sliding.contract import NONE, Changes
from acquatop.windows import Windows
from replica.clocks import Clock


class ElementFacts(Protocol):
    """Facts about elements, by their positions."""

    def terms(self, position: int) -> Mapping[str, str]:
        """Return the N-Triples terms of a solution that may be shown, by variable."""

    def unscored(self, opens: int, closes: int) -> int:
        """Return the number of a window's solutions without a score."""


class WindowFacts(ElementFacts, Protocol):
    """Facts about elements and about a query's windows."""

    def certificate(self, closes: int, opens: int) -> Certificate:
        """Return the certificate of a window's answer, once for each answer."""


class ElementAnswers:
    """Best of one query's windows, as they change, and its answers; times are positions.

    RSTREAM answers every window, ISTREAM and DSTREAM only changes. NOW() is the ``instant`` of a
    position. An answer costs the ranking of k rows if the best have changed.
    """

    def __init__(
        self,
        bound: BoundQuery,
        windows: Windows,
        *,
        instant: Callable[[int], int],
        clock: Clock,
        wall_clock: Clock,
    ) -> None:
        self.schedule = EveryPosition(windows)
        self._bound = bound
        self._windows = windows
        self._instant = instant
        self._rendering = ShownRows(bound.plan)
        self._assembly = Assembly(
            bound.name,
            bound.plan.output,
            score_variable=bound.plan.score.variable,
            clock=clock,
            wall_clock=wall_clock,
        )
        self._changes: deque[tuple[int, int, float, int]] = deque()
        """Unanswered changes of the best: (after element, entered, its merit, left)."""
        self._best: dict[int, float] = {}
        self._solutions: dict[int, tuple[Mapping[str, Identifier], float]] = {}
        """Bindings shown for each of the best, and its score."""
        self._shown: tuple[Row, ...] | None = None

    def score_of(self, merit: float) -> float:
        """Return the score of a merit."""
        return self._rendering.score_of(merit)

    def note(self, changes: Changes, base: int) -> None:
        """Note changes, of a structure whose first event is the element at a position."""
        entered, left = (
            np.where(each == NONE, NONE, each + base) for each in (changes.entered, changes.left)
        )
        columns = (changes.after + base, entered, changes.merits, left)
        self._changes.extend(zip(*(each.tolist() for each in columns), strict=True))

    # Answers --------------------------------------------------------------------------------------

    def until(self, position: int, due_at: float, facts: WindowFacts) -> Iterator[Answer]:
        """Yield the answers of all windows that close up to a position, oldest first."""
        for window in self._to_answer(self.schedule.due(position)):
            opens, closes = self._windows.bounds(window)
            has_changed = self._has_changed(closes) or self._rendering.depend_on_time
            if has_changed or self._shown is None:
                self._shown = tuple(self._rows(self._instant(closes), facts))
            closed = ClosedWindow(window, opens, closes, due_at)
            result = formed(self._bound.plan, self._shown)
            counts = Counts(unscored=facts.unscored(opens, closes))
            yield self._assembly.answer(closed, result, facts.certificate(closes, opens), counts)

    def _to_answer(self, due: Iterable[range]) -> Iterator[int]:
        """Yield the windows to answer of those that are due: all, or those with changes."""
        for windows in due:
            if self._bound.plan.output == "RSTREAM":
                yield from windows
            elif self._changes:
                moments = np.array([after for after, *_ in self._changes], dtype=np.int64)
                changed = np.unique(self._windows.spans(moments)[0])
                yield from changed[changed < windows.stop].tolist()

    def _has_changed(self, closes: int) -> bool:
        """Update the best to those of a window; return True if they have changed."""
        has_changed = False
        while self._changes and self._changes[0][0] <= closes:
            _, entered, merit, left = self._changes.popleft()
            if left != NONE:
                del self._best[left]
            if entered != NONE:
                self._best[entered] = merit
            has_changed = True
        return has_changed

    def _rows(self, at_ms: int, facts: ElementFacts) -> Iterator[Row]:
        """Yield the best, without those before the offset."""
        ranked = sorted(self._best.items(), key=lambda each: (each[1], each[0]), reverse=True)
        known = {} if self._rendering.depend_on_time else self._solutions
        missing = [
            (position, self.score_of(merit)) for position, merit in ranked if position not in known
        ]
        solutions = [RankedSolution(facts.terms(position), score) for position, score in missing]
        made = zip(missing, self._rendering.bindings(solutions, at_ms), strict=True)
        found = {position: (bindings, score) for (position, score), bindings in made}
        self._solutions = {
            position: found.get(position) or known[position] for position, _ in ranked
        }
        for rank, (position, _) in enumerate(ranked[self._bound.plan.offset :], start=1):
            bindings, score = self._solutions[position]
            yield Row(rank, bindings, score, None, None)

    # Snapshots ------------------------------------------------------------------------------------

    def tables(self) -> dict[str, dict[str, AnyArray]]:
        """Return the best, and their changes that are not answered yet, as columns."""
        after, entered, merits, left = (
            zip(*self._changes, strict=True) if self._changes else ((), (), (), ())
        )
        return {
            "best": {
                "positions": whole(self._best),
                "merits": np.array([*self._best.values()], dtype=np.float64),
            },
            "changes": {
                "after": whole(after),
                "entered": whole(entered),
                "merits": np.array(merits, dtype=np.float64),
                "left": whole(left),
            },
        }

    def output(self) -> bytes:
        """Return the state of the answers that were given."""
        return self._assembly.snapshot()

    def resume(
        self, window: int, tables: Mapping[str, Mapping[str, AnyArray]], output: bytes
    ) -> None:
        """Continue with a window, from what :meth:`tables` and :meth:`output` returned."""
        self.schedule.resume(window)
        best, changes = tables["best"], tables["changes"]
        self._best = dict(zip(best["positions"].tolist(), best["merits"].tolist(), strict=True))
        columns = (changes[name].tolist() for name in ("after", "entered", "merits", "left"))
        self._changes = deque(zip(*columns, strict=True))
        self._assembly.resume(output)


def whole(numbers: Iterable[int]) -> IntArray:
    """Return whole numbers as a column."""
    return np.array([*numbers], dtype=np.int64)


def count_between(positions: IntArray, opens: int, closes: int) -> int:
    """Return the number of positions in a window, of a column in ascending order.

    >>> count_between(np.array([1, 3, 5, 9]), 1, 5)
    2
    """
    return int(np.searchsorted(positions, closes, "right")) - int(
        np.searchsorted(positions, opens, "right")
    )
