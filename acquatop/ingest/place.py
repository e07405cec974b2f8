"""The place of an item in its source, for messages and logs."""

from __future__ import annotations

from typing import NamedTuple


class Place(NamedTuple):
    """The file of an item, and its byte or row there; None where the source does not say."""

    file: str | None = None
    position: int | None = None

    def __str__(self) -> str:
        """Return it for a message, empty if nothing is known.

        >>> str(Place("events", 30)), str(Place(None, 7)), str(Place())
        ('position 30 of events', 'position 7', '')
        """
        parts = ["" if self.position is None else f"position {self.position}", self.file or ""]
        return " of ".join(filter(None, parts))
