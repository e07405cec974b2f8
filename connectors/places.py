"""Where the rows of a source stand, and when they came: the columns in which sources say so."""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa

FILE, POSITION = "file", "position"
"""Of rows that are bytes: the file they stand in, and where; a stream that is no file has but positions."""
ROW_FILE, ROW_NUMBER = "_file", "_row"
"""Of rows in columns, which may have such names themselves."""
ARRIVED = "received"
"""When a row came: a timestamp."""


class Place(NamedTuple):
    """Where one item stands, as far as its source says: the file, and the byte or the row in it."""

    file: str | None = None
    position: int | None = None

    def __str__(self) -> str:
        """Return it as messages say it, nothing where nothing is known.

        >>> str(Place("events", 30)), str(Place(None, 7)), str(Place())
        ('position 30 of events', 'position 7', '')
        """
        parts = ["" if self.position is None else f"position {self.position}", self.file or ""]
        return " of ".join(filter(None, parts))


class Places(NamedTuple):
    """Where each row stands; nothing where its source does not say."""

    files: pa.Array | None
    positions: pa.Array | None

    def at(self, row: int) -> Place:
        """Return where one row stands."""
        return Place(*(None if column is None else column[row].as_py() for column in self))


def places_of(rows: pa.RecordBatch) -> Places:
    """Return where rows stand.

    >>> places_of(pa.record_batch([pa.array([7])], ["position"])).positions.to_pylist()
    [7]
    """
    names = rows.schema.names
    file, position = (ROW_FILE, ROW_NUMBER) if ROW_NUMBER in names else (FILE, POSITION)
    return Places(*(rows.column(name) if name in names else None for name in (file, position)))
