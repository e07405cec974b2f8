"""Live sources without repeated messages, for sources that send some again as if they were new."""

from __future__ import annotations

import json
import logging
import os
import struct
import time
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from connectors import ConnectorError
from connectors.durable import sync_file, sync_folder, write_at
from connectors.live_source import LiveSource
from connectors.log.folder import LogFolder
from connectors.log.writer import Remembered
from connectors.message_identity import MessageIdentity
from connectors.recent_hashes import HashSet, RecentHashes

_log = logging.getLogger(__name__)

_MARK = b"\xf0seen\r\n"
_LENGTH = struct.Struct(">I")
_FRAME = struct.Struct(">II")
"""Head of a piece of a file of hashes: its length in bytes, and their checksum."""


class Uniqueness(NamedTuple):
    """Identity of messages, and the seconds for which they are remembered."""

    identity: MessageIdentity
    seconds: float


class UniqueSource(LiveSource):
    """Source that drops messages with the identity of a recent one.

    Hashes of the messages are kept for at least the given time, and at most twice that. They are in
    files beside the log, written before a segment ends; the head of the next segment says how much
    of them counts. Those of the last segment are computed again from its messages. Without
    ``uniqueness`` nothing is dropped.
    """

    def __init__(
        self,
        source: LiveSource,
        folder: LogFolder,
        uniqueness: Uniqueness | None,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.schema = source.schema
        self.link = source.link
        self._source = source
        self._folder = folder
        self._uniqueness = uniqueness
        self._clock = clock
        self._recent = RecentHashes(uniqueness.seconds if uniqueness is not None else 0.0)
        self._files = _HashFiles(folder.path)
        self._repeated = folder.repeated()
        self._has_said = False

    def open(self, remembered: Remembered) -> None:
        """Prepare the source, and recall the hashes."""
        own, memory = _split(remembered.memory)
        if self._uniqueness is None:
            self._source.open(Remembered(memory, remembered.since))
            return
        self._recent.older, self._recent.newer = self._files.load(own)
        since = list(remembered.since)
        for records in since:
            self._note(records)
        self._source.open(Remembered(memory, iter(since)))

    def receive(self, wait_seconds: float) -> pa.RecordBatch | None:
        """Return the records received since the last call, without repeated ones."""
        records = self._source.receive(wait_seconds)
        if records is None or self._uniqueness is None:
            return records
        is_new = self._note(records)
        if is_new.all():
            return records
        self._repeated += int((~is_new).sum())
        self._folder.note_repeated(self._repeated)
        if is_new.any():
            return records.filter(pa.array(is_new))
        # Those that they repeat are durable.
        self._source.acknowledge()
        return None

    def acknowledge(self) -> None:
        """Tell the source that it may forget all records returned so far."""
        self._source.acknowledge()

    def close(self) -> None:
        """Disconnect."""
        self._source.close()

    def is_caught_up(self) -> bool:
        """Return True if the source seems to have no more data now."""
        return self._source.is_caught_up()

    def memory(self) -> bytes:
        """Return the source's memory, and where the hashes are, which are durable on return."""
        if self._uniqueness is None:
            return self._source.memory()
        sets = [each for each in (self._recent.older, self._recent.newer) if each is not None]
        own = json.dumps(self._files.save(sets)).encode()
        return _MARK + _LENGTH.pack(len(own)) + own + self._source.memory()

    def has_forgotten(self) -> bool:
        """Return True if :meth:`memory` must be durable before new records."""
        return self._source.has_forgotten()

    def _note(self, records: pa.RecordBatch) -> np.ndarray:
        """Note records; return True for each that is new, or has no identity."""
        assert self._uniqueness is not None
        hashes, has_one = self._uniqueness.identity.of(records)
        is_new = ~has_one
        is_new[has_one] = self._recent.add(hashes[has_one], self._clock())
        if self._recent.is_cut_short and not self._has_said:
            self._has_said = True
            _log.warning(
                "%s: more messages than can be remembered come within duplicateWindow; the oldest "
                "are forgotten early",
                self._folder.path,
            )
        return is_new


def _split(memory: bytes) -> tuple[list[dict[str, Any]], bytes]:
    """Return the places of the hashes in a segment's memory, and the memory of the source."""
    if not memory.startswith(_MARK):
        return [], memory
    start = len(_MARK) + _LENGTH.size
    (length,) = _LENGTH.unpack_from(memory, len(_MARK))
    return json.loads(memory[start : start + length]), memory[start + length :]


class _HashFiles:
    """Files of hashes, one for each set, to which new ones are appended."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lengths: dict[str, int] = {}

    def load(self, places: Iterable[dict[str, Any]]) -> tuple[HashSet | None, HashSet | None]:
        """Return the older and the newer set that were saved at some places."""
        sets = [self._read(each["file"], each["bytes"], each["since"]) for each in places]
        return (sets[-2] if len(sets) > 1 else None), (sets[-1] if sets else None)

    def save(self, sets: Iterable[HashSet]) -> list[dict[str, Any]]:
        """Write the new hashes of the sets; return the places of all, which are durable."""
        before = set(self._lengths)
        places = [self._append(each) for each in sets]
        sync_folder(self._folder)
        named = {each["file"] for each in places} | before
        # The segment before this one may still name the files that were saved last time.
        for file in self._folder.glob("seen-*"):
            if file.name not in named:
                file.unlink(missing_ok=True)
        self._lengths = {each["file"]: each["bytes"] for each in places}
        return places

    def _append(self, hashes: HashSet) -> dict[str, Any]:
        name = hashes.name
        length, new = self._lengths.get(name, 0), hashes.take_unsaved()
        if len(new) or not length:
            content = new.astype("<u8").tobytes()
            file = os.open(self._folder / name, os.O_RDWR | os.O_CREAT, 0o666)
            try:
                os.ftruncate(file, length)
                head = _FRAME.pack(len(content), zlib.crc32(content))
                length = write_at(file, length, [head, content])
                sync_file(file)
            finally:
                os.close(file)
        self._lengths[name] = length
        return {"file": name, "bytes": length, "since": hashes.since}

    def _read(self, name: str, length: int, since: float) -> HashSet:
        path = self._folder / name
        try:
            content = path.read_bytes()[:length]
        except OSError as error:
            raise _damaged(path, error.strerror or str(error)) from None
        if len(content) < length:
            raise _damaged(path, "it is too short")
        found, start = HashSet(since, name=name), 0
        while start < length:
            size, checksum = _FRAME.unpack_from(content, start) if start + 8 <= length else (0, 0)
            piece = content[start + _FRAME.size : start + _FRAME.size + size]
            if len(piece) < size or zlib.crc32(piece) != checksum:
                raise _damaged(path, f"what stands at byte {start} is not what was written")
            found.add(np.frombuffer(piece, "<u8").astype(np.uint64))
            start += _FRAME.size + size
        found.take_unsaved()
        self._lengths[name] = length
        return found


def _damaged(path: Path, said: str) -> ConnectorError:
    hint = (
        "put it back from a copy; or leave out the option messageId for one start, which forgets "
        "what has come before"
    )
    return ConnectorError(f"{path} is damaged: {said}\n  hint: {hint}")
