"""Worker that is killed, or run out of disk or rights: ``worker.py WHAT FOLDER [SEED]``.

It forks the processes that are killed. That is quick, and safe as it has no threads. It raises an
error for anything wrong that it finds.
"""

from __future__ import annotations

import errno
import os
import resource
import signal
import struct
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random

import pytest

from acquatop.engine.state.directory import StateDirectory
from acquatop.engine.state.folder import Folder
from acquatop.errors import EnvironmentProblem
from tests.support.disks import SteppedFolder, recovered_state

REPLICA = bytes(range(256)) * 8


def number_in(found: tuple[dict[str, bytes], list[dict[str, bytes]]] | None) -> int:
    """Return the number of the last operation that a state tells of,
    having checked that all of it agrees.
    """
    if found is None:
        return 0
    parts, journal = found
    numbers = [int(each["number"]) for each in (parts, *journal)]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers))), numbers
    for each, number in zip((parts, *journal), numbers, strict=True):
        assert each["content"] == content_of(number), number
    assert parts["replica"] == REPLICA
    return numbers[-1]


def content_of(number: int) -> bytes:
    return b"%d" % number * (number % 50)


def do(state: StateDirectory, number: int) -> None:
    """Do the operation of a number: every third saves a snapshot,
    the others append to the journal.
    """
    parts = {"number": b"%d" % number, "content": content_of(number)}
    if number % 3 == 1:
        state.save({**parts, "replica": REPLICA})
    else:
        state.append(parts)


def open_state(
    place: Path, folder: Callable[[Path], Folder] = Folder
) -> tuple[StateDirectory, int]:
    state = StateDirectory.open(place, {"query": "text"}, folder=folder, large=1024)
    found = state.recover()
    assert found is None or found.problem is None, found
    return state, number_in(recovered_state(found))


def write(place: Path, told: int, folder: Callable[[Path], Folder], count: int) -> None:
    """Go on where the state ends, and tell the number of each operation that is done."""
    state, number = open_state(place, folder)
    for each in range(number + 1, number + 1 + count):
        do(state, each)
        os.write(told, struct.pack("i", each))
    os._exit(0)


def killed(child: Callable[[int], None], kill: Callable[[int, int], bytes]) -> int | None:
    """Return the last number that a child has told before it was killed;
    None if it has ended by itself.

    ``kill`` gets the child's number and what it tells, and returns what it has read of that.
    """
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        try:
            child(writing)
        finally:
            os._exit(1)
    os.close(writing)
    told = kill(pid, reading)
    while piece := os.read(reading, 4096):
        told += piece
    os.close(reading)
    _pid, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, "the child has failed"
    last = struct.unpack("i", told[-4:])[0] if told else 0
    return last if os.WIFSIGNALED(status) else None


def check(place: Path, before: int, told: int) -> int:
    """Return how far the state has come: to what was told last, or to what was under way."""
    state, number = open_state(place)
    state.close()
    assert number in (max(before, told), max(before, told) + 1), (before, told, number)
    return number


def kill_at_steps(place: Path, _random: Random) -> int:
    """Kill a child before each of its steps, one after the other;
    each goes on where the one before has ended.
    """
    number, at, kills = 0, 0, 0
    while True:
        at += 1
        left = at

        def step(_name: str) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

        told = killed(
            lambda writing: write(place, writing, partial(SteppedFolder, step=step), count=9),
            lambda _pid, _told: b"",
        )
        if told is None:
            return kills
        kills += 1
        number = check(place, number, told)


def kill_at_random(place: Path, random: Random) -> int:
    """Kill children at moments that nobody has chosen."""
    number = 0
    for _ in range(60):

        def kill(pid: int, telling: int) -> bytes:
            told = b"".join(os.read(telling, 4) for _ in range(random.randrange(8)))
            for _turn in range(random.randrange(60_000)):
                pass
            os.kill(pid, signal.SIGKILL)
            return told

        told = killed(lambda writing: write(place, writing, Folder, count=100_000), kill)
        assert told is not None
        number = check(place, number, told)
    assert number > 60
    return number


def fill(place: Path, _random: Random) -> int:
    """Fill a real disk, a small one in memory,
    and then let it be read only (in a namespace of mounts of our own).
    """
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", place], check=True)
    state, _number = open_state(place / "state")
    do(state, 1)
    ballast = place / "ballast"
    ballast.write_bytes(bytes(180 << 10))
    for operation in (state.save, state.append):
        refused(
            errno.ENOSPC,
            lambda operation=operation: operation({"number": b"2", "content": bytes(150 << 10)}),
        )
        assert not [each for each in (place / "state").iterdir() if "unfinished" in each.name]
    do(state, 2)
    ballast.unlink()
    state.save(
        {"number": b"3", "content": content_of(3), "replica": REPLICA, "large": bytes(100 << 10)}
    )
    subprocess.run(["mount", "-o", "remount,ro", place], check=False, stderr=subprocess.DEVNULL)
    state.close()
    state, number = open_state(place / "state")
    state.close()
    subprocess.run(["mount", "-o", "remount,ro", place], check=True)
    refused(errno.EROFS, lambda: open_state(place / "state"))
    return number


def limit(place: Path, _random: Random) -> int:
    """Let files be no longer than some bytes."""
    state, _number = open_state(place)
    do(state, 1)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, resource.RLIM_INFINITY))
    for operation in (state.save, state.append):
        refused(
            errno.EFBIG,
            lambda operation=operation: operation({"number": b"2", "content": bytes(10_000)}),
        )
    do(state, 2)
    state.close()
    state, number = open_state(place)
    state.close()
    return number


def refused(number: int, operation: Callable[[], object]) -> None:
    with pytest.raises(EnvironmentProblem, match=f"(?s){os.strerror(number)}\n  hint: "):
        operation()


def hold(place: Path, _random: Random) -> int:
    """Hold a directory until killed, with a child program and a fork that live on."""
    state, _number = open_state(place)
    program = subprocess.Popen(
        [sys.executable, "-c", "import sys; sys.stdin.read()"], close_fds=False
    )
    reading, writing = os.pipe()
    fork = os.fork()
    if fork == 0:
        os.write(writing, b"x")
        sys.stdin.read()
        os._exit(0)
    os.read(reading, 1)
    print(program.pid, fork, flush=True)
    signal.pause()
    return len(state.dropped)


if __name__ == "__main__":
    what, where, seed = sys.argv[1:]
    print(
        {each.__name__: each for each in (kill_at_steps, kill_at_random, fill, limit, hold)}[what](
            Path(where), Random(seed)
        )
    )
