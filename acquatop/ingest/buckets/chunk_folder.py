"""Folder of Arrow files shared by executors and the driver, each written once, as a whole."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.ipc

from acquatop.ingest.buckets.chunk_files import files_at


@dataclass(frozen=True)
class ChunkFolder:
    """Files of *chunks*: record batches, each readable by itself by file name and position.

    ``path`` is a folder's, or an address in an object store. Chunks are not compressed: a reader
    maps the file, and touches only the columns that it needs.
    Files never change. A file's name follows from its content and its ``writer``, so a repeated
    task writes the same file. With ``durable``, files survive a loss of power as well.
    """

    path: str
    durable: bool = False
    writer: bytes = b""
    """Name of the engine, where one that has been replaced may still remove its own files."""

    def write(self, chunks: Sequence[pa.RecordBatch], origin: bytes) -> str:
        """Write chunks into one file and return its name; another ``origin`` gives another file."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, chunks[0].schema) as writer:
            for chunk in chunks:
                writer.write_batch(chunk)
        content = sink.getvalue()
        key = hashlib.blake2b(origin, key=self.writer, digest_size=16).digest()
        name = hashlib.blake2b(content, key=key, digest_size=16).hexdigest()
        files_at(self.path).put(name, content, durable=self.durable)
        return name

    def read(self, name: str, positions: Iterable[int]) -> list[pa.RecordBatch]:
        """Return some of a file's chunks, whose columns lie in the mapped file.

        They stay readable if the file is removed.
        Raises OSError or ArrowException if they cannot be read.
        """
        with files_at(self.path).open(name) as source:
            reader = pa.ipc.open_file(source)
            return [reader.get_batch(at) for at in positions]

    def names(self) -> list[str]:
        """Return the names of all files, including unfinished ones."""
        return files_at(self.path).names()

    def remove(self, names: Iterable[str]) -> None:
        """Remove files that are no longer needed; missing files are ignored."""
        files_at(self.path).remove(names)

    def forget_copies(self) -> None:
        """Remove copies of files that this process alone has."""
        files_at(self.path).forget()
