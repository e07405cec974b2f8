"""Right rows of every close, by a SPARQL engine over whole windows and all that the remotes had."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from acquatop.answer.answer import Answer
from acquatop.ingest.terms import to_ast
from acquatop.lab.replay.past_solutions import with_past
from acquatop.lab.replay.row_names import Bindings, named_rows, value_of
from acquatop.lab.replay.row_trace import RowTrace
from acquatop.plan.bound import BoundRemote
from acquatop.query.sparql.evaluation import SparqlEvaluation
from acquatop.refresh.service_join import ReplicaJoin, Row
from acquatop.refresh.service_refresh import RefreshResult
from replica.budget import Budget
from replica.store import Solution
from rspql.ast import Values, Variable


@dataclass(frozen=True)
class RightRows:
    """All rows of a close in the query's order: names, contents, groups, and what ties."""

    closes_ms: int
    names: Sequence[str]
    contents: Sequence[Hashable]
    groups: Sequence[Hashable]
    classes: Sequence[int]
    is_grouped: bool

    def in_favour_of(self, names: Sequence[str]) -> list[int]:
        """Return the rows' positions; of those that tie, some names come first in their order."""
        places = {name: place for place, name in enumerate(names)}
        last = len(places)
        return sorted(
            range(len(self.names)),
            key=lambda row: (self.classes[row], places.get(self.names[row], last)),
        )

    def groups_and_classes(self, rows: Sequence[int]) -> tuple[list[Hashable], list[int]]:
        """Return the group and the class of each of some rows."""
        return [self.groups[row] for row in rows], [self.classes[row] for row in rows]


def right_rows(trace: RowTrace) -> Iterator[RightRows]:
    """Yield the right rows of each close."""
    evaluation = SparqlEvaluation(
        trace.whole,
        clock=_stands_still,
        wall_clock=_stands_still,
        services=_Recorded(trace),
        instant=trace.instant,
    )
    evaluation.join(trace.whole, {})
    for answer in trace.answers(evaluation):
        yield _right(trace, answer)


def _right(trace: RowTrace, answer: Answer) -> RightRows:
    judged = trace.judged
    if judged.is_whole:
        named = named_rows(answer, ())
        same = [0] * len(named)
        names, contents = [each.name for each in named], [each.content for each in named]
        return RightRows(answer.closes_ms, names, contents, same, same, False)
    rows = [row.bindings for row in answer.rows]
    if judged.needs_score:
        rows = [row for row in rows if _has_score(row, judged.keys)]
    named = named_rows(answer, judged.shown, rows)
    return RightRows(
        answer.closes_ms,
        [each.name for each in named],
        [each.content for each in named],
        [tuple(value_of(row.get(name)) for name in judged.per) for row in rows],
        _classes(rows, judged.keys),
        bool(judged.per),
    )


def _has_score(row: Bindings, keys: Sequence[str | None]) -> bool:
    if not keys or keys[0] is None:
        return True
    value = value_of(row.get(keys[0]))
    return value is not None and not (isinstance(value, float) and math.isnan(value))


def _classes(rows: Sequence[Bindings], keys: Sequence[str | None]) -> list[int]:
    """Return the class of each of some ordered rows: those with the same keys tie."""
    classes: list[int] = []
    before: object = None
    for row in rows:
        of_row = (
            object()
            if None in keys
            else tuple(value_of(row.get(name)) for name in keys if name is not None)
        )
        is_new = not classes or of_row != before
        classes.append(classes[-1] + is_new if classes else 0)
        before = of_row
    return classes


class _Recorded:
    """Answers to SERVICE patterns: everything that a recorded remote had."""

    joins: Sequence[ReplicaJoin] = ()
    budget = Budget(0, 0, 0.0)

    def __init__(self, trace: RowTrace) -> None:
        self._remotes = trace.whole.remotes
        self._times = trace.instants
        self._next = 0
        self._changes = [
            with_past(each.part.past, history, self._times, since_ms=trace.start_ms)
            for each, history in zip(self._remotes, trace.histories, strict=True)
        ]
        self._held: list[dict[str, tuple[Row, ...]]] = [{} for _ in self._remotes]

    def refresh(
        self, at_ms: int, results: Mapping[str, Sequence[str]], longest_wait: float
    ) -> RefreshResult:
        """Return all solutions at a time."""
        while self._next < len(self._times) and self._times[self._next] <= at_ms:
            self._next += 1
            for remote, held, changes in zip(self._remotes, self._held, self._changes, strict=True):
                for key, solutions in next(changes).items():
                    held[key] = tuple(_row(remote, each) for each in solutions)
        answers = {
            remote.part.pattern: Values(
                tuple(map(Variable, remote.part.columns)),
                tuple(row for rows in held.values() for row in rows),
            )
            for remote, held in zip(self._remotes, self._held, strict=True)
        }
        return RefreshResult(answers)

    def snapshot(self) -> bytes:
        """Return nothing: a replay begins anew."""
        return b""

    def resume(self, snapshot: bytes) -> None:
        """Do nothing."""


def _row(remote: BoundRemote, solution: Solution) -> Row:
    names = remote.part.columns
    return tuple(to_ast(solution[name]) if name in solution else None for name in names)


def _stands_still() -> float:
    return 0.0
