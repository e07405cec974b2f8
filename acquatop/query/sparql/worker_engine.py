"""SPARQL engine in a process of its own: no query can end or exhaust the process that asks."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import cloudpickle

from acquatop.catalog.evaluation_limits import EvaluationLimits
from acquatop.errors import EnvironmentProblem, EvaluationError, EvaluationLost
from acquatop.query.sparql.content import StoreContent
from acquatop.query.sparql.engine import EngineFunction, Graphs
from acquatop.query.sparql.last_words import LastWords
from acquatop.query.sparql.message_channel import MessageChannel, MissedDeadlineError
from acquatop.query.sparql.worker import BEGUN

_WORKER = "acquatop.query.sparql.worker"
_PATIENCE = 5.0
"""Seconds in which a process that has closed its connection has ended."""
_OUT_OF_MEMORY = ("memory allocation of", "MemoryError")
"""Last words of the SPARQL engine, and of Python, if a process ends for lack of memory."""


class _NotBegunError(Exception):
    """Worker that has ended before it began a request."""


class WorkerEngine:
    """SPARQL engine in a worker process, with limits of memory, time and size per evaluation.

    A worker that exceeds a limit, or that ends, costs the evaluation under way:
    :class:`~acquatop.errors.EvaluationLost`. The next evaluation starts another worker with the
    present ``content``.
    """

    def __init__(
        self,
        content: Callable[[], StoreContent],
        functions: Mapping[str, EngineFunction],
        limits: EvaluationLimits | None = None,
    ) -> None:
        self._content = content
        self._functions = _pickled(functions) if functions else None
        self._limits = limits or EvaluationLimits()
        self._worker: _Worker | None = None
        self._lock = threading.Lock()
        self._is_closed = False

    @property
    def process(self) -> int | None:
        """Number of the worker process; None if none runs."""
        worker = self._worker
        return None if worker is None else worker.process

    def renew(self) -> None:
        """Replace the worker's triples by the present content."""
        if self._worker is not None:
            self._tell("renew", self._content())

    def change(self, graph: str, gone: str, new: str) -> None:
        """Remove triples from a graph, then add others; do not wait for it."""
        if self._worker is not None:
            self._tell("change", graph, gone, new)

    def select(self, text: str, graphs: Graphs, *, on_nothing: bool = False) -> bytes:
        """Return the results of a query as SPARQL JSON."""
        found: bytes = self._ask("select", text, graphs, on_nothing)
        return found

    def describe(self, resources: Sequence[str]) -> Sequence[str]:
        """Return the triples about resources."""
        found: Sequence[str] = self._ask("describe", list(resources))
        return found

    def close(self) -> None:
        """End the worker, even during an evaluation. Safe to call again, and from any thread."""
        with self._lock:
            self._is_closed = True
            worker, self._worker = self._worker, None
        if worker is not None:
            worker.end()

    def _tell(self, method: str, *arguments: Any, until: float | None = None) -> None:
        """Send a request without a result; the next worker starts with the present content."""
        worker = self._worker
        try:
            if worker is not None:
                worker.channel.send((method, arguments, False), until or self._deadline())
        except OSError:
            self._drop(_PATIENCE)
        except MissedDeadlineError:
            self._drop()

    def _deadline(self) -> float:
        return time.monotonic() + self._limits.seconds

    def _ask(self, method: str, *arguments: Any) -> Any:
        kind, result = self._reply((method, arguments, True))
        if kind == "large":
            raise EvaluationLost(
                "result",
                f"the result of the query has {result:,} bytes,"
                f" more than the {self._limits.result_bytes:,} that it may have",
            )
        if kind == "memory":
            self._drop()
            raise EvaluationLost("memory", _too_large(self._limits.memory_bytes))
        if kind == "refused":
            raise EvaluationError(result)
        return result

    def _reply(self, request: tuple[str, Any, bool]) -> tuple[str, Any]:
        """Return the reply to a request, of another worker if this one ends before it begins.

        The limit of time covers filling a worker, the evaluation, and its result.
        """
        until = self._deadline()
        worker = self._worker
        if worker is not None:
            try:
                return self._exchanged(worker, request, until)
            except _NotBegunError:
                self._drop()
        worker = self._started(until)
        try:
            return self._exchanged(worker, request, until)
        except _NotBegunError:
            # It has ended while it was filled: the content alone may be too large.
            raise self._lost(worker) from None

    def _exchanged(
        self, worker: _Worker, request: tuple[str, Any, bool], until: float
    ) -> tuple[str, Any]:
        has_begun = False
        try:
            worker.channel.send(request, until)
            has_begun = worker.channel.receive(until) == BEGUN
            reply: tuple[str, Any] = worker.channel.receive(until)
        except MissedDeadlineError:
            self._drop()
            raise EvaluationLost(
                "time",
                f"the evaluation took longer than the {self._limits.seconds:g} s that it may",
            ) from None
        except (EOFError, OSError):
            if not has_begun:
                raise _NotBegunError from None
            raise self._lost(worker) from None
        return reply

    def _lost(self, worker: _Worker) -> EvaluationLost:
        """Return the error for a worker that has ended, after dropping it."""
        reason = worker.end(_PATIENCE)
        self._drop()
        return EvaluationLost(*reason)

    def _started(self, until: float) -> _Worker:
        worker = _Worker(self._limits.memory_bytes)
        with self._lock:
            if self._is_closed:
                worker.end()
                raise EvaluationError("the query has been closed")
            self._worker = worker
        limits = self._limits
        self._tell("start", limits.memory_bytes, limits.result_bytes, self._functions, until=until)
        self._tell("renew", self._content(), until=until)
        return worker

    def _drop(self, patience: float = 0.0) -> None:
        with self._lock:
            worker, self._worker = self._worker, None
        if worker is not None:
            worker.end(patience)


class _Worker:
    """Worker process, and the connection to it."""

    def __init__(self, memory_bytes: int) -> None:
        self._memory_bytes = memory_bytes
        ours, theirs = socket.socketpair()
        lifeline, self._lifeline = os.pipe()
        self._said = LastWords()
        try:
            self._process = subprocess.Popen(  # noqa: S603
                [sys.executable, "-P", "-m", _WORKER, str(theirs.fileno()), str(lifeline)],
                stdin=subprocess.DEVNULL,
                stdout=self._said.writing,
                stderr=self._said.writing,
                pass_fds=(theirs.fileno(), lifeline),
                env={**os.environ, "PYTHONPATH": _search_path(), "RUST_BACKTRACE": "0"},
                start_new_session=True,
            )
        except OSError as error:
            ours.close()
            os.close(self._lifeline)
            self._said.close()
            raise EnvironmentProblem(
                f"no worker process can be started for the SPARQL engine: {error}"
            ) from error
        finally:
            theirs.close()
            os.close(lifeline)
            os.close(self._said.writing)
        self.channel = MessageChannel(ours, self._said)
        self._lock = threading.Lock()
        self._ended: tuple[str, str] | None = None

    @property
    def process(self) -> int:
        """Number of the process."""
        return self._process.pid

    def end(self, patience: float = 0.0) -> tuple[str, str]:
        """End the process; return the reason of its end, in a word and for people.

        It is killed if it has not ended by itself after ``patience`` seconds.
        """
        with self._lock:
            if self._ended is None:
                self._ended = self._end(patience)
            return self._ended

    def _end(self, patience: float) -> tuple[str, str]:
        try:
            how = f"ended with {_code(self._process.wait(patience))}"
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            how = "was ended"
        said = self._said.close()
        self.channel.close()
        os.close(self._lifeline)
        if any(each in said for each in _OUT_OF_MEMORY):
            return "memory", _too_large(self._memory_bytes)
        return "process", f"the process of the evaluation {how}{said and f': {said}'}"


def _search_path() -> str:
    """Return the places where this process finds modules, for another one."""
    return os.pathsep.join(place or str(Path.cwd()) for place in sys.path)


def _too_large(memory_bytes: int) -> str:
    return f"the evaluation needs more than the {memory_bytes:,} bytes of memory that it may use"


def _code(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"


def _pickled(functions: Mapping[str, EngineFunction]) -> bytes:
    try:
        pickled: bytes = cloudpickle.dumps(dict(functions))
    except Exception as error:
        names = ", ".join(f"<{iri}>" for iri in functions)
        raise EvaluationError(
            f"the functions {names} cannot be sent to the process of the evaluation: {error}"
        ) from error
    return pickled
