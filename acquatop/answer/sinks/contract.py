"""What the engine asks of a place where answers go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from acquatop.answer.answer import Answer


class Sink(Protocol):
    """A place where answers go.

    An answer is known by its query and its window: ``(answer.query, answer.closes_ms)``. Calls about one query come
    one at a time, and its answers in order; different queries' may come from different threads.
    """

    def write(self, answers: Sequence[Answer]) -> None:
        """Put answers, of any queries, where they belong, and return when they are durable there.

        Answers that were given before are given again after a crash, even one in the middle of a write, and even by a
        new process; they overwrite what is there. Whoever gives an answer again gives those after it, too. Raises
        :class:`~acquatop.errors.UserError` for answers that the sink cannot hold, before it has written any, and
        :class:`~acquatop.errors.EnvironmentProblem` when it cannot be written; then some of them may be there.
        """

    def close(self) -> None:
        """Let go of what is held. Safe to call again."""
