"""Small files of a log, each of one line of JSON, written twice with a checksum."""

from __future__ import annotations

import functools
import json
import logging
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_log = logging.getLogger(__name__)


class NoteError(Exception):
    """Error: none of a note's lines is what was written."""


def encode_note(note: Mapping[str, Any]) -> bytes:
    """Return a note as bytes: two equal lines, of which one may get damaged.

    >>> encode_note({"a": 1}).splitlines()[0]
    b'{"a": 1, "checksum": "fba18e97"}'
    """
    line = json.dumps({**note, "checksum": _checksum(note)}).encode() + b"\n"
    return line + line


def read_note(path: Path) -> dict[str, Any]:
    """Return a note; empty if its file is, as a loss of power may leave it.

    Notes of earlier versions are one line without a checksum. Raises :class:`NoteError` if no line
    is whole.
    """
    content = path.read_bytes()
    if not content.strip(b"\0"):
        return {}
    middle = len(content) // 2
    first, second = _decoded(content[:middle]), _decoded(content[middle:])
    if first is not None and second is not None:
        return first
    one = first or second
    if one is not None:
        _say_damaged(path)
    else:
        one = _decoded(content)
    if one is None:
        raise NoteError(f"{path} is damaged")
    return one


def _decoded(line: bytes) -> dict[str, Any] | None:
    try:
        note: dict[str, Any] = json.loads(line)
        checksum = note.pop("checksum", None)
    except (ValueError, TypeError, AttributeError):
        return None
    return note if checksum in (None, _checksum(note)) else None


def _checksum(note: Mapping[str, Any]) -> str:
    return f"{zlib.crc32(json.dumps(note, sort_keys=True).encode()):08x}"


@functools.cache
def _say_damaged(path: Path) -> None:
    """Say it once per process: notes are read often."""
    _log.warning("%s is damaged: its other, whole line is used; check the disk", path)
