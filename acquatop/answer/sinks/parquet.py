"""Sink of answers as a folder of Parquet files, which Spark and others read as one table."""

from __future__ import annotations

from acquatop.answer.answer import Answer
from acquatop.answer.sinks.files import FilePlace
from acquatop.answer.sinks.table import answers_table
from acquatop.answer.sinks.window_files import WindowFiles


class ParquetSink(WindowFiles):
    """Sink of ``.parquet`` files, all in one ``folder``; Spark ignores unfinished ones."""

    def __init__(self, folder: FilePlace) -> None:
        super().__init__(folder, ".parquet", encode, flat=True)
        self.folder = folder


def encode(answer: Answer) -> bytes:
    """Return an answer's table (:func:`~acquatop.answer.sinks.table.answers_table`) as a file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    content = pa.BufferOutputStream()
    pq.write_table(answers_table([answer]), content, compression="zstd")
    return bytes(content.getvalue())
