"""Text of a query under repair: places in it are mapped back to the text as it was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Edit:
    """Replacement of the characters from ``start`` to ``end``, the end excluded."""

    start: int
    end: int
    text: str = ""


class Draft:
    """Text, and the edits made so far.

    >>> draft = Draft("a == b AND c")
    >>> draft.apply([Edit(2, 4, "="), Edit(7, 10, "&&")])
    >>> draft.text, draft.origin(draft.text.index("c"))
    ('a = b && c', 11)
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._made: list[Edit] = []

    def apply(self, edits: Sequence[Edit]) -> None:
        """Make edits that do not overlap."""
        for edit in sorted(edits, key=lambda each: each.start, reverse=True):
            self.text = self.text[: edit.start] + edit.text + self.text[edit.end :]
            self._made.append(edit)

    def origin(self, at: int) -> int:
        """Return the place that a place in the present text had at first."""
        for edit in reversed(self._made):
            end = edit.start + len(edit.text)
            if at >= end:
                at += edit.end - end
            elif at > edit.start:
                at = edit.start
        return at
