"""Shutdown of a run: it is stopped once and completely, and its errors are raised."""

from __future__ import annotations

import signal
import sys
import threading
from pathlib import Path

import pytest

from acquatop.app.cli.shutdown import SIGNALS, Shutdown
from acquatop.errors import EnvironmentProblem
from tests.support import programs
from tests.support.staged import LIMIT

ROOT = Path(__file__).parents[4]


class Engine:
    """Engine stub: counts its stops, and wakes threads that wait for its end."""

    def __init__(self, error: Exception | None = None) -> None:
        self.stops = 0
        self.ended = threading.Event()
        self._error = error

    def stop(self) -> None:
        self.stops += 1
        if self._error is not None:
            raise self._error
        self.ended.set()


def test_without_a_signal_it_stops_once_and_leaves_the_handlers_as_they_were() -> None:
    before = [signal.getsignal(each) for each in SIGNALS]
    engine = Engine()
    with Shutdown(engine.stop) as ending:
        ending.gently()
        assert engine.stops == 0
    assert engine.stops == 1
    assert not ending.asked
    assert [signal.getsignal(each) for each in SIGNALS] == before


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_stops_it_in_a_thread_and_cuts_nothing_off(number: signal.Signals) -> None:
    engine, told = Engine(), threading.Event()
    with Shutdown(engine.stop, told=told.set) as ending:
        ending.gently()
        signal.raise_signal(number)
        reached = engine.ended.wait(LIMIT)
    assert reached
    assert told.is_set()
    assert ending.asked
    assert engine.stops == 1


def test_while_all_is_made_ready_a_signal_interrupts() -> None:
    engine = Engine()
    with pytest.raises(KeyboardInterrupt), Shutdown(engine.stop):
        signal.raise_signal(signal.SIGTERM)
    assert engine.stops == 1


def test_a_handler_that_others_put_there_meanwhile_is_replaced() -> None:
    engine = Engine()
    with Shutdown(engine.stop) as ending:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        ending.gently()
        signal.raise_signal(signal.SIGINT)
        assert engine.ended.wait(LIMIT)


def test_a_second_signal_ends_at_once_also_when_the_first_came_early_or_the_end_is_under_way() -> (
    None
):
    numbers: list[int] = []
    engine = Engine()
    with Shutdown(engine.stop, at_once=numbers.append) as ending:
        ending.gently()
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGINT)
        assert engine.ended.wait(LIMIT)
    assert numbers == [signal.SIGINT]

    def stop_and_be_told_again() -> None:
        signal.raise_signal(signal.SIGTERM)

    numbers.clear()
    with pytest.raises(KeyboardInterrupt), Shutdown(stop_and_be_told_again, at_once=numbers.append):
        signal.raise_signal(signal.SIGINT)
    assert numbers == [signal.SIGTERM]


def test_a_stop_that_fails_is_heard_although_the_answers_have_no_end() -> None:
    engine = Engine(EnvironmentProblem("the disk is full"))

    def wait_for_answers() -> None:
        with Shutdown(engine.stop) as ending:
            ending.gently()
            signal.raise_signal(signal.SIGTERM)
            threading.Event().wait(10)
            raise AssertionError("the wait for answers goes on")

    with pytest.raises(EnvironmentProblem, match="the disk is full"):
        wait_for_answers()
    assert engine.stops == 1


def test_an_error_of_the_block_is_its_own() -> None:
    engine = Engine()

    def fail() -> None:
        with Shutdown(engine.stop) as ending:
            ending.gently()
            raise ValueError("of its own")

    with pytest.raises(ValueError, match="of its own"):
        fail()
    assert engine.stops == 1


STUCK = """
import os, signal, threading
from acquatop.app.cli.shutdown import Shutdown
stopping = threading.Event()
def stop():
    stopping.set()
    threading.Event().wait()
with Shutdown(stop) as ending:
    ending.gently()
    print("ready", flush=True)
    os.kill(os.getpid(), signal.{first})
    stopping.wait()
    os.kill(os.getpid(), signal.{second})
    threading.Event().wait()
"""


@pytest.mark.parametrize(
    ("first", "second", "code"), [("SIGINT", "SIGTERM", 143), ("SIGTERM", "SIGINT", 130)]
)
def test_a_process_whose_stop_hangs_ends_at_the_second_signal(
    first: str, second: str, code: int
) -> None:
    command = [sys.executable, "-c", STUCK.format(first=first, second=second)]
    done = programs.run(command, cwd=ROOT)
    assert (done.returncode, done.stdout, done.stderr) == (code, "ready\n", "")
