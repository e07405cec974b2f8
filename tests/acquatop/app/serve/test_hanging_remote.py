"""While a registration waits for a remote that hangs, all other requests are answered."""

from __future__ import annotations

import signal
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests

from tests.support.markers import THOROUGH
from tests.support.serving import QUERY, World, serving
from tests.support.staged import LIMIT
from tests.support.worlds import catalog_text, query_text

RSPQL = {"Content-Type": "application/sparql-query"}
SOON = 25.0
"""Seconds for a reply on a busy machine; the remote hangs for thirty."""


@contextmanager
def hanging() -> Iterator[socket.socket]:
    """A server that accepts nobody: whoever connects waits."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


@THOROUGH
@pytest.mark.parametrize("state", [True, False])
def test_nobody_waits_for_a_registration_that_waits_for_a_remote(
    tmp_path: Path, state: bool
) -> None:
    world = World(tmp_path)
    for name in ("first", "second", "third"):
        (tmp_path / f"{name}.rspql").write_text(QUERY)
    with hanging() as remote, ThreadPoolExecutor(1) as pool:
        endpoint = f"http://127.0.0.1:{remote.getsockname()[1]}/query"
        (tmp_path / "catalog.toml").write_text(catalog_text(endpoint=endpoint))
        files = ("first.rspql", "second.rspql", "third.rspql")
        with serving(world.folder, *files, keeps=state) as (child, client):
            url = client.url
            slow = pool.submit(
                requests.post, url + "/queries", query_text(), headers=RSPQL, timeout=100
            )
            connection, _ = remote.accept()
            told = {}
            for method, path, statuses in (
                ("GET", "/healthz", (200,)),
                ("GET", "/metrics", (200,)),
                ("GET", "/queries", (200,)),
                ("POST", "/queries/first/pause", (200,)),
                ("DELETE", "/queries/second", (204,)),
                ("GET", "/queries/second", (404,)),
                ("POST", "/queries?name=other", (201, 503)),
                ("POST", "/queries/first/resume", (200, 503)),
                ("POST", "/queries/third/pause", (200,)),
                ("GET", "/events", (200,)),
            ):
                before = time.monotonic()
                is_registration = path.startswith("/queries?")
                with requests.request(
                    method,
                    url + path,
                    data=QUERY if is_registration else None,
                    headers=RSPQL,
                    stream=True,
                    timeout=LIMIT,
                ) as reply:
                    told[path] = time.monotonic() - before
                    assert reply.status_code in statuses
                    assert reply.status_code != 503 or reply.headers["Retry-After"] == "1"
            assert not slow.done()
            assert max(told.values()) < SOON, told
            print({path: round(seconds, 3) for path, seconds in told.items()})
            listed = {each["id"]: each["state"] for each in client.queries()}
            assert listed["third"] == "paused"
            assert "second" not in listed
            connection.close()
            child.kill()


@THOROUGH
def test_a_service_ends_while_a_registration_waits_for_a_remote(tmp_path: Path) -> None:
    world = World(tmp_path)
    with hanging() as remote, ThreadPoolExecutor(1) as pool:
        endpoint = f"http://127.0.0.1:{remote.getsockname()[1]}/query"
        (tmp_path / "catalog.toml").write_text(catalog_text(endpoint=endpoint))
        with serving(world.folder) as (child, client):
            url = client.url + "/queries"
            slow = pool.submit(requests.post, url, query_text(), headers=RSPQL, timeout=100)
            connection, _ = remote.accept()
            with connection:
                child.send_signal(signal.SIGTERM)
                # Its readers have five seconds to leave; the remote hangs for thirty.
                assert child.wait(SOON) == 0
            assert slow.exception() is not None or slow.result().status_code >= 500
