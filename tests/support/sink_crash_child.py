"""Crash test of sinks: kills writers at every system call, and reports failed recoveries.

A program of its own, without threads, so that it can fork: ``python -m
tests.support.sink_crash_child FOLDER``.
"""

from __future__ import annotations

import functools
import itertools
import os
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from acquatop.answer.answer import Answer
from acquatop.answer.sinks import Sink
from tests.support.sink_samples import FILE_SINKS, answer, content_of

CALLS = ("open", "write", "fsync", "replace", "ftruncate", "close", "mkdir")
KINDS = ("ndjson", "one file", "srj", "parquet")
"""The kinds tested; the others differ only in the encoding of an answer."""
WHOLE = ("srj", "parquet")
"""Kinds with files that are complete or absent."""
BATCHES = ((1,), (2, 3))
"""Batches to write; a writer is killed during the second."""


def main(folder: Path) -> int:
    # A killed process loses nothing that it has written, so that the disk need not be waited for.
    os.fsync = lambda descriptor: None
    found = [
        battery(kind, folder / kind / str(stale), stale)
        for kind in KINDS
        for stale in (False, True)
    ]
    print(
        sum(kills for kills, _ in found), [failure for _, failures in found for failure in failures]
    )
    return sum(len(failures) for _, failures in found)


def battery(kind: str, folder: Path, stale: bool) -> tuple[int, list[str]]:
    """Return how often a writer was killed, and what was not the same afterwards.

    ``stale``: the answers' places hold others already, of a run that was told of otherwise.
    """
    form, opened = FILE_SINKS[kind]
    batches = [[answer(window, form=form) for window in windows] for windows in BATCHES]
    others = [replace(each, reason="stale" * 200, rows=each.rows * 2) for each in batches[1]]
    before = [batches[0], others] if stale else batches[:1]
    whole, start = (
        written(opened, folder / "whole", batches),
        written(opened, folder / "start", before),
    )
    failures: list[str] = []
    for point in itertools.count():
        place = folder / str(point)
        place.mkdir()
        # Some are killed a second time, while they are given the batch again.
        killed = crash(functools.partial(killed_writer, opened, place, before, batches[1], point))
        if kind in WHOLE and not content_of(place).items() <= whole.items() | start.items():
            failures.append(f"{kind} killed at call {point} shows a part of a file")
        if point % 3 == 0:
            crash(functools.partial(killed_writer, opened, place, [], batches[1], point // 2))
        write(opened(place), batches[1:])
        if content_of(place) != whole:
            failures.append(f"{kind} killed at call {point}")
        if not killed:
            return point, failures
    raise AssertionError("unreachable")


def written(
    opened: Callable[[Path], Sink], folder: Path, batches: Sequence[Sequence[Answer]]
) -> dict[str, bytes]:
    folder.mkdir(parents=True)
    write(opened(folder), batches)
    return content_of(folder)


def write(sink: Sink, batches: Sequence[Sequence[Answer]]) -> None:
    for batch in batches:
        sink.write(batch)


def killed_writer(
    opened: Callable[[Path], Sink],
    place: Path,
    before: Sequence[Sequence[Answer]],
    batch: Sequence[Answer],
    point: int,
) -> None:
    sink = opened(place)
    write(sink, before)
    kill_at(point)
    sink.write(batch)


def crash(work: Callable[[], None]) -> bool:
    """Do some work in a process of its own; return whether that was killed."""
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        finally:
            os._exit(1)
    status = os.waitpid(child, 0)[1]
    assert status in (0, signal.SIGKILL), status
    return status != 0


def kill_at(point: int) -> None:
    """Let the call of that number be this process's last, if it is a write after half of it."""
    calls = 0

    def counted(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def instead(*arguments: Any, **options: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls > point:
                if name == "write":
                    call(arguments[0], arguments[1][: len(arguments[1]) // 2])
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*arguments, **options)

        return instead

    for name in CALLS:
        setattr(os, name, counted(name, getattr(os, name)))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
