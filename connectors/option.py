"""What can be set of a connector."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What an option's value is. Sources are given texts, as Spark does: the catalog checks and writes them."""

    TEXT = "text"
    PATH = "path"
    """Of a file or a folder; in a catalog taken from its folder."""
    NUMBER = "whole number"
    FLAG = "true or false"
    """Given to sources as ``true`` or ``false``."""
    TEXTS = "list of texts"
    """Given to sources as a JSON array."""
    TABLE = "table of texts"
    """Given to sources as a JSON object."""
    SECRET = "secret"  # noqa: S105
    """A text that only the environment may hold: a catalog must say ``${NAME}``."""


@dataclass(frozen=True)
class Option:
    """An option of a connector.

    ``default`` says what is meant where it is missing, for people; ``least`` is of numbers, and ``choices`` are the
    texts that are known, where only some are. An option that ``names_source`` says what is read, and not how: an engine
    goes on with a stream only while it stays the same. One that is ``implied`` follows in a catalog from the mapping,
    and is not written there.
    """

    meaning: str
    kind: Kind = Kind.TEXT
    default: str = ""
    required: bool = False
    least: int = 1
    choices: tuple[str, ...] = ()
    names_source: bool = False
    implied: bool = False
