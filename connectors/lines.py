"""Lines of growing files as a stream: a file, or a folder to which files are added.

In plain PySpark::

    from connectors.lines import LinesDataSource

    spark.dataSource.register(LinesDataSource)
    lines = spark.readStream.format("lines").option("path", "events/").load()

A row is one line: its bytes, the file it stands in, and its position there. Files are read side
by side, each from where the last batch ended; an unfinished line waits until
its line break is written (with ``Trigger.AvailableNow`` the end of the file ends it). Offsets
say how far each file has been read, so every batch can be read again as long as the files
stay; they grow by one number per file. Lines must only ever be appended: a file that shrinks
is an error.

Options:

- ``path``: a file, or a folder; names that start with ``.`` or ``_`` are left out.
- ``maxBytesPerBatch``: how much to read in one batch, 64 MiB unless given.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxBytes, SupportsTriggerAvailableNow

from connectors import ConnectorError

Offset = dict[str, int]

SCHEMA = pa.schema([("value", pa.binary()), ("file", pa.string()), ("position", pa.int64())])
_CHUNK = 1 << 16


class LinesDataSource(DataSource):
    """The data source ``lines``."""

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return "lines"

    def schema(self) -> str:
        """Return the columns of a row."""
        return "value binary, file string, position bigint"

    def streamReader(self, schema: Any) -> LinesReader:  # noqa: N802 (the name is PySpark's)
        """Return a reader for the options given."""
        path = self.options.get("path")
        if not path:
            raise ConnectorError('the connector "lines" needs the option path: a file or a folder')
        return LinesReader(Path(path), int(self.options.get("maxBytesPerBatch", str(64 << 20))))


@dataclass
class _Range(InputPartition):
    """One file's bytes from ``start`` to ``end``, which are whole lines."""

    file: str
    start: int
    end: int


class LinesReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads lines from where an offset says; see the module for what an offset is."""

    def __init__(self, path: Path, max_bytes: int) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._target: Offset | None = None

    # Where the stream stands ------------------------------------------------------------------

    def initialOffset(self) -> Offset:  # noqa: N802
        """Return the offset before the first line."""
        return {}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return how much one batch may hold."""
        return ReadMaxBytes(self._max_bytes)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Take what the files hold now as the end of the stream."""
        if not self._path.exists():
            raise ConnectorError(f"there is no file or folder {self._path}")
        self._target = {name: file.stat().st_size for name, file in self._files()}

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        """Return how far the next batch reads: whole lines, and no more than the limit unless one line is longer."""
        grown = [(name, file, self._grown(name, file, start)) for name, file in self._files()]
        grown = sorted((each for each in grown if each[2]), key=lambda each: each[2])
        room = limit.max_bytes if isinstance(limit, ReadMaxBytes) else None
        end = dict(start)
        # Files are read side by side, each a like share of the room; the small ones leave theirs to the others.
        for number, (name, file, size) in enumerate(grown):
            begin = start.get(name, 0)
            share = None if room is None else max(1, room // (len(grown) - number))
            stop = self._last_line_end(file, begin, begin + size, share)
            if stop > begin:
                end[name] = stop
                room = None if room is None else room - (stop - begin)
                if room is not None and room <= 0:
                    break
        return dict(sorted(end.items()))

    def _grown(self, name: str, file: Path, start: Offset) -> int:
        begin, size = start.get(name, 0), self._size(name, file)
        if size < begin:
            raise ConnectorError(f"{file} has shrunk from {begin} to {size} bytes; lines may only be appended")
        return size - begin

    def _files(self) -> list[tuple[str, Path]]:
        if self._path.is_dir():
            return sorted(
                (file.name, file) for file in self._path.iterdir() if file.is_file() and file.name[0] not in "._"
            )
        return [(self._path.name, self._path)] if self._path.exists() else []

    def _size(self, name: str, file: Path) -> int:
        return file.stat().st_size if self._target is None else self._target.get(name, 0)

    def _last_line_end(self, file: Path, begin: int, size: int, room: int | None) -> int:
        """Return where the last whole line ends that starts at ``begin`` or after it and fits the room."""
        stop = size if room is None else min(size, begin + room)
        if stop == size and self._target is not None:
            return size
        with file.open("rb") as stream:
            at = _line_end_before(stream, begin, stop)
            return at if at > begin else _line_end_after(stream, stop, size, default=begin)

    # The lines themselves ---------------------------------------------------------------------

    def partitions(self, start: Offset, end: Offset) -> Sequence[_Range]:
        """Return one partition per file with new lines."""
        ranges = [_Range(name, start.get(name, 0), stop) for name, stop in sorted(end.items())]
        return [each for each in ranges if each.end > each.start]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield a partition's lines as one Arrow batch, without their line breaks."""
        assert isinstance(partition, _Range)
        file = self._path / partition.file if self._path.is_dir() else self._path
        with file.open("rb") as stream:
            stream.seek(partition.start)
            data = stream.read(partition.end - partition.start)
        if data:
            yield _split(data, partition.file, partition.start)


def _line_end_before(stream: Any, begin: int, stop: int) -> int:
    """Return the position after the last line break in ``[begin, stop)``, ``begin`` if there is none."""
    high = stop
    while high > begin:
        low = max(begin, high - _CHUNK)
        stream.seek(low)
        found = stream.read(high - low).rfind(b"\n")
        if found >= 0:
            return int(low + found + 1)
        high = low
    return begin


def _line_end_after(stream: Any, start: int, size: int, default: int) -> int:
    """Return the position after the first line break in ``[start, size)``."""
    low = start
    while low < size:
        stream.seek(low)
        chunk = stream.read(min(_CHUNK, size - low))
        found = chunk.find(b"\n")
        if found >= 0:
            return int(low + found + 1)
        low += len(chunk) or size
    return default


def _split(data: bytes, file: str, position: int) -> pa.RecordBatch:
    """Return the lines of ``data`` as an Arrow batch, without a Python object per line."""
    breaks = np.flatnonzero(np.frombuffer(data, dtype=np.uint8) == ord("\n"))
    ends = breaks if data.endswith(b"\n") else np.append(breaks, len(data))
    starts = np.concatenate([[0], ends[:-1] + 1])
    # One array of line, break, line, break, … over the same bytes; every second value is a line.
    edges = np.empty(2 * len(ends) + 1, dtype=np.int32)
    edges[0:-1:2], edges[1::2], edges[-1] = starts, ends, min(len(data), int(ends[-1]) + 1)
    pieces = pa.BinaryArray.from_buffers(pa.binary(), len(edges) - 1, [None, pa.py_buffer(edges), pa.py_buffer(data)])
    lines = pieces.take(pa.array(np.arange(0, len(pieces), 2)))
    return pa.RecordBatch.from_arrays(
        [lines, pa.repeat(pa.scalar(file, pa.string()), len(lines)), pa.array(starts + position, pa.int64())],
        schema=SCHEMA,
    )
