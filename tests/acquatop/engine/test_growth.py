"""Memory, threads and files after many windows, keys and queries: they do not grow with these."""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count, islice, pairwise
from pathlib import Path

from acquatop.answer.sinks import Sink
from acquatop.answer.sinks.callback import CallbackSink
from acquatop.answer.sinks.ndjson import NdjsonSink
from acquatop.app.watch.json_lines import JsonLines
from acquatop.app.watch.log import Log
from acquatop.app.watch.prometheus import Metrics
from acquatop.catalog.catalog import Catalog
from acquatop.engine.engine import Engine
from acquatop.engine.observer import AnswerSeen, Several, Silent
from benchmarks.soak_bench.events import PER_SECOND, events, keys
from benchmarks.soak_bench.registrations import come_and_go
from benchmarks.soak_bench.world import KINDS, catalog, query
from tests.support.markers import THOROUGH
from tests.support.staged import LIMIT
from tests.support.waiting import until

SECONDS = 200
"""Seconds of the stream after which every query is where it was: the longest slide."""
WINDOWS = SECONDS // 4
"""Windows of the query "top" in these seconds."""
ROUNDS = 6
"""Rounds in one of which nothing may be left: what other tests release disturbs single ones."""
NOBODY = 9
"""Port of a remote that is never there."""


@dataclass(frozen=True)
class Held:
    """What a process and a state directory hold."""

    blocks: int
    threads: int
    files: int
    kept: int

    @classmethod
    def now(cls, state: Path) -> Held:
        gc.collect()
        names = [each.name for each in threading.enumerate()]
        return cls(
            sys.getallocatedblocks(),
            # Threads of a pool end by themselves when they have been idle for some seconds.
            sum(name != "acquatop-refresh" for name in names),
            len(list(Path("/proc/self/fd").iterdir())),
            sum(path.stat().st_size for path in state.glob("[!j]*") if path.is_file()),
        )


@contextmanager
def running(folder: Path, *observers: Silent) -> Iterator[Engine]:
    """An engine with bounded replicas, a state directory, metrics and a log."""
    (folder / "events").touch()
    text = catalog(NOBODY, pipe=None, capacity=500).replace("load = false", 'timeout = "1s"')
    log = Log(JsonLines(str(folder / "log.jsonl")))
    engine = Engine(
        Catalog.parse(text, file=folder / "catalog.toml", variables={}),
        runtime="local",
        observer=Several([Metrics(process=False), log, *observers]),
        state=folder / "state",
        autostart=False,
    )
    with engine:
        yield engine
    log.close()


class Answered(Silent):
    """Observer that waits for a number of answers to a query."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._count = threading.Semaphore(0)

    def answer(self, seen: AnswerSeen) -> None:
        if seen.answer.query.endswith(self._name):
            self._count.release()

    def wait(self, count: int) -> None:
        for _ in range(count):
            assert self._count.acquire(timeout=LIMIT)


def children() -> set[str]:
    """Return the processes that this one has started."""
    process = os.getpid()
    return set(Path(f"/proc/{process}/task/{process}/children").read_text().split())


def settles(rounds: Iterable[Held], blocks: float) -> bool:
    """Tell if a round leaves nothing: what is never released grows in each of them."""
    return any(
        after.blocks - before.blocks < blocks
        and after.threads <= before.threads
        and after.files <= before.files
        and after.kept < 2 * before.kept
        for before, after in islice(pairwise(rounds), ROUNDS)
    )


@THOROUGH
def test_windows_and_keys_that_have_passed_leave_nothing(tmp_path: Path) -> None:
    answered = Answered("top")
    came = events()

    def rounds() -> Iterator[Held]:
        while True:
            with (tmp_path / "events").open("ab") as stream:
                stream.writelines(islice(came, SECONDS * PER_SECOND))
            answered.wait(WINDOWS - 1)
            yield Held.now(tmp_path / "state")

    with running(tmp_path, answered) as engine:
        for kind in ("top", "refilled", "counted"):
            sinks: list[Sink] = [NdjsonSink(tmp_path / "answers")]
            sinks.append(CallbackSink(lambda answer: None))
            engine.register(query(kind), sinks=sinks, backlog=0)
        engine.start()
        assert settles(rounds(), keys(SECONDS) / 4)


@THOROUGH
def test_queries_that_have_gone_leave_nothing(tmp_path: Path) -> None:
    others = children()

    def rounds() -> Iterator[Held]:
        for cycle in count():
            for number, kind in enumerate(KINDS, cycle * len(KINDS)):
                come_and_go(engine, kind, number, tmp_path / "events")
            yield Held.now(tmp_path / "state")

    with running(tmp_path) as engine:
        engine.register(query("top", name="stays"), backlog=0)
        engine.start()
        assert settles(rounds(), 400 * len(KINDS))
    until(lambda: children() <= others)
