"""A real Apache Jena Fuseki on loopback, with its data in memory."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from types import TracebackType
from typing import Self

import requests

from acquatop.runtime.java import find_java
from examples.server_process import ServerProcess
from tests.support.maven import FUSEKI
from tests.support.waiting import PATIENCE


class FusekiServer:
    """Server with the dataset ``ds``."""

    def __init__(self) -> None:
        self._place = tempfile.TemporaryDirectory(prefix="acquatop-fuseki-")
        self._process = ServerProcess("Fuseki", self._command, self._answers)

    def __enter__(self) -> Self:
        self._process.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._process.stop()
        self._place.cleanup()

    @property
    def query_url(self) -> str:
        """Address of the SPARQL query endpoint."""
        return f"http://127.0.0.1:{self._process.port}/ds/query"

    def update(self, text: str) -> None:
        """Run a SPARQL update."""
        requests.post(
            self.query_url.replace("/query", "/update"),
            data=text.encode(),
            headers={"Content-Type": "application/sparql-update"},
            timeout=PATIENCE,
        ).raise_for_status()

    def _answers(self, process: ServerProcess) -> bool:
        if f"Start Fuseki (http={process.port})" not in process.said:
            return False
        with suppress(requests.RequestException):
            return requests.get(self.query_url, {"query": "ASK {}"}, timeout=5).ok
        return False

    def _command(self, port: int) -> list[str]:
        java = find_java()
        assert java is not None
        return [
            java.command,
            *("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m"),
            *(f"-Duser.dir={self._place.name}", "-jar"),
            str(FUSEKI.folder / "jena-fuseki-server.jar"),
            *("--port", str(port), "--localhost", "--mem", "/ds"),
        ]
