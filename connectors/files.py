"""Stream of whole files: a folder to which small files are added; each file is one row.

In plain PySpark, for a folder in which each file is a message::

    from connectors.files import FilesDataSource

    spark.dataSource.register(FilesDataSource)
    files = spark.readStream.format("whole_files").option("path", "messages/").load()

A row is one file: its bytes, its name, 0 as its position, and the time of its last change
(``received``). Files must be complete when they appear under their name: write them under a name
that starts with ``.`` or ``_`` and rename them. They are read in the order of their names. A file
that is added later is read from then on, whatever its name. Offsets are the names of the files read
so far, with a fingerprint of each, so every batch can be read again while the files stay. Offsets
grow by one name and some 30 bytes per file. A file that changes after it was read is an error. A
file that is too long is not read: its bytes are null, and the column ``_misfit`` has the reason.

Options:

- ``path``: the folder, or a single file. Subfolders, and names that start with ``.`` or ``_``, are
  left out.
- ``ending``: only names that end with this text are read, such as ``.ttl``; any name by default.
- ``maxFilesPerBatch``: maximum number of files in one batch, 1000 by default.
- ``maxBytesPerBatch``: maximum size of one batch, 64 MiB by default; one file at least.
- ``maxBytesPerFile``: maximum length of a file, 64 MiB by default.
- ``maxPartitions``: maximum number of partitions of a batch, one per core by default.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from connectors import ConnectorError
from connectors.columns import MISFIT
from connectors.offsets_by_file import Offset, OffsetsByFile, Place, reached
from connectors.read_limits import ALL, ReadLimit, ReadMaxBytes, TriggerAvailableNow
from connectors.row_origins import ARRIVED, FILE, POSITION
from connectors.source_files import Seen, SourceFiles
from connectors.source_status import SourceStatus, status_of_files
from connectors.spark_classes import DataSource, DataSourceStreamReader, InputPartition

SCHEMA = pa.schema(
    [
        ("value", pa.binary()),
        (FILE, pa.string()),
        (POSITION, pa.int64()),
        (ARRIVED, pa.timestamp("us", "UTC")),
        (MISFIT, pa.string()),
    ]
)


@dataclass(frozen=True)
class Bounds:
    """Limits of a batch and of a file."""

    files: int = 1000
    bytes: int = 64 << 20
    file_bytes: int = 64 << 20


class FilesDataSource(DataSource):
    """The data source ``whole_files``."""

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return "whole_files"

    def schema(self) -> str:
        """Return the columns of a row."""
        return (
            f"value binary, {FILE} string, {POSITION} bigint, {ARRIVED} timestamp, {MISFIT} string"
        )

    def streamReader(self, schema: Any) -> FilesReader:  # noqa: N802 (the name is PySpark's)
        """Return a reader for the options given."""
        path = self.options.get("path")
        if not path:
            raise ConnectorError('the connector "files" needs the option path: a folder, or a file')
        usual = Bounds()
        bounds = Bounds(
            int(self.options.get("maxFilesPerBatch", usual.files)),
            int(self.options.get("maxBytesPerBatch", usual.bytes)),
            int(self.options.get("maxBytesPerFile", usual.file_bytes)),
        )
        partitions = int(self.options.get("maxPartitions", "0"))
        return FilesReader(
            Path(path),
            bounds,
            ending=self.options.get("ending", ""),
            max_partitions=partitions or None,
        )


@dataclass
class _Files(InputPartition):
    """Some files, by their names, with the places that tell if they are still the same."""

    files: tuple[tuple[str, Place], ...]


class FilesReader(OffsetsByFile, DataSourceStreamReader, TriggerAvailableNow):
    """Reader of files that have not been read yet; the module describes offsets."""

    def __init__(
        self, path: Path, bounds: Bounds, *, ending: str = "", max_partitions: int | None = None
    ) -> None:
        self._path = path
        rule = 'write files under a name that starts with "_", rename them, and let them stay'
        self._sources = SourceFiles(path, rule, grow=False, names_stay=False)
        self._bounds = bounds
        self._ending = ending
        self._max_partitions = max_partitions or os.cpu_count() or 1

    # Offsets ---------------------------------------------------------------------------------

    def initialOffset(self) -> Offset:  # noqa: N802
        """Return the offset before the first file."""
        return {}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return the limit of one batch."""
        return ReadMaxBytes(self._bounds.bytes)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Take the files that exist now as the end of the stream."""
        if not self._path.exists():
            raise ConnectorError(f"there is no file or folder {self._path}")
        self._target = {name: seen.size for name, seen in self._present().items()}

    def latestOffset(  # noqa: N802
        self, start: Offset | None = None, limit: ReadLimit = ALL
    ) -> Offset:
        """Return the offset after the next batch: the next files in the order of their names.

        Without a start it is the end of all files: Spark takes a later offset for granted.
        """
        most = self._bounds.files if start is not None else math.inf
        start = self.initialOffset() if start is None else start
        present = self._present()
        self._sources.check(start, present)
        room = limit.max_bytes if isinstance(limit, ReadMaxBytes) else None
        new: Offset = {}
        for name in present if self._target is None else sorted(self._target):
            if name in start:
                continue
            if name not in present:
                raise self._sources.lost(name, 0)
            size = present[name].size
            if len(new) >= most or (new and room is not None and size > room):
                break
            new[name] = self._place(name, [size, self._sources.print_of(name, size)])
            room = None if room is None else room - min(size, self._bounds.file_bytes)
        return dict(sorted({**start, **new}.items()))

    def progress(self, offset: Offset) -> tuple[int, int]:
        """Return the number of bytes read up to an offset, and the total."""
        whole = self._target or {name: seen.size for name, seen in self._present().items()}
        return sum(map(reached, offset.values())), sum(map(reached, whole.values()))

    def status(self) -> SourceStatus:
        """Return the status of the folder."""
        hint = f'see that the names end with "{self._ending}" (ending)' if self._ending else ""
        files = map(self._sources.file, self._present())
        return status_of_files(self._path, files, what="file", hint=hint)

    def _present(self) -> dict[str, Seen]:
        found = self._sources.present()
        if not self._path.is_dir():
            return found
        return {name: seen for name, seen in found.items() if name.endswith(self._ending)}

    # Files -----------------------------------------------------------------------------------

    def partitions(self, start: Offset, end: Offset) -> Sequence[_Files]:
        """Return the new files in order, in at most ``maxPartitions`` parts of similar length."""
        new = [(name, place) for name, place in sorted(end.items()) if name not in start]
        share = max(1, -(-sum(reached(place) + 1 for _, place in new) // self._max_partitions))
        parts: list[list[tuple[str, Place]]] = []
        filled = share
        for name, place in new:
            if filled >= share:
                parts.append([])
                filled = 0
            parts[-1].append((name, place))
            filled += reached(place) + 1
        return [_Files(tuple(part)) for part in parts]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield a partition's files as one Arrow batch."""
        assert isinstance(partition, _Files)
        rows = [self._row(name, place) for name, place in partition.files]
        columns = [
            pa.array(column, field.type)
            for column, field in zip(zip(*rows, strict=True), SCHEMA, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=SCHEMA)

    def _row(self, name: str, place: Place) -> tuple[bytes | None, str, int, int, str | None]:
        with self._sources.opened(name) as file:
            about = os.fstat(file)
            is_long = about.st_size > self._bounds.file_bytes
            value = None if is_long else _content(file)
            # Afterwards: then what was read is of the file that is compared.
            self._sources.check_opened(file, name, place)
        misfit = f"longer than {self._bounds.file_bytes} bytes" if is_long else None
        return value, name, 0, about.st_mtime_ns // 1_000, misfit


def _content(file: int) -> bytes:
    with open(file, "rb", closefd=False) as stream:
        return stream.read()
