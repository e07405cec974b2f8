"""Long run of windows in one engine, in a process of its own that tells what it uses."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from acquatop.answer.answer import Answer
from acquatop.answer.sinks.callback import CallbackSink
from acquatop.answer.sinks.registry import open_sink
from acquatop.app.watch.json_lines import JsonLines
from acquatop.app.watch.log import Log
from acquatop.app.watch.prometheus import Metrics
from acquatop.catalog.catalog import Catalog
from acquatop.engine.engine import Engine
from acquatop.engine.observer import AnswerSeen, BatchSeen, Several, Silent
from benchmarks.soak_bench.events import START_MS, keys
from benchmarks.soak_bench.java import java_usage
from benchmarks.soak_bench.usage import folder_bytes, usage_of
from benchmarks.soak_bench.world import BATCH_BYTES, CAPACITY, catalog, query

PARTS = 10


class _Marks(Silent):
    """Observer that says what is used at each tenth of some seconds of the stream."""

    def __init__(self, seconds: int, folder: Path, metrics: Metrics) -> None:
        self._seconds = seconds
        self._folder = folder
        self._metrics = metrics
        self._windows = 0
        self._parts = 0
        self._held: dict[str, int] = {}
        self.done = threading.Event()

    def answer(self, seen: AnswerSeen) -> None:
        """Count an answer."""
        self._held[seen.answer.query] = seen.replica_keys
        self._windows += 1

    def batch(self, seen: BatchSeen) -> None:
        """Say what is used, if another tenth has passed."""
        if seen.watermark_ms is None or self.done.is_set():
            return
        passed = (seen.watermark_ms - START_MS) // 1_000
        if passed * PARTS >= (self._parts + 1) * self._seconds:
            self._parts += 1
            self._tell(passed)
        if self._parts == PARTS:
            self.done.set()

    def _tell(self, passed: int) -> None:
        folders = {
            f"{name}_bytes": folder_bytes(self._folder / name)
            for name in ("state", "received", "answers")
        }
        files = {
            f"{name}_bytes": path.stat().st_size if (path := self._folder / file).exists() else 0
            for name, file in (("bad", "bad.jsonl"), ("late", "late.jsonl"), ("log", "log.jsonl"))
        }
        said = {
            "keys": keys(passed),
            "windows": self._windows,
            **asdict(usage_of(os.getpid())),
            **folders,
            **files,
            "series": sum(len(each.samples) for each in self._metrics.registry.collect()),
            "replica_keys": sum(self._held.values()),
            **({} if (java := java_usage()) is None else asdict(java)),
        }
        print(json.dumps(said), flush=True)


def run(
    kinds: Sequence[str], seconds: int, runtime: str, *, bounded: bool, durable: bool, batch: int
) -> None:
    """Run queries over some seconds of the stream; print what is used."""
    with ExitStack() as made:
        folder = Path(made.enter_context(tempfile.TemporaryDirectory(prefix="acquatop-soak-")))
        pipe = folder / "pipe"
        os.mkfifo(pipe)
        port = made.enter_context(endpoint())
        made.enter_context(child("benchmarks.soak_bench.events", str(pipe)))
        capacity = CAPACITY if bounded else None
        text = catalog(port, pipe=pipe, capacity=capacity, batch=batch)
        metrics = Metrics()
        log = made.enter_context(_closing(Log(JsonLines(str(folder / "log.jsonl")))))
        marks = _Marks(seconds, folder, metrics)
        engine = Engine(
            Catalog.parse(text, file=folder / "catalog.toml", variables={}),
            runtime=runtime,
            observer=Several([metrics, log, marks]),
            state=folder / "state" if durable else None,
            autostart=False,
        )
        with engine:
            for kind in kinds:
                sinks = [open_sink(f"ndjson:{folder}/answers"), CallbackSink(_ignore)]
                # Nobody reads the answers of the last one: they wait for a reader, up to a limit.
                backlog = None if kind == kinds[-1] else 0
                engine.register(query(kind), sinks=sinks, backlog=backlog)
            engine.start()
            while not marks.done.wait(1.0):
                failed = [each.error for each in engine.queries if each.error is not None]
                if failed:
                    raise failed[0]


@contextmanager
def endpoint() -> Iterator[int]:
    """Run the SPARQL endpoint; yield its port."""
    with child("benchmarks.soak_bench.people") as process:
        assert process.stdout is not None
        yield int(process.stdout.readline())


@contextmanager
def child(module: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Run a module in a process of its own, and end it."""
    command = [sys.executable, "-m", module, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def _closing(log: Log) -> Iterator[Log]:
    try:
        yield log
    finally:
        log.close()


def _ignore(answer: Answer) -> None:
    """Do nothing with an answer."""


def samples(
    kinds: Sequence[str],
    seconds: int,
    runtime: str,
    *,
    bounded: bool,
    durable: bool,
    batch: int = BATCH_BYTES,
) -> Iterator[dict[str, Any]]:
    """Yield what a run in a process of its own says at each tenth of its time."""
    flags = [*(["--bounded"] if bounded else ()), *(["--durable"] if durable else ())]
    arguments = [*kinds, "--seconds", str(seconds), "--runtime", runtime, *flags]
    arguments += ["--batch", str(batch)]
    with child("benchmarks.soak_bench.windows", *arguments) as process:
        assert process.stdout is not None
        for line in process.stdout:
            yield json.loads(line)
        if process.wait():
            raise RuntimeError("the run has failed")


def main() -> None:
    """Run queries as the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="+")
    parser.add_argument("--seconds", type=int, required=True)
    parser.add_argument("--runtime", required=True)
    parser.add_argument("--batch", type=int, default=BATCH_BYTES)
    parser.add_argument("--bounded", action="store_true")
    parser.add_argument("--durable", action="store_true")
    given = parser.parse_args()
    limits = {"bounded": given.bounded, "durable": given.durable, "batch": given.batch}
    run(given.kinds, given.seconds, given.runtime, **limits)


if __name__ == "__main__":
    main()
