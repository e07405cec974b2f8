"""Runner of experiments in several processes; it can be stopped at any time and continued."""

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

from acquatop.lab.replay.bench import Bench
from acquatop.lab.replay.data import Data
from acquatop.lab.replay.experiment import Experiment
from acquatop.lab.replay.measure import Measured
from acquatop.lab.replay.setting import Setting

PROGRESS = "progress.ndjson"
"""Progress file: a line for each setting on each recording, in order of completion."""

_PACKAGES = ("acquatop", "connectors", "replica", "rspql")
_WITHOUT = ("cli", "output", "sinks", "watch")
"""Folders of code that no answer depends on."""

_AT_ONCE = 4
"""Number of settings that a process replays before it notices a stop."""

Place = tuple[str, Setting]
"""A recording's name, and a setting."""

Told = Callable[[int, int], None]
"""Callback with the number of answers' series that are done, and their total."""


@dataclass(frozen=True)
class Results:
    """Measures by recording and setting, and anomalies of the recordings by name and seed."""

    experiment: Experiment
    measured: Mapping[Place, Sequence[Measured]]
    notes: Mapping[str, Mapping[str, int]]


@dataclass(frozen=True)
class _Piece:
    """Some settings on one recording: the unit of work of one process."""

    data: Data
    seed: int
    settings: tuple[Setting, ...]
    items_per_request: int | None


def run(
    experiment: Experiment, folder: Path, *, processes: int | None = None, told: Told | None = None
) -> Results:
    """Run everything that has not been run yet, and return all results.

    Progress is kept in a file of the ``folder``: after a stop, or a kill, the same call continues
    from there. Measures of other data, or of another version of this code, are ignored. With 0
    ``processes`` the work is done in this process, which then cannot be stopped during a replay.
    """
    folder.mkdir(parents=True, exist_ok=True)
    processes = available_cores() if processes is None else processes
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
        return Results(experiment, _for_all_settings(experiment, measured_at), progress.notes)


def _keys(experiment: Experiment) -> dict[Place, str]:
    """Return the key of every place to run, each once of those that give the same."""
    code, keys = _code(), {}
    for data in experiment.data:
        hashes = {seed: data.fingerprint(seed) for seed in experiment.seeds}
        for setting in experiment.settings():
            once = _once(experiment, data, setting)
            said = [code, hashes[once.seed], experiment.items_per_request, *astuple(once)]
            keys[data.name, once] = json.dumps(said)
    return keys


def _once(experiment: Experiment, data: Data, setting: Setting) -> Setting:
    """Return the setting to run for all that give the same answers.

    Policies without a budget do for every budget, and those without randomness on a recording that
    is the same for every seed.
    """
    if setting.is_unlimited:
        setting = replace(setting, budget=min(experiment.budgets))
    if setting.is_deterministic and not data.varies_by_seed:
        setting = replace(setting, seed=min(experiment.seeds))
    return setting


def _for_all_settings(
    experiment: Experiment, measured: Mapping[Place, Sequence[Measured]]
) -> dict[Place, Sequence[Measured]]:
    return {
        (data.name, setting): measured[data.name, _once(experiment, data, setting)]
        for data in experiment.data
        for setting in experiment.settings()
    }


def _pieces(experiment: Experiment, left: Collection[Place]) -> Iterator[_Piece]:
    for data, seed in product(experiment.data, experiment.seeds):
        settings = [
            each
            for each in experiment.settings()
            if each.seed == seed and (data.name, each) in left
        ]
        for at in range(0, len(settings), _AT_ONCE):
            yield _Piece(
                data, seed, tuple(settings[at : at + _AT_ONCE]), experiment.items_per_request
            )


def _code() -> str:
    """Return a hash of the code that answers depend on."""
    root, known = Path(__file__).parents[3], hashlib.sha256()
    for package in _PACKAGES:
        for file in sorted((root / package).rglob("*")):
            if file.suffix in (".py", ".lark") and file.parent.name not in _WITHOUT:
                known.update(file.read_bytes())
    return known.hexdigest()[:16]


def available_cores() -> int:
    """Return the number of processes to run by default: one per core that may be used."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


# Processes ----------------------------------------------------------------------------------------

Outcomes = list[tuple[Setting, list[Measured]]]


def _done(
    pieces: Sequence[_Piece], processes: int
) -> Iterator[tuple[_Piece, Outcomes, Mapping[str, int]]]:
    """Yield the outcome of each piece, in order of completion."""
    with TemporaryDirectory(prefix="acquatop-") as scratch:
        if not processes or not pieces:
            for piece in pieces:
                yield piece, *_do(piece, scratch)
            return
        # New processes: a fork of a process with threads may hang.
        context = multiprocessing.get_context("spawn")
        pool = ProcessPoolExecutor(
            min(processes, len(pieces)), mp_context=context, initializer=_follow
        )
        try:
            under_way: dict[Future[Any], _Piece] = {
                pool.submit(_do, piece, scratch): piece for piece in pieces
            }
            for future in as_completed(under_way):
                yield under_way[future], *future.result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _follow() -> None:
    """End when the parent process ends, for whatever reason. Only the parent handles Ctrl-C."""
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


# Progress ---------------------------------------------------------------------------------------


class _Progress:
    """File that grows by a line for each finished setting. A truncated last line is ignored."""

    def __init__(self, path: Path, wanted: Iterable[str]) -> None:
        self._path = path
        self._wanted = set(wanted)
        self._measured: dict[str, list[Measured]] = {}
        self.notes: dict[str, Mapping[str, int]] = {}
        self._file: TextIO | None = None

    def __enter__(self) -> _Progress:
        lines = list(self._lines())
        # Rewritten: lines of no use are left out, and the last line is complete.
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
        """Return the measures of a setting."""
        return self._measured[key]

    def add(
        self, key: str, place: str, notes: Mapping[str, int], measured: Sequence[Measured]
    ) -> None:
        """Store the measures, before the caller is told."""
        assert self._file is not None
        line = {
            "key": key,
            "of": place,
            "notes": dict(notes),
            "measured": [each.to_list() for each in measured],
        }
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
