"""Streaming reader of records in a JSON text: holds neither the text nor all its records."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import ijson
from ijson.common import ObjectBuilder

Event = tuple[str, Any]
Read = Callable[[int], bytes]
"""Function that returns at most the given number of bytes, none at the end."""

MOST_NESTED = 100
"""Deepest nesting of a record: deeper ones cost far more memory than their text."""
_PIECE = 1 << 16
"""Bytes parsed at once: about a millisecond of work, as other threads are blocked meanwhile."""


class NotRecordsError(ValueError):
    """Text that is not JSON, or lacks records at the expected place."""


class JsonRecords:
    """Records at a dotted path: a list's elements, or the single value; an empty path is the root.

    Numbers are exact: ``int`` or ``Decimal``. After the iteration, ``has_items`` is True if there
    was anything at the path, even null. ``has_errors`` is True if there was a member ``errors``
    next to the path's first step. Raises :class:`NotRecordsError`, and any error of ``read``.

    >>> import io
    >>> reply = JsonRecords(
    ...     io.BytesIO(b'{"data": [{"id": 1}, {"id": 2.50}], "meta": 0}').read, "data"
    ... )
    >>> list(reply), reply.has_items, reply.has_errors
    ([{'id': 1}, {'id': Decimal('2.50')}], True, False)
    """

    def __init__(self, read: Read, path: str) -> None:
        self.has_items = False
        self.has_errors = False
        self._events = _events(read)
        self._steps = tuple(path.split(".")) if path else ()

    def __iter__(self) -> Iterator[Any]:
        yield from self._at(self._steps, *next(self._events))
        # Read to the end: a truncated text is no answer.
        for _ in self._events:
            pass

    def _at(self, steps: tuple[str, ...], event: str, value: Any) -> Iterator[Any]:
        if not steps:
            yield from self._items(event, value)
        elif event == "start_map":
            yield from self._members(steps)
        elif event == "start_array":
            yield from self._elements(steps)

    def _members(self, steps: tuple[str, ...]) -> Iterator[Any]:
        for event, name in self._events:
            if event == "end_map":
                return
            self.has_errors |= steps is self._steps and name == "errors"
            if name == steps[0] and not self.has_items:
                yield from self._at(steps[1:], *next(self._events))
            else:
                self._skip(*next(self._events))

    def _elements(self, steps: tuple[str, ...]) -> Iterator[Any]:
        for number, (event, value) in enumerate(self._events):
            if event == "end_array":
                return
            if str(number) == steps[0]:
                yield from self._at(steps[1:], event, value)
            else:
                self._skip(event, value)

    def _items(self, event: str, value: Any) -> Iterator[Any]:
        self.has_items = True
        if event == "start_array":
            for event, value in self._events:
                if event == "end_array":
                    return
                yield self._built(event, value)
        elif event == "start_map":
            yield self._built(event, value)
        elif event != "null":
            raise NotRecordsError("there is neither an object nor a list where records should be")

    def _built(self, event: str, value: Any) -> Any:
        builder = ObjectBuilder()
        builder.event(event, value)
        depth = _depth(event)
        while depth:
            event, value = next(self._events)
            builder.event(event, value)
            depth += _depth(event)
            if depth > MOST_NESTED:
                raise NotRecordsError("it nests too deep")
        return builder.value

    def _skip(self, event: str, _: Any) -> None:
        depth = _depth(event)
        while depth:
            depth += _depth(next(self._events)[0])


def _depth(event: str) -> int:
    return 1 if event.startswith("start") else -1 if event.startswith("end") else 0


def _events(read: Read) -> Iterator[Event]:
    found = ijson.sendable_list()
    parser = ijson.basic_parse_coro(found)
    piece = b"-"
    while piece:
        piece = read(_PIECE)
        try:
            if piece:
                parser.send(piece)
            else:
                parser.close()
        except (ijson.JSONError, ValueError, ArithmeticError, SystemError) as error:
            # Errors of the parser's own conversions, such as of numbers with thousands of digits,
            # too.
            raise NotRecordsError("it is not JSON, or broken off") from error
        yield from found
        found.clear()
