"""Decoder of CSV lines: all lines at once, without a Python object per line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv

from connectors.fields import FAULT, NOT_UTF8, ROW, misfit
from connectors.mapping import FieldMapping
from connectors.number_texts import finite_numbers, whole_numbers
from connectors.scalars import BARE, SCALAR, scalars_of

HEADER = "header"
"""Column in which a source gives the first line of a row's file."""


@dataclass(frozen=True)
class Dialect:
    """Dialect of CSV: the delimiter between fields and the quote around fields that contain it.

    An empty ``quote`` means that there is none.
    """

    delimiter: str = ","
    quote: str = '"'

    def pattern(self) -> str:
        """Return a pattern, in Arrow's syntax, of a line with any number of fields."""
        delimiter, quote = re.escape(self.delimiter), re.escape(self.quote)
        bare = rf"[^{delimiter}{quote}\r]*"
        field = rf"(?:{quote}(?:[^{quote}]|{quote}{quote})*{quote}|{bare})" if self.quote else bare
        return rf"^{field}(?:{delimiter}{field})*$"


@dataclass(frozen=True)
class CsvMapping(FieldMapping):
    """Mapping from a line of CSV to RDF.

    Fields are the names of columns: the given ones, or those in each file's first line. A line is a
    record, so quoted fields must not contain line breaks. An empty field is missing.
    """

    columns: tuple[str, ...] = ()
    dialect: Dialect = field(default_factory=Dialect)

    def named(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the records in a batch of lines; empty lines are skipped.

        The lines are in the column ``value``.
        """
        tables = [self._fields(batch, rows, columns) for rows, columns in self._files(batch)]
        fields = pa.concat_tables(tables)
        if len(tables) > 1:
            fields = fields.sort_by(ROW)
        return self.items(fields.combine_chunks(), batch)

    def _files(self, batch: pa.RecordBatch) -> Sequence[tuple[pa.Int32Array, Sequence[str]]]:
        """Return the rows grouped by their columns, with the columns of each group."""
        if self.columns:
            return [(pa.array(np.arange(len(batch), dtype=np.int32)), self.columns)]
        headers = batch.column(HEADER).dictionary_encode()
        indices = headers.indices.to_numpy(zero_copy_only=False)
        known = [self._names(each) for each in headers.dictionary.to_pylist()]
        return [
            (pa.array(np.flatnonzero(indices == at).astype(np.int32)), names)
            for at, names in enumerate(known)
        ] or [(pa.array([], pa.int32()), ())]

    def _names(self, header: bytes) -> Sequence[str]:
        """Return the names in a first line; none if it is not CSV."""
        text = pa.array([header.decode("utf-8-sig", "replace").rstrip("\r")])
        if not pc.match_substring_regex(text, self.dialect.pattern())[0].as_py():
            return ()
        return list(self._split(text, 0).to_pylist()[0].values())

    def _fields(
        self, batch: pa.RecordBatch, rows: pa.Int32Array, columns: Sequence[str]
    ) -> pa.Table:
        """Return the fields of the lines of one file."""
        lines = pc.fill_null(batch.column("value").take(rows), b"")
        text, faults = _texts(lines)
        text = pc.ascii_rtrim(text, "\r")
        kept = pc.or_(pc.not_equal(pc.ascii_trim_whitespace(text), ""), pc.is_valid(faults))
        text, faults, rows = text.filter(kept), faults.filter(kept), rows.filter(kept)
        faults = _noted(faults, pc.match_substring_regex(text, self.dialect.pattern()), "not CSV")
        good = pc.is_null(faults)
        counts = pc.add(self._delimiters(text), 1)
        said = f"not as many fields as columns, which are {len(columns)}"
        faults = _noted(faults, pc.or_(pc.invert(good), pc.equal(counts, len(columns))), said)
        good = pc.is_null(faults)
        split = self._split(text.filter(good), len(columns))
        places = pc.if_else(good, pc.subtract(pc.cumulative_sum(good.cast(pa.int32())), 1), None)
        found: dict[str, pa.Array] = {}
        for name, type_ in self.types.items():
            written = pa.nulls(len(split), pa.string())
            if name in columns:
                written = split[str(list(columns).index(name))].combine_chunks()
            values = _as_type(written, type_)
            found[name] = values.take(places)
            fits = pc.or_(pc.is_null(written), pc.is_valid(values)).take(places)
            faults = _noted(faults, pc.fill_null(fits, True), misfit(name, type_))
        return pa.table({**found, FAULT: faults, ROW: rows})

    def _delimiters(self, text: pa.StringArray) -> pa.Int32Array:
        """Return the number of unquoted delimiters in each line."""
        if self.dialect.quote:
            quote = re.escape(self.dialect.quote)
            quoted = pc.match_substring(text, self.dialect.quote)
            if pc.any(quoted).as_py():
                bare = pc.replace_substring_regex(
                    text.filter(quoted), rf"{quote}[^{quote}]*{quote}", ""
                )
                text = pc.replace_with_mask(text, quoted, bare)
        return pc.count_substring(text, self.dialect.delimiter)

    def _split(self, text: pa.StringArray, count: int) -> pa.Table:
        """Return the fields of well-formed lines, as texts in columns named by their positions."""
        count = count or (pc.max(self._delimiters(text)).as_py() or 0) + 1
        names = [str(at) for at in range(count)]
        if not len(text):
            return pa.table({name: pa.array([], pa.string()) for name in names})
        data = pc.binary_join(pa.ListArray.from_arrays([0, len(text)], text), "\n")[0].as_buffer()
        return pcsv.read_csv(
            pa.BufferReader(data),
            pcsv.ReadOptions(use_threads=False, block_size=len(data) + 1, column_names=names),
            pcsv.ParseOptions(
                delimiter=self.dialect.delimiter,
                quote_char=self.dialect.quote or False,
                ignore_empty_lines=False,
            ),
            pcsv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()),
                strings_can_be_null=True,
                null_values=[""],
            ),
        )


def _texts(lines: pa.BinaryArray) -> tuple[pa.StringArray, pa.StringArray]:
    """Return lines as texts, with a fault for each line that is not text."""
    try:
        return lines.cast(pa.string()), pa.nulls(len(lines), pa.string())
    except pa.ArrowInvalid:
        texts = [_text(line) for line in lines.to_pylist()]
        faults = [NOT_UTF8 if text is None else None for text in texts]
        return pa.array([text or "" for text in texts], pa.string()), pa.array(faults, pa.string())


def _text(line: bytes) -> str | None:
    try:
        return line.decode()
    except UnicodeDecodeError:
        return None


def _noted(faults: pa.StringArray, good: pa.BooleanArray, reason: str) -> pa.StringArray:
    """Return the faults, with ``reason`` added for each row that is not good and has none yet."""
    return pc.if_else(pc.or_(good, pc.is_valid(faults)), faults, reason)


def _as_type(texts: pa.StringArray, type_: pa.DataType) -> pa.Array:
    if type_ == SCALAR:
        return scalars_of(texts, BARE)
    if type_ == pa.string():
        return texts
    return whole_numbers(texts) if type_ == pa.int64() else finite_numbers(texts)
