"""SPARQL 1.1 Query Results JSON, read row by row as it comes in: what is not needed is never held."""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import Any, Protocol

import ijson

LONGEST_TERM = 1 << 15
"""How many characters a term's text may have to be used: checking it takes time in which no other thread runs."""
_PIECE = 1 << 14
"""How many bytes are parsed at once: the same holds for these."""

_LONGEST_TOKEN = 1 << 18
"""How many bytes one word of JSON may have: those that are not all there yet are parsed again with each piece."""

_Events = Iterator[tuple[str, Any]]
Binding = dict[str, Any]
"""A term as JSON: members that have texts, or nothing for a term that cannot be used."""


class NotResultsError(ValueError):
    """A text is not SPARQL Results JSON, or not all of it."""


class Readable(Protocol):
    """What can be read piece by piece."""

    def read(self, n: int = -1, /) -> bytes:
        """Return at most ``n`` bytes, nothing at the end."""
        ...


def read_rows(text: Readable, wanted: Container[str]) -> Iterator[dict[str, Binding]]:
    """Yield the rows of a result with the variables that are wanted, and nothing of what is around them.

    Takes time linear in the text, and memory for one row, however the text is nested. Raises
    :class:`NotResultsError` where the text ceases to be a result, which may be after some rows.

    >>> import io
    >>> text = b'{"results": {"bindings": [{"a": {"type": "uri", "value": "urn:a"}, "b": {}}]}}'
    >>> list(read_rows(io.BytesIO(text), {"a"}))
    [{'a': {'type': 'uri', 'value': 'urn:a'}}]
    """
    events = _events(text)
    try:
        yield from _results(events, wanted)
        for _ in events:  # To the end, so that what follows is looked at and the connection can be used again.
            pass
    except (ijson.JSONError, UnicodeError):
        raise NotResultsError("it is not JSON") from None


class _Pieces:
    """A text in pieces, as many as make a word at most."""

    def __init__(self, text: Readable) -> None:
        self._text = text
        self.waiting = 0
        """How many bytes have been read since the last event."""

    def read(self, n: int = -1) -> bytes:
        if self.waiting > _LONGEST_TOKEN:
            raise NotResultsError(f"it has a term of more than {_LONGEST_TOKEN} bytes")
        piece = self._text.read(n)
        self.waiting += len(piece)
        return piece


def _events(text: Readable) -> _Events:
    pieces = _Pieces(text)
    for event in ijson.basic_parse(pieces, use_float=True, buf_size=_PIECE):
        pieces.waiting = 0
        yield event


def _results(events: _Events, wanted: Container[str]) -> Iterator[dict[str, Binding]]:
    found = False
    _open(events, "start_map")
    for _ in _members(events, "results"):
        _open(events, "start_map")
        for _ in _members(events, "bindings"):
            _open(events, "start_array")
            found = True
            yield from _rows(events, wanted)
    if not found:
        raise NotResultsError("it has no bindings")


def _rows(events: _Events, wanted: Container[str]) -> Iterator[dict[str, Binding]]:
    for event, _ in events:
        if event == "end_array":
            return
        if event != "start_map":
            raise NotResultsError("a row is not an object")
        yield _row(events, wanted)


def _row(events: _Events, wanted: Container[str]) -> dict[str, Binding]:
    row = {}
    for event, name in events:
        if event == "end_map":
            break
        _open(events, "start_map")
        binding = _binding(events)
        if name in wanted:
            row[name] = binding
    return row


def _binding(events: _Events) -> Binding:
    binding: Binding = {}
    usable = True
    for event, name in events:
        if event == "end_map":
            break
        event, value = next(events)
        if name not in ("type", "value", "datatype", "xml:lang"):
            _skip(events, event)
        elif event == "null" or (event == "string" and len(value) <= LONGEST_TERM):
            binding[name] = value
        else:
            _skip(events, event)
            usable = False
    return binding if usable else {}


def _members(events: _Events, wanted: str) -> _Events:
    """Yield when the values of an object's members of a name come, of which whoever asks reads them."""
    for event, name in events:
        if event == "end_map":
            return
        if name == wanted:
            yield event, name
        else:
            _skip(events, next(events)[0])


def _open(events: _Events, kind: str) -> None:
    if next(events)[0] != kind:
        raise NotResultsError("it is not a result")


def _skip(events: _Events, event: str) -> None:
    """Leave out the rest of a value that begins with an event."""
    depth = 0
    while True:
        depth += (event in ("start_map", "start_array")) - (event in ("end_map", "end_array"))
        if depth == 0:
            return
        event, _ = next(events)
