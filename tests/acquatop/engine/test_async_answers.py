"""Answers read in an event loop: as they come, to the end, and without a thread that waits."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from acquatop import Answer, Engine
from acquatop.catalog.catalog import Catalog
from acquatop.engine.handle import AnswerSignal, RegisteredQuery
from acquatop.errors import EvaluationError
from tests.support.empty_answer import NOTHING
from tests.support.serving import QUERY, World

LIMIT = 60.0


def catalog(world: World) -> Catalog:
    return Catalog.load(world.folder / "catalog.toml", variables={})


async def all_of(query: RegisteredQuery) -> list[Answer]:
    return [answer async for answer in query]


def test_a_recording_is_read_to_its_end_by_several_at_once(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.events(30)

    async def both(queries: Sequence[RegisteredQuery]) -> list[list[Answer]]:
        return await asyncio.wait_for(asyncio.gather(*map(all_of, queries)), LIMIT)

    with Engine(catalog(world), runtime="local", until_end=True) as engine:
        first, *others = asyncio.run(
            both([engine.register(QUERY, name=name) for name in ("one", "two")])
        )
        closes = [answer.closes_ms for answer in first]
        assert len(closes) > 5
        assert [[answer.closes_ms for answer in each] for each in others] == [closes]


def test_an_answer_that_comes_later_ends_the_wait(tmp_path: Path) -> None:
    world = World(tmp_path)

    async def wait_for_it(query: RegisteredQuery) -> Answer:
        answers = aiter(query)
        waiting = asyncio.ensure_future(anext(answers))
        await asyncio.sleep(0)
        assert not waiting.done()
        world.events(30)
        found = await asyncio.wait_for(waiting, LIMIT)
        later = await asyncio.wait_for(anext(answers), LIMIT)
        assert later.closes_ms > found.closes_ms
        return found

    with Engine(catalog(world), runtime="local") as engine:
        assert asyncio.run(wait_for_it(engine.register(QUERY))).rows


def test_who_gives_up_leaves_nothing_behind() -> None:
    news = AnswerSignal()
    query = RegisteredQuery("q", ["urn:a"], live=True, news=news)

    async def give_up() -> None:
        waiting = asyncio.ensure_future(all_of(query))
        await asyncio.sleep(0)
        assert len(news.listeners) == 1
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(give_up())
    assert news.listeners == []
    query.put(NOTHING)


def test_an_error_comes_after_the_answers_before_it() -> None:
    query = RegisteredQuery("q", ["urn:a"], live=True, news=AnswerSignal())
    query.put(NOTHING)
    query.finish(EvaluationError("too large"))

    async def read() -> None:
        answers = aiter(query)
        assert await anext(answers) == NOTHING
        with pytest.raises(EvaluationError, match="too large"):
            await anext(answers)

    asyncio.run(read())
