"""The durable log against a list in memory: whatever is written, removed, torn and read again."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connectors import ConnectorError
from connectors.log.blocks import encode_block
from connectors.log.folder import LogFolder
from connectors.log.position import Position
from connectors.log.reader import LogReader
from connectors.log.writer import LogWriter
from tests.support.live_sources import SCHEMA, records, values_of

ROOT = Path(__file__).parents[3]
SMALL = 4096
"""So full is a log soon, with segments of 512 bytes."""


@pytest.fixture
def folder() -> Iterator[LogFolder]:
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as name:
        yield LogFolder(Path(name) / "log")


def opened(folder: LogFolder, max_bytes: int = SMALL) -> LogWriter:
    return LogWriter(folder, SCHEMA, max_bytes, patience_seconds=0)


def read(
    folder: LogFolder, start: Position, end: Position, least: int = 1
) -> list[tuple[int, bytes]]:
    reader = LogReader(folder)
    batch = reader.read(reader.spans(start, end, least))
    return [] if batch is None else [(row["position"], row["value"]) for row in batch.to_pylist()]


@given(st.data())
@settings(max_examples=60)
def test_it_holds_what_was_written_whatever_happens(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory(
        dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    ) as name:
        folder = LogFolder(Path(name))
        writer, written, number = opened(folder), [], 0
        positions, memory, since = [writer.end], b"", 0
        released = 0
        for _ in range(data.draw(st.integers(1, 25))):
            match data.draw(
                st.sampled_from(
                    ["append", "append", "append", "restart", "tear", "release", "remember"]
                )
            ):
                case "append":
                    new = [
                        f"{number + each}".encode() * data.draw(st.integers(1, 60))
                        for each in range(3)
                    ]
                    number += 3
                    writer.append(records(new))
                    written += new
                    positions.append(writer.end)
                case "remember":
                    memory, since = f"at {number}".encode(), number
                    writer.remember(memory)
                    positions.append(writer.end)
                case "release":
                    position = data.draw(st.sampled_from(positions))
                    folder.release(position)
                    released = max(released, position.record)
                case "tear":
                    last = folder.segment(folder.segments()[-1])
                    writer.close()
                    with last.open("ab") as file:
                        block = b"".join(map(bytes, encode_block(number, records([b"torn"]))))
                        cut = data.draw(st.integers(1, len(block) - 1))
                        file.write(data.draw(st.sampled_from([block[:cut], bytes(cut)])))
                    writer = opened(folder)
                case _:
                    writer.close()
                    writer = opened(folder)
                    assert writer.remembered.memory == memory
                    assert list(values_of(writer.remembered.since)) == written[since:]
            assert writer.end.record == number
            assert writer.size == sum(
                folder.segment(each).stat().st_size for each in folder.segments()
            )
        usable = [each for each in positions if each.record >= released]
        start, end = sorted(
            (data.draw(st.sampled_from(usable)) for _ in range(2)), key=lambda each: each.record
        )
        expected = list(enumerate(written))[start.record : end.record]
        assert read(folder, start, end, least=data.draw(st.integers(1, 2000))) == expected
        assert LogReader(folder).begin().record == released
        rows = data.draw(st.integers(1, 20))
        limited = LogReader(folder).limited(start, end, rows, None)
        assert limited.record == (
            end.record
            if end.record - start.record <= rows
            else max(3, rows // 3 * 3) + start.record
        )
        writer.close()


def test_what_nobody_needs_is_removed_and_a_full_log_gets_room_by_that(folder: LogFolder) -> None:
    writer = opened(folder)
    while writer.has_room():
        writer.append(records([b"x" * 100]))
        if writer.is_long:
            writer.remember(b"")
    assert SMALL <= writer.size < SMALL + 400
    before = folder.segments()
    middle = Position(folder.log, before[3], before[3], 0)
    folder.release(middle)
    folder.release(Position(folder.log, 0, 0, 0))
    assert folder.released() == middle
    assert writer.has_room()
    assert folder.segments() == before[3:]
    with pytest.raises(
        ConnectorError, match=r"has no record 0 any more: it begins with \d+\n  hint: "
    ):
        read(folder, Position(folder.log, 0, 0, 0), writer.end)
    folder.release(writer.end)
    writer.remember(b"")
    assert folder.segments() == [writer.end.record]
    writer.close()


def test_a_segment_may_be_removed_while_what_follows_it_is_read(folder: LogFolder) -> None:
    writer = opened(folder)
    writer.append(records([b"a"]))
    start = writer.end
    writer.remember(b"")
    writer.append(records([b"b"]))
    folder.release(start)

    class Removed(LogFolder):
        def segments(self) -> list[int]:
            found = super().segments()
            writer.remove_released()
            return found

    assert read(Removed(folder.path), start, writer.end) == [(1, b"b")]
    assert folder.segments() == [1]
    writer.close()


def test_an_empty_log_goes_on_with_its_numbers(folder: LogFolder) -> None:
    writer = opened(folder)
    writer.append(records([b"a"]))
    folder.release(writer.end)
    writer.close()
    folder.segment(0).unlink()
    writer = opened(folder)
    writer.append(records([b"b"]))
    assert read(folder, LogReader(folder).begin(), writer.end) == [(1, b"b")]
    writer.close()


def test_a_log_has_one_writer_who_is_named(folder: LogFolder) -> None:
    writer = opened(folder)
    with pytest.raises(ConnectorError, match=rf"in use by process {os.getpid()}\n  hint: "):
        opened(folder)
    waiting = threading.Thread(
        target=lambda: LogWriter(folder, SCHEMA, SMALL, patience_seconds=60).close()
    )
    waiting.start()
    writer.close()
    waiting.join(60)
    assert not waiting.is_alive()


COPY = """
import os, signal, sys
from pathlib import Path
from connectors.log.folder import LogFolder
from connectors.log.writer import LogWriter
from tests.support.live_sources import SCHEMA

folder = LogFolder(Path(sys.argv[1]))
writer = LogWriter(folder, SCHEMA, 4096, patience_seconds=0)
child = os.fork()
if not child:
    signal.pause()
    os._exit(0)
try:
    writer.close()
    LogWriter(folder, SCHEMA, 4096, patience_seconds=60).close()
finally:
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
"""
"""Program that forks while it holds a lock. The tests' own process has threads, which a fork may
take in the middle of something."""


def test_a_copy_of_the_process_does_not_hold_the_lock(folder: LogFolder) -> None:
    subprocess.run([sys.executable, "-c", COPY, folder.path], cwd=ROOT, check=True)


def test_every_changed_byte_is_noticed(folder: LogFolder) -> None:
    writer = opened(folder)
    values = [b"one", b"two", b"three"]
    for value in values:
        writer.append(records([value]))
    end = writer.end
    writer.close()
    path, content = folder.segment(0), folder.segment(0).read_bytes()
    random = Random(5)
    # The last bytes are a mark, which holds no records.
    for at in random.sample(range(end.byte), 120):
        path.write_bytes(
            content[:at] + bytes([content[at] ^ (1 << random.randrange(8))]) + content[at + 1 :]
        )
        with pytest.raises(ConnectorError, match=r"(damaged|records of another kind)[^~]*hint: "):
            read(folder, Position(folder.log, 0, 0, 0), end)
        with pytest.raises(ConnectorError, match=rf"{path} is damaged[^~]*hint: put it back"):
            opened(folder)
        assert path.stat().st_size == len(content)


def sectors(start: int, end: int) -> list[int]:
    return [start, *range((start // 512 + 1) * 512, end, 512)]


def test_a_torn_block_is_cut_wherever_a_loss_of_power_tore_it(
    folder: LogFolder, caplog: pytest.LogCaptureFixture
) -> None:
    random, values = Random(8), [b"one" * 100, b"two" * 70]
    writer = opened(folder, 1 << 20)
    old = b"".join(map(bytes, encode_block(0, records([random.randbytes(3_000)]))))
    for value in values:
        writer.append(records([value]))
    end = writer.end
    writer.close()
    path = folder.segment(0)
    marked = path.read_bytes()
    new = b"".join(map(bytes, encode_block(end.record, records([random.randbytes(3_000)]))))
    before = marked[: end.byte] + (marked[end.byte :] + old)[: len(new)]
    after = marked[: end.byte] + new
    tears = 0
    for at in sectors(end.byte, len(after)):
        head, until = after[:at], min(len(after), (at // 512 + 1) * 512)
        for torn in (
            head,
            head + bytes(len(after) - at),
            head + before[at:],
            head + random.randbytes(len(after) - at),
            # Later sectors may be on the disk before earlier ones.
            head + before[at:until] + after[until:],
            head + bytes(until - at) + after[until:],
        ):
            path.write_bytes(torn)
            caplog.clear()
            writer = opened(folder, 1 << 20)
            assert writer.end == end
            assert len(torn) == end.byte or f"{path} is cut at byte " in caplog.text
            writer.append(records([b"three"]))
            found = read(folder, Position(folder.log, 0, 0, 0), writer.end)
            assert found == list(enumerate([*values, b"three"]))
            writer.close()
            tears += 1
    assert tears > 30


def test_a_changed_bit_in_what_was_acknowledged_is_refused_also_after_a_kill(
    folder: LogFolder,
) -> None:
    random = Random(4)
    writer = opened(folder, 1 << 20)
    writer.append(records([b"one"]))
    start = writer.end.byte
    writer.append(records([b"two" * 500]))
    end, path = writer.end, folder.segment(0)
    # As a kill leaves it: nothing is closed.
    content = path.read_bytes()
    writer.close()
    for at in [start, end.byte - 1, *random.sample(range(start, end.byte), 60)]:
        changed = bytearray(content)
        changed[at] ^= 1 << random.randrange(8)
        path.write_bytes(changed)
        with pytest.raises(ConnectorError, match=rf"{path} is damaged: [^~]* byte {start} "):
            opened(folder, 1 << 20)
        assert path.read_bytes() == changed
    path.write_bytes(content)
    # A recovered block is marked again: a successor that was killed at once protects it, too.
    opened(folder, 1 << 20).close()
    assert path.read_bytes() == content


def test_in_a_segment_of_version_1_only_an_unfinished_block_is_cut(folder: LogFolder) -> None:
    writer = opened(folder, 1 << 20)
    writer.append(records([b"one"]))
    first = writer.end
    writer.append(records([b"two"]))
    end, path = writer.end, folder.segment(0)
    writer.close()
    old = path.read_bytes()[: end.byte].replace(b"acquatop-log 2", b"acquatop-log 1", 1)
    path.write_bytes(old)
    writer = opened(folder, 1 << 20)
    assert writer.end == end
    writer.close()
    path.write_bytes(old[:-1])
    writer = opened(folder, 1 << 20)
    assert writer.end == first
    writer.close()
    path.write_bytes(old[:-1] + b"?")
    with pytest.raises(ConnectorError, match=rf"byte {first.byte} is not what was written"):
        opened(folder, 1 << 20)


def test_a_changed_bit_in_the_notes_of_a_log_loses_nothing(
    folder: LogFolder, caplog: pytest.LogCaptureFixture
) -> None:
    writer = opened(folder)
    writer.append(records([b"one", b"two"]))
    folder.release(Position(folder.log, 1, 0, 0))
    writer.close()
    random = Random(3)
    for name in ("log.json", "released.json"):
        path = folder.path / name
        content = path.read_bytes()
        for at in range(len(content)):
            changed = bytearray(content)
            changed[at] ^= 1 << random.randrange(8)
            path.write_bytes(changed)
            again = LogFolder(folder.path)
            assert again.log == folder.log, at
            assert again.released() == Position(folder.log, 1, 0, 0), at
        assert [each for each in caplog.messages if f"{path} is damaged: its other" in each]
        for wrong in (content[: len(content) // 3], b"x" * len(content)):
            path.write_bytes(wrong)
            with pytest.raises(ConnectorError, match=rf"{path} is damaged\n  hint: put it back"):
                LogFolder(folder.path).released()
        path.write_bytes(content)


def test_notes_of_earlier_versions_are_read(folder: LogFolder) -> None:
    (folder.path / "log.json").write_text('{"version": 1, "log": "ab"}')
    (folder.path / "released.json").write_text(
        '{"log": "ab", "record": 7, "segment": 0, "byte": 9}'
    )
    again = LogFolder(folder.path)
    assert (again.log, again.released()) == ("ab", Position("ab", 7, 0, 9))
    again.release(Position("ab", 8, 0, 19))
    assert LogFolder(folder.path).released() == Position("ab", 8, 0, 19)


def test_positions_of_another_log_are_refused(folder: LogFolder) -> None:
    writer = opened(folder)
    writer.append(records([b"a"]))
    start = writer.end
    writer.close()
    shutil.rmtree(folder.path)
    folder = LogFolder(folder.path)
    writer = opened(folder)
    writer.append(records([b"b", b"c"]))
    with pytest.raises(ConnectorError, match=r"not the one that has been read so far"):
        read(folder, start, writer.end)
    writer.close()


def test_a_disk_that_is_full_loses_nothing_that_was_acknowledged(
    folder: LogFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = opened(folder)
    writer.append(records([b"a"]))
    put, calls = os.pwrite, []

    def refuse(file: int, content: memoryview, offset: int) -> int:
        calls.append(offset)
        if len(calls) == 2:
            raise OSError(28, "No space left on device")
        return put(file, content[:7], offset)

    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", refuse)
        with pytest.raises(OSError, match="No space"):
            writer.append(records([b"b" * 100]))
    writer.append(records([b"c"]))
    assert read(folder, Position(folder.log, 0, 0, 0), writer.end) == [(0, b"a"), (1, b"c")]
    writer.close()
    assert opened(folder).end == writer.end
