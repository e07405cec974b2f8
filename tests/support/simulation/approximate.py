"""Judge of approximate answers: what they show is there, and nothing missing beats their bound."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tests.support.simulation import oracle
from tests.support.simulation.answers import SCORES_AGREE, Judge, passing, shown, within
from tests.support.simulation.oracle import Solution
from tests.support.simulation.remote import Value
from tests.support.simulation.scenario import QuerySpec, StreamSpec
from tests.support.simulation.world import History, Told


@dataclass
class Approximate:
    """Judge of one approximate answer."""

    history: History
    told: Told
    query: QuerySpec

    def problem(self) -> str | None:
        """Return what is wrong with the answer, if anything can be told."""
        if self.query.kind == "pairs" or self.query.counts or self.query.projection is not None:
            return None
        return self._not_there() or self._unordered() or self._beaten()

    @property
    def _stream(self) -> StreamSpec:
        return self.history.scenario.stream(self.query.streams[0])

    @property
    def _judge(self) -> Judge:
        """Return a judge of the same answer, for what may be in its window."""
        iri, closes_ms = self._stream.iri, self.told.answer.closes_ms
        reads = {iri: passing(self._stream, closes_ms, self.told.read[iri])}
        return Judge(self.history, self.told, self.query, reads)

    def _not_there(self) -> str | None:
        """Return a result that no record can have brought, or a value that was never said."""
        answer = self.told.answer
        read = self._stream.records[: self.told.read[self._stream.iri]]
        inside = within(read, answer.opens_ms, answer.closes_ms)
        users = {f"{oracle.NS}user/{each.user}" for each in inside}
        found = {(f"{oracle.NS}user/{each.user}", each.p) for each in inside}
        judge = self._judge
        for values in map(dict, map(shown, judge.bindings())):
            user, p, value = str(values["s"]), values.get("p"), values.get("v")
            if user not in users or ("p" in values and (user, p) not in found):
                return f"{user} with {p} is shown, but not in the window"
            if self.query.service and value not in judge.possible(user):
                return f"{user} is shown with {value}, not with any of {judge.possible(user)}"
        return None

    def _unordered(self) -> str | None:
        if self.query.kind == "whole":
            return None
        sign = 1 if self.query.descending else -1
        merits = [sign * row.score for row in self.told.answer.rows if row.score is not None]
        if merits != sorted(merits, reverse=True) or len(merits) > self.query.k:
            return f"not in order, or too many: {merits}"
        return None

    def _beaten(self) -> str | None:
        """Return a missing solution that scores beyond the bound, whatever its value may be."""
        answer, query = self.told.answer, self.query
        if answer.bound is None or not math.isfinite(answer.bound):
            return None
        if query.kind == "whole" or query.offset or not self._is_certain():
            return None
        sign = 1 if query.descending else -1
        judge = self._judge
        bar = sign * answer.bound
        if len(answer.rows) == query.k and answer.rows[-1].score is not None:
            bar = max(bar, sign * answer.rows[-1].score)
        found = oracle.solutions(self._stream, judge.content(self._stream))
        rows = list(map(shown, judge.bindings()))
        for user in {each.user for each in found}:
            values = judge.possible(user) if query.service else {None}
            least = [self._best_missing(found, user, value, rows, sign) for value in values]
            if min(least, default=-math.inf) > bar + SCORES_AGREE:
                return f"{user} is missing with a score beyond the bound {answer.bound}: {least}"
        return None

    def _best_missing(
        self,
        found: list[Solution],
        user: str,
        value: Value,
        rows: list[oracle.Shown],
        sign: int,
    ) -> float:
        """Return the merit of a user's best solution that is not shown, given a value."""
        its = [each for each in found if each.user == user]
        ranked = oracle.ranked(self.query, self._stream, its, lambda _: value)
        merits = (sign * each.score for each in ranked if each.shown not in rows)
        return max(merits, default=-math.inf)

    def _is_certain(self) -> bool:
        """Return True if it is known what is in the window: no time by a clock, nothing late."""
        stream, answer = self._stream, self.told.answer
        newest = None
        for record in stream.records[: self.told.read[stream.iri]]:
            if record.t is None:
                continue
            in_window = answer.opens_ms < record.t <= answer.closes_ms
            if in_window and stream.is_late(record.t, newest):
                return False
            newest = record.t if newest is None else max(newest, record.t)
        return stream.idle_ms is None
