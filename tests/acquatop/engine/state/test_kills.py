"""Real processes, killed for good: the state is the last one that was acknowledged,
or the one under way.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from acquatop.engine.state.directory import StateDirectory
from acquatop.errors import EnvironmentProblem
from tests.support.disks import quick_folder

ROOT = Path(__file__).parents[4]
WORKER = [sys.executable, "-m", "tests.support.state_worker"]


def run(what: str, place: Path, *before: str) -> int:
    done = subprocess.run(
        [*before, *WORKER, what, place, "7"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def test_killed_at_every_step() -> None:
    with quick_folder() as place:
        assert run("kill_at_steps", place / "state") > 50


def test_killed_at_random() -> None:
    with quick_folder() as place:
        assert run("kill_at_random", place / "state") > 60


def test_a_disk_that_is_full_and_one_that_is_read_only(tmp_path: Path) -> None:
    """Real, on a small disk in memory, where this user may mount one."""
    own_mounts = ["unshare", "--user", "--map-root-user", "--mount"]
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(tmp_path)]
    if (
        not shutil.which("unshare")
        or subprocess.run([*own_mounts, *mount], capture_output=True, check=False).returncode
    ):
        pytest.skip("nothing can be mounted here")
    assert run("fill", tmp_path, *own_mounts) == 3


def test_files_that_may_not_grow(tmp_path: Path) -> None:
    """Real, with a limit of the system."""
    assert run("limit", tmp_path / "state") == 2


def test_the_lock_ends_with_its_process_though_its_children_live(tmp_path: Path) -> None:
    holder = subprocess.Popen(
        [*WORKER, "hold", tmp_path, "7"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdin is not None
    assert holder.stdout is not None
    with holder.stdin, holder.stdout:
        children = [int(each) for each in holder.stdout.readline().split()]
        with pytest.raises(
            EnvironmentProblem,
            match=rf"is in use by process {holder.pid} on .* \(since 20.*\)\n  hint: ",
        ):
            StateDirectory.open(tmp_path, {"query": "text"})
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        for child in children:
            os.kill(child, 0)
        StateDirectory.open(tmp_path, {"query": "text"}).close()
