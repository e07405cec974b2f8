"""Bytes as they come in, lines as they are received: what live sources of lines have in common."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import pyarrow as pa

from connectors.places import ARRIVED

SCHEMA = pa.schema([("value", pa.binary()), (ARRIVED, pa.timestamp("us", "UTC"))])
"""The columns of what a live source of lines receives; the log adds ``position``."""
COLUMNS = f"value binary, {ARRIVED} timestamp, position bigint"
"""The same in Spark's words."""
LONGEST_LINE = 8 << 20


CUT = b"\xff"
"""What stands behind the beginning of a line that was too long: no text holds it, so no format takes it for good."""


class LineBuffer:
    r"""Cuts bytes into lines. Of a line that is too long only the beginning is kept, so memory is bounded.

    >>> lines = LineBuffer(longest=4)
    >>> lines.add(b"one\ntw"), lines.add(b"o\nfifty\nend"), lines.rest()
    ([b'one'], [b'two', b'fift\xff'], [b'end'])
    """

    def __init__(self, longest: int = LONGEST_LINE) -> None:
        self._longest = longest
        self._begun = bytearray()

    def add(self, data: bytes) -> list[bytes]:
        """Take in bytes; return the lines that have ended, without their breaks."""
        first, *others = data.split(b"\n")
        self._begun += first[: self._longest + 1 - len(self._begun)]
        if not others:
            return []
        *whole, last = others
        lines = [shortened(each, self._longest) for each in (bytes(self._begun), *whole)]
        self._begun = bytearray(last[: self._longest + 1])
        return lines

    def rest(self) -> list[bytes]:
        """Return the line that has not ended, if there is one: nothing will follow it."""
        begun, self._begun = bytes(self._begun), bytearray()
        return [shortened(begun, self._longest)] if begun else []


def shortened(line: bytes, longest: int) -> bytes:
    """Return a line, of one that is too long the beginning, marked as such."""
    return line if len(line) <= longest else line[:longest] + CUT


def received(lines: Sequence[bytes], at: datetime | None = None) -> pa.RecordBatch | None:
    """Return lines as a batch of what is received now, or at some time; None if there are none."""
    if not lines:
        return None
    now = pa.scalar(datetime.now(UTC) if at is None else at, SCHEMA.field(ARRIVED).type)
    return pa.record_batch([pa.array(lines, pa.binary()), pa.repeat(now, len(lines))], schema=SCHEMA)
