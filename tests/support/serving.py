"""The service as a program, with a stream in a file."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from acquatop.app.serve.client import Client
from acquatop.app.serve.registrations import InFolder
from acquatop.app.serve.service import QueryService
from acquatop.catalog.catalog import Catalog
from acquatop.engine.engine import Engine
from acquatop.engine.observer import Observer
from tests.support.staged import LIMIT
from tests.support.worlds import Event, catalog_text

ROOT = Path(__file__).parents[2]
QUERY = """
PREFIX : <http://example.org/>
SELECT ?user (2 * ?mentions AS ?score)
FROM NAMED WINDOW :w ON :stream [RANGE 9ms STEP 3ms]
WHERE { WINDOW :w { ?user :mentions ?mentions } } ORDER BY DESC(?score) LIMIT 2
"""


class World:
    """A stream in a file, its catalog, and a folder for what is kept."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.time = 0
        self.engines: list[Engine] = []
        (folder / "events").touch()
        (folder / "catalog.toml").write_text(catalog_text(start="start_ms = 0"), "utf-8")

    def events(self, count: int = 10) -> None:
        with (self.folder / "events").open("ab") as stream:
            for _ in range(count):
                self.time += 1
                stream.write(Event(self.time, f"u{self.time % 3}", self.time).line() + b"\n")

    def service(self, **more: Any) -> QueryService:
        catalog = Catalog.load(self.folder / "catalog.toml", variables={})

        def engine(observer: Observer) -> Engine:
            made = Engine(
                catalog,
                runtime="local",
                observer=observer,
                state=self.folder / "state" / "engine",
                autostart=False,
            )
            self.engines.append(made)
            return made

        service = QueryService(
            engine,
            registrations=InFolder(self.folder / "state" / "queries"),
            **more,
        )
        service.start()
        return service

    def is_forgotten(self) -> bool:
        """Return True if the newest engine has no query, nor anything of one."""
        engine = self.engines[-1]
        return (engine.queries, engine.groups) == ([], [])


@contextmanager
def serving(
    folder: Path,
    *more: str,
    keeps: bool = True,
    runtime: str = "local",
    certificates: Path | None = None,
    **variables: str,
) -> Iterator[tuple[subprocess.Popen[str], Client]]:
    command = [
        sys.executable,
        "-m",
        "acquatop",
        "serve",
        *more,
        "--catalog",
        "catalog.toml",
        "--runtime",
        runtime,
    ]
    command += ["--listen", "0", *(("--state", "state") if keeps else ())]
    surroundings = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
    child = subprocess.Popen(
        command, cwd=folder, env=surroundings, stderr=subprocess.PIPE, text=True
    )
    try:
        assert child.stderr is not None
        said, found = "", None
        # On a cluster it may be said before that executors are waited for.
        while found is None:
            line = child.stderr.readline()
            assert line, said
            said += line
            found = re.search(r"https?://[0-9.:]+", line)
        token = variables.get("ACQUATOP_TOKEN")
        with Client(found[0], token=token, timeout=LIMIT, certificates=certificates) as client:
            yield child, client
    finally:
        child.kill()
        child.wait()
        assert child.stderr is not None
        child.stderr.close()
