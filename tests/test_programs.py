"""A program of a test that hangs says where."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.programs import end_of, run

HANGS = """
import threading
def hang_here():
    print("ready", flush=True)
    threading.Event().wait()
hang_here()
"""


def test_a_program_that_hangs_fails_with_its_stack() -> None:
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-c", HANGS], stdout=pipe, stderr=pipe, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        with pytest.raises(AssertionError, match=r"has not ended after 0 s.*in hang_here"):
            end_of(child, patience=0.0)


def test_what_a_program_says_is_text() -> None:
    done = run([sys.executable, "-c", "print('é'); raise SystemExit(3)"])
    assert (done.returncode, done.stdout, done.stderr) == (3, "é\n", "")
