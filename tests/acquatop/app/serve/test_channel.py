"""Events of a channel and their readers, without HTTP."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from prometheus_client import CollectorRegistry

from acquatop.app.serve.answers import Answers, kept_answer
from acquatop.app.serve.channel import Channel, Event, EventId
from acquatop.app.serve.http_metrics import Meters
from acquatop.app.serve.limits import Limits
from acquatop.app.serve.notifier import Notifier
from acquatop.app.serve.readers import AT_ONCE, EventStream, Readers
from tests.support.empty_answer import NOTHING


def test_answers_of_windows_that_close_together_are_all_kept_and_read() -> None:
    answers = Answers(Notifier(), Limits())
    for closes_ms, window in ((1, 0), (2, 1), (2, 2), (3, 3), (2, 2), (3, 3)):
        answers.put(kept_answer(replace(NOTHING, closes_ms=closes_ms, window=window)))
    kept = answers.after(0).events
    assert [each.frame.split(b"\n")[0] for each in kept] == [
        b"id: 1.0",
        b"id: 2.1",
        b"id: 2.2",
        b"id: 3.3",
    ]

    def since(id: str) -> list[str]:
        read = EventId.parse(id)
        assert read is not None
        return [str(each.place) for each in answers.after(answers.number_of(read)).events]

    assert since("2.1") == ["2.2", "3.3"]
    assert since("2") == since("2.2") == ["3.3"]
    found = [answers.find(EventId(2, part)) for part in (None, 1, 2, 3)]
    assert [each and each.part for each in found] == [2, 1, 2, None]


def test_many_events_leave_the_event_loop_its_turns() -> None:
    """A reader that has gone is noticed in such a turn; asyncio logs what is written before."""

    async def run() -> None:
        channel = Channel[Event](Notifier(), most=100, most_bytes=10_000)
        for id in range(50):
            channel.put(Event(id, "query", b"{}"))
        channel.close()
        readers = Readers(Limits(), meters=Meters(CollectorRegistry()), clock=lambda: 0.0)
        sent, longest = 0, 0

        async def send(message: Any) -> None:
            nonlocal sent
            sent += 1

        async def receive() -> Any:
            await asyncio.get_running_loop().create_future()

        def opening(number: int, missed: int) -> tuple[int, list[bytes]]:
            return number, [b"frame"] * 50

        stream = EventStream(readers, channel, 0, opening=opening, begins=True)
        scope = {"method": "GET", "client": ("127.0.0.1", 1)}
        sending = asyncio.create_task(stream(scope, receive, send))
        while not sending.done():
            before = sent
            await asyncio.sleep(0)
            longest = max(longest, sent - before)
        await sending
        assert sent > 100
        assert longest <= AT_ONCE + 2

    asyncio.run(run())
