"""Runs an experiment: in several processes, so that it can be stopped at any time and gone on with."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import astuple, dataclass, replace
from itertools import product
from multiprocessing import connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TextIO

from acquatop.lab.replay.data import Data
from acquatop.lab.replay.experiment import Experiment
from acquatop.lab.replay.measure import Bench, Measured
from acquatop.lab.replay.setting import Setting

PROGRESS = "progress.ndjson"
"""The file of what has been done: a line for each setting on each recording, in the order in which they were done."""

_PACKAGES = ("acquatop", "connectors", "replica", "rspql")
_WITHOUT = ("cli", "output", "sinks", "watch")
"""Folders of code that no answer depends on."""

_AT_ONCE = 4
"""How many settings a process does without looking up: so long it takes until a stop is seen."""

Place = tuple[str, Setting]
"""A recording's name, and a setting."""

Told = Callable[[int, int], None]
"""Told how many answers' series are done, and how many there are."""


@dataclass(frozen=True)
class Results:
    """What was measured, by recording and setting; and what is odd in the recordings, by their names and seeds."""

    experiment: Experiment
    measured: Mapping[Place, Sequence[Measured]]
    notes: Mapping[str, Mapping[str, int]]


@dataclass(frozen=True)
class _Piece:
    """Some settings on one recording: what one process does without looking up."""

    data: Data
    seed: int
    settings: tuple[Setting, ...]
    items_per_request: int | None


def run(experiment: Experiment, folder: Path, *, processes: int | None = None, told: Told | None = None) -> Results:
    """Run all that has not been run yet, and return everything.

    What is done is kept in a file of the ``folder``: after a stop, or a kill, the same call goes on from there. What
    was measured on other data, or by another version of this code, does not count. With 0 ``processes`` it is done in
    this one, which then cannot be stopped while it replays.
    """
    folder.mkdir(parents=True, exist_ok=True)
    processes = _cores() if processes is None else processes
    keys = _keys(experiment)
    with _Progress(folder / PROGRESS, keys.values()) as progress:
        is_left = {place for place, key in keys.items() if key not in progress}
        done = len(keys) - len(is_left)
        for piece, outcomes, notes in _done(list(_pieces(experiment, is_left)), processes):
            for setting, measured in outcomes:
                place = f"{piece.data.name} seed {piece.seed}".strip()
                progress.add(keys[piece.data.name, setting], place, notes, measured)
                done += 1
                if told is not None:
                    told(done, len(keys))
        measured_at = {place: progress.measured(key) for place, key in keys.items()}
        return Results(experiment, _for_all_budgets(experiment, measured_at), progress.notes)


def _keys(experiment: Experiment) -> dict[Place, str]:
    """Return all that has to be run, and what tells it from all else: what is not held to a budget, once for all."""
    code, keys = _code(), {}
    for data in experiment.data:
        hashes = {seed: data.fingerprint(seed) for seed in experiment.seeds}
        for setting in experiment.settings():
            once = _at_one_budget(experiment, setting)
            said = [code, hashes[once.seed], experiment.items_per_request, *astuple(once)]
            keys[data.name, once] = json.dumps(said)
    return keys


def _at_one_budget(experiment: Experiment, setting: Setting) -> Setting:
    return replace(setting, budget=min(experiment.budgets)) if setting.is_unlimited else setting


def _for_all_budgets(
    experiment: Experiment, measured: Mapping[Place, Sequence[Measured]]
) -> dict[Place, Sequence[Measured]]:
    return {
        (data.name, setting): measured[data.name, _at_one_budget(experiment, setting)]
        for data in experiment.data
        for setting in experiment.settings()
    }


def _pieces(experiment: Experiment, left: Collection[Place]) -> Iterator[_Piece]:
    for data, seed in product(experiment.data, experiment.seeds):
        settings = [each for each in experiment.settings() if each.seed == seed and (data.name, each) in left]
        for at in range(0, len(settings), _AT_ONCE):
            yield _Piece(data, seed, tuple(settings[at : at + _AT_ONCE]), experiment.items_per_request)


def _code() -> str:
    """Return a hash of the code that answers depend on."""
    root, known = Path(__file__).parents[3], hashlib.sha256()
    for package in _PACKAGES:
        for file in sorted((root / package).rglob("*")):
            if file.suffix in (".py", ".lark") and file.parent.name not in _WITHOUT:
                known.update(file.read_bytes())
    return known.hexdigest()[:16]


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


# Processes ------------------------------------------------------------------------------------------

Outcomes = list[tuple[Setting, list[Measured]]]


def _done(pieces: Sequence[_Piece], processes: int) -> Iterator[tuple[_Piece, Outcomes, Mapping[str, int]]]:
    """Yield what comes of each piece, as they are done."""
    with TemporaryDirectory(prefix="acquatop-") as scratch:
        if not processes or not pieces:
            for piece in pieces:
                yield piece, *_do(piece, scratch)
            return
        # Processes that are made anew: a fork of one with threads may hang.
        context = multiprocessing.get_context("spawn")
        pool = ProcessPoolExecutor(min(processes, len(pieces)), mp_context=context, initializer=_follow)
        try:
            under_way: dict[Future[Any], _Piece] = {pool.submit(_do, piece, scratch): piece for piece in pieces}
            for future in as_completed(under_way):
                yield under_way[future], *future.result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _follow() -> None:
    """End with the process that this one works for, however that ends: it is that which Ctrl-C is for."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def end() -> None:
        connection.wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=end, name="acquatop-follow", daemon=True).start()


_BENCHES: dict[str, Bench] = {}
"""The recording that this process has open: pieces of one come one after the other."""


def _do(piece: _Piece, scratch: str) -> tuple[Outcomes, Mapping[str, int]]:
    key = f"{piece.data.fingerprint(piece.seed)} {piece.items_per_request}"
    if key not in _BENCHES:
        _BENCHES.clear()
        folder = Path(scratch) / f"{os.getpid()}-{piece.data.name}-{piece.seed}"
        _BENCHES[key] = Bench(piece.data, piece.seed, folder, piece.items_per_request)
    bench = _BENCHES[key]
    return [(setting, list(bench.measured(setting))) for setting in piece.settings], bench.notes


# What has been done ---------------------------------------------------------------------------------


class _Progress:
    """A file that grows by a line for each setting that is done; a line that is cut off by a kill does not count."""

    def __init__(self, path: Path, wanted: Iterable[str]) -> None:
        self._path = path
        self._wanted = set(wanted)
        self._measured: dict[str, list[Measured]] = {}
        self.notes: dict[str, Mapping[str, int]] = {}
        self._file: TextIO | None = None

    def __enter__(self) -> _Progress:
        lines = list(self._lines())
        # Written anew: what is of no use is left out, and the last line is a whole one.
        fresh = self._path.with_suffix(".new")
        with fresh.open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)
        fresh.replace(self._path)
        for line in lines:
            self._take(line)
        self._file = self._path.open("a", encoding="utf-8")
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def __contains__(self, key: str) -> bool:
        return key in self._measured

    def measured(self, key: str) -> list[Measured]:
        """Return what was measured."""
        return self._measured[key]

    def add(self, key: str, place: str, notes: Mapping[str, int], measured: Sequence[Measured]) -> None:
        """Keep what was measured, before anyone is told."""
        assert self._file is not None
        line = {"key": key, "of": place, "notes": dict(notes), "measured": [each.to_list() for each in measured]}
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()
        self._take(line)

    def _take(self, line: Mapping[str, Any]) -> None:
        self._measured[line["key"]] = [Measured.from_list(each) for each in line["measured"]]
        self.notes[line["of"]] = line["notes"]

    def _lines(self) -> Iterator[dict[str, Any]]:
        if not self._path.exists():
            return
        with self._path.open(encoding="utf-8", errors="replace") as file:
            for text in file:
                try:
                    line = json.loads(text)
                except ValueError:
                    continue
                if isinstance(line, dict) and line.get("key") in self._wanted:
                    yield line
