"""Stream of lines from a named pipe, or another file that can be read only once.

In plain PySpark::

    from connectors.pipe import PipeDataSource

    spark.dataSource.register(PipeDataSource)
    stream = spark.readStream.format("pipe_lines")
    lines = stream.option("path", "events.pipe").option("log", "received/").load()

A row is a line: its bytes, the time at which it was ``received``, and its ``position`` among all
received lines. Lines are written to a durable log before they are read (see
:mod:`connectors.live`): a logged line is read once, whatever is killed. A line that has left the
pipe but is not in the log yet is lost if this process is killed.

Spark plans batches in processes of its own, whose standard input is not the program's. So ``-``
does not work there; on Linux the standard input of the process PID is ``/proc/PID/fd/0``.

Options:

- ``path``: the pipe, ``-`` for this process's standard input. When all writers have closed a named
  pipe, the next writer continues the stream; the standard input has an end, after which the stream
  has no more data.
- ``log``, ``maxLogBytes``, ``maxBytesPerBatch``, ``maxPartitions``, ``commits``: see
  :func:`connectors.live.log_options`.
- ``messageId``, ``duplicateWindow``: to drop lines or messages that come again, see there.
- ``maxLineBytes``: maximum length of a line, 8 MiB by default. Of a longer one only the beginning
  is kept, which is a bad line.
"""

from __future__ import annotations

import functools
import os
import select
import stat
from typing import Any

import pyarrow as pa

from connectors import ConnectorError
from connectors.line_buffer import COLUMNS, LONGEST_LINE, SCHEMA, LineBuffer, received
from connectors.live import LiveReader, log_options
from connectors.live_source import LiveSource
from connectors.log.writer import Remembered
from connectors.source_status import Link
from connectors.spark_classes import DataSource

STANDARD_INPUT = "-"
_NAMES = {STANDARD_INPUT: "standard input"}
_HINT = "start the program that writes to it"
_CHUNK = 1 << 20


class PipeDataSource(DataSource):
    """The data source ``pipe_lines``."""

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return "pipe_lines"

    def schema(self) -> str:
        """Return the columns of a row."""
        return COLUMNS

    def streamReader(self, schema: Any) -> LiveReader:  # noqa: N802 (the name is PySpark's)
        """Return a reader for the options given; it opens the pipe when first asked for data."""
        path = self.options.get("path")
        if not path:
            raise ConnectorError(
                'the connector "pipe" needs the option path: a named pipe, or - for standard input'
            )
        longest = int(self.options.get("maxLineBytes", LONGEST_LINE))
        return LiveReader(
            functools.partial(PipeSource, path, longest), log_options("pipe", self.options)
        )


class PipeSource(LiveSource):
    """Reading end of a pipe."""

    schema = SCHEMA

    def __init__(self, path: str, longest: int) -> None:
        self._path = path
        self.link = Link(_NAMES.get(path, path))
        self._lines = LineBuffer(longest)
        self._file: int | None = None
        self._is_named = False
        self._has_ended = False

    def open(self, remembered: Remembered) -> None:
        """Open the pipe; the log is ignored, because nothing comes again."""
        if self._path == STANDARD_INPUT:
            self._file = os.dup(0)
            self.link.made()
            return
        try:
            # Does not wait for a writer: the stream may be stopped before there is one.
            self._file = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK)
        except OSError as error:
            hint = f"make a named pipe with mkfifo {self._path}"
            raise ConnectorError(
                f"{self._path} cannot be opened: {error.strerror}\n  hint: {hint}"
            ) from error
        self._is_named = stat.S_ISFIFO(os.fstat(self._file).st_mode) and not self._path.startswith(
            "/proc/"
        )
        if self._is_named:
            self._note_no_writer()

    def _note_no_writer(self) -> None:
        self.link.failed("no program writes to it", _HINT, is_attempt=False)

    def receive(self, wait_seconds: float) -> pa.RecordBatch | None:
        """Return the received lines, once there are some."""
        if self._has_ended or self._file is None:
            select.select([], [], [], wait_seconds)
            return None
        if not select.select([self._file], [], [], wait_seconds)[0]:
            return None
        try:
            data = os.read(self._file, _CHUNK)
        except BlockingIOError:
            return None
        if data:
            self.link.made()
            return received(self._lines.add(data))
        return received(self._ended(wait_seconds))

    def _ended(self, wait_seconds: float) -> list[bytes]:
        """Note that there is no writer; return the unfinished line of the last one."""
        if self._is_named:
            self._note_no_writer()
            select.select([], [], [], wait_seconds)  # a pipe without writers is always ready
        else:
            self._has_ended = True
            self.link.failed("it has ended", _HINT, is_attempt=False)
        return self._lines.rest()

    def is_caught_up(self) -> bool:
        """Return True if the standard input has ended; always True for a named pipe.

        A named pipe never ends; its present content counts as all there is.
        """
        return self._has_ended or self._is_named

    def acknowledge(self) -> None:
        """Do nothing: data that was read is gone from the pipe."""

    def close(self) -> None:
        """Close the pipe."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
