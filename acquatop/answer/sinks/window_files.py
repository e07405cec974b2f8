"""Sinks of one file per query and window, written as a whole."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from acquatop.answer.answer import Answer
from acquatop.answer.sinks.files import FilePlace, open_files
from acquatop.answer.sinks.naming import instant_name, safe_name
from acquatop.errors import UserError

_DIGITS = 12
"""Number of digits of a window's number in a file's name, so that names sort by window."""


class WindowFiles:
    """Sink that writes a file per answer, named by the time at which its window closes.

    Every query has a folder of its own, unless ``flat``: then the query's name precedes the time.
    ``encode`` makes a file's content from an answer; equal answers must give equal content. On a
    disk, one sync per answer and one per folder; in an object store, one request per answer.
    """

    def __init__(
        self,
        folder: FilePlace,
        suffix: str,
        encode: Callable[[Answer], bytes],
        *,
        flat: bool = False,
    ) -> None:
        self._files = open_files(folder)
        self._suffix = suffix
        self._encode = encode
        self._flat = flat

    def write(self, answers: Sequence[Answer]) -> None:
        """Write a file per answer, replacing one that exists."""
        self._files.write({self._name(answer): self._encode(answer) for answer in answers})

    def close(self) -> None:
        """Do nothing: no file is held open."""

    def _name(self, answer: Answer) -> str:
        query, closes = safe_name(answer.query), instant_name(answer.closes_ms)
        if answer.counts_elements:
            # Several such windows may close at one time.
            closes += f".{answer.window:0{_DIGITS}}"
        return f"{query}{'.' if self._flat else '/'}{closes}{self._suffix}"


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
