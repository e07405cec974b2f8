"""Watch over a cluster's executors: Spark waits for them without a word."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AFTER_SECONDS, EVERY_SECONDS = 5.0, 2.5
"""Seconds of waiting before it is said, and between checks."""
ANSWER_SECONDS = 10.0
"""Seconds in which a master's machine has to take a connection."""

_LOG = logging.getLogger(__name__)


def say_if_unreachable(master: str) -> None:
    """Log a warning, by a thread, if no master of a standalone cluster can be reached."""
    if places := _places(master):
        threading.Thread(target=_try_to_reach, args=[master, places], daemon=True).start()


def _places(master: str) -> Sequence[tuple[str, int]]:
    """Return hosts and ports; none for other clusters.

    >>> _places("spark://10.0.0.1:7077,other:7078"), _places("yarn")
    ([('10.0.0.1', 7077), ('other', 7078)], [])
    """
    kind, _, hosts = master.partition("spark://")
    named = [] if kind else [each.rpartition(":") for each in hosts.split(",") if each]
    return [(host, int(port)) for host, _, port in named]


def _try_to_reach(master: str, places: Sequence[tuple[str, int]]) -> None:
    problem: Exception | None = None
    for place in places:
        try:
            socket.create_connection(place, timeout=ANSWER_SECONDS).close()
        except (OSError, OverflowError) as error:  # the latter for ports that there are not
            problem = error
        else:
            return
    assert problem is not None, "there is a place"
    reason = getattr(problem, "strerror", None) or str(problem)
    hint = "is that its URL, as its page shows it, and does a firewall let it through?"
    _LOG.warning("%s cannot be reached: %s\n  hint: %s", master, reason, hint)


class ExecutorWatch:
    """Thread that logs a warning while work waits on a cluster without any executor.

    It does nothing if the executor is in the driver.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._context = spark.sparkContext
        self._done = threading.Event()
        self._waits = 0
        self._thread = threading.Thread(target=self._watch, name="acquatop-executors", daemon=True)

    @contextmanager
    def over_all_work(self) -> Iterator[None]:
        """Watch over the block's work, and all that follows."""
        if not self._context._jsc.sc().isLocal():
            self._thread.start()
        yield

    def stop(self) -> None:
        """End the watch."""
        self._done.set()
        if self._thread.is_alive():
            self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(EVERY_SECONDS):
            try:
                count, is_at_work = self._executors(), self._is_at_work()
            except Exception:
                return  # its Java has gone, as others say
            self._look(count, is_at_work)

    def _look(self, count: int, is_at_work: bool) -> None:
        said = self._waits * EVERY_SECONDS >= AFTER_SECONDS
        self._waits = self._waits + 1 if is_at_work and count == 0 else 0
        if self._waits * EVERY_SECONDS >= AFTER_SECONDS:
            if not said:
                _LOG.warning("%s", self._message())
        elif said and count:
            _LOG.warning("executors have come: %d", count)

    def _executors(self) -> int:
        # One of them is the driver.
        return int(self._context._jsc.sc().getExecutorMemoryStatus().size()) - 1

    def _is_at_work(self) -> bool:
        return bool(self._context.statusTracker().getActiveStageIds())

    def _message(self) -> str:
        conf = self._context.getConf()
        memory = conf.get("spark.executor.memory", "1g")
        cores = conf.get("spark.executor.cores", "all")
        hint = (
            "are its workers up and free, is there one with so much room, and can it reach "
            f"{conf.get('spark.driver.host')}? Its page and its workers' logs say more"
        )
        return (
            f"work waits: no executor of {memory} and {cores} cores has come from "
            f"{self._context.master}\n  hint: {hint}"
        )
