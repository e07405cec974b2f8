"""A real SPARQL server for examples and tests: the Oxigraph binary from PyPI, on loopback."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sysconfig
import time
from pathlib import Path
from typing import Self

import requests

from acquatop.errors import EnvironmentProblem

STARTUP_SECONDS = 20.0


class OxigraphServer:
    """Oxigraph server with its data in memory; ``port`` 0 means any free one.

    A context manager: the server ends with the context.
    """

    def __init__(self, port: int = 0) -> None:
        self._wanted = port
        self.port = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._session = requests.Session()

    @property
    def query_url(self) -> str:
        """Address of the SPARQL query endpoint."""
        return f"http://127.0.0.1:{self.port}/query"

    def update(self, text: str) -> None:
        """Run a SPARQL update."""
        response = self._session.post(
            f"http://127.0.0.1:{self.port}/update",
            data=text.encode(),
            headers={"Content-Type": "application/sparql-update"},
            timeout=30,
        )
        response.raise_for_status()

    def __enter__(self) -> Self:
        self.port = self._wanted or free_port()
        if not _is_free(self.port):
            raise EnvironmentProblem(
                f"port {self.port} is taken\n  hint: choose another with --port, or leave it out for a free one"
            )
        command = [_binary(), "serve", "--bind", f"127.0.0.1:{self.port}"]
        # In a session of its own, so that a Ctrl-C for this process does not end it too early.
        self._process = subprocess.Popen(  # noqa: S603
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
        )
        try:
            self._wait_until_ready(self._process)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._session.close()
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            if self._process.stderr:
                self._process.stderr.close()

    def _wait_until_ready(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + STARTUP_SECONDS
        while time.monotonic() < deadline:
            if process.poll() is not None:
                said = process.stderr.read().decode(errors="replace").strip() if process.stderr else ""
                raise EnvironmentProblem(f"the SPARQL server ended as it started: {said or 'it did not say why'}")
            try:
                self._session.get(self.query_url, params={"query": "ASK {}"}, timeout=5).raise_for_status()
            except requests.RequestException:
                time.sleep(0.02)
            else:
                return
        raise EnvironmentProblem(f"the SPARQL server did not answer within {STARTUP_SECONDS:.0f} seconds")


def _binary() -> str:
    beside = Path(sysconfig.get_path("scripts")) / "oxigraph"
    found = str(beside) if beside.is_file() else shutil.which("oxigraph")
    if found is None:
        raise EnvironmentProblem("the program oxigraph is missing\n  hint: pip install oxigraph")
    return found


def free_port() -> int:
    """Return an unused port on loopback."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
