"""Options of connectors."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """Kind of an option's value.

    Sources get texts, as from Spark; the catalog checks and writes them.
    """

    TEXT = "text"
    PATH = "path"
    """Path of a file or a folder; in a catalog relative to the catalog's folder."""
    NUMBER = "whole number"
    FLAG = "true or false"
    """Passed to sources as ``true`` or ``false``."""
    TEXTS = "list of texts"
    """Passed to sources as a JSON array."""
    TABLE = "table of texts"
    """Passed to sources as a JSON object."""
    SECRET = "secret"  # noqa: S105
    """Text that only the environment may hold: a catalog must write ``${NAME}``."""


@dataclass(frozen=True)
class Option:
    """An option of a connector.

    ``default`` tells people the meaning of a missing option. ``least`` is the minimum of a number.
    ``choices`` are the allowed texts, if only some are. An option that ``names_source`` selects the
    data, not the way to read it: an engine continues a stream only while it stays the same. An
    ``implied`` option follows from the mapping in a catalog, and is not written there.
    """

    meaning: str
    kind: Kind = Kind.TEXT
    default: str = ""
    required: bool = False
    least: int = 1
    choices: tuple[str, ...] = ()
    names_source: bool = False
    implied: bool = False
