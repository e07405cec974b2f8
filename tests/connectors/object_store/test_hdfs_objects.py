"""Objects on HDFS under writers whose requests come in any order: nothing confirmed is lost."""

from __future__ import annotations

import logging
from functools import partial
from random import Random

import pytest

from connectors.object_store.hdfs_objects import LATER, UNFINISHED, HdfsObjects
from connectors.object_store.patient import PatientObjects
from tests.support.hdfs.in_steps import InMemoryFiles, Turns

ROOT = "/engines/one"


def world(seed: int) -> tuple[InMemoryFiles, Turns]:
    turns = Turns(Random(seed))
    return InMemoryFiles(turns.request), turns


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR, "acquatop")


def patient(files: InMemoryFiles) -> PatientObjects:
    """Return what a writer of its own has, which asks again at once."""
    return PatientObjects(HdfsObjects(files, ROOT), ROOT, clock=lambda: 0.0, pause=lambda _: None)


def append(writer: int, files: InMemoryFiles, confirmed: list[bytes]) -> None:
    """Append marks to what an object holds, and note those that are known to be there."""
    objects = patient(files)
    for count in range(4):
        mark = b"<%d.%d>" % (writer, count)
        found = objects.get("x")
        if found is None:
            version = objects.put_new("x", mark)
        else:
            version = objects.put_over("x", found.content + mark, found.version)
        if version is not None:
            confirmed.append(mark)


@pytest.mark.parametrize("start", range(0, 300, 100))
def test_what_was_confirmed_stays_whoever_replaces_it(start: int) -> None:
    confirmed_in_all = 0
    for seed in range(start, start + 100):
        files, turns = world(seed)
        confirmed: list[bytes] = []
        turns.run([partial(append, each, files, confirmed) for each in range(4)])
        assert turns.failures == [], seed
        found = patient(files).get("x")
        assert found is not None
        marks = [f"{each}>".encode() for each in found.content.decode().split(">")[:-1]]
        assert len(set(marks)) == len(marks), seed
        assert set(confirmed) <= set(marks), seed
        for writer in range(4):
            own = [each for each in marks if each.startswith(b"<%d." % writer)]
            assert own == sorted(own), seed
        confirmed_in_all += len(confirmed)
    assert confirmed_in_all > 200


def write_records(writer: int, files: InMemoryFiles, won: dict[str, bytes]) -> None:
    objects = patient(files)
    for number in range(6):
        name, content = f"record-{number}", b"%d " % writer * 9
        if objects.put_new(name, content) is not None:
            assert name not in won
            won[name] = content
        found = objects.get(name)
        assert found is not None
        assert found.content == won.get(name, found.content)


def test_each_number_of_a_chain_is_given_once() -> None:
    for seed in range(100):
        files, turns = world(seed)
        won: dict[str, bytes] = {}
        turns.run([partial(write_records, each, files, won) for each in range(3)])
        assert turns.failures == [], seed
        objects = patient(files)
        assert set(won) <= set(objects.names()), seed
        for name in objects.names():
            found = objects.get(name)
            assert found is not None
            # Also what nobody heard of is whole.
            assert found.content == won.get(name, found.content[:2] * 9), seed


def test_later_contents_are_one_file_and_what_was_left_is_removed_a_day_later() -> None:
    files, now = InMemoryFiles(), 0.0
    objects = HdfsObjects(files, ROOT, clock=lambda: now)
    version = objects.put_new("x", b"0")
    for each in range(5):
        assert version is not None
        version = objects.put_over("x", b"%d" % each, version)
    assert sorted(files.files) == [f"{ROOT}/{LATER}/x/000000000006", f"{ROOT}/x"]
    left = f"{ROOT}/{UNFINISHED}/left"
    for now, is_there in ((3600.0, True), (90000.0, False)):
        files.create(left, b"half")
        HdfsObjects(files, ROOT, clock=lambda now=now: now).put("y", b"1")
        assert (left in files.files) == is_there


def test_who_is_behind_a_place_that_was_emptied_replaces_nothing() -> None:
    files = InMemoryFiles()
    stale, new = HdfsObjects(files, ROOT), HdfsObjects(files, ROOT)
    version = stale.put_new("x", b"stale")
    assert version is not None
    files.files.clear()
    assert stale.put_over("x", b"stale 2", version) is None
    assert new.put_new("x", b"new") is not None
    assert stale.put_over("x", b"stale 2", version) is None
    assert files.files == {f"{ROOT}/x": b"new"}
