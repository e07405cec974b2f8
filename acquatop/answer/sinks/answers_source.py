"""Answers of a folder as a streaming DataFrame: the PySpark data source ``acquatop_answers``.

It reads what the sink ``parquet:FOLDER`` writes, each answer once::

    from acquatop.answer.sinks.answers_source import AnswersDataSource

    spark.dataSource.register(AnswersDataSource)
    answers = spark.readStream.format("acquatop_answers").option("path", "answers").load()

An offset has, for each query, the name of its last file that was read: answers of a query come in
the order of the names. The driver reads the files, so that executors need not see the folder.

Options:

- ``path``: the folder, on the driver's machine.
- ``query``: the name of the only query to read; all by default.
- ``variables``: a JSON list of the queries' variables; by default those in the folder's first file.
- ``types``: a JSON object with the types of variables that are not to be texts: ``bigint``,
  ``double`` or ``boolean``. A value that does not fit is null.
- ``maxAnswersPerBatch``: maximum number of answers in one batch, 1000 by default.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxFiles, SupportsTriggerAvailableNow

from acquatop.answer.sinks.naming import safe_name
from acquatop.answer.sinks.table import FIXED, LAST, column_names
from acquatop.errors import UserError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FORMAT = "acquatop_answers"
TYPES: Mapping[str, Callable[[str], object]] = {
    "bigint": lambda text: _whole(text),
    "double": float,
    "boolean": {"true": True, "1": True, "false": False, "0": False}.get,
}
"""Types that a variable's column may have besides text, with the functions that read them."""

_FILE = re.compile(r"([^.].*?)\.(Y?\d{8,}T\d{6}\.\d{3}Z(?:\.\d{12})?)\.parquet")
_ANSWERS = "1000"
_TERMS = "map<string, struct<type: string, datatype: string, lang: string>>"
_OF_FIXED = ("string", "bigint", "timestamp", "timestamp", "int", "double", "string")

Offset = dict[str, str]


class AnswersDataSource(DataSource):
    """The data source ``acquatop_answers``."""

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return FORMAT

    def schema(self) -> str:
        """Return the columns of a row."""
        types = self._types()
        columns = column_names(self._variables())
        texts = ((column, types.get(variable, "string")) for variable, column in columns.items())
        of_last = zip(LAST, ("boolean", _TERMS, "string"), strict=True)
        every = (*zip(FIXED, _OF_FIXED, strict=True), *texts, *of_last)
        return ", ".join(f"`{name}` {type_}" for name, type_ in every)

    def streamReader(self, schema: Any) -> AnswersReader:  # noqa: N802 (the name is PySpark's)
        """Return a reader for the options given."""
        from pyspark.sql.pandas.types import to_arrow_schema

        query = self.options.get("query")
        return AnswersReader(
            self._folder(),
            None if query is None else safe_name(query),
            to_arrow_schema(schema, timezone="UTC"),
            int(self.options.get("maxAnswersPerBatch", _ANSWERS)),
        )

    def _folder(self) -> Path:
        path = self.options.get("path")
        if not path:
            raise UserError(f"{FORMAT} needs the option path: the folder of a sink parquet:FOLDER")
        return Path(path)

    def _types(self) -> dict[str, str]:
        types: dict[str, str] = json.loads(self.options.get("types", "{}"))
        for variable, type_ in types.items():
            if type_ not in TYPES:
                raise UserError(
                    f'?{variable} cannot be of the type "{type_}"\n  hint: use {", ".join(TYPES)}'
                )
        return types

    def _variables(self) -> list[str]:
        """Return the variables given, or else those of the first file, as its columns name them."""
        given = self.options.get("variables")
        if given is not None:
            return [str(name) for name in json.loads(given)]
        file = next((file for _, _, file in sorted(_files(self._folder()))), None)
        if file is None:
            raise UserError(
                f"{self._folder()} has no answers yet\n  hint: set the option variables, such as "
                '["user", "n"]'
            )
        return [name for name in pq.read_schema(file).names if name not in {*FIXED, *LAST}]


def answers_stream(
    spark: SparkSession,
    folder: Path,
    query: str,
    columns: Mapping[str, str] | None,
    types: Mapping[str, str],
) -> DataFrame:
    """Return a query's answers in a folder as a streaming DataFrame.

    ``columns`` are its variables with their types, if they are known; ``types`` replace some.
    """
    spark.dataSource.register(AnswersDataSource)
    own = {**(columns or {}), **types}
    given = {name: type_ for name, type_ in own.items() if type_ != "string"}
    reader = spark.readStream.format(FORMAT).option("path", str(folder.absolute()))
    reader = reader.option("query", query).option("types", json.dumps(given))
    if columns is not None:
        reader = reader.option("variables", json.dumps(list(columns)))
    return reader.load()


@dataclass
class AnswerRows(InputPartition):
    """Rows of answers, as an Arrow stream."""

    rows: bytes


class AnswersReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reader of the answers in a folder from an offset on; the module describes offsets."""

    def __init__(self, folder: Path, query: str | None, schema: pa.Schema, most: int) -> None:
        self._folder = folder
        self._query = query
        self._schema = schema
        self._most = most
        self._target: Offset | None = None

    def initialOffset(self) -> Offset:  # noqa: N802
        """Return the offset before the first answer."""
        return {}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return the limit of one batch."""
        return ReadMaxFiles(self._most)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Take the present answers as the end of the stream."""
        self._target = {query: name for name, query, _ in sorted(self._after({}))}

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        """Return the offset after the next batch: the next answers by the close of their window."""
        most = limit.max_files if isinstance(limit, ReadMaxFiles) else None
        new = sorted(self._between(start, self._target))[:most]
        return {**start, **{query: name for name, query, _ in new}}

    def partitions(self, start: Offset, end: Offset) -> Sequence[AnswerRows]:
        """Return the rows between two offsets."""
        tables = [self._table(file) for _, _, file in sorted(self._between(start, end))]
        rows = pa.concat_tables(tables) if tables else self._schema.empty_table()
        content = pa.BufferOutputStream()
        with pa.ipc.new_stream(content, self._schema) as stream:
            stream.write_table(rows.combine_chunks())
        return [AnswerRows(content.getvalue().to_pybytes())]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield a partition's rows."""
        assert isinstance(partition, AnswerRows)
        yield from pa.ipc.open_stream(partition.rows)

    def _between(self, start: Offset, end: Offset | None) -> Iterator[tuple[str, str, Path]]:
        for name, query, file in self._after(start):
            if end is None or name <= end.get(query, ""):
                yield name, query, file

    def _after(self, start: Offset) -> Iterator[tuple[str, str, Path]]:
        for name, query, file in _files(self._folder):
            if self._query in (None, query) and name > start.get(query, ""):
                yield name, query, file

    def _table(self, file: Path) -> pa.Table:
        """Return a file's rows with the columns that are wanted."""
        found = pq.read_table(file)
        return pa.Table.from_arrays(
            [
                _typed(found.column(field.name), field.type)
                if field.name in found.column_names
                else pa.nulls(len(found), field.type)
                for field in self._schema
            ],
            schema=self._schema,
        )


def _files(folder: Path) -> Iterator[tuple[str, str, Path]]:
    """Yield each answer's name among those of its query, the query's safe name, and its file."""
    for file in folder.iterdir() if folder.is_dir() else ():
        match = _FILE.fullmatch(file.name)
        if match is not None:
            yield match[2], match[1], file


def _typed(column: pa.ChunkedArray, type_: pa.DataType) -> pa.ChunkedArray:
    """Return a column in a type; a text that does not fit becomes null."""
    if column.type != pa.string() or type_ == pa.string():
        return column.cast(type_)
    read = {
        pa.int64(): TYPES["bigint"],
        pa.float64(): TYPES["double"],
        pa.bool_(): TYPES["boolean"],
    }
    values = [_value(text, read[type_]) for text in column.to_pylist()]
    return pa.chunked_array([pa.array(values, type_)])


def _value(text: str | None, read: Callable[[str], object]) -> object:
    try:
        return None if text is None else read(text)
    except ValueError:
        return None


def _whole(text: str) -> int | None:
    """Return a whole number of 64 bits, None for any other number.

    >>> _whole("-7"), _whole("9223372036854775808")
    (-7, None)
    """
    number = int(text)
    return number if number.bit_length() < 64 else None
