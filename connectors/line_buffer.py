"""Buffer from received bytes to lines, shared by the live sources of lines."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import pyarrow as pa

from connectors.row_origins import ARRIVED

SCHEMA = pa.schema([("value", pa.binary()), (ARRIVED, pa.timestamp("us", "UTC"))])
"""Columns received by a live source of lines; the log adds ``position``."""
COLUMNS = f"value binary, {ARRIVED} timestamp, position bigint"
"""The same columns as a Spark schema, with ``position``."""
LONGEST_LINE = 8 << 20


CUT = b"\xff"
"""Mark behind the kept beginning of a line that was too long.

No text contains this byte, so every format rejects the line.
"""


class LineBuffer:
    r"""Splitter of bytes into lines. Memory is bounded: only the beginning of a long line is kept.

    >>> lines = LineBuffer(longest=4)
    >>> lines.add(b"one\ntw"), lines.add(b"o\nfifty\nend"), lines.rest()
    ([b'one'], [b'two', b'fift\xff'], [b'end'])
    """

    def __init__(self, longest: int = LONGEST_LINE) -> None:
        self._longest = longest
        self._begun = bytearray()

    def add(self, data: bytes) -> list[bytes]:
        """Add bytes; return the lines that are complete, without their line breaks."""
        first, *others = data.split(b"\n")
        self._begun += first[: self._longest + 1 - len(self._begun)]
        if not others:
            return []
        *whole, last = others
        lines = [shortened(each, self._longest) for each in (bytes(self._begun), *whole)]
        self._begun = bytearray(last[: self._longest + 1])
        return lines

    def rest(self) -> list[bytes]:
        """Return the unfinished line, if there is one, and empty the buffer."""
        begun, self._begun = bytes(self._begun), bytearray()
        return [shortened(begun, self._longest)] if begun else []


def shortened(line: bytes, longest: int) -> bytes:
    """Return a line; if it is too long, its beginning with the mark."""
    return line if len(line) <= longest else line[:longest] + CUT


def received(lines: Sequence[bytes], at: datetime | None = None) -> pa.RecordBatch | None:
    """Return lines as a batch received now or at ``at``; None if there are no lines."""
    if not lines:
        return None
    now = pa.scalar(datetime.now(UTC) if at is None else at, SCHEMA.field(ARRIVED).type)
    return pa.record_batch(
        [pa.array(lines, pa.binary()), pa.repeat(now, len(lines))], schema=SCHEMA
    )
