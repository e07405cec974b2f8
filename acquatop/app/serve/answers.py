"""Channel of a query's last answers, for streaming readers and for single requests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from acquatop.answer.answer import Answer
from acquatop.answer.sinks.callback import CallbackSink
from acquatop.answer.sinks.json_line import json_line
from acquatop.app.serve.channel import Channel, Event
from acquatop.app.serve.limits import Limits
from acquatop.app.serve.notifier import Notifier
from acquatop.app.serve.redaction import public_text


@dataclass(frozen=True)
class KeptAnswer(Event):
    """An answer as an event: its id is the time at which its window closes, its part the window.

    Several windows may close at the same time.
    """

    answer: Answer | None = None

    def of(self, id: str) -> bytes:
        """Return the event's data for a stream of several queries' events; ids need no escapes."""
        return b'{"id": "%s", "answer": %s}' % (id.encode(), self.data)


def kept_answer(answer: Answer) -> KeptAnswer:
    """Return the event for an answer, without paths of this machine."""
    if answer.failure is not None:
        answer = replace(answer, failure=public_text(answer.failure))
    data = json_line(answer.to_json()).rstrip(b"\n")
    return KeptAnswer(answer.closes_ms, "answer", data, answer.window, answer=answer)


def answer_sink(take: Callable[[KeptAnswer], None]) -> CallbackSink:
    """Return a sink for the engine that passes each answer on as an event."""
    return CallbackSink(lambda answer: take(kept_answer(answer)))


class Answers(Channel[KeptAnswer]):
    """A channel of answers."""

    def __init__(self, bell: Notifier, limits: Limits) -> None:
        super().__init__(bell, most=limits.answers, most_bytes=limits.answers_bytes)
