"""File names of a state directory."""

from __future__ import annotations

import re
from typing import NamedTuple

MANIFEST = "manifest.json"
LOCK = "acquatop.lock"
UNFINISHED = "unfinished-"
DAMAGED = "damaged-"

_NUMBERED = re.compile(r"(damaged-|unfinished-)?(snapshot|journal|part)-([0-9]{8,})(?:-[0-9]+)?")


class Numbered(NamedTuple):
    """Parts of the name of a numbered file."""

    state: str
    kind: str
    number: int


def snapshot_name(number: int) -> str:
    """Return a snapshot's name.

    >>> snapshot_name(42)
    'snapshot-00000042'
    """
    return f"snapshot-{number:08d}"


def journal_name(number: int) -> str:
    """Return the name of a snapshot's journal."""
    return f"journal-{number:08d}"


def part_name(number: int, at: int) -> str:
    """Return the name of the file of a large part that was written with a snapshot."""
    return f"part-{number:08d}-{at}"


def read_name(name: str) -> Numbered | None:
    """Return the parts of a name, or None if it is not the name of a numbered file.

    >>> read_name("damaged-snapshot-00000042")
    Numbered(state='damaged-', kind='snapshot', number=42)
    >>> read_name("manifest.json") is None
    True
    """
    found = _NUMBERED.fullmatch(name)
    return Numbered(found[1] or "", found[2], int(found[3])) if found else None
