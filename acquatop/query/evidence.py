"""Evidence of how top-k answers were made: their solutions, the next best, the remote's values."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from acquatop.answer.why import KeptSolutions, OneMore, Standing, Value, matching
from acquatop.ingest.scoring import BoolArray, ReplicaScoring, conjuncts
from acquatop.query.contenders import MOST, Contenders
from acquatop.query.joined_top import JoinedTop
from acquatop.query.ranking import Ranked
from acquatop.query.replica_facts import RemoteFacts
from acquatop.query.told import Told
from acquatop.topk.contract import FloatArray, Rows
from rspql import ast
from rspql.plan import TopKPlan
from rspql.printer import expression_text
from rspql.scoring import variables_in, vectorise_condition

MOST_ANSWERS = 100
"""Number of a query's answers whose evidence is kept at most."""

MOST_SOLUTIONS = 4_096
"""Number of solutions that the evidence of a query's answers has at most, but for the last one."""

_ALMOST_CERTAIN = 0.005
"""Chance below which a request is worth nothing."""

ScoreOf = Callable[[float], float | None]
TermsAt = Callable[[int], Mapping[str, str]]


@dataclass(frozen=True)
class _Content:
    """Results of one answer, and others of its window, with what was known of them then.

    ``told`` and ``numbers`` are of both, results first; the numbers are the remote's.
    """

    results: JoinedTop
    offset: int
    wanted: int
    contenders: Contenders
    told: Told | None
    numbers: Mapping[str, FloatArray]
    chances: Mapping[str, float]
    terms: TermsAt
    other_terms: TermsAt
    scoring: ReplicaScoring | None
    plan: TopKPlan
    score_of: ScoreOf

    def __len__(self) -> int:
        return len(self.results) + len(self.contenders)

    @property
    def bar(self) -> float:
        """Merit of the last result, if there are as many as wanted."""
        if self.results.bar is not None:
            return self.results.bar
        is_full = len(self.results) and len(self.results) >= self.wanted
        return float(self.results.merits[-1]) if is_full else -math.inf

    @cached_property
    def solutions(self) -> list[_Solution]:
        """All solutions, results first; others only if they are none of these."""
        results, others = self.results, self.contenders
        places = {each: at for at, each in enumerate(others.rows.identities.tolist(), 1)}
        shown = set(results.rows.identities.tolist())
        mosts = _mosts(self.scoring, others)
        found = [
            _Solution(
                {**results.terms[at], **self.terms(at)},
                str(results.rows.keys[at]),
                float(results.merits[at]),
                at,
                max(0, at - self.offset + 1) or None,
                places.get(identity),
                None,
                self.chances.get(identity),
                is_result=True,
            )
            for at, identity in enumerate(results.rows.identities.tolist())
        ]
        for at, identity in enumerate(others.rows.identities.tolist()):
            if identity not in shown:
                merit = float(others.merits[at])
                found.append(
                    _Solution(
                        self.other_terms(at),
                        str(others.rows.keys[at]),
                        merit,
                        len(results) + at,
                        None,
                        None if math.isnan(merit) else places[identity],
                        mosts[at],
                        self.chances.get(identity),
                    )
                )
        return found

    def failing(self, one: _Solution) -> tuple[str, ...]:
        """Return the conditions that a solution without a score fails."""
        at = one.at - len(self.results)
        told = self.told
        if one.is_result or not math.isnan(one.merit) or (told and not told.present[one.at]):
            return ()
        score = self.plan.score
        columns = {
            name: column[at : at + 1]
            for name, column in zip(score.stream_variables, self.contenders.numbers, strict=True)
        }
        columns |= {name: column[one.at : one.at + 1] for name, column in self.numbers.items()}
        fails = []
        for each in conjuncts(score.condition):
            if variables_in(each).keys() <= columns.keys():
                holds = vectorise_condition(each, score.functions, score.datatypes)
                if not np.all(holds(columns)):
                    fails.append(expression_text(each))
        return tuple(fails)


@dataclass(frozen=True)
class _Solution:
    """Solution of a window: its merit, and its place ``at`` in what was told."""

    terms: Mapping[str, str]
    key: str
    merit: float
    at: int
    rank: int | None
    place: int | None
    most: float | None
    chance: float | None
    is_result: bool = False


class KeptEvidence:
    """Evidence of one answer, until it is forgotten."""

    def __init__(self, content: _Content) -> None:
        self._content: _Content | None = content
        self.size = len(content)

    def forget(self) -> None:
        """Release what is kept."""
        self._content = None

    def about(self, key: str) -> KeptSolutions | None:
        """Return what is kept of the solutions with a key; None if nothing is kept any more."""
        content = self._content
        if content is None:
            return None
        solutions = content.solutions
        at = matching([each.terms for each in solutions], key)
        found = [_standing(content, solutions[each]) for each in at]
        return KeptSolutions(
            sorted(found, key=_order),
            len(solutions),
            content.contenders.is_whole,
            _shown(content, content.bar),
            _shown(content, content.contenders.beyond),
            _request(content),
            tuple(map(expression_text, _conditions(content.plan))),
            is_full=content.bar > -math.inf,
        )


def _conditions(plan: TopKPlan) -> list[ast.Expression]:
    """Return the conditions on the streams alone: what fails one is not kept."""
    return [*plan.stream_filters, *(each for part in plan.parts for each in part.filters)]


def _standing(content: _Content, one: _Solution) -> Standing:
    told = content.told
    age = math.nan if told is None else float(told.ages[one.at])
    return Standing(
        one.terms,
        one.rank,
        one.place,
        _shown(content, one.merit),
        None if one.most is None else content.score_of(one.most),
        None if told is None else _value_of(told, one.at),
        None if told is None else bool(told.fetched[one.at]),
        None if math.isnan(age) else age,
        one.chance,
        content.failing(one),
        _because(content, one),
    )


def _because(content: _Content, one: _Solution) -> str | None:
    """Return what keeps out a solution whose score is good enough."""
    finish = content.plan.finish
    if one.rank is not None or math.isnan(one.merit) or one.merit < content.bar:
        return None
    if one.is_result:
        return f"the first {content.offset} are left out"
    if finish is not None and finish.per:
        names = ", ".join(f"?{name}" for name in finish.per)
        return f"others with the same {names} are better, or the last condition fails"
    if finish is not None and finish.holds is not None:
        return f"the condition {expression_text(finish.holds)} fails, or others come first"
    if finish is not None and finish.is_distinct:
        return "an equal row is there already, or others come first"
    return "others of the same score come first"


def _request(content: _Content) -> OneMore | None:
    """Return the request that would have been worth most; None if none was worth anything."""
    told = content.told
    if told is None:
        return None
    stale = [each for each in content.solutions if not told.fetched[each.at]]
    known = [(_wrong(each), each) for each in stale if each.chance is not None]
    worth, best = max(known, key=lambda each: each[0], default=(0.0, None))
    if best is not None and worth >= _ALMOST_CERTAIN:
        return OneMore(best.key, worth, best.is_result)
    new = [each for each in stale if not told.known[each.at] and _most(each) >= content.bar]
    first = max(new, key=_most, default=None)
    return None if first is None else OneMore(first.key, None, is_in=False)


def _wrong(one: _Solution) -> float:
    """Return the chance that an answer is wrong about a solution."""
    assert one.chance is not None
    return 1 - one.chance if one.is_result else one.chance


def _most(one: _Solution) -> float:
    return -math.inf if one.most is None else one.most


def _shown(content: _Content, merit: float) -> float | None:
    return content.score_of(merit) if math.isfinite(merit) else None


def _value_of(told: Told, at: int) -> Value:
    if not told.known[at]:
        return "unknown"
    return "known" if told.present[at] else "absent"


def _order(one: Standing) -> tuple[float, float]:
    return one.rank or math.inf, one.place or math.inf


def _mosts(scoring: ReplicaScoring | None, others: Contenders) -> Sequence[float | None]:
    """Return the best merits that solutions without one could have for other remote values."""
    without: BoolArray = np.isnan(others.merits)
    if scoring is None or not scoring.remote_variables or not without.any():
        return [None] * len(others)
    numbers = tuple(each[without] for each in others.numbers)
    reaches = iter(scoring.reaches(numbers, int(without.sum())).tolist())
    return [next(reaches) if is_without else None for is_without in without.tolist()]


def _terms_of(operator: Ranked, rows: Rows) -> TermsAt:
    """Return a function that returns the terms of a row, also after its window."""
    if operator.keeps_terms:
        return lambda at: operator.terms(rows, at)
    terms = [operator.terms(rows, at) for at in range(len(rows))]
    return terms.__getitem__


class EvidenceLog:
    """Evidence of a query's last answers: 100 at most, of 4 096 solutions together."""

    def __init__(self, plan: TopKPlan, score_of: ScoreOf) -> None:
        self._plan = plan
        self._score_of = score_of
        self._kept: deque[KeptEvidence] = deque()
        self._size = 0

    def note(
        self,
        window: int,
        results: JoinedTop,
        offset: int,
        operator: Ranked,
        facts: RemoteFacts,
        fetched: frozenset[str],
    ) -> KeptEvidence:
        """Keep how an answer was made; older evidence makes way. O(what is kept) on columns."""
        contenders = operator.contenders(window, operator.k + MOST)
        keys = [*results.rows.keys.tolist(), *contenders.rows.keys.tolist()]
        conditional = self._plan.score.condition is not None
        names = self._plan.score.remote_variables if conditional else ()
        content = _Content(
            results,
            offset,
            operator.k,
            contenders,
            facts.told(keys, fetched),
            facts.numbers(keys, names),
            facts.chances,
            _terms_of(operator, results.rows),
            _terms_of(operator, contenders.rows),
            operator.scoring,
            self._plan,
            self._score_of,
        )
        evidence = KeptEvidence(content)
        self._kept.append(evidence)
        self._size += evidence.size
        while len(self._kept) > 1 and (
            len(self._kept) > MOST_ANSWERS or self._size > MOST_SOLUTIONS
        ):
            oldest = self._kept.popleft()
            self._size -= oldest.size
            oldest.forget()
        return evidence
