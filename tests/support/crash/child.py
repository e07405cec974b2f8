"""Process that lives one life and is killed: ``child.py LIFE.json [POINT NTH self|java]``.

At the point, the process kills either itself or its Java. It exits with 3 if that Java's death
ended it, or if Spark failed in another way, as it does on a busy machine.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NoReturn

from acquatop.engine.state.place import state_place
from acquatop.errors import EnvironmentProblem
from tests.support.crash.life import Life
from tests.support.crash.reaper import Point, Reaper

ROOT = Path(__file__).parents[3]
FAILED = 3


def start(
    life: Life,
    point: Point | None = None,
    victim: str = "self",
    seed: int = 0,
    place: Path | None = None,
) -> subprocess.Popen[str]:
    """Start a child, with a hash seed of its own.

    ``place`` is all that it has of a disk, as on another machine.
    """
    given = {
        "catalog": str(life.catalog),
        "state": life.state_text,
        "out": str(life.out),
        "queries": dict(life.queries),
        "runtime": life.runtime,
        "only_lines": life.only_lines,
    }
    command = [sys.executable, "-m", "tests.support.crash.child", json.dumps(given)]
    if point is not None:
        command += [point.name, str(point.nth), victim]
    surroundings = {**os.environ, "PYTHONHASHSEED": str(seed)}
    if place is not None:
        paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
        surroundings |= {"PYTHONPATH": os.pathsep.join(paths), "TMPDIR": str(place)}
    return subprocess.Popen(
        command,
        cwd=place or ROOT,
        env=surroundings,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def end_of(child: subprocess.Popen[str], seconds: list[float], failed: list[str]) -> bool:
    """Wait for a child, and say whether it was killed, or has failed with Spark.

    Raises what else it says.

    How long it took to begin is added to ``seconds``, and what it has ``failed`` with to that.
    """
    began, said = child.communicate()
    if began:
        seconds.append(float(began))
    if child.returncode == FAILED:
        failed.append(said.strip().rpartition("\n")[2])
    if child.returncode not in (0, -signal.SIGKILL, FAILED):
        raise AssertionError(f"a child has ended with {child.returncode}: {said[-3000:]}")
    return child.returncode != 0


def kill_self() -> NoReturn:
    """End as a power failure would have it."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("unreachable")


class JavaKiller(Reaper):
    """Reaper that kills only Java, at the point."""

    def reach(self, name: str) -> None:
        """Kill Java, once."""
        with self._lock:
            self.counts[name] += 1
            strikes = not self.has_struck and (name, self.counts[name]) == self.point
            self.has_struck = self.has_struck or strikes
        if strikes:
            from pyspark import SparkContext

            os.kill(SparkContext._gateway.proc.pid, signal.SIGKILL)  # type: ignore[union-attr]


def main(given: str, *point: str) -> int:
    """Live."""
    said = json.loads(given)
    places = {name: state_place(said[name]) for name in ("state", "out")}
    catalog = Path(said["catalog"])
    more = {name: said[name] for name in ("queries", "runtime", "only_lines")}
    life = Life(catalog=catalog, **places, **more)
    reaper = Reaper(kill=kill_self)
    if point:
        at = Point(point[0], int(point[1]))
        reaper = Reaper(at, kill_self) if point[2] == "self" else JavaKiller(at)
    started = time.monotonic()
    with reaper.at_work():
        try:
            life.live(lambda: print(time.monotonic() - started, flush=True))
        except EnvironmentProblem as problem:
            print(problem, file=sys.stderr)
            return FAILED if "Spark" in str(problem) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
