"""Folder of a log: its files, and the state that its readers and its writer share."""

from __future__ import annotations

import json
import os
import re
import secrets
import threading
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import pyarrow as pa

from connectors import ConnectorError
from connectors.durable import sync_file, sync_folder, write_at
from connectors.log.notes import NoteError, encode_note, read_note
from connectors.log.position import Position
from connectors.source_status import SourceStatus

_MANIFEST, _RELEASED = "log.json", "released.json"
_REPEATED, _STATUS = "repeated.json", "status.json"
_VERSION = 1
_SEGMENT = re.compile(r"segment-(\d{20})")


class LogFolder:
    """Files of a log, for readers and the writer.

    ``log.json`` has the log's identity, so that a position in one log is never used in another.
    ``released.json`` has the position before which nothing is needed any more. ``segment-…`` files
    hold the records from a number on. ``status.json`` has the status of the source, while there is
    a receiver. The first user creates the folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self.log = self._identity()
        except OSError as error:
            raise ConnectorError(
                f"the log in {self.path} cannot be opened: {error.strerror}\n"
                "  hint: the option log names a folder on a local disk that may be written to"
            ) from error

    def _identity(self) -> str:
        """Return the log's own identity, the same for all that open it at the same time."""
        manifest = self.path / _MANIFEST
        if not manifest.exists():
            if self.segments():
                raise ConnectorError(
                    f"{self.path} has segments of a log, but no {_MANIFEST}\n  hint: put it back"
                )
            own = self.path / f".{_MANIFEST}-{secrets.token_hex(4)}"
            note = encode_note({"version": _VERSION, "log": secrets.token_hex(8)})
            write_file(own, [note])
            with suppress(FileExistsError):
                os.link(own, manifest)
            own.unlink()
            sync_folder(self.path)
        try:
            said = read_note(manifest)
            version, log = said["version"], str(said["log"])
        except (NoteError, KeyError):
            raise ConnectorError(
                f"{manifest} is damaged\n  hint: put it back from a copy, or begin anew with "
                "another folder and another state directory"
            ) from None
        if version != _VERSION:
            raise ConnectorError(
                f"{self.path} was written by a newer version\n  hint: use that, or another folder"
            )
        return log

    def segments(self) -> list[int]:
        """Return the numbers of the segments' first records, in order."""
        found = (_SEGMENT.fullmatch(file.name) for file in self.path.iterdir())
        return sorted(int(match[1]) for match in found if match is not None)

    def remove_unfinished(self) -> None:
        """Remove the unfinished files of killed processes. The caller must hold the lock."""
        for file in self.path.glob(".segment-*"):
            file.unlink(missing_ok=True)

    def segment(self, first: int) -> Path:
        """Return the file of the segment that begins with a record."""
        return self.path / f"segment-{first:020}"

    def size(self, first: int) -> int:
        """Return the size of a segment in bytes, 0 if it has been removed."""
        try:
            return self.segment(first).stat().st_size
        except FileNotFoundError:
            return 0

    # Released records -------------------------------------------------------------------------

    def released(self) -> Position | None:
        """Return the position before which nothing is needed any more; None if all is needed."""
        try:
            said = read_note(self.path / _RELEASED)
            position = Position.from_json(said) if said else None
        except FileNotFoundError:
            return None
        except (NoteError, KeyError):
            raise ConnectorError(
                f"{self.path / _RELEASED} is damaged\n"
                "  hint: put it back from a copy, or remove it; without a state directory or "
                "checkpoint, all that the log still holds is then read again"
            ) from None
        return position if position is not None and position.log == self.log else None

    def release(self, position: Position) -> None:
        """Note that nothing before a position is needed any more; earlier notes are never undone.

        Does not wait for the disk: see :meth:`settle`.
        """
        before = self.released()
        if before is not None and before.record >= position.record:
            return
        unfinished = self.path / f".{_RELEASED}-{os.getpid()}-{threading.get_ident()}"
        unfinished.write_bytes(encode_note(position.to_json()))
        unfinished.replace(self.path / _RELEASED)

    # Status of the source --------------------------------------------------------------------

    def status(self) -> SourceStatus | None:
        """Return the status of the source; None if nobody receives from it."""
        try:
            return SourceStatus.from_json(json.loads((self.path / _STATUS).read_text("utf-8")))
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def write_status(self, status: SourceStatus | None) -> None:
        """Replace the status, or remove it. It is for people: a full disk does no harm."""
        with suppress(OSError):
            if status is None:
                (self.path / _STATUS).unlink(missing_ok=True)
                return
            unfinished = self.path / f".{_STATUS}-{os.getpid()}"
            unfinished.write_text(json.dumps(status.to_json()), "utf-8")
            unfinished.replace(self.path / _STATUS)

    def settle(self) -> None:
        """Wait until the released position is on the disk. Call it before removing segments."""
        file = os.open(self.path / _RELEASED, os.O_RDONLY)
        try:
            sync_file(file)
        finally:
            os.close(file)
        sync_folder(self.path)

    # Repeated messages -----------------------------------------------------------------------

    def repeated(self) -> int:
        """Return the number of repeated messages that were dropped, as far as it is known."""
        try:
            return int(read_note(self.path / _REPEATED).get("count", 0))
        except (FileNotFoundError, NoteError):
            return 0

    def note_repeated(self, count: int) -> None:
        """Note the number of repeated messages that were dropped; does not wait for the disk."""
        unfinished = self.path / f".{_REPEATED}-{os.getpid()}"
        unfinished.write_bytes(encode_note({"count": count}))
        unfinished.replace(self.path / _REPEATED)

    def check(self, position: Position) -> None:
        """Raise :class:`~connectors.ConnectorError` if a position is not one of this log."""
        if position.log != self.log:
            raise ConnectorError(
                f"the log in {self.path} is not the one that has been read so far: it was "
                "removed or replaced\n"
                "  hint: put the old folder back, or begin anew with another checkpoint or "
                "state directory"
            )


def write_file(path: Path, pieces: Iterable[bytes | pa.Buffer]) -> None:
    """Write a file; on return its content is on the disk, its name may not be yet."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    try:
        write_at(file, 0, pieces)
        sync_file(file)
    finally:
        os.close(file)


def replace_file(path: Path, pieces: Iterable[bytes | pa.Buffer]) -> None:
    """Replace a file's content in one step; on return it is on the disk."""
    unfinished = path.with_name(f".{path.name}-{os.getpid()}")
    write_file(unfinished, pieces)
    unfinished.replace(path)
    sync_folder(path.parent)
