"""Points for killing an engine: before, in and after each step with an effect outside."""

from __future__ import annotations

import functools
import threading
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from typing import Any, NamedTuple, NoReturn
from unittest.mock import patch

from acquatop.answer.sinks import durable, growing
from acquatop.answer.sinks.ndjson import NdjsonSink
from acquatop.answer.sinks.window_files import WindowFiles
from acquatop.engine.commits import Committer
from acquatop.engine.delivery import Delivery
from acquatop.engine.engine import Engine
from acquatop.engine.handle import RegisteredQuery
from acquatop.engine.launcher import QueryLauncher
from acquatop.engine.state.folder import Folder
from acquatop.engine.stream import StreamOperator
from acquatop.engine.stream_driver import StreamDriver
from acquatop.engine.streams import StreamTable
from acquatop.runtime.local import LocalCarrier
from connectors import process_lock
from replica.remotes.rest import RestRemote
from replica.remotes.table import TableRemote

_STEPS: Sequence[tuple[Any, str]] = (
    *((StreamDriver, name) for name in ("job", "take", "end")),
    *((StreamOperator, name) for name in ("_dispatch", "close_due_windows", "finish")),
    *((Committer, name) for name in ("commit", "save", "close")),
    (Delivery, "deliver"),
    (StreamTable, "carry"),
    (QueryLauncher, "_recover"),
    *(
        (Folder, name)
        for name in ("open", "sync", "rename", "remove", "sync_names", "make_folder", "cut")
    ),
    *((sink, "write") for sink in (NdjsonSink, WindowFiles)),
    (durable, "_replace"),
    (durable, "sync_folder"),
    (growing, "sync_folder"),
    (RegisteredQuery, "put"),
    (RestRemote, "fetch"),
    (TableRemote, "fetch"),
)
_WRITES: Sequence[tuple[Any, str]] = (
    (Folder, "write"),
    (growing, "write_all"),
    (durable, "write_all"),
)


def _name(owner: Any, name: str) -> str:
    return f"{owner.__name__.rpartition('.')[2]}.{name}"


POINTS = (
    *(
        f"{when} {_name(owner, name)}"
        for owner, name in (*_STEPS, *_WRITES)
        for when in ("before", "after")
    ),
    *(f"within {_name(owner, name)}" for owner, name in _WRITES),
)


class Point(NamedTuple):
    """The nth time that a step happens in a life."""

    name: str
    nth: int = 1


class Killed(BaseException):
    """End of a life: nothing with an effect outside may be done any more."""


def die() -> NoReturn:
    """Die without a process."""
    raise Killed


class Reaper:
    """Counter of the visits to each point; it kills at one of them."""

    def __init__(self, point: Point | None = None, kill: Callable[[], NoReturn] = die) -> None:
        self.point = point
        self.counts: Counter[str] = Counter()
        self.has_struck = False
        self._kill = kill
        self._engines: list[Engine] = []
        self._lock = threading.Lock()

    def reach(self, name: str) -> None:
        """Kill if this is where to wait; whoever is dead already gets no further."""
        with self._lock:
            self.counts[name] += 1
            if self.point is not None and (name, self.counts[name]) == self.point:
                self.has_struck = True
            if not self.has_struck:
                return
        self._kill()

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Watch every point meanwhile."""
        with patch.multiple(threading, excepthook=lambda failure: None):
            patches = [
                *(patch.object(owner, name, self._step(owner, name)) for owner, name in _STEPS),
                *(patch.object(owner, name, self._write(owner, name)) for owner, name in _WRITES),
                patch.object(Engine, "__init__", self._noted(Engine.__init__)),
                patch.object(LocalCarrier, "_run", self._died_out(LocalCarrier._run)),
            ]
            for each in patches:
                each.start()
            try:
                yield
            finally:
                for each in patches:
                    each.stop()
                # As the system does when a process is gone.
                for held in list(process_lock._held) if self.has_struck else ():
                    with suppress(OSError):
                        held.release()

    def _step(self, owner: Any, name: str) -> Callable[..., Any]:
        done, said = getattr(owner, name), _name(owner, name)

        @functools.wraps(done)
        def step(*arguments: Any, **options: Any) -> Any:
            self.reach(f"before {said}")
            result = done(*arguments, **options)
            if isinstance(result, Generator):
                return self._to_its_end(result, said)
            self.reach(f"after {said}")
            return result

        return step

    def _to_its_end(self, made: Generator[Any, Any, Any], said: str) -> Generator[Any, Any, Any]:
        """Yield what a step makes, and reach the point after it with the last of that."""
        with closing(made):
            result = yield from made
        self.reach(f"after {said}")
        return result

    def _write(self, owner: Any, name: str) -> Callable[..., Any]:
        done, said = getattr(owner, name), _name(owner, name)

        @functools.wraps(done)
        def write(*arguments: Any) -> Any:
            self.reach(f"before {said}")
            *place, content = arguments
            whole = content if isinstance(content, bytes) else b"".join(content)
            half = len(whole) // 2
            if (
                self.point is not None
                and (f"within {said}", self.counts[f"within {said}"] + 1) == self.point
            ):
                # A part of it, and zeros, as a loss of power may leave.
                mutilated = whole[:half] + bytes(7)
                done(*place, mutilated if isinstance(content, bytes) else [mutilated])
            self.reach(f"within {said}")
            result = done(*place, content if isinstance(content, bytes) else [whole])
            self.reach(f"after {said}")
            return result

        return write

    def _noted(self, begin: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(begin)
        def begin_and_note(engine: Engine, *arguments: Any, **options: Any) -> None:
            begin(engine, *arguments, **options)
            self._engines.append(engine)

        return begin_and_note

    def _died_out(self, run: Callable[[Any], None]) -> Callable[[Any], None]:
        """Let readers know that their stream's thread is dead: a real kill ends them as well."""

        def run_or_die(carrier: Any) -> None:
            try:
                run(carrier)
            except Killed as killed:
                for query in (query for engine in self._engines for query in engine.queries):
                    query.finish(killed)

        return run_or_die
