"""Sink that passes answers to a Python function."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from acquatop.answer.answer import Answer


class CallbackSink:
    """Sink that calls a function with every answer, in order.

    At least once: after a crash the function is called again with the last answers, which are
    identified by ``(answer.query, answer.closes_ms, answer.window)``. An exception of the function
    ends the query.

    >>> CallbackSink(print).write([])
    """

    def __init__(self, function: Callable[[Answer], object]) -> None:
        self._function = function

    def write(self, answers: Sequence[Answer]) -> None:
        """Call the function with each answer."""
        for answer in answers:
            self._function(answer)

    def close(self) -> None:
        """Do nothing: the caller owns the function."""
