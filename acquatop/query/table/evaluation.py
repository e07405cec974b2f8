"""Evaluation of a query for the top k of a table, at a pace or when the answer changes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from acquatop.answer.answer import Answer
from acquatop.answer.unanswered import Unanswered
from acquatop.answer.window_lists import Listed, WindowLists
from acquatop.plan.bound import BoundTable
from acquatop.query.contract import Sizes
from acquatop.query.schedule.windows import Due
from acquatop.query.sparql.evaluation import SparqlEvaluation
from acquatop.query.table.merits import values_of
from acquatop.query.table.shared_table import SharedTable
from acquatop.refresh.service_join import ReplicaJoin
from acquatop.refresh.service_refresh import RefreshResult
from acquatop.topk.snapshot import pack_parts, unpack_parts
from replica.budget import Budget, Spending
from replica.clocks import Clock
from rspql.plan import TableRanking

_NONE = ""
"""Note of an answer before the first one."""


class TableAnswers:
    """Best rows of a table in place of the answers of its SERVICE."""

    joins: Sequence[ReplicaJoin] = ()

    def __init__(self, ranking: TableRanking, table: SharedTable) -> None:
        self._ranking = ranking
        self._table = table
        self._carried = Spending()

    @property
    def budget(self) -> Budget:
        """Budget of one look at the table."""
        return self._table.source.budget

    def refresh(
        self, at_ms: int, results: Mapping[str, Sequence[str]], longest_wait: float
    ) -> RefreshResult:
        """Return the best k rows at a time."""
        look = self._table.look(at_ms, longest_wait)
        rows, certificate = self._table.best(self._ranking.k)
        spending, self._carried = self._carried + look.spending, Spending()
        return RefreshResult(
            answers={self._ranking.pattern: values_of(self._ranking.variables, rows)},
            spent=spending,
            failure=look.failure,
            seconds=spending.seconds,
            rejected=look.rejected,
            certificate=certificate,
        )

    def carry(self, spending: Spending) -> None:
        """Let the next answer tell what one that is not given has spent."""
        self._carried += spending

    def snapshot(self) -> bytes:
        """Return the state of the table."""
        return self._table.snapshot()

    def resume(self, snapshot: bytes) -> None:
        """Restore the state of the table."""
        self._table.resume(snapshot)


class TableEvaluation(SparqlEvaluation):
    """Query that is answered by the best rows of a table, of which an engine makes its rows.

    Times that have passed without a look, as while nothing ran, have no answers. If it is answered
    on change, an answer that shows nothing new is left out.
    """

    def __init__(
        self,
        bound: BoundTable,
        table: SharedTable,
        leave: Callable[[], None],
        *,
        clock: Clock = time.monotonic,
        wall_clock: Clock = time.time,
    ) -> None:
        self._table = table
        self._leave = leave
        self._k = bound.ranking.k
        self._on_change = bound.ranking.on_change
        self._shown = _NONE
        self._rows = TableAnswers(bound.ranking, table)
        super().__init__(bound, clock=clock, wall_clock=wall_clock, services=self._rows)

    def _due_answers(
        self, dues: Iterator[Due], due_at: float, longest_wait: float
    ) -> Iterator[Answer | Unanswered]:
        last: Due | None = None
        for due in dues:
            self._pass_by(due)
            last = last if due.is_skipped else due
        if last is None:
            return
        answer = self._answer(last, due_at, longest_wait)
        if self._is_news(answer):
            yield answer
        elif isinstance(answer, Answer):
            self._rows.carry(answer.spending)

    def _is_news(self, answer: Answer | Unanswered) -> bool:
        """Return True if an answer is to be given, and note what it shows."""
        if not self._on_change or isinstance(answer, Unanswered):
            return True
        before, self._shown = self._shown, _shown_by(answer)
        return bool(answer.rows) if self._bound.plan.output != "RSTREAM" else before != self._shown

    def lists(self, name: str) -> Sequence[WindowLists]:
        """Return the best k of the view and the rest of it, as of the last look."""
        shown = self._graphs[0].shown
        if shown is None:
            return ()
        opens_ms, closes_ms = self._graphs[0].cursor.windows.bounds(shown)
        rows = [Listed(closes_ms, score, row) for score, row in self._table.held()]
        return (
            WindowLists(shown, opens_ms, closes_ms, tuple(rows[: self._k]), tuple(rows[self._k :])),
        )

    def sizes(self, name: str) -> Sizes:
        """Return the number of rows in the view."""
        return Sizes(len(self._table.view))

    def snapshot(self) -> bytes:
        """Return the whole state, with the table's."""
        return pack_parts({"whole": super().snapshot(), "shown": self._shown.encode()})

    def resume(self, snapshot: bytes) -> None:
        """Restore a snapshot of the same query."""
        parts = unpack_parts(snapshot)
        self._shown = parts["shown"].decode()
        super().resume(parts["whole"])

    def close(self) -> None:
        """Leave the table: the query is over."""
        super().close()
        self._leave()


def _shown_by(answer: Answer) -> str:
    """Return a text of what an answer shows, and of how far it can be trusted."""
    rows = [sorted((name, term.n3()) for name, term in row.bindings.items()) for row in answer.rows]
    return repr((answer.status.value, rows))
