"""Process of one SPARQL engine: it serves requests on a socket until that is closed.

This module is what a worker process imports: it loads no more than the engine needs.
"""

from __future__ import annotations

import faulthandler
import os
import resource
import signal
import socket
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from acquatop.errors import EvaluationError
from acquatop.query.sparql.content import StoreContent
from acquatop.query.sparql.engine import EngineFunction, LocalEngine
from acquatop.query.sparql.message_channel import MessageChannel

_SOCKET, _LIFELINE = 1, 2
"""Positions of the numbers of the open files among the arguments."""


BEGUN = "begun"
"""First reply to a request whose result is wanted."""


class _TooLargeError(Exception):
    """Result with more bytes than allowed; the argument is their number."""


class ServedEngine:
    """Engine of a worker process; each method is a request."""

    def __init__(self) -> None:
        self._content = StoreContent()
        self._functions: Mapping[str, EngineFunction] = {}
        self._engine = LocalEngine()
        self._result_bytes = 0

    def start(self, memory_bytes: int, result_bytes: int, functions: bytes | None) -> None:
        """Limit memory and results, and load the functions that queries call."""
        self._result_bytes = result_bytes
        if functions is not None:
            import cloudpickle

            self._functions = cloudpickle.loads(functions)
        self._engine = LocalEngine(lambda: self._content, self._functions)
        _limit_memory(memory_bytes)

    def renew(self, content: StoreContent) -> None:
        """Replace all triples."""
        self._content = content
        self._engine.renew()
        self._content = StoreContent()

    def change(self, graph: str, gone: str, new: str) -> None:
        """Remove triples from a graph, then add others."""
        self._engine.change(graph, gone, new)

    def select(self, text: str, graphs: Any, on_nothing: bool) -> bytes:
        """Return the results of a query as SPARQL JSON."""
        found = self._engine.select(text, graphs, on_nothing=on_nothing)
        self._check(len(found))
        return found

    def describe(self, resources: list[str]) -> list[str]:
        """Return the triples about resources."""
        found = list(self._engine.describe(resources))
        self._check(sum(map(len, found)))
        return found

    def _check(self, size: int) -> None:
        # Here, as the process that asks would need as much memory to read the result.
        if size > self._result_bytes:
            raise _TooLargeError(size)


def serve(channel: MessageChannel, served: ServedEngine) -> None:
    """Serve requests until the channel ends.

    A request is a method, its arguments, and whether the result is wanted. It then has two replies:
    that it has begun, and its result. The failure of a request whose result is not wanted is the
    result of the next one.
    """
    failure: tuple[str, Any] | None = None
    while True:
        try:
            method, arguments, is_wanted = channel.receive()
        except (EOFError, OSError):
            return
        if is_wanted:
            channel.send(BEGUN)
        reply = failure or _reply(served, method, arguments)
        failure = None if is_wanted or reply[0] == "done" else reply
        if is_wanted:
            channel.send(reply)


def _reply(served: ServedEngine, method: str, arguments: tuple[Any, ...]) -> tuple[str, Any]:
    try:
        return "done", getattr(served, method)(*arguments)
    except MemoryError:
        return "memory", None
    except _TooLargeError as error:
        return "large", error.args[0]
    except EvaluationError as error:
        return "refused", str(error)
    except Exception as error:
        return "refused", f"the SPARQL engine cannot evaluate the query: {error!r}"


def _limit_memory(memory_bytes: int) -> None:
    """Limit the address space to what is used now and some bytes more, where that is known."""
    sizes = Path("/proc/self/statm")
    if sizes.exists():
        used = int(sizes.read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + memory_bytes, used + memory_bytes))


def _end_with(lifeline: int) -> None:
    """End this process when the other end of a pipe is closed, even during an evaluation."""
    os.read(lifeline, 1)
    os._exit(0)


def main() -> None:
    """Serve the socket whose number is given, as long as the lifeline is open."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Its last words say why it ended, also where PYTHONFAULTHANDLER asks for stacks after them.
    faulthandler.disable()
    lifeline = int(sys.argv[_LIFELINE])
    threading.Thread(target=_end_with, args=(lifeline,), daemon=True).start()
    line = socket.socket(fileno=int(sys.argv[_SOCKET]))
    serve(MessageChannel(line), ServedEngine())


if __name__ == "__main__":
    main()
