"""Files of executors in an object store, with copies on the disk of this machine."""

from __future__ import annotations

import pyarrow as pa
import pytest

from acquatop.ingest.buckets.chunk_files import ChunkObjects, files_at
from tests.support.s3.in_memory import InMemory


def content(name: str) -> pa.Buffer:
    return pa.py_buffer(name.encode() * 10)


def read(files: ChunkObjects, name: str) -> bytes:
    with files.open(name) as source:
        found: bytes = source.read()
    return found


def test_copies_are_bounded_and_made_again() -> None:
    objects = InMemory()
    # There is room for three.
    files, others = ChunkObjects(objects, 35), ChunkObjects(objects, 35)
    for name in "abcde":
        files.put(name, content(name), durable=True)
    assert files.names() == ["a", "b", "c", "d", "e"]
    everything = [(each, read(each, name)) for each in (files, others) for name in "abcde" * 2]
    assert {found for _, found in everything} == {name.encode() * 10 for name in "abcde"}
    # What was read last is there without the store; what was not has to be fetched.
    objects.objects.clear()
    assert [read(files, name) for name in "dec"] == [b"d" * 10, b"e" * 10, b"c" * 10]
    with pytest.raises(FileNotFoundError, match="a is missing"):
        files.open("a")
    files.remove(["d"])
    files.forget()
    others.forget()
    with pytest.raises(FileNotFoundError):
        files.open("c")


def test_a_store_that_cannot_be_used_is_an_error_of_the_system(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID", raising=False)
    with pytest.raises(OSError, match="there are no keys for s3://bucket/keys"):
        files_at("s3://bucket/keys")
