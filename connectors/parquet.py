"""Stream of the rows of Parquet files: a file, or a folder to which whole files are added.

In plain PySpark, which already uses the name ``parquet``::

    from connectors.parquet import ParquetDataSource

    spark.dataSource.register(ParquetDataSource)
    rows = (
        spark.readStream.format("parquet_rows")
        .option("path", "events/")
        .option("columns", '{"user": "string", "at": "bigint"}')
        .load()
    )

A row has the requested columns and no others. Instants become integer milliseconds since the epoch.
A value that does not have the requested type is null, and the column ``_misfit`` says so. ``_file``
and ``_row`` are the place of a row. Files must be complete when they appear under their name: write
them under a name that starts with ``.`` or ``_`` and rename them. They are read in the order of
their names, one after the other. A file that is added later is read from then on, whatever its
name. Offsets are the number of rows read from each file, with a fingerprint of the file, so every
batch can be read again while the files stay. Offsets grow by some 40 bytes per file. A file that
changes after it was read is an error. A batch ends with a row group if half of its limit is read by
then.

Options:

- ``path``: a file, or a folder, whose files that end in ``.parquet`` are read; subfolders are left
  out.
- ``columns``: a JSON object with the types of the requested columns: ``bigint``, ``double``,
  ``string`` or ``scalar`` (any single value, :mod:`connectors.scalars`).
- ``coded``: a JSON list of the columns that are read as dictionaries, each distinct text only once,
  or as integers if they are such. Only for direct callers of the reader: Spark's own rows cannot
  be so.
- ``maxRowsPerBatch``: maximum number of rows in one batch, 2 million by default.
- ``maxPartitions``: maximum number of partitions of a batch, one per core by default.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from connectors import ConnectorError
from connectors.coded import CODED
from connectors.columns import COLUMN_TYPES, MISFIT, TYPE_NAMES, fitted_columns
from connectors.offsets_by_file import Offset, OffsetsByFile, Place, reached
from connectors.ranges import Range, cut_ranges
from connectors.read_limits import ALL, ReadLimit, ReadMaxRows, TriggerAvailableNow
from connectors.row_origins import ROW_FILE, ROW_NUMBER
from connectors.scalars import SCALAR
from connectors.source_files import Seen, SourceFiles
from connectors.source_status import SourceStatus, status_of_files
from connectors.spark_classes import DataSource, DataSourceStreamReader, InputPartition

IntArray = npt.NDArray[np.int64]

LEAST_PARTITION = 1 << 16
"""Minimum number of rows of a partition; the last one of a batch may be smaller."""
ROWS_PER_BATCH = 2_000_000
CHUNK, MOST_CHUNK = 1 << 16, 1 << 19
"""Least and greatest number of rows decoded at a time: as many as the first taken of a file."""
_MOST_OF_COLUMN = 2 / 3
"""Largest share of the dictionary in a column that is read as a dictionary."""
_PAGES = 1024
"""Room for the headers of a column's pages, in bytes."""


class ParquetDataSource(DataSource):
    """The data source ``parquet_rows``."""

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return "parquet_rows"

    def schema(self) -> str:
        """Return the columns of a row."""
        names = [
            (name.replace("`", "``"), "string" if type_ == SCALAR else TYPE_NAMES[type_])
            for name, type_ in self._types().items()
        ]
        more = [(MISFIT, "string"), (ROW_FILE, "string"), (ROW_NUMBER, "bigint")]
        return ", ".join(f"`{name}` {type_}" for name, type_ in [*names, *more])

    def streamReader(self, schema: Any) -> ParquetReader:  # noqa: N802 (the name is PySpark's)
        """Return a reader for the options given."""
        path = self.options.get("path")
        if not path:
            raise ConnectorError(
                'the connector "parquet" needs the option path: a file or a folder'
            )
        limit, partitions = (
            int(self.options.get(each, "0")) for each in ("maxRowsPerBatch", "maxPartitions")
        )
        return ParquetReader(
            Path(path), self._types(), limit or ROWS_PER_BATCH, max_partitions=partitions or None
        )

    def _types(self) -> Mapping[str, pa.DataType]:
        try:
            columns = json.loads(self.options.get("columns", ""))
            coded = dict.fromkeys(json.loads(self.options.get("coded", "[]")), CODED)
            return {
                str(name): coded.get(name, COLUMN_TYPES[type_]) for name, type_ in columns.items()
            }
        except (ValueError, KeyError, AttributeError, TypeError):
            hint = (
                f"a JSON object from names to {', '.join(COLUMN_TYPES)}, such as "
                f'{{"user": "string"}}'
            )
            raise ConnectorError(
                f'the connector "parquet" needs the option columns: {hint}'
            ) from None


@dataclass
class _Rows(InputPartition):
    """Rows of some files in order, each range from a first row to behind a last one.

    ``places`` are those of the batch in each range's file, which tell if it is still the same.
    """

    ranges: tuple[Range, ...]
    places: tuple[tuple[Place, Place], ...]


class ParquetReader(OffsetsByFile, DataSourceStreamReader, TriggerAvailableNow):
    """Reader of rows from an offset on; the module describes offsets."""

    def __init__(
        self,
        path: Path,
        types: Mapping[str, pa.DataType],
        max_rows: int,
        *,
        max_partitions: int | None = None,
    ) -> None:
        self._path = path
        self._types = dict(types)
        self._max_rows = max_rows
        self._max_partitions = max_partitions or os.cpu_count() or 1
        rule = 'write files under a name that starts with "_", rename them, and let them stay'
        self._sources = SourceFiles(path, rule, grow=False)
        self._lengths: dict[str, tuple[Seen, IntArray]] = {}
        """Beginnings of the row groups of each file, and the end of the last one."""
        self._open: _Cursor | None = None

    # Offsets ---------------------------------------------------------------------------------

    def initialOffset(self) -> Offset:  # noqa: N802
        """Return the offset before the first row."""
        return {}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return the limit of one batch."""
        return ReadMaxRows(self._max_rows)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Take the files that exist now as the end of the stream."""
        if not self._path.exists():
            raise ConnectorError(f"there is no file or folder {self._path}")
        self._target = self._all_lengths(self._present())

    def latestOffset(  # noqa: N802
        self, start: Offset | None = None, limit: ReadLimit = ALL
    ) -> Offset:
        """Return the offset after the next batch: files in order of names, up to the limit."""
        start = self.initialOffset() if start is None else start
        present = self._present()
        self._sources.check(start, present)
        most = room = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        end = dict(start)
        for name in present if self._target is None else sorted(self._target):
            begin = reached(start.get(name, 0))
            if name not in present:
                if self._target is not None and reached(self._target[name]) == begin:
                    continue
                raise self._sources.lost(name, begin)
            length = whole = self._length(name, present[name])
            if self._target is not None:
                length = reached(self._target[name])
            if whole < max(begin, length):
                raise self._sources.changed(name, f"it has shrunk from {begin} to {whole} rows")
            rows = length - begin if room is None else min(room, length - begin)
            is_cut = rows < length - begin
            if is_cut and room is not None and most is not None:
                rows = self._whole_groups(name, begin, rows, least=room - most // 2)
            if rows:
                more = [whole] if begin + rows < whole else []
                place = [begin + rows, self._sources.print_of(name, 0), *more]
                end[name] = self._place(name, place)
            room = None if room is None else room - rows
            if room == 0 or is_cut:
                break
        return dict(sorted(end.items()))

    def _whole_groups(self, name: str, begin: int, rows: int, least: int) -> int:
        """Return up to how many rows of a file to read: whole row groups, if these are enough.

        Whoever begins within a row group has to decode it from its first row on.
        """
        ends = self._lengths[name][1]
        whole = int(ends[np.searchsorted(ends, begin + rows, side="right") - 1]) - begin
        return whole if whole >= max(0, least) else rows

    def progress(self, offset: Offset) -> tuple[int, int]:
        """Return the number of rows read up to an offset, and the total."""
        whole = self._all_lengths(self._present()) if self._target is None else self._target
        return sum(map(reached, offset.values())), sum(map(reached, whole.values()))

    def status(self) -> SourceStatus:
        """Return the status of the file or folder."""
        files = map(self._sources.file, self._present())
        return status_of_files(self._path, files, what="row")

    def _present(self) -> dict[str, Seen]:
        found = self._sources.present()
        if not self._path.is_dir():
            return found
        return {name: seen for name, seen in found.items() if name.lower().endswith(".parquet")}

    def _all_lengths(self, present: Mapping[str, Seen]) -> Offset:
        return {name: self._length(name, seen) for name, seen in present.items()}

    def _length(self, name: str, seen: Seen) -> int:
        """Return the number of rows of a file, from its footer, which is read once."""
        known = self._lengths.get(name)
        if known is None or known[0] != seen:
            path = self._sources.file(name)
            with self._sources.reading(path), _opened(path) as opened:
                known = seen, _group_ends(opened.metadata)
            self._lengths[name] = known
        return int(known[1][-1])

    # Rows ------------------------------------------------------------------------------------

    def partitions(self, start: Offset, end: Offset) -> Sequence[_Rows]:
        """Return the new rows of all files, cut into parts of equal length for the cores."""
        ranges = [
            Range(name, reached(start.get(name, 0)), reached(place))
            for name, place in sorted(end.items())
        ]
        return [
            _Rows(part, tuple((start.get(name, 0), end[name]) for name, _, _ in part))
            for part in cut_ranges(ranges, self._max_partitions, LEAST_PARTITION)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield a partition's rows as Arrow batches, one per range of a file."""
        assert isinstance(partition, _Rows)
        for (name, begin, stop), places in zip(partition.ranges, partition.places, strict=True):
            columns, misfit = fitted_columns(self._rows(name, begin, stop, places), self._types)
            file = pa.repeat(pa.scalar(name, pa.string()), stop - begin)
            more = {MISFIT: misfit, ROW_FILE: file, ROW_NUMBER: pa.array(np.arange(begin, stop))}
            yield pa.RecordBatch.from_pydict({**columns, **more})

    def stop(self) -> None:
        """Close the file that is being read."""
        self._open = None

    def _rows(self, name: str, begin: int, stop: int, places: Iterable[Place]) -> pa.Table:
        """Return some rows of a file, and of them the columns wanted.

        A row group can only be decoded from its first row on. So a file stays open, and
        whoever goes on where the last partition ended does not begin anew: batches may be far
        smaller than row groups.
        """
        rows = self._open
        if rows is None or (rows.name, rows.at) != (name, begin):
            rows = self._cursor(name, begin, stop - begin)
        try:
            table = rows.take(stop - begin)
        except (pa.ArrowException, OSError, StopIteration):
            # Its bytes are not those of its footer: that is a change, or damage.
            self._check_opened(name, places)
            raise self._sources.changed(name, "it is damaged, or being written") from None
        # Afterwards: then what was read is of the file that is compared.
        self._check_opened(name, places)
        self._open = None if rows.is_at_end else rows
        return table

    def _cursor(self, name: str, begin: int, count: int) -> _Cursor:
        path = self._sources.file(name)
        with self._sources.reading(path):
            return _Cursor(name, path, self._types, begin, count)

    def _check_opened(self, name: str, places: Iterable[Place]) -> None:
        with self._sources.opened(name) as file:
            for place in places:
                self._sources.check_opened(file, name, place)


class _Cursor:
    """A file that is read row by row, from a first one on; first ``count`` rows will be taken."""

    def __init__(
        self, name: str, path: Path, wanted: Mapping[str, pa.DataType], begin: int, count: int
    ) -> None:
        file = _opened(path)
        coded = [each for each, type_ in wanted.items() if type_ == CODED]
        coded = [each for each in coded if _repeats(file.metadata, each)]
        if coded:
            file = _opened(path, coded, file.metadata)
        self.name = name
        self.at = begin
        self._length = file.metadata.num_rows
        groups, skipped = _groups_from(file.metadata, begin)
        columns = [each for each in wanted if each in file.schema_arrow.names]
        chunk = min(max(CHUNK, count), MOST_CHUNK)
        self._batches = file.iter_batches(
            chunk, row_groups=groups, columns=columns, use_threads=False
        )
        self._rest: list[pa.RecordBatch] = []
        self._take(skipped)

    @property
    def is_at_end(self) -> bool:
        """True if there are no more rows."""
        return bool(self.at >= self._length)

    def take(self, count: int) -> pa.Table:
        """Return the next rows."""
        self.at += count
        return pa.Table.from_batches(self._take(count))

    def _take(self, count: int) -> list[pa.RecordBatch]:
        taken: list[pa.RecordBatch] = []
        while count:
            batch = self._rest.pop() if self._rest else next(self._batches)
            taken.append(batch.slice(0, count))
            if len(batch) > count:
                self._rest.append(batch.slice(count))
            count -= len(taken[-1])
        return taken


def _group_ends(metadata: pq.FileMetaData) -> IntArray:
    """Return zero, and the number of rows up to the end of each row group."""
    groups = range(metadata.num_row_groups)
    return np.cumsum([0, *(metadata.row_group(group).num_rows for group in groups)])


def _groups_from(metadata: pq.FileMetaData, begin: int) -> tuple[list[int], int]:
    """Return the row groups that hold rows from one on, and how many rows are before it in the
    first of them.
    """
    after = 0
    for group in range(metadata.num_row_groups):
        first, after = after, after + metadata.row_group(group).num_rows
        if after > begin:
            return list(range(group, metadata.num_row_groups)), begin - first
    return [], 0


def _repeats(metadata: pq.FileMetaData, column: str) -> bool:
    """Return True if a column of texts is cheaper to read as a dictionary.

    It is not if the dictionary is most of it, or if it holds more than places in the dictionary:
    then the writer has given the dictionary up, and the reader would have to go on with it.
    """
    whole = dictionary = room = 0
    for group in range(metadata.num_row_groups):
        each = _column(metadata.row_group(group), column)
        if each is None or not each.has_dictionary_page or each.dictionary_page_offset is None:
            return False
        whole += each.total_compressed_size
        dictionary += max(0, each.data_page_offset - each.dictionary_page_offset)
        room += each.num_values * int(each.num_values).bit_length() // 8 + _PAGES
    return dictionary <= _MOST_OF_COLUMN * whole and whole - dictionary <= room


def _column(group: pq.RowGroupMetaData, name: str) -> pq.ColumnChunkMetaData | None:
    columns = (group.column(at) for at in range(group.num_columns))
    return next((each for each in columns if each.path_in_schema == name), None)


def _opened(
    file: Path, coded: Sequence[str] = (), metadata: pq.FileMetaData | None = None
) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(file, read_dictionary=coded, metadata=metadata)
    except (FileNotFoundError, PermissionError):
        raise
    except (pa.ArrowInvalid, OSError) as error:
        message = f"{file} cannot be read as Parquet: {error}"
        hint = 'write files under a name that starts with "_" and rename them when they are whole'
        raise ConnectorError(f"{message}\n  hint: {hint}") from None
