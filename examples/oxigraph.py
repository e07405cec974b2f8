"""A real SPARQL server for examples and tests: the Oxigraph binary from PyPI, on loopback."""

from __future__ import annotations

import shutil
import sysconfig
import time
from pathlib import Path
from typing import Self

import requests

from acquatop.errors import EnvironmentProblem
from replica.clocks import Clock

from .server_process import ServerProcess

_LISTENS = "Listening for requests"


class OxigraphServer:
    """Oxigraph server with its data in memory; ``port`` 0 means any free one.

    A context manager: the server ends with the context.
    """

    def __init__(self, port: int = 0, *, clock: Clock = time.monotonic) -> None:
        self._session = requests.Session()
        self._process = ServerProcess(
            "the SPARQL server", _command, self._answers, port=port, clock=clock
        )

    @property
    def port(self) -> int:
        """Port on which it listens."""
        return self._process.port

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
        try:
            self._process.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._session.close()
        self._process.stop()

    def _answers(self, process: ServerProcess) -> bool:
        """Say whether this very server answers queries: it says so itself once it has the port."""
        if _LISTENS not in process.said:
            return False
        try:
            self._session.get(
                self.query_url, params={"query": "ASK {}"}, timeout=5
            ).raise_for_status()
        except requests.RequestException:
            return False
        return True


def _command(port: int) -> list[str]:
    return [_binary(), "serve", "--bind", f"127.0.0.1:{port}"]


def _binary() -> str:
    beside = Path(sysconfig.get_path("scripts")) / "oxigraph"
    found = str(beside) if beside.is_file() else shutil.which("oxigraph")
    if found is None:
        raise EnvironmentProblem("the program oxigraph is missing\n  hint: pip install oxigraph")
    return found
