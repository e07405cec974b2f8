"""State and answers on HDFS: its conditions, and drivers that end on one machine and go on at
another.
"""

from __future__ import annotations

import getpass
import os
import socket
import threading
from collections.abc import Iterator
from random import Random
from urllib.parse import urlsplit

import pytest
import requests

from acquatop.engine.state.place import open_state
from acquatop.errors import EnvironmentProblem
from connectors.object_store.contract import (
    ObjectStore,
    StoredObject,
    StoreError,
    StoreUnavailableError,
)
from connectors.object_store.hdfs import ENDPOINT, USER
from connectors.object_store.hdfs_objects import UNFINISHED
from connectors.object_store.opening import open_objects
from tests.support.markers import THOROUGH
from tests.support.s3.elsewhere import World, elsewhere
from tests.support.s3.running import new_place


@pytest.fixture
def objects(hdfs: int) -> ObjectStore:
    return open_objects(new_place(scheme="hdfs").address)


@pytest.fixture
def world(hdfs: int) -> Iterator[World]:
    with elsewhere("hdfs", hdfs, ("top", "most", "shared most")) as world:
        yield world


def test_objects_are_written_replaced_and_removed_as_a_whole(objects: ObjectStore) -> None:
    assert (objects.get("x"), objects.names()) == (None, [])
    first = objects.put_new("x", b"1")
    assert first is not None
    assert objects.put_new("x", b"2") is None
    assert objects.put_over("none", b"2", first) is None
    second = objects.put_over("x", b"", first)
    assert second is not None
    assert objects.put_over("x", b"3", first) is None
    assert objects.put_over("x", b"3", dict.fromkeys(first, '"wrong"')) is None
    assert objects.get("x") == StoredObject(b"", second)
    large = Random(1).randbytes(3 << 20)
    for content in (b"before", large):
        objects.put("a folder/ü+&%.csv", content)
    found = objects.get("a folder/ü+&%.csv")
    assert found is not None
    assert found.content == large
    assert objects.put_new("y", b"1") is not None
    assert objects.names() == ["x", "y"]
    objects.remove(["y", "none", "a folder/ü+&%.csv"])
    assert objects.names() == ["x"]
    assert objects.get("a folder/ü+&%.csv") is None


def test_of_many_writers_at_once_one_wins(objects: ObjectStore) -> None:
    version = objects.put_new("replaced", b"first")
    assert version is not None
    won: list[tuple[str, int]] = []

    def write(writer: int) -> None:
        content = b"%d" % writer
        if objects.put_new("new", content) is not None:
            won.append(("new", writer))
        if objects.put_over("replaced", content, version) is not None:
            won.append(("replaced", writer))

    threads = [threading.Thread(target=write, args=(each,)) for each in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(name for name, _ in won) == ["new", "replaced"]
    for name, writer in won:
        found = objects.get(name)
        assert found is not None
        assert found.content == b"%d" % writer


def test_a_file_that_was_written_by_half_is_no_object(hdfs: int) -> None:
    address = new_place(scheme="hdfs").address
    path = f"/webhdfs/v1/{address.prefix}/{UNFINISHED}/half"
    url = f"{os.environ[ENDPOINT]}{path}?user.name={getpass.getuser()}&op="
    created = requests.put(f"{url}CREATE", allow_redirects=False, timeout=60)
    to = urlsplit(created.headers["Location"])
    assert to.hostname is not None
    with socket.create_connection((to.hostname, to.port or 80)) as connection:
        start = f"PUT {to.path}?{to.query} HTTP/1.1\r\nHost: x\r\nContent-Length: 999\r\n\r\n"
        connection.sendall(start.encode() + b"half")
    objects = open_objects(address)
    assert objects.names() == []
    assert objects.put_new("whole", b"1") is not None
    assert objects.names() == ["whole"]
    # A day later it is removed by the next who writes.
    requests.put(f"{url}SETTIMES&modificationtime=1", timeout=60).raise_for_status()
    open_objects(address).put("more", b"2")
    gone = requests.get(f"{url}GETFILESTATUS", timeout=60)
    assert gone.status_code == 404


def test_two_engines_at_one_time(hdfs: int) -> None:
    place = new_place(scheme="hdfs")
    texts = {"query top": "SELECT"}
    with open_state(place, texts) as state:
        assert state.recover() is None
        state.save({"at": b"1"})
        with pytest.raises(EnvironmentProblem, match=r"is in use by process \d+ on"):
            open_state(place, texts)
        state.append({"at": b"2"})
    with open_state(place, texts) as state:
        found = state.recover()
        assert found is not None
        assert (found.parts, found.journal) == ({"at": b"1"}, [{"at": b"2"}])


@THOROUGH
def test_a_killed_driver_goes_on_elsewhere(world: World) -> None:
    """The bytes are those of a life on a local disk that was not killed; nobody is asked twice."""
    ways = [
        (f"{part} {nth} {first}", world.killed_at(part, nth, first=first))
        for part, nth, first in (
            ("record-", 3, True),
            ("op=CREATE", 20, True),
            ("tables%2F", 3, False),
        )
    ]
    assert world.trial.run("elsewhere", ways, world.to_its_end) == len(ways)
    assert world.trial.failures == []
    assert world.trial.verdict.judged["exact"] > 4


@THOROUGH
def test_an_engine_that_wakes_up_too_late_writes_nothing(world: World) -> None:
    world.wakes_up_too_late("record-", 6, set())


def test_who_may_not_write_is_told(hdfs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(USER, "nobody")
    with pytest.raises(StoreError, match="403 Forbidden AccessControlException"):
        open_objects(new_place(scheme="hdfs").address).put_new("x", b"1")


def test_the_next_server_is_asked_when_one_is_away(
    hdfs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    address, server = new_place(scheme="hdfs").address, os.environ[ENDPOINT]
    monkeypatch.setenv(ENDPOINT, f"http://127.0.0.1:9, {server}/")
    objects = open_objects(address)
    with pytest.raises(StoreUnavailableError, match=r"hdfs://bucket/.*: no reply"):
        objects.get("x")
    assert objects.get("x") is None
    monkeypatch.setenv(ENDPOINT, "namenode:9870")
    with pytest.raises(StoreError, match="names no server"):
        open_objects(address)
