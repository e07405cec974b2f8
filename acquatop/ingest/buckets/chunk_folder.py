"""Folder of Arrow files shared by executors and the driver, each written once, as a whole."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.ipc

_UNFINISHED = "unfinished-"


@dataclass(frozen=True)
class ChunkFolder:
    """Files of *chunks*: record batches, each readable by itself by file name and position.

    Chunks are not compressed: a reader maps the file, and touches only the columns that it needs.
    Files never change. A file's name follows from its content, so a repeated task writes the same
    file. With ``durable``, files survive a loss of power as well.
    """

    path: str
    durable: bool = False

    def write(self, chunks: Sequence[pa.RecordBatch], origin: bytes) -> str:
        """Write chunks into one file and return its name; another ``origin`` gives another file."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, chunks[0].schema) as writer:
            for chunk in chunks:
                writer.write_batch(chunk)
        content = sink.getvalue()
        name = hashlib.blake2b(
            content, key=hashlib.blake2b(origin, digest_size=16).digest(), digest_size=16
        ).hexdigest()
        self._put(name, content)
        return name

    def _put(self, name: str, content: pa.Buffer) -> None:
        handle, unfinished = tempfile.mkstemp(prefix=_UNFINISHED, dir=self.path)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                if self.durable:
                    file.flush()
                    os.fsync(file.fileno())
            Path(unfinished).replace(Path(self.path) / name)
        except BaseException:
            with suppress(OSError):
                Path(unfinished).unlink()
            raise
        if self.durable:
            self._sync_names()

    def _sync_names(self) -> None:
        folder = os.open(self.path, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def read(self, name: str, positions: Iterable[int]) -> list[pa.RecordBatch]:
        """Return some of a file's chunks, whose columns lie in the mapped file.

        They stay readable if the file is removed.
        Raises OSError or ArrowException if they cannot be read.
        """
        with pa.memory_map(str(Path(self.path) / name)) as source:
            reader = pa.ipc.open_file(source)
            return [reader.get_batch(at) for at in positions]

    def names(self) -> list[str]:
        """Return the names of all files, including unfinished ones."""
        return sorted(entry.name for entry in Path(self.path).iterdir() if entry.is_file())

    def remove(self, names: Iterable[str]) -> None:
        """Remove files that are no longer needed; missing files are ignored."""
        for name in names:
            with suppress(OSError):
                (Path(self.path) / name).unlink()
