"""Streams that say everything once: received, made durable, acknowledged, read, let go."""

from __future__ import annotations

import functools
import pickle
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from connectors import ConnectorError
from connectors.live import LEAST_LOG_BYTES, LiveReader, LogOptions, log_options
from connectors.log.folder import LogFolder
from connectors.log.writer import LogWriter
from connectors.read_limits import ReadAllAvailable, ReadMaxRows
from tests.support.live_sources import SCHEMA, Mailbox, records
from tests.support.waiting import Offset, offset_at, until


@pytest.fixture
def mailbox() -> Mailbox:
    return Mailbox()


@pytest.fixture
def reader(mailbox: Mailbox, tmp_path: Path) -> Iterator[LiveReader]:
    with closing(Closing(mailbox, tmp_path / "log")) as opened:
        yield opened


def options(path: Path, **more: str) -> LogOptions:
    return log_options("mail", {"log": str(path), **more})


class Closing(LiveReader):
    def __init__(self, mailbox: Mailbox, path: Path, **more: str) -> None:
        super().__init__(lambda: mailbox, options(path, **more))

    def close(self) -> None:
        self.stop()


def values(reader: LiveReader, start: Offset, end: Offset) -> list[bytes]:
    rows = [batch for part in reader.partitions(start, end) for batch in reader.read(part)]
    return [value for batch in rows for value in batch.column("value").to_pylist()]


def test_what_comes_is_acknowledged_when_it_is_durable_and_can_be_read_again(
    reader: LiveReader, mailbox: Mailbox, tmp_path: Path
) -> None:
    start = reader.initialOffset()
    assert mailbox.asked == 0
    mailbox.put(b"a", b"b")
    mailbox.put(b"c")
    end = offset_at(reader, 3, start)
    until(lambda: mailbox.acknowledged == [b"a", b"b", b"c"])
    elsewhere: LiveReader = pickle.loads(
        pickle.dumps(LiveReader(functools.partial(Mailbox), options(tmp_path / "log")))
    )
    assert values(elsewhere, start, end) == values(reader, start, end) == [b"a", b"b", b"c"]
    assert values(reader, end, end) == []
    assert reader.latestOffset(end, ReadAllAvailable()) == end
    first = reader.latestOffset(start, ReadMaxRows(2))
    assert (values(reader, start, first), values(reader, first, end)) == ([b"a", b"b"], [b"c"])
    assert reader.latestOffset(start, ReadMaxRows(1)) == first


def test_another_goes_on_where_one_ended_and_knows_what_that_knew(
    mailbox: Mailbox, tmp_path: Path
) -> None:
    with closing(Closing(mailbox, tmp_path)) as reader:
        start = reader.initialOffset()
        mailbox.put(b"a")
        end = offset_at(reader, 1, start)
    assert mailbox.closed.is_set()
    with closing(Closing(mailbox, tmp_path)) as reader:
        assert reader.initialOffset()["record"] == 0
        mailbox.put(b"b")
        assert values(reader, end, offset_at(reader, 2, end)) == [b"b"]
    assert mailbox.remembered == [(b"", []), (b"", [b"a"])]


def test_what_is_committed_is_let_go_and_what_its_owner_keeps_stays(
    mailbox: Mailbox, tmp_path: Path
) -> None:
    for commits, begins in (("batch", 1), ("owner", 0)):
        with closing(Closing(mailbox, tmp_path / commits, commits=commits)) as reader:
            start = reader.initialOffset()
            mailbox.put(b"a")
            end = offset_at(reader, 1, start)
            reader.commit(end)
            assert reader.initialOffset()["record"] == begins
            Closing(mailbox, tmp_path / commits).release(end)
            assert reader.initialOffset() == end


def test_a_full_log_receives_nothing_until_something_is_let_go(
    mailbox: Mailbox, tmp_path: Path
) -> None:
    piece = bytes(LEAST_LOG_BYTES // 8)
    with closing(Closing(mailbox, tmp_path, maxLogBytes=str(LEAST_LOG_BYTES))) as reader:
        start = reader.initialOffset()
        for _ in range(30):
            mailbox.put(piece)
        full = offset_at(reader, 8, start)
        asked = mailbox.asked
        until(lambda: len(mailbox.acknowledged) == full["record"])
        assert (mailbox.asked, reader.latestOffset(start, ReadAllAvailable())) == (asked, full)
        seen, last = full["record"], full
        while seen < 30:
            reader.commit(last)
            last = offset_at(reader, seen + 1, last)
            seen = last["record"]
        assert len(mailbox.acknowledged) == 30
        assert sum(file.stat().st_size for file in tmp_path.iterdir()) < LEAST_LOG_BYTES * 5 // 4


def test_a_log_that_one_segment_fills_gets_room_too(mailbox: Mailbox, tmp_path: Path) -> None:
    writer = LogWriter(LogFolder(tmp_path), SCHEMA, LEAST_LOG_BYTES)
    writer.append(records([bytes(LEAST_LOG_BYTES)]))
    writer.close()  # killed before it began another one
    with closing(Closing(mailbox, tmp_path, maxLogBytes=str(LEAST_LOG_BYTES))) as reader:
        mailbox.put(b"a")
        end = offset_at(reader, 1, reader.initialOffset())
        reader.commit(end)
        assert values(reader, end, offset_at(reader, 2, end)) == [b"a"]


def test_available_now_ends_with_what_the_source_has_and_lets_go_of_it(
    mailbox: Mailbox, tmp_path: Path
) -> None:
    mailbox.put(b"a")
    mailbox.put(b"b")
    with closing(Closing(mailbox, tmp_path)) as reader:
        reader.prepareForTriggerAvailableNow()
        assert mailbox.closed.is_set()
        mailbox.put(b"later")
        start = reader.initialOffset()
        end = reader.latestOffset(start, ReadAllAvailable())
        assert values(reader, start, end) == [b"a", b"b"]
        assert (reader.latestOffset(end, ReadAllAvailable()), reader.progress(end)) == (end, (2, 2))
    assert mailbox.acknowledged == [b"a", b"b"]


def test_what_ends_the_source_ends_the_stream_and_says_so(
    reader: LiveReader, mailbox: Mailbox
) -> None:
    mailbox.failure = ConnectorError("the post office is closed")
    start = reader.initialOffset()
    with pytest.raises(ConnectorError, match="post office"):
        until(lambda: reader.latestOffset(start, ReadAllAvailable()) is None)
    assert mailbox.closed.is_set()


def test_a_state_that_is_ahead_of_the_log_is_refused(reader: LiveReader, mailbox: Mailbox) -> None:
    start = reader.initialOffset()
    with pytest.raises(ConnectorError, match=r"ends before record 7[^~]*hint: "):
        until(lambda: reader.latestOffset({**start, "record": 7}, ReadAllAvailable()) is None)
    with pytest.raises(ConnectorError, match="not the one that has been read"):
        reader.latestOffset({**start, "log": "other"}, ReadAllAvailable())


def test_long_batches_are_cut_for_the_cores(mailbox: Mailbox, tmp_path: Path) -> None:
    with closing(Closing(mailbox, tmp_path, maxPartitions="2")) as reader:
        start = reader.initialOffset()
        for number in range(12):
            mailbox.put(bytes([number]) * (1 << 20))
        end = offset_at(reader, 12, start)
        parts = reader.partitions(start, end)
        assert len(parts) == 2
        assert [value[:1] for value in values(reader, start, end)] == [
            bytes([number]) for number in range(12)
        ]
        assert reader.latestOffset(start, reader.getDefaultReadLimit()) == end


def test_what_is_read_and_kept_presses_when_it_is_much(mailbox: Mailbox, tmp_path: Path) -> None:
    with closing(Closing(mailbox, tmp_path, maxLogBytes=str(LEAST_LOG_BYTES))) as reader:
        start = reader.initialOffset()
        for _ in range(4):
            mailbox.put(bytes(LEAST_LOG_BYTES // 8))
        first, last = offset_at(reader, 1, start, ReadMaxRows(1)), offset_at(reader, 4, start)
        assert not reader.log_nearly_full(first)
        assert reader.log_nearly_full(last)
        reader.release(last)
        assert not reader.log_nearly_full(last)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "needs the option log"),
        ({"log": "x", "maxLogBytes": "7"}, "maxLogBytes must be 1048576 at least"),
    ],
)
def test_options_that_will_not_do_are_named(options: dict[str, str], message: str) -> None:
    with pytest.raises(ConnectorError, match=message):
        log_options("mail", options)


def test_a_folder_that_is_no_log_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "segment-00000000000000000000").touch()
    with pytest.raises(ConnectorError, match=r"has segments of a log, but no log\.json"):
        LogFolder(tmp_path)
    (tmp_path / "log.json").write_text('{"version": 9, "log": "x"}')
    with pytest.raises(ConnectorError, match="newer version"):
        LogFolder(tmp_path)
