"""Step of a stream: the answers that a batch, the clock or the end brings, and then its outcome."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field

from acquatop.answer.answer import Answer
from acquatop.answer.unanswered import Unanswered
from acquatop.engine.evaluation_slot import EvaluationSlot
from acquatop.engine.observer import BatchSeen


@dataclass(frozen=True)
class SlotFailure:
    """End of a slot by an error; other slots continue."""

    slot: EvaluationSlot
    error: BaseException


@dataclass(frozen=True)
class Outcome:
    """Outcome of a step, once its answers are made.

    ``entry`` goes to the journal. It is empty if only a snapshot can hold the change. ``seen`` has
    the facts for observers without the time for the commit.
    """

    seen: BatchSeen
    entry: Mapping[str, bytes] = field(default_factory=dict)


Made = Answer | Unanswered | SlotFailure | BatchSeen
"""Answer, or a window without one; a failed slot; facts of a batch of a query's answers."""

Step = Generator[Made, None, Outcome]
"""Answers and the like one by one, each made when it is asked for; then the outcome."""
