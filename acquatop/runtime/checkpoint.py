"""Spark's checkpoint of a stream, made to say what an engine has kept of itself."""

from __future__ import annotations

import json
import shutil
import tempfile
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from acquatop.errors import EnvironmentProblem
from acquatop.runtime import Position

_UNFINISHED, _FINISHED = "acquatop-unfinished-", "acquatop-checkpoint-"
_SOURCES = "sources"
_COMMIT = 'v1\n{"nextBatchWatermarkMs":0}'


class Checkpoint:
    """A folder in which Spark notes what each batch reads (``offsets``), and which batches are done (``commits``).

    Spark goes on after the last batch that is done there. Its notes are not forced to the disk, and a Java that lives
    longer than its Python goes on writing them for some seconds. So they are not trusted: each start has a new folder,
    which says nothing but that the last batch of the engine's position is done. The position holds a copy of Spark's
    note on that batch; what sources have noted for themselves (``sources``) is taken over from the folder before. Older
    folders in the same ``place`` are removed. Without a place it is a temporary folder.

    A source whose offsets mean nothing but together with what it has noted ``repeats`` the batch that was under way:
    Spark's note on that is taken over, too, so that it comes again as it was.
    """

    def __init__(self, place: Path | None = None, position: Position | None = None, *, repeats: bool = False) -> None:
        self.last = -1 if position is None else int(position["batch"])
        """The last batch that is done, -1 if there is none."""
        try:
            older = sorted(place.iterdir(), key=_began) if place is not None else []
            self.path = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=place))
            if position is not None:
                self._take_over(older, repeats)
                self._note("metadata", json.dumps({"id": str(uuid.uuid4())}, separators=(",", ":")))
                # Spark looks at the batch before as well; where that began does not matter to what comes next.
                for batch in {max(0, self.last - 1), self.last}:
                    self._note(f"offsets/{batch}", position["offsets"])
                self._note(f"commits/{self.last}", _COMMIT)
            self.path = self.path.rename(self.path.with_name(self.path.name.replace(_UNFINISHED, _FINISHED)))
            for old in older:
                shutil.rmtree(old, ignore_errors=True)
        except OSError as error:
            hint = "make the state directory writable, with some room on its disk"
            raise EnvironmentProblem(f"Spark's checkpoint cannot be written: {error}\n  hint: {hint}") from error

    def offsets(self, batch: int) -> str:
        """Return Spark's note of what a batch reads."""
        try:
            return (self.path / "offsets" / str(batch)).read_text("utf-8")
        except OSError as error:
            raise EnvironmentProblem(f"Spark's checkpoint cannot be read: {error}") from error

    def remove(self) -> None:
        """Remove what Spark, and the sources, have noted."""
        shutil.rmtree(self.path, ignore_errors=True)

    def _take_over(self, older: Sequence[Path], repeats: bool) -> None:
        """Copy what sources have noted for themselves, and Spark on the batch under way, from the folder before."""
        before = _newest_with_sources(older)
        if before is None:
            return
        # A Java that was left behind may go on to that batch now: its sources note it before it does, so they are
        # copied after; and what it is in the middle of has a hidden name.
        under_way = _note_in(before, self.last + 1) if repeats else None
        shutil.copytree(before / _SOURCES, self.path / _SOURCES, ignore=shutil.ignore_patterns(".*"))
        if under_way is not None:
            self._note(f"offsets/{self.last + 1}", under_way)

    def _note(self, name: str, text: str) -> None:
        file = self.path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, "utf-8")


def _began(folder: Path) -> int:
    return folder.stat().st_mtime_ns


def _newest_with_sources(folders: Sequence[Path]) -> Path | None:
    """Return the newest folder that is whole and in which sources have noted something."""
    whole = (folder for folder in reversed(folders) if folder.name.startswith(_FINISHED))
    return next((folder for folder in whole if (folder / _SOURCES).is_dir()), None)


def _note_in(folder: Path, batch: int) -> str | None:
    """Return a folder's note on a batch; None if there is none, or a loss of power has left but a part of it."""
    try:
        note = (folder / "offsets" / str(batch)).read_text("utf-8")
        offset_in(note)
    except (FileNotFoundError, ValueError, IndexError):
        return None
    return note


def offset_in(note: str) -> Any:
    """Return where a batch ends, in its connector's words, from Spark's note of what it reads.

    >>> offset_in('v1\\n{"batchWatermarkMs":0}\\n{"a.txt": 7}')
    {'a.txt': 7}
    """
    # A version, what Spark notes for itself, and a line for each source: there is one.
    return json.loads(note.split("\n")[2])


def with_offset(note: str, offset: Any) -> str:
    """Return Spark's note of what a batch reads as it would be if the batch ended at an offset.

    >>> with_offset('v1\\n{"batchWatermarkMs":0}\\n{"a.txt": 7}', {"a.txt": 5})
    'v1\\n{"batchWatermarkMs":0}\\n{"a.txt": 5}'
    """
    version, own, _ = note.split("\n")
    return f"{version}\n{own}\n{json.dumps(offset)}"
