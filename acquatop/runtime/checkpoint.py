"""Spark checkpoints that agree with the engine's own snapshots."""

from __future__ import annotations

import base64
import json
import shutil
import tempfile
import uuid
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from acquatop.errors import EnvironmentProblem
from acquatop.runtime import Position

_UNFINISHED, _FINISHED = "acquatop-unfinished-", "acquatop-checkpoint-"
SOURCES = "sources"
"""Name of the folder with the sources' own notes, and of their copy in a position."""
_COMMIT = 'v1\n{"nextBatchWatermarkMs":0}'


class Checkpoint:
    """Folder with Spark's notes on batches: the contents (``offsets``), and the end (``commits``).

    Spark resumes after the last batch that is committed there. Its notes are not synced to the
    disk, and a Java process that outlives its Python process goes on writing them for some seconds.
    So they are not trusted: each start makes a new folder, in which only the last batch of the
    engine's position is committed. The position contains a copy of Spark's note on that batch. The
    sources' own notes (``sources``) are copied from the folder before. Older folders in the same
    ``place`` are removed. Without a place the folder is a temporary one.

    A source with offsets that are valid only together with its own notes ``repeats`` the batch that
    was under way. Spark's note on that batch is copied as well, so that the batch comes again
    unchanged. If the position contains the sources' notes, they are those of its last batch, and no
    folder before counts.
    """

    def __init__(
        self, place: Path | None = None, position: Position | None = None, *, repeats: bool = False
    ) -> None:
        self.last = -1 if position is None else int(position["batch"])
        """The last batch that is done, -1 if there is none."""
        try:
            older = sorted(place.iterdir(), key=_began) if place is not None else []
            self.path = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=place))
            if position is not None:
                if SOURCES in position:
                    self._unpack(position[SOURCES])
                else:
                    self._take_over(older, repeats)
                self._note("metadata", json.dumps({"id": str(uuid.uuid4())}, separators=(",", ":")))
                # Spark reads the note on the batch before as well. Its content does not affect the
                # next batch.
                for batch in {max(0, self.last - 1), self.last}:
                    self._note(f"offsets/{batch}", position["offsets"])
                self._note(f"commits/{self.last}", _COMMIT)
            self.path = self.path.rename(
                self.path.with_name(self.path.name.replace(_UNFINISHED, _FINISHED))
            )
            for old in older:
                shutil.rmtree(old, ignore_errors=True)
        except OSError as error:
            hint = "make the state directory writable, with some room on its disk"
            raise EnvironmentProblem(
                f"Spark's checkpoint cannot be written: {error}\n  hint: {hint}"
            ) from error

    def offsets(self, batch: int) -> str:
        """Return Spark's note on the content of a batch."""
        try:
            return (self.path / "offsets" / str(batch)).read_text("utf-8")
        except OSError as error:
            raise EnvironmentProblem(f"Spark's checkpoint cannot be read: {error}") from error

    def sources(self) -> str:
        """Return the sources' own notes, packed. O(their size)."""
        place = self.path / SOURCES
        files = sorted(file for file in place.rglob("*") if file.is_file())
        notes = {
            file.relative_to(place).as_posix(): file.read_text("utf-8", "surrogateescape")
            for file in files
            if not file.name.startswith(".")
        }
        packed = zlib.compress(json.dumps(notes).encode("ascii"))
        return base64.b64encode(packed).decode("ascii")

    def _unpack(self, sources: str) -> None:
        notes = json.loads(zlib.decompress(base64.b64decode(sources)))
        for name, text in notes.items():
            file = self.path / SOURCES / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, "utf-8", "surrogateescape")

    def has_state(self) -> bool:
        """Return True if operators of Spark keep state there."""
        return (self.path / "state").exists()

    def remove(self) -> None:
        """Remove the notes of Spark and of the sources."""
        shutil.rmtree(self.path, ignore_errors=True)

    def _take_over(self, older: Sequence[Path], repeats: bool) -> None:
        """Copy the sources' notes, and Spark's on the batch under way, from the folder before."""
        before = _newest_with_sources(older)
        if before is None:
            return
        # A Java process that was left behind may start that batch now. Its sources note the batch
        # before it does, so their notes are copied last. Files that it is still writing have hidden
        # names.
        under_way = _note_in(before, self.last + 1) if repeats else None
        shutil.copytree(before / SOURCES, self.path / SOURCES, ignore=shutil.ignore_patterns(".*"))
        if under_way is not None:
            self._note(f"offsets/{self.last + 1}", under_way)

    def _note(self, name: str, text: str) -> None:
        file = self.path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, "utf-8")


def _began(folder: Path) -> int:
    return folder.stat().st_mtime_ns


def _newest_with_sources(folders: Sequence[Path]) -> Path | None:
    """Return the newest complete folder with notes of sources."""
    whole = (folder for folder in reversed(folders) if folder.name.startswith(_FINISHED))
    return next((folder for folder in whole if (folder / SOURCES).is_dir()), None)


def _note_in(folder: Path, batch: int) -> str | None:
    """Return a folder's note on a batch; None if there is none, or only a part of it.

    A power failure can leave a part.
    """
    try:
        note = (folder / "offsets" / str(batch)).read_text("utf-8")
        offset_in(note)
    except (FileNotFoundError, ValueError, IndexError):
        return None
    return note


def offset_in(note: str) -> Any:
    """Return the end of a batch, in its connector's format, from Spark's note on the batch.

    >>> offset_in('v1\\n{"batchWatermarkMs":0}\\n{"a.txt": 7}')
    {'a.txt': 7}
    """
    # A version, Spark's own metadata, and a line for each source: there is one.
    return json.loads(note.split("\n")[2])


def with_offset(note: str, offset: Any) -> str:
    """Return Spark's note of what a batch reads as it would be if the batch ended at an offset.

    >>> with_offset('v1\\n{"batchWatermarkMs":0}\\n{"a.txt": 7}', {"a.txt": 5})
    'v1\\n{"batchWatermarkMs":0}\\n{"a.txt": 5}'
    """
    version, own, _ = note.split("\n")
    return f"{version}\n{own}\n{json.dumps(offset)}"
