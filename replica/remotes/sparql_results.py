"""Streaming reader of SPARQL 1.1 Query Results JSON: holds one row at a time."""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import Any, Protocol

import ijson

LONGEST_TERM = 1 << 15
"""Most characters of a usable term: checking it takes time in which no other thread runs."""
_PIECE = 1 << 14
"""Bytes parsed at once, limited for the same reason."""

_LONGEST_TOKEN = 1 << 18
"""Most bytes of one JSON token: incomplete ones are parsed again with each piece."""

_Events = Iterator[tuple[str, Any]]
Binding = dict[str, Any]
"""JSON form of a term: members with texts; empty for an unusable term."""


class NotResultsError(ValueError):
    """Text that is not SPARQL Results JSON, or is incomplete."""


class Readable(Protocol):
    """Source of bytes that can be read piece by piece."""

    def read(self, n: int = -1, /) -> bytes:
        """Return at most ``n`` bytes, nothing at the end."""
        ...


def read_rows(text: Readable, wanted: Container[str]) -> Iterator[dict[str, Binding]]:
    """Yield the rows of a result, restricted to the wanted variables.

    Takes time linear in the text, and memory for one row, at any nesting. Raises
    :class:`NotResultsError` at the first place where the text is not a result, which may be after
    some rows.

    >>> import io
    >>> text = b'{"results": {"bindings": [{"a": {"type": "uri", "value": "urn:a"}, "b": {}}]}}'
    >>> list(read_rows(io.BytesIO(text), {"a"}))
    [{'a': {'type': 'uri', 'value': 'urn:a'}}]
    """
    events = _events(text)
    try:
        yield from _results(events, wanted)
        for _ in events:  # To the end: checks the rest, and frees the connection for reuse.
            pass
    except (ijson.JSONError, UnicodeError):
        raise NotResultsError("it is not JSON") from None


class _Pieces:
    """Text in pieces, limited to the length of one token."""

    def __init__(self, text: Readable) -> None:
        self._text = text
        self.waiting = 0
        """Bytes read since the last event."""

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
    """Yield once per member with a name; the caller must then read the member's value."""
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
    """Skip the rest of a value that begins with an event."""
    depth = 0
    while True:
        depth += (event in ("start_map", "start_array")) - (event in ("end_map", "end_array"))
        if depth == 0:
            return
        event, _ = next(events)
