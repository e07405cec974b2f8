"""The walk of an event and of a refresh through the rooms.

Calls go down, but for the contracts named here.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

from acquatop import Engine
from tests.support.answer_cases import FOLDER
from tests.support.house import ROOMS
from tests.support.walks import EVENT, WALKS, picture, table

ROOT = Path(__file__).parents[1]
ORDER = ("rspql", "replica", "connectors", *ROOMS)

UPWARD = {
    (
        "runtime",
        "engine",
    ): "the runtime hands batches to the stream that consumes them, as Spark calls us",
    ("topk", "ingest"): "structures have merits computed by a scoring",
    ("topk", "query"): "structures have merits of aggregates computed by a scoring",
    ("replica", "ingest"): "a hash table asks if two keys are the same",
    ("replica", "refresh"): "rankers draw merits from an outlook, remotes ask the time",
    ("refresh", "query"): "the keys of a whole window's SERVICE are found by a query over it",
    ("rspql", "replica"): "a score asks for the types of the remote's numbers",
    ("rspql", "ingest"): "a score asks for the types of the remote's numbers",
    ("rspql", "query"): "a syntax tree is rewritten by a function",
}
"""Contracts by which a lower room calls what it was given from above."""


def room_of(code: CodeType) -> str | None:
    """Return the room of a function; None for what is no function of the house's."""
    if not code.co_filename.startswith(str(ROOT)) or code.co_name.startswith("<"):
        return None
    package, *rest = Path(code.co_filename).relative_to(ROOT).parts
    if package == "acquatop":
        return rest[0].removesuffix(".py") if rest[0].removesuffix(".py") in ROOMS else None
    return package if package in ORDER else None


@contextmanager
def watched() -> Iterator[Counter[tuple[str, str, str]]]:
    """Count the calls between rooms meanwhile, in threads that are started meanwhile."""
    calls: Counter[tuple[str, str, str]] = Counter()

    def note(frame: FrameType, event: str, argument: Any) -> None:
        callee = room_of(frame.f_code) if event == "call" else None
        if callee is None:
            return
        caller = frame.f_back
        while caller is not None and room_of(caller.f_code) is None:
            caller = caller.f_back
        if caller is not None:
            calls[str(room_of(caller.f_code)), callee, frame.f_code.co_qualname] += 1

    threading.setprofile(note)
    try:
        yield calls
    finally:
        threading.setprofile(None)


def run(case: str) -> Counter[tuple[str, str, str]]:
    folder = FOLDER / case
    with (
        watched() as calls,
        Engine.from_catalog(folder / "catalog.toml", runtime="local", until_end=True) as engine,
    ):
        for query in sorted(folder.glob("*.rspql")):
            assert list(engine.register(query.read_text("utf-8"), name=query.stem))
    return calls


def test_calls_go_down_through_the_rooms() -> None:
    against = {
        f"{caller} calls {callee} ({name})"
        for case in (
            "topk_distinct",
            "topk_latest",
            "aggregate_count_service",
            "shared_structure",
            "count_window_steps",
        )
        for caller, callee, name in run(case)
        if ORDER.index(callee) > ORDER.index(caller) and (caller, callee) not in UPWARD
    }
    assert against == set()


class Order(dict[tuple[str, str], int]):
    """The order in which functions were first called."""

    def note(self, room: str, function: str) -> None:
        self.setdefault((room, function), len(self))


@pytest.mark.parametrize("name", WALKS)
def test_a_walk_goes_as_it_is_written(name: str) -> None:
    """Each function is called, and for the first time after the one before it."""
    steps = WALKS[name]
    order = Order()
    for _, room, function in run("topk_latest"):
        order.note(room, function)
    missing = [step for step in steps if (step.room, step.function) not in order]
    assert missing == []
    places = [order[step.room, step.function] for step in steps]
    assert places == sorted(places)


def test_the_walks_are_short() -> None:
    assert len(EVENT) <= 30


def test_the_design_shows_the_walks_and_their_picture() -> None:
    """Write the picture anew with ``UPDATE_FIXTURES=1``."""
    design = (ROOT / "docs" / "design.md").read_text("utf-8")
    for steps in WALKS.values():
        assert table(steps) in design
    drawn = ROOT / "docs" / "walks.svg"
    if os.environ.get("UPDATE_FIXTURES"):
        drawn.write_text(picture(), "utf-8")
    assert drawn.read_text("utf-8") == picture()
    assert "](walks.svg)" in design
