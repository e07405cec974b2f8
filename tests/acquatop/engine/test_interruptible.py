"""Signals that the system gives to another thread than the main thread, which sleeps."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from types import FrameType

import pytest

from acquatop.engine.handle import AnswerSignal, RegisteredQuery, merged
from acquatop.engine.interruptible import wait_until


class SignalError(Exception):
    """The handler of the signal has run."""


@pytest.fixture(autouse=True)
def handler() -> Iterator[None]:
    def tell(_number: int, _frame: FrameType | None) -> None:
        raise SignalError

    before = signal.signal(signal.SIGUSR1, tell)
    yield
    signal.signal(signal.SIGUSR1, before)


class Signalled(threading.Condition):
    """Condition at which another thread gets a signal once the main thread waits."""

    def wait(self, timeout: float | None = None) -> bool:
        threading.Thread(target=self._give).start()
        return super().wait(timeout)

    def _give(self) -> None:
        with self:
            signal.pthread_kill(threading.get_ident(), signal.SIGUSR1)


def test_a_wait_ends_with_what_it_waits_for() -> None:
    said = iter([False, False, True])
    wait_until(lambda _: next(said))
    assert next(said, None) is None


def test_a_wait_for_a_condition_is_interrupted() -> None:
    condition = Signalled()
    with pytest.raises(SignalError), condition:
        wait_until(condition.wait)


def test_whoever_waits_for_answers_is_interrupted() -> None:
    news = AnswerSignal(Signalled())
    query = RegisteredQuery("q", ["stream"], live=True, news=news)
    with pytest.raises(SignalError):
        next(merged([query], news))
