"""Programs that tests run: the time that they have, and where they hang if it is not enough."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

PATIENCE = 300.0
"""Seconds that a program has to its end: many times what it needs on a machine that is busy."""
_FAREWELL = 30.0
"""Seconds that a program has to say where it hangs."""


def run(
    command: Sequence[str | Path], *, patience: float = PATIENCE, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end; return its exit code, and what it has said, as text."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    child = subprocess.Popen(command, text=True, **pipes)
    try:
        out, err = end_of(child, patience)
    except BaseException:
        child.kill()
        raise
    return subprocess.CompletedProcess(command, child.returncode, out, err)


def end_of(child: subprocess.Popen[str], patience: float = PATIENCE) -> tuple[str, str]:
    """Return what is left to read of a program when it has ended.

    One that does not end fails the test, with the stacks of its threads: tests give each Python
    that they start a handler for that signal.
    """
    try:
        return child.communicate(timeout=patience)
    except subprocess.TimeoutExpired:
        child.send_signal(signal.SIGABRT)
    try:
        said: Sequence[object] = child.communicate(timeout=_FAREWELL)
    except subprocess.TimeoutExpired as expired:
        # Whoever it has started holds its pipes, too.
        child.kill()
        said = (expired.output, expired.stderr)
    raise AssertionError(f"{child.args!r} has not ended after {patience:.0f} s: {said!r}")
