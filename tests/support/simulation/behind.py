"""Judge of a query that reads the answers of another, by those answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from acquatop.answer.answer import Answer
from tests.support.simulation.world import History, Told

_ORDER = ("exact", "certified", "approximate")


@dataclass(frozen=True)
class Read:
    """Answers that a query has given, each as it was told last, and the closes without one."""

    answers: Mapping[int, Answer]
    lost: frozenset[int]

    @classmethod
    def of(cls, history: History, name: str, life: int) -> Self:
        """Return what a query has answered up to a life, of each close what was told last.

        A later life may answer again what damage of its state has lost, or have no answer then.
        """
        told = [each for each in history.told if _is_of(each, name) and each.life <= life]
        lost = {
            each.window.closes_ms: each.life
            for each in history.unanswered
            if each.window.query == name and each.life <= life
        }
        answers = {
            each.answer.closes_ms: each.answer
            for each in told
            if each.life >= lost.get(each.answer.closes_ms, each.life)
        }
        return cls(answers, frozenset(lost.keys() - answers.keys()))

    def problem(self, answer: Answer) -> str | None:
        """Return what is wrong with an answer that was made of these; None if nothing is."""
        held = [
            each
            for closes, each in self.answers.items()
            if answer.opens_ms < closes <= answer.closes_ms
        ]
        is_lost = any(answer.opens_ms < closes <= answer.closes_ms for closes in self.lost)
        statuses = [str(each.status) for each in held] + ["approximate"] * is_lost
        worst = max(statuses, key=_ORDER.index, default="exact")
        if answer.status != worst:
            return f"it is {answer.status}, and made of what is {worst}"
        right = Counter(str(row.bindings["s"]) for each in held for row in each.rows)
        found = Counter(str(row.bindings["s"]) for row in answer.rows)
        return None if found == right else f"{found} instead of {right}"


def _is_of(told: Told, name: str) -> bool:
    return told.answer.query == name
