"""Runs of seeds: simulate, check, and say what came of it."""

from __future__ import annotations

import gc
import os
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from tests.support.simulation.checker import Verdict, judge
from tests.support.simulation.scenario import Scenario, scenario_of
from tests.support.simulation.world import World, Wrap

MEMORY = Path("/dev/shm")
_PREFIX = "acquatop-simulation-"


@dataclass(frozen=True)
class Result:
    """Result of one seed: its verdict, the hash of its trace, and the trace."""

    seed: int
    scenario: Scenario
    verdict: Verdict
    digest: str
    trace: list[str]


@contextmanager
def a_folder() -> Iterator[Path]:
    """Make a folder for runs, in memory if possible; remove those of processes that were killed."""
    place = MEMORY if os.access(MEMORY, os.W_OK) else Path(tempfile.gettempdir())
    for left in place.glob(f"{_PREFIX}*"):
        _, _, process = left.name.removeprefix(_PREFIX).partition("-")
        if process.isdigit() and not _is_alive(int(process)):
            shutil.rmtree(left, ignore_errors=True)
    # Arrow's threads would only wait for each other.
    pa.set_cpu_count(1)
    # What is loaded by now need not be looked at by each collection of garbage.
    gc.freeze()
    with tempfile.TemporaryDirectory(f"-{os.getpid()}", _PREFIX, place) as name:
        yield Path(name)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def simulate(seed: int, folder: Path, wrap: Wrap | None = None) -> Result:
    """Run the scenario of a seed and judge it."""
    scenario = scenario_of(seed)
    before = _held(folder)
    world = World(scenario, folder, f"run {seed}", wrap)
    history = world.run()
    reference = None
    if scenario.is_equal and not any(query.fails for query in scenario.queries):
        reference = World(scenario.without_faults(), folder, f"reference {seed}").run()
    verdict = judge(history, reference)
    _expect_little_left(folder, verdict)
    held = _held(folder)
    verdict.expect("files and threads do not grow", held <= before, f"{held}, before {before}")
    return Result(seed, scenario, verdict, world.schedule.digest(), world.schedule.trace)


def _held(folder: Path) -> tuple[int, int]:
    """Return how many threads there are, and open files in a folder, where the system says so.

    The processes that evaluate whole windows outlive an engine that dies within its process.
    """
    held = Path("/proc/self/fd")
    files = [os.path.realpath(each) for each in held.iterdir()] if held.exists() else []
    return threading.active_count(), sum(1 for each in files if each.startswith(str(folder)))


def _expect_little_left(folder: Path, verdict: Verdict) -> None:
    state = folder / "state"
    files = sum(1 for file in state.iterdir() if file.is_file()) if state.exists() else 0
    verdict.expect("the state stays small", files <= 12, f"{files} files")
    shutil.rmtree(state, ignore_errors=True)
