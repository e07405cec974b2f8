"""Sinks of one file per query and window, written as a whole."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from acquatop.answer.answer import Answer
from acquatop.answer.sinks.durable import make_folder, write_files
from acquatop.answer.sinks.naming import instant_name, safe_name
from acquatop.errors import UserError

_DIGITS = 12
"""Number of digits of a window's number in a file's name, so that names sort by window."""


class WindowFiles:
    """Sink that writes a file per answer, named by the time at which its window closes.

    Every query has a folder of its own, unless ``flat``: then the query's name precedes the time.
    ``encode`` makes a file's content from an answer; equal answers must give equal content. One
    sync per answer and one per folder.
    """

    def __init__(
        self, folder: Path, suffix: str, encode: Callable[[Answer], bytes], *, flat: bool = False
    ) -> None:
        self._folder = folder
        self._suffix = suffix
        self._encode = encode
        self._flat = flat
        self._made: set[Path] = set()
        self._make(folder)

    def write(self, answers: Sequence[Answer]) -> None:
        """Write a file per answer, replacing one that exists."""
        files = {self._path(answer): self._encode(answer) for answer in answers}
        for path in files:
            self._make(path.parent)
        write_files(files)

    def close(self) -> None:
        """Do nothing: no file is held open."""

    def _path(self, answer: Answer) -> Path:
        query, closes = safe_name(answer.query), instant_name(answer.closes_ms)
        if answer.counts_elements:
            # Several such windows may close at one time.
            closes += f".{answer.window:0{_DIGITS}}"
        return self._folder / (
            f"{query}.{closes}{self._suffix}" if self._flat else f"{query}/{closes}{self._suffix}"
        )

    def _make(self, folder: Path) -> None:
        if folder not in self._made:
            make_folder(folder)
            self._made.add(folder)


def require_form(answer: Answer, forms: Collection[str], kind: str, others: str) -> None:
    """Raise an error if a kind of file has no place for an answer's form.

    ``others`` are kinds that have.
    """
    if answer.form not in forms:
        known = " and ".join(form.upper() for form in forms)
        raise UserError(
            f"{answer.query} is a query with {answer.form.upper()}; {kind} files are for {known}\n"
            f"  hint: use {others}"
        )


def columns_of(answer: Answer) -> list[str]:
    """Return the variables that have a column, in the order of their selection."""
    return list(
        dict.fromkeys((*answer.variables, *(name for row in answer.rows for name in row.bindings)))
    )


def utf8(text: str) -> bytes:
    r"""Return a text as UTF-8; lone surrogates, which no RDF term should have, become U+FFFD.

    >>> utf8("a" + chr(0xD800)).decode().encode("ascii", "backslashreplace")
    b'a\\ufffd'
    """
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()
