"""Files of records, read into columns: CSV, JSON lines, Parquet."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
from pyarrow import parquet

from replica.remotes import RemoteError
from replica.remotes.json_lines import load_line
from replica.remotes.records import values_at

_LINES_AT_ONCE = 10_000
_MOST_DIGITS = 18


@dataclass(frozen=True)
class TableFile:
    """Records of a file: all ids and times (null if unusable), and whole records on demand.

    ``written`` means that records are text only; ``bad`` counts unreadable ones.
    """

    ids: pa.Array
    times: pa.Array
    records: Callable[[npt.NDArray[np.int64]], Sequence[object]]
    written: bool = False
    bad: int = 0


def read_table_file(
    path: Path, id_path: str, time_path: str | None, fields: Iterable[str]
) -> TableFile:
    """Read a file by its suffix; of CSV and Parquet only the columns that are needed.

    There ids and times are columns; in JSON lines they may be anywhere in a record. Without a time
    path all times are 0. Raises :class:`RemoteError`.
    """
    read = _READERS.get(path.suffix.lower())
    if read is None:
        raise RemoteError(f"{path} does not end as tables do: {', '.join(_READERS)}")
    try:
        return read(path, id_path, time_path, fields)
    except (OSError, pa.ArrowException, UnicodeDecodeError, csv.Error) as error:
        strerror = error.strerror if isinstance(error, OSError) else None
        raise RemoteError(
            f"{path} cannot be read: {strerror or str(error).partition(chr(10))[0]}"
        ) from error


def _read_csv(path: Path, id_path: str, time_path: str | None, fields: Iterable[str]) -> TableFile:
    with path.open(newline="", encoding="utf-8-sig") as file:
        header = next(csv.reader(file), [])
    columns = _columns(path, header, id_path, time_path, fields)
    skipped: list[None] = []

    def skip(_: object) -> str:
        skipped.append(None)
        return "skip"

    convert = pacsv.ConvertOptions(
        include_columns=columns,
        column_types=dict.fromkeys(columns, pa.large_string()),
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
        null_values=[""],
    )
    parse = pacsv.ParseOptions(newlines_in_values=True, invalid_row_handler=skip)
    table = pacsv.read_csv(path, parse_options=parse, convert_options=convert).combine_chunks()
    times = _no_times(len(table)) if time_path is None else _written_times(_one(table[time_path]))
    return TableFile(_one(table[id_path]), times, _rows_of(table), written=True, bad=len(skipped))


def _read_parquet(
    path: Path, id_path: str, time_path: str | None, fields: Iterable[str]
) -> TableFile:
    columns = _columns(path, parquet.read_schema(path).names, id_path, time_path, fields)
    table = parquet.read_table(path, columns=columns).combine_chunks()
    ids = _one(table[id_path])
    if not (pa.types.is_integer(ids.type) or _is_text(ids.type)):
        raise RemoteError(f'{path}: the column "{id_path}" holds neither text nor whole numbers')
    times = (
        _no_times(len(table))
        if time_path is None
        else _typed_times(path, time_path, _one(table[time_path]))
    )
    return TableFile(ids.cast(pa.large_string()), times, _rows_of(table))


def _read_lines(path: Path, id_path: str, time_path: str | None, _: Iterable[str]) -> TableFile:
    chunks: list[pa.RecordBatch] = []
    bad = 0
    with path.open("rb") as file:
        while lines := list(islice(file, _LINES_AT_ONCE)):
            lines = [line for line in lines if line.strip()]
            rows = list(_line_rows(lines, id_path, time_path))
            bad += len(lines) - len(rows)
            columns = zip(*rows, strict=True) if rows else ([], [], [])
            arrays = [
                pa.array(column, field.type) for column, field in zip(columns, _LINE, strict=True)
            ]
            chunks.append(pa.RecordBatch.from_arrays(arrays, schema=_LINE))
    table = pa.Table.from_batches(chunks, schema=_LINE).combine_chunks()
    texts = _one(table["line"])

    def records(rows: npt.NDArray[np.int64]) -> list[object]:
        return [load_line(line) for line in texts.take(pa.array(rows)).to_pylist()]

    return TableFile(_one(table["id"]), _one(table["time"]), records, bad=bad)


_LINE = pa.schema([("id", pa.large_string()), ("time", pa.int64()), ("line", pa.large_binary())])
_READERS = {
    ".csv": _read_csv,
    ".jsonl": _read_lines,
    ".ndjson": _read_lines,
    ".parquet": _read_parquet,
}


def _line_rows(
    lines: Sequence[bytes], id_path: str, time_path: str | None
) -> Iterator[tuple[object, ...]]:
    for line in lines:
        try:
            record = load_line(line)
        except ValueError:
            continue
        time = 0 if time_path is None else _only(values_at(record, time_path))
        is_time = (
            isinstance(time, int) and not isinstance(time, bool) and abs(time) < 10**_MOST_DIGITS
        )
        yield _id_text(_only(values_at(record, id_path))), time if is_time else None, line.strip()


def _only(values: Iterable[object]) -> object:
    found = list(islice(values, 2))
    return found[0] if len(found) == 1 else None


def _id_text(value: object) -> str | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    is_text = isinstance(value, str) and not any("\ud800" <= each <= "\udfff" for each in value)
    return str(value) if is_text else None


def _columns(
    path: Path, names: Sequence[str], id_path: str, time_path: str | None, fields: Iterable[str]
) -> list[str]:
    """Return the needed columns: those named like a field, or like its first steps."""
    for needed in (id_path, *([time_path] if time_path is not None else [])):
        if names.count(needed) != 1:
            raise RemoteError(
                f'{path} has {names.count(needed)} columns "{needed}", not one: {", ".join(names)}'
            )
    starts = {id_path, time_path} | {start for each in fields for start in _starts(each)}
    wanted = [name for name in names if name in starts]
    if len(set(wanted)) < len(wanted):
        raise RemoteError(f"{path} has columns of the same name: {', '.join(names)}")
    return wanted


def _starts(path: str) -> Iterator[str]:
    steps = path.split(".")
    return (".".join(steps[:count]) for count in range(1, len(steps) + 1))


def _rows_of(table: pa.Table) -> Callable[[npt.NDArray[np.int64]], Sequence[object]]:
    for at, field in enumerate(table.schema):
        # Nanosecond timestamps become another package's type, not Python's.
        if pa.types.is_timestamp(field.type) and field.type.unit == "ns":
            cast = table[field.name].cast(pa.timestamp("us", field.type.tz), safe=False)
            table = table.set_column(at, field.name, cast)
    return lambda rows: list(table.take(pa.array(rows)).to_pylist())


def _one(column: pa.ChunkedArray) -> pa.Array:
    combined: Any = column.combine_chunks()
    return pa.concat_arrays(combined.chunks) if isinstance(combined, pa.ChunkedArray) else combined


def _no_times(count: int) -> pa.Array:
    return pa.array(np.zeros(count, dtype=np.int64))


def _written_times(texts: pa.Array) -> pa.Array:
    is_whole = pc.match_substring_regex(texts, rf"^-?[0-9]{{1,{_MOST_DIGITS}}}$")
    return pc.if_else(pc.fill_null(is_whole, False), texts, None).cast(pa.int64())


def _typed_times(path: Path, name: str, times: pa.Array) -> pa.Array:
    if pa.types.is_timestamp(times.type):
        return times.cast(pa.timestamp("ms", times.type.tz), safe=False).cast(pa.int64())
    if not pa.types.is_integer(times.type):
        raise RemoteError(
            f'{path}: the column "{name}" holds neither whole milliseconds nor timestamps'
        )
    return times.cast(pa.int64())


def _is_text(type_: pa.DataType) -> bool:
    inner = type_.value_type if pa.types.is_dictionary(type_) else type_
    return bool(pa.types.is_string(inner) or pa.types.is_large_string(inner))
