"""Queries that come and go: in one engine, and over HTTP with readers that leave."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

import requests

from acquatop.answer.sinks.callback import CallbackSink
from acquatop.app.serve.client import Client, ServiceError
from acquatop.app.watch.json_lines import JsonLines
from acquatop.app.watch.log import Log
from acquatop.app.watch.prometheus import Metrics
from acquatop.catalog.catalog import Catalog
from acquatop.engine.engine import Engine
from acquatop.engine.observer import Several
from acquatop.errors import EnvironmentProblem
from benchmarks.soak_bench.events import events
from benchmarks.soak_bench.usage import folder_bytes, folder_files, usage_of
from benchmarks.soak_bench.windows import endpoint
from benchmarks.soak_bench.world import KINDS, catalog, query
from rspql.diagnostics import QueryError

PARTS = 10
_AT_ONCE = 400
"""Events that come at once; between two times every window closes."""
_APART = 60_000
_PATIENCE = 120.0
_WARM = 24
"""Cycles before the first figures: each kind has come and gone some times."""
_BROKEN = "SELECT ?s WHERE { ?s ?p"
_UNREACHABLE = 9
"""Port that nobody listens at."""


def in_process(cycles: int) -> Iterator[dict[str, Any]]:
    """Yield what is used at each tenth of some cycles of registration and removal."""
    with ExitStack() as made:
        folder = Path(made.enter_context(tempfile.TemporaryDirectory(prefix="acquatop-soak-")))
        (folder / "events").touch()
        text = catalog(_UNREACHABLE, pipe=None).replace("load = false", 'timeout = "1s"')
        metrics, log = Metrics(), Log(JsonLines(str(folder / "log.jsonl")))
        made.callback(log.close)
        engine = made.enter_context(
            Engine(
                Catalog.parse(text, file=folder / "catalog.toml", variables={}),
                runtime="local",
                observer=Several([metrics, log]),
                state=folder / "state",
                autostart=False,
            )
        )
        engine.register(query("top", name="stays"), backlog=0)
        engine.start()
        for cycle in range(1 - _WARM, cycles + 1):
            come_and_go(engine, KINDS[cycle % len(KINDS)], cycle + _WARM, folder / "events")
            if cycle == 0 or (cycle > 0 and cycle % (cycles // PARTS) == 0):
                series = sum(len(each.samples) for each in metrics.registry.collect())
                yield {"cycles": cycle, **_used(os.getpid(), folder / "state"), "series": series}


def come_and_go(engine: Engine, kind: str, cycle: int, file: Path) -> None:
    """Register a query and stop it after an answer; others fail, for their text or a remote."""
    has_answered = threading.Event()
    sink = CallbackSink(lambda answer: has_answered.set())
    with suppress(QueryError):
        engine.register(_BROKEN)
    try:
        registered = engine.register(query(kind, name=f"{kind}{cycle}"), sinks=[sink], backlog=0)
    except EnvironmentProblem:
        return  # the kind "asked" fills its replica first, and cannot
    append_burst(file, cycle)
    if not has_answered.wait(_PATIENCE):
        raise RuntimeError(f"{registered.name} gives no answer")
    registered.stop()


def over_http(cycles: int) -> Iterator[dict[str, Any]]:
    """Yield what a service uses at each tenth of some cycles, with readers that leave."""
    with ExitStack() as made:
        folder = Path(made.enter_context(tempfile.TemporaryDirectory(prefix="acquatop-soak-")))
        (folder / "events").touch()
        port = made.enter_context(endpoint())
        (folder / "catalog.toml").write_text(catalog(port, pipe=None))
        process, client = made.enter_context(_served(folder))
        client.register(query("top", name="stays"))
        for cycle in range(1 - _WARM, cycles + 1):
            kind = KINDS[cycle % len(KINDS)]
            with suppress(ServiceError):
                client.register(_BROKEN)
            registered = client.register(query(kind, name=f"{kind}{cycle}"))
            append_burst(folder / "events", cycle + _WARM)
            _read_and_leave(client.url + f"/queries/{registered['id']}/events", b"event: answer")
            _read_and_leave(client.url + "/events", b"event: snapshot")
            if cycle % 2:
                client.pause(registered["id"])
            client.remove(registered["id"])
            if cycle == 0 or (cycle > 0 and cycle % (cycles // PARTS) == 0):
                yield {"cycles": cycle, **_used(process, folder / "state")}


def _read_and_leave(url: str, until: bytes) -> None:
    """Read a stream up to an event, and close the connection."""
    with requests.get(url, stream=True, timeout=_PATIENCE) as reply:
        next(line for line in reply.iter_lines() if line == until)


@contextmanager
def _served(folder: Path) -> Iterator[tuple[int, Client]]:
    command = [sys.executable, "-m", "acquatop", "serve", "--catalog", "catalog.toml"]
    more = ["--runtime", "local", "--listen", "0", "--state", "state", "--log", "log.jsonl"]
    surroundings = {**os.environ, "PYTHONPATH": str(Path.cwd())}
    with subprocess.Popen(
        [*command, *more, "--limit", "work_rate=1000", "--limit", "work_burst=1000"],
        cwd=folder,
        env=surroundings,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stderr is not None
            said = process.stderr.readline()
            found = re.search(r"http://[0-9.:]+", said)
            if found is None:
                raise RuntimeError(said + process.stderr.read())
            with Client(found[0]) as client:
                yield process.pid, client
        finally:
            process.kill()


def append_burst(file: Path, cycle: int) -> None:
    """Append events, and others later by so much that the windows of the first ones close."""
    for burst in (2 * cycle, 2 * cycle + 1):
        with file.open("ab") as stream:
            stream.writelines(islice(events(burst * _APART), _AT_ONCE))


def _used(process: int, state: Path) -> dict[str, Any]:
    used = {"state_bytes": folder_bytes(state), "state_files": folder_files(state)}
    return {**asdict(usage_of(process)), **used}
