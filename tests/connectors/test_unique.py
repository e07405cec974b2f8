"""Messages that come again as new ones are dropped, also after a restart."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from connectors import ConnectorError
from connectors.live import log_options
from connectors.log.folder import LogFolder
from connectors.log.writer import LogWriter
from connectors.message_identity import MessageIdentity
from connectors.recent_hashes import RecentHashes
from connectors.unique import Uniqueness, UniqueSource
from tests.support.live_sources import SCHEMA, Mailbox, values_of


class Life:
    """One life of a receiver: what it appends to a log in a folder."""

    def __init__(
        self, path: Path, now: list[float], message_id: str = "payload", most: int = 1 << 20
    ) -> None:
        self.folder = LogFolder(path)
        self.mailbox = Mailbox()
        identity = MessageIdentity(message_id) if message_id else None
        unique = None if identity is None else Uniqueness(identity, 60.0)
        self.source = UniqueSource(self.mailbox, self.folder, unique, clock=lambda: now[0])
        self.writer = LogWriter(self.folder, SCHEMA, most, patience_seconds=0)
        self.source.open(self.writer.remembered)

    def take(self, *values: bytes) -> list[bytes]:
        """Return those of some messages that are new, and are in the log then."""
        self.mailbox.put(*values)
        records = self.source.receive(0)
        if records is None:
            return []
        self.writer.append(records)
        self.source.acknowledge()
        return list(values_of(iter([records])))

    def begin_segment(self) -> None:
        self.writer.remember(self.source.memory())

    def end(self) -> None:
        """End as a kill does: nothing is saved."""
        self.writer.close()


@pytest.fixture
def now() -> list[float]:
    return [1_000.0]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    return tmp_path / "log"


def test_a_message_counts_once_within_the_time(place: Path, now: list[float]) -> None:
    life = Life(place, now)
    assert life.take(b"a", b"b", b"a") == [b"a", b"b"]
    now[0] += 59
    assert life.take(b"a", b"c", b"b") == [b"c"]
    assert life.take(b"a") == []
    assert life.mailbox.acknowledged == [b"a", b"b", b"a", b"a", b"c", b"b", b"a"]
    assert life.folder.repeated() == 4
    now[0] += 121
    assert life.take(b"a") == [b"a"]
    life.end()


def test_they_are_known_after_any_number_of_restarts(place: Path, now: list[float]) -> None:
    random = Random(4)
    known: dict[bytes, float] = {}
    life = Life(place, now)
    for number in range(300):
        match random.randrange(6):
            case 0:
                life.begin_segment()
            case 1:
                life.end()
                life = Life(place, now)
        now[0] += random.choice([0, 1, 5])
        value = b"%d" % random.randrange(40)
        is_new = life.take(value) == [value]
        age = now[0] - known.get(value, -1e9)
        if age < 60:
            assert not is_new, number
        if age > 200:
            assert is_new, number
        if is_new:
            known[value] = now[0]
    assert len(list(place.glob("seen-*"))) <= 4
    life.end()


def test_the_option_may_come_and_go(place: Path, now: list[float]) -> None:
    life = Life(place, now, message_id="")
    life.mailbox.known = b"own"
    assert life.take(b"a", b"a") == [b"a", b"a"]
    life.begin_segment()
    life.end()
    life = Life(place, now)
    life.mailbox.known = b"own"
    assert life.mailbox.remembered == [(b"own", [])]
    assert life.take(b"a", b"b", b"b") == [b"a", b"b"]
    life.begin_segment()
    life.end()
    life = Life(place, now, message_id="")
    assert life.mailbox.remembered == [(b"own", [])]
    assert life.take(b"a") == [b"a"]
    life.end()


def test_a_damaged_file_of_hashes_is_said(place: Path, now: list[float]) -> None:
    life = Life(place, now)
    life.take(b"a", b"b")
    life.begin_segment()
    life.end()
    (file,) = place.glob("seen-*")
    content = file.read_bytes()
    random = Random(2)
    for at in range(len(content)):
        changed = bytearray(content)
        changed[at] ^= 1 << random.randrange(8)
        file.write_bytes(changed)
        with pytest.raises(ConnectorError, match=rf"{file} is damaged: [^~]*hint: put it back"):
            _reopened(place, now)
    file.unlink()
    with pytest.raises(ConnectorError, match=rf"{file} is damaged: No such file"):
        _reopened(place, now)
    file.write_bytes(content + b"from a save whose segment did not begin")
    life = Life(place, now)
    assert life.take(b"b", b"c") == [b"c"]
    life.end()


def _reopened(place: Path, now: list[float]) -> None:
    folder = LogFolder(place)
    writer = LogWriter(folder, SCHEMA, 1 << 20, patience_seconds=0)
    try:
        unique = Uniqueness(MessageIdentity("payload"), 60.0)
        source = UniqueSource(Mailbox(), folder, unique, clock=lambda: now[0])
        source.open(writer.remembered)
    finally:
        writer.close()


def test_memory_is_bounded_and_that_is_said() -> None:
    recent = RecentHashes(60.0, most=100)
    for number in range(1_000):
        recent.add(np.array([number], np.uint64), 0.0)
    assert recent.is_cut_short
    assert recent.older is not None
    assert recent.newer is not None
    assert recent.older.count + recent.newer.count <= 200
    assert recent.add(np.array([999, 5], np.uint64), 0.0).tolist() == [False, True]


def test_a_field_or_the_whole_message_tells_what_is_equal() -> None:
    messages = pa.record_batch(
        {
            "value": pa.array(
                [b'{"a": {"id": 1}, "x": 1}', b'{"a": {"id": 1}}', b"{}", b"no", b"c"]
            ),
            "topic": ["one", "two", "two", "two", "two"],
            "size": [24, 16, 2, 2, 900],
        }
    )
    hashes, has_one = MessageIdentity("field:a.id").of(messages)
    assert has_one.tolist() == [True, True, False, False, False]
    assert hashes[0] == hashes[1]
    hashes, has_one = MessageIdentity("payload").of(messages)
    # Of the last message only a part was kept.
    assert has_one.tolist() == [True, True, True, True, False]
    assert len(set(hashes[:4].tolist())) == 4


@pytest.mark.parametrize(
    ("written", "message"), [("field:", "names no field"), ("id", 'is not "id"')]
)
def test_an_identity_that_is_none_is_named(written: str, message: str) -> None:
    options = log_options("tcp", {"log": "x", "messageId": written})
    assert options.message_id == written
    with pytest.raises(ConnectorError, match=rf'{message}\n  hint: write "payload"'):
        MessageIdentity(written)
