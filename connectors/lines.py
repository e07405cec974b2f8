"""Stream of the lines of growing files: a file, or a folder to which files are added.

In plain PySpark::

    from connectors.lines import LinesDataSource

    spark.dataSource.register(LinesDataSource)
    lines = spark.readStream.format("lines").option("path", "events/").load()

A row is one line: its bytes, its file, and its position in the file. Files are read side by side,
each from the end of the last batch. An unfinished line waits until its line break is written; with
``Trigger.AvailableNow`` the end of the file ends it. Offsets are the position reached in each file,
with a fingerprint of what was read, so every batch can be read again while the files stay. Offsets
grow by some 40 bytes per file. Lines may only be appended: a file that shrinks, that another one
has replaced, or that was written over, is an error. A batch of a long file is split among the
cores.

Options:

- ``path``: a file, or a folder; names that start with ``.`` or ``_`` are left out.
- ``maxBytesPerBatch``: maximum size of one batch, 64 MiB by default.
- ``maxPartitions``: number of parts, of about 4 MiB at least, into which the long files of a batch
  are cut; one per core by default.
- ``together``: neighbouring lines that neither a batch nor a partition separates. ``subject`` keeps
  together statements of N-Triples about one subject, ``subject and graph`` those of N-Quads about
  one subject in one graph. The last lines of a growing file wait until others follow; an empty line
  ends them, too.
- ``header``: ``true`` if each file's first line is not a row but describes all others, as in CSV.
  It is then in the column ``header`` of each of them. ``false`` by default.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa

from connectors import ConnectorError
from connectors.line_groups import TOGETHER, GroupEnds, LineEnds
from connectors.offsets_by_file import Offset, OffsetsByFile, Place, reached
from connectors.read_limits import ALL, ReadLimit, ReadMaxBytes, TriggerAvailableNow
from connectors.source_files import SourceFiles
from connectors.source_status import SourceState, SourceStatus, status_of_files
from connectors.spark_classes import DataSource, DataSourceStreamReader, InputPartition

SCHEMA = pa.schema([("value", pa.binary()), ("file", pa.string()), ("position", pa.int64())])
_LONGEST_HEADER = 1 << 20
LEAST_PARTITION = 4 << 20
"""Approximate minimum size of a partition in bytes, unless it is all new bytes of its file."""


class LinesDataSource(DataSource):
    """The data source ``lines``."""

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return "lines"

    def schema(self) -> str:
        """Return the columns of a row."""
        columns = "value binary, file string, position bigint"
        return f"{columns}, header binary" if self._has_header() else columns

    def streamReader(self, schema: Any) -> LinesReader:  # noqa: N802 (the name is PySpark's)
        """Return a reader for the options given."""
        path, together = self.options.get("path"), self.options.get("together")
        if not path:
            raise ConnectorError('the connector "lines" needs the option path: a file or a folder')
        if together and together not in TOGETHER:
            known = ", ".join(f'"{each}"' for each in TOGETHER)
            raise ConnectorError(
                f'the option together of the connector "lines" is one of {known}, not "{together}"'
            )
        limit = int(self.options.get("maxBytesPerBatch", str(64 << 20)))
        partitions = int(self.options.get("maxPartitions", "0"))
        return LinesReader(
            Path(path),
            limit,
            together=together or None,
            max_partitions=partitions or None,
            has_header=self._has_header(),
        )

    def _has_header(self) -> bool:
        return self.options.get("header", "false").lower() == "true"


@dataclass
class _Range(InputPartition):
    """The bytes of one file from ``start`` to ``end``, which are whole lines.

    ``places`` are those of the batch in the file, which tell if it is still the same.
    """

    file: str
    start: int
    end: int
    places: tuple[Place, ...] = ()


class LinesReader(OffsetsByFile, DataSourceStreamReader, TriggerAvailableNow):
    """Reader of lines from an offset on; the module describes offsets."""

    def __init__(
        self,
        path: Path,
        max_bytes: int,
        *,
        together: str | None = None,
        max_partitions: int | None = None,
        has_header: bool = False,
    ) -> None:
        self._path = path
        self._sources = SourceFiles(path, "lines may only be appended", grow=True)
        self._max_bytes = max_bytes
        self._max_partitions = max_partitions or os.cpu_count() or 1
        self._ends = GroupEnds(TOGETHER[together]) if together else LineEnds()
        self._has_header = has_header
        self._waiting: dict[str, tuple[int, int]] = {}

    # Offsets ---------------------------------------------------------------------------------

    def initialOffset(self) -> Offset:  # noqa: N802
        """Return the offset before the first line."""
        return {}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return the limit of one batch."""
        return ReadMaxBytes(self._max_bytes)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Take the present ends of the files as the end of the stream."""
        if not self._path.exists():
            raise ConnectorError(f"there is no file or folder {self._path}")
        self._target = self._present()

    def latestOffset(  # noqa: N802
        self, start: Offset | None = None, limit: ReadLimit = ALL
    ) -> Offset:
        """Return the offset after the next batch.

        A batch has whole lines, and no more bytes than the limit unless one line is longer.
        """
        start = self.initialOffset() if start is None else start
        sizes = self._sizes(start)
        grown = [(name, size - reached(start.get(name, 0))) for name, size in sizes.items()]
        grown = sorted((each for each in grown if each[1]), key=lambda each: each[1])
        room = limit.max_bytes if isinstance(limit, ReadMaxBytes) else None
        end = dict(start)
        # Files are read side by side, each with an equal share of the room. Small files leave the
        # rest of theirs to the others.
        for number, (name, size) in enumerate(grown):
            begin = reached(start.get(name, 0))
            share = None if room is None else max(1, room // (len(grown) - number))
            stop = self._end(name, begin, begin + size, share)
            if stop > begin:
                has_more = share is not None and stop < begin + size and share < size
                more = [begin + size] if has_more else []
                place = [stop, self._sources.print_of(name, stop), *more]
                end[name] = self._place(name, place)
                room = None if room is None else room - (stop - begin)
                if room is not None and room <= 0:
                    break
        return dict(sorted(end.items()))

    def _sizes(self, start: Offset) -> dict[str, int]:
        """Return the size to read of each file; raise if one is not what it was."""
        present = self._sources.present()
        self._sources.check(start, present)
        if self._target is None:
            return {name: seen.size for name, seen in present.items()}
        for name, end in self._target.items():
            begin, size = reached(start.get(name, 0)), present[name].size if name in present else 0
            if size < reached(end) > begin:
                raise self._sources.lost(name, begin)
        return {name: reached(end) for name, end in self._target.items()}

    def _present(self) -> Offset:
        return {name: seen.size for name, seen in self._sources.present().items()}

    def is_mixed(self, start: Offset, end: Offset) -> bool:
        """Say whether lines of several files are between two offsets."""
        return sum(reached(at) > reached(start.get(name, 0)) for name, at in end.items()) > 1

    def progress(self, offset: Offset) -> tuple[int, int]:
        """Return the number of bytes read up to an offset, and the total."""
        sizes = self._present() if self._target is None else self._target
        return sum(map(reached, offset.values())), sum(map(reached, sizes.values()))

    def status(self) -> SourceStatus:
        """Return the status of the file or folder."""
        status = status_of_files(self._path, map(self._sources.file, self._present()))
        if (
            status.state is SourceState.PRESENT
            and self._path.is_file()
            and _is_unfinished(self._path)
        ):
            hint = "end the last line with a line break: until then it waits"
            return replace(status, hint=hint)
        return status

    def _end(self, name: str, begin: int, size: int, room: int | None) -> int:
        """Return the position to stop at: the last cut within the room, or else the first cut.

        Returns ``begin`` if there is no cut yet; the search is repeated only after the file has
        grown.
        """
        stop = size if room is None else min(size, begin + room)
        if stop == size and self._target is not None:
            return size
        if self._target is None and self._waiting.get(name) == (begin, size):
            return begin
        with self._opened(name) as stream:
            end: int | None = self._ends.last_before(stream, begin, stop)
            if end == begin:
                end = self._ends.first_after(stream, begin, size)
        if end is None and self._target is None:
            self._waiting[name] = begin, size
            return begin
        self._waiting.pop(name, None)
        return size if end is None else end

    # Lines -----------------------------------------------------------------------------------

    def partitions(self, start: Offset, end: Offset) -> Sequence[_Range]:
        """Return the new lines of all files, cut so that every core has some."""
        ranges = [
            _Range(name, reached(place), reached(stop), (place, stop))
            for name, stop in sorted(end.items())
            for place in [start.get(name, 0)]
        ]
        ranges = [each for each in ranges if each.end > each.start]
        size = sum(each.end - each.start for each in ranges)
        least = max(LEAST_PARTITION, size // self._max_partitions)
        return [part for each in ranges for part in self._parts(each, least)]

    def _parts(self, whole: _Range, least: int) -> Iterator[_Range]:
        """Cut a range into parts of about ``least`` bytes or more."""
        count = (whole.end - whole.start) // least
        start = whole.start
        if count > 1:
            with self._opened(whole.file) as stream:
                for number in range(1, count):
                    aim = whole.start + (whole.end - whole.start) * number // count
                    cut = self._ends.near(stream, max(aim, start), whole.end)
                    if cut is None or cut >= whole.end:
                        break
                    yield replace(whole, start=start, end=cut)
                    start = cut
        yield replace(whole, start=start)

    @contextmanager
    def _opened(self, name: str) -> Iterator[BinaryIO]:
        with self._sources.opened(name) as file, open(file, "rb", closefd=False) as stream:
            yield stream

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield a partition's lines as one Arrow batch, without their line breaks."""
        assert isinstance(partition, _Range)
        with self._opened(partition.file) as stream:
            header = stream.readline(_LONGEST_HEADER).rstrip(b"\r\n") if self._has_header else b""
            stream.seek(partition.start)
            data = stream.read(partition.end - partition.start)
            # Afterwards: then what was read is of the file that is compared.
            for place in partition.places:
                self._sources.check_opened(stream.fileno(), partition.file, place)
        if len(data) < partition.end - partition.start:
            raise self._sources.changed(partition.file, "it ends before what was to be read")
        if data:
            lines = _split(data, partition.file, partition.start)
            yield _under(header, lines) if self._has_header else lines


def _is_unfinished(file: Path) -> bool:
    with file.open("rb") as stream:
        stream.seek(-1, os.SEEK_END)
        return stream.read(1) != b"\n"


def _under(header: bytes, lines: pa.RecordBatch) -> pa.RecordBatch:
    """Return a file's lines without its first one, which is in a column beside the others."""
    lines = lines.slice(1) if len(lines) and not lines.column("position")[0].as_py() else lines
    headers = pa.DictionaryArray.from_arrays(
        pa.repeat(pa.scalar(0, pa.int32()), len(lines)), pa.array([header])
    )
    return lines.append_column("header", headers.cast(pa.binary()))


def _split(data: bytes, file: str, position: int) -> pa.RecordBatch:
    """Return the lines of ``data`` as an Arrow batch, without a Python object per line."""
    breaks = np.flatnonzero(np.frombuffer(data, dtype=np.uint8) == ord("\n"))
    ends = breaks if data.endswith(b"\n") else np.append(breaks, len(data))
    starts = np.concatenate([[0], ends[:-1] + 1])
    # One array of line, break, line, break, … over the same bytes; every second value is a line.
    edges = np.empty(2 * len(ends) + 1, dtype=np.int32)
    edges[0:-1:2], edges[1::2], edges[-1] = starts, ends, min(len(data), int(ends[-1]) + 1)
    pieces = pa.BinaryArray.from_buffers(
        pa.binary(), len(edges) - 1, [None, pa.py_buffer(edges), pa.py_buffer(data)]
    )
    lines = pieces.take(pa.array(np.arange(0, len(pieces), 2)))
    return pa.RecordBatch.from_arrays(
        [
            lines,
            pa.repeat(pa.scalar(file, pa.string()), len(lines)),
            pa.array(starts + position, pa.int64()),
        ],
        schema=SCHEMA,
    )
