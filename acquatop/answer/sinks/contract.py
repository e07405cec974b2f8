"""Contract of sinks, as the engine needs it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from acquatop.answer.answer import Answer


class Sink(Protocol):
    """Sink of answers.

    An answer is identified by its query and its window: ``(answer.query, answer.closes_ms,
    answer.window)``, and a query's answers come in this order. Only windows that count elements may
    close several at one time. Calls
    about one query come one at a time, and its answers in order; those of different queries may
    come from different threads.
    """

    def write(self, answers: Sequence[Answer]) -> None:
        """Write answers of any queries, and return when they are durable.

        After a crash, earlier answers are given again, even if the crash interrupted a write, and
        even by a new process; they overwrite what is there. A caller that repeats an answer also
        repeats those after it. Raises :class:`~acquatop.errors.UserError` for answers that the sink
        cannot hold, before it has written any, and :class:`~acquatop.errors.EnvironmentProblem` if
        it cannot be written; then some of them may be there.
        """

    def close(self) -> None:
        """Release all resources. Safe to call again."""
