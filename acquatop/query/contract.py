"""What drives a group of queries, whichever way they are answered together: parts of a stream in, answers out."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from acquatop.answer.answer import Answer
from acquatop.ingest.reduce.contract import Part, Reducer
from acquatop.plan.bind import BoundQuery
from acquatop.windows import Windows

EMPTY_RUN = 10_000
"""The longest run of empty windows that is answered one by one: time has jumped when there are more."""


class Held(NamedTuple):
    """How much is held for a query."""

    candidates: int = 0
    replica_keys: int = 0


class Group(Protocol):
    """Top-k queries over one stream that are answered together. Called by one thread at a time.

    Each query's answers are those that it would have by itself.
    """

    @property
    def slide_ms(self) -> int:
        """How often windows close, those of the most frequent of several."""

    @property
    def members(self) -> Mapping[str, object]:
        """The queries, by name, in the order in which they joined."""

    def join(self, bound: BoundQuery, after_ms: int | None = None) -> object:
        """Answer one more query, from the first window on that opens at a time or after it."""

    def rejoin(self, bound: BoundQuery) -> object | None:
        """Let a query go on that was a member when the snapshot was taken; None if it was none."""

    def leave(self, name: str) -> None:
        """Answer a query no more."""

    def closed(self) -> Sequence[tuple[Windows, int | None]]:
        """Return the windows that members have, and of each the last that has closed."""

    def held(self, name: str) -> Held:
        """Return how much is held for a query."""

    def reducers(self) -> Sequence[Reducer]:
        """Return what to make of the stream's next records."""

    def add(self, parts: Sequence[Part], names: Sequence[str] | None = None) -> None:
        """Take in what one partition comes to: a part for each of the reducers.

        ``names`` are the members when these were made; without it they are the members now.
        """

    def advance(
        self, watermark_ms: int, due_at: float | None = None, longest_wait: float = math.inf
    ) -> Iterator[Answer]:
        """Yield the answers of all windows that close at the watermark or before it, oldest first.

        Call it once all events up to the watermark have been handed in; ``due_at`` is when they
        came, ``longest_wait`` how many seconds each evaluation may wait for the remote. A query's windows begin
        with the first that holds an event, matched by the pattern or not, or with the first after the
        stream's start if that is given. Of a run of more than ``EMPTY_RUN`` windows without events
        at most the first is answered; the others are counted with the next answer.
        """

    def finish(self) -> Iterator[Answer]:
        """Yield the answers of all windows that still hold events, as if time went on after the last of them."""

    def close(self) -> None:
        """Let go of what runs beside; safe to call again, and from any thread."""

    def snapshot(self) -> bytes:
        """Return everything that is needed to go on from here. O(all that is held)."""

    def resume(self, snapshot: bytes) -> None:
        """Go on from a snapshot: on a new group, before any query joins, with the same arguments."""

    def saved(self) -> None:
        """Note that the last snapshot is safe: what only older ones need may go."""
