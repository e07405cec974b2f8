"""A server that examples and tests start: a process that answers at a loopback port."""

from __future__ import annotations

import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import IO

from acquatop.errors import EnvironmentProblem
from replica.clocks import Clock

STARTUP_SECONDS = 30.0
STOP_SECONDS = 10.0
ATTEMPTS = 5
"""Number of free ports to try: another process may take one between its choice and the start."""

_BETWEEN_SECONDS = 0.02
_MOST_WORDS = 2_000
"""Number of bytes of a server's last words that are read."""


class ServerProcess:
    """A server and its process; ``port`` 0 is any that is free.

    ``name`` is for messages, ``command`` returns what starts the server at a port. ``answers`` says
    whether it is up. It must be true of this very process: who answers at the port may be another
    that was faster.
    """

    def __init__(
        self,
        name: str,
        command: Callable[[int], Sequence[str]],
        answers: Callable[[ServerProcess], bool],
        *,
        port: int = 0,
        clock: Clock = time.monotonic,
    ) -> None:
        self.port = 0
        self._name = name
        self._command = command
        self._answers = answers
        self._wanted = port
        self._clock = clock
        self._process: subprocess.Popen[bytes] | None = None
        self._file: IO[bytes] | None = None

    def start(self) -> None:
        """Return once the server answers, else raise :class:`EnvironmentProblem`."""
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 (it is closed with the process)
        try:
            if self._wanted and is_taken(self._wanted):
                raise EnvironmentProblem(
                    f"port {self._wanted} is taken\n"
                    "  hint: choose another with --port, or leave it out for a free one"
                )
            for _ in range(1 if self._wanted else ATTEMPTS):
                self.port = self._wanted or free_port()
                if self._comes_up() or not is_taken(self.port):
                    break
            self._must_run()
        except BaseException:
            self.stop()
            raise

    def _comes_up(self) -> bool:
        """Start the process; say whether it answers before it ends."""
        # In a session of its own, so that a Ctrl-C meant for us does not end it before we have
        # finished.
        self._process = subprocess.Popen(  # noqa: S603
            self._command(self.port), stdout=self._file, stderr=self._file, start_new_session=True
        )
        deadline = self._clock() + STARTUP_SECONDS
        while self._process.poll() is None:
            if self._answers(self):
                return True
            if self._clock() >= deadline:
                raise EnvironmentProblem(
                    f"{self._name} did not answer within {STARTUP_SECONDS:.0f} seconds: "
                    f"{self._last_words()}"
                )
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_BETWEEN_SECONDS)
        return False

    def _must_run(self) -> None:
        if self._process is not None and self._process.poll() is not None:
            code = self._process.returncode
            raise EnvironmentProblem(
                f"{self._name} ended as it started, with exit code {code}: {self._last_words()}"
            )

    @property
    def said(self) -> str:
        """The last that the server has said, on its standard output and its standard error."""
        if self._file is None or self._file.closed:
            return ""
        # Not by reading on: the process writes where the file's one offset is.
        begin = max(0, os.fstat(self._file.fileno()).st_size - _MOST_WORDS)
        return os.pread(self._file.fileno(), _MOST_WORDS, begin).decode(errors="replace")

    def _last_words(self) -> str:
        return self.said.strip() or "it did not say why"

    def stop(self) -> None:
        """End the process. Safe to call again."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        if self._file is not None:
            self._file.close()


def free_port() -> int:
    """Return a port on loopback that nobody listens on."""
    return free_ports(1)[0]


def free_ports(count: int) -> list[int]:
    """Return some ports on loopback that nobody listens on, all different."""
    probes = [socket.socket() for _ in range(count)]
    try:
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [int(probe.getsockname()[1]) for probe in probes]
    finally:
        for probe in probes:
            probe.close()


def is_taken(port: int) -> bool:
    """Say whether somebody listens on a port of loopback."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return True
    return False
