"""What a pipeline drives, whatever queries are behind it: parts of streams in, answers out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from acquatop.answer.answer import Answer
from acquatop.ingest.reduce.contract import Part, Reducer
from acquatop.ingest.reduce.records import Records
from acquatop.plan.bind import Bound, BoundCounted, BoundQuery, BoundWindowed
from acquatop.query.contract import Group, Held
from acquatop.query.evaluation import group_key
from acquatop.query.shared.evaluation import shared_key
from acquatop.query.sparql.evaluation import WindowedQuery
from acquatop.windows import Windows

__all__ = ["AtWork", "Bound", "GroupAtWork", "Held", "WindowedAtWork", "at_work_key", "next_close"]


class AtWork(Protocol):
    """Queries that are evaluated together. Called by one thread at a time."""

    @property
    def slide_ms(self) -> float:
        """How often its windows close, the most frequent of several; infinite where time closes none."""

    @property
    def names(self) -> Sequence[str]:
        """The queries that it answers."""

    def join(self, bound: Bound, after_ms: Mapping[str, int]) -> None:
        """Answer one more query, from the first windows on that open, on streams that have begun, after these times."""

    def rejoin(self, bound: Bound) -> bool:
        """Let a query go on that was answered when the snapshot was taken; say whether it was."""

    def leave(self, name: str) -> None:
        """Answer a query no more."""

    def windows(self, stream: str) -> Sequence[tuple[Windows, int | None]]:
        """Return the windows on a stream, and of each the last that has closed."""

    def due_after(self, stream: str, time_ms: int) -> int | None:
        """Return the time after another at which a stream may bring the next answers; None where no time does."""

    def reducers(self, stream: str) -> Sequence[Reducer]:
        """Return what to make of a stream's next records."""

    def add(self, stream: str, parts: Sequence[Part], names: Sequence[str]) -> None:
        """Take in what one partition comes to, a part for each reducer; ``names`` are who was there then."""

    def advance(self, stream: str, watermark_ms: int, due_at: float, longest_wait: float) -> Iterator[Answer]:
        """Yield the answers that are due once a stream has come to a watermark, oldest first."""

    def finish(self, stream: str) -> Iterator[Answer]:
        """Yield the answers that are due once a stream has ended; with the last stream, all that are left."""

    def close(self) -> None:
        """Let go of what runs beside; safe to call again, and from any thread."""

    def snapshot(self) -> bytes:
        """Return everything that is needed to go on from here."""

    def saved(self) -> None:
        """Note that the last snapshot is safe: what only older ones need may go."""

    def resume(self, snapshot: bytes) -> None:
        """Go on from a snapshot, before any query joins."""

    def held(self, name: str) -> Held:
        """Return how much is held for a query."""


def at_work_key(bound: Bound, *, shared: bool = False) -> str:
    """Return what queries must have in common to be evaluated together, or ``shared`` with those of other windows."""
    match bound:
        case BoundQuery():
            return shared_key(bound) if shared else group_key(bound)
        case BoundWindowed() | BoundCounted():
            return f"alone: {bound.name}"


def next_close(windows: Sequence[tuple[Windows, int | None]], time_ms: int) -> int | None:
    """Return when the next of some windows closes after a time."""
    return min((each.bounds(each.first(time_ms + 1))[1] for each, _ in windows), default=None)


class GroupAtWork:
    """A group of top-k queries, which reads one stream."""

    def __init__(self, group: Group) -> None:
        self._group = group

    @property
    def slide_ms(self) -> int:
        """How often windows of a member's close."""
        return self._group.slide_ms

    @property
    def names(self) -> Sequence[str]:
        """The members."""
        return list(self._group.members)

    def join(self, bound: Bound, after_ms: Mapping[str, int]) -> None:
        """Add a member."""
        assert isinstance(bound, BoundQuery)
        self._group.join(bound, after_ms.get(bound.stream.iri))

    def rejoin(self, bound: Bound) -> bool:
        """Add a member that goes on."""
        assert isinstance(bound, BoundQuery)
        return self._group.rejoin(bound) is not None

    def leave(self, name: str) -> None:
        """Take out a member."""
        self._group.leave(name)

    def windows(self, stream: str) -> Sequence[tuple[Windows, int | None]]:
        """Return the members' windows."""
        return self._group.closed()

    def due_after(self, stream: str, time_ms: int) -> int | None:
        """Return when the next window closes."""
        return next_close(self.windows(stream), time_ms)

    def reducers(self, stream: str) -> Sequence[Reducer]:
        """Return the group's reducers."""
        return self._group.reducers()

    def add(self, stream: str, parts: Sequence[Part], names: Sequence[str]) -> None:
        """Hand in parts."""
        self._group.add(parts, names)

    def advance(self, stream: str, watermark_ms: int, due_at: float, longest_wait: float) -> Iterator[Answer]:
        """Yield the answers that are due."""
        return self._group.advance(watermark_ms, due_at, longest_wait)

    def finish(self, stream: str) -> Iterator[Answer]:
        """Yield the answers of all windows that still hold events."""
        return self._group.finish()

    def close(self) -> None:
        """Let go of the replica's feed."""
        self._group.close()

    def snapshot(self) -> bytes:
        """Return the group's state."""
        return self._group.snapshot()

    def saved(self) -> None:
        """Let the group know."""
        self._group.saved()

    def resume(self, snapshot: bytes) -> None:
        """Go on from a snapshot."""
        self._group.resume(snapshot)

    def held(self, name: str) -> Held:
        """Return what the group holds for a member."""
        return self._group.held(name)


class WindowedAtWork:
    """One query that is evaluated window by window, over all that its streams say."""

    def __init__(self, query: WindowedQuery) -> None:
        self._query = query
        self._snapshot: bytes | None = None
        self.slide_ms = query.slide_ms
        self.names: Sequence[str] = [query.name]

    def join(self, bound: Bound, after_ms: Mapping[str, int]) -> None:
        """Begin."""
        for stream, time_ms in after_ms.items():
            self._query.start_after(stream, time_ms)

    def rejoin(self, bound: Bound) -> bool:
        """Go on."""
        return self._snapshot is not None

    def leave(self, name: str) -> None:
        """Do nothing: it is closed with the query."""

    def windows(self, stream: str) -> Sequence[tuple[Windows, int | None]]:
        """Return the query's windows on a stream."""
        return self._query.windows(stream)

    def due_after(self, stream: str, time_ms: int) -> int | None:
        """Return when the next window on the stream closes."""
        return next_close(self.windows(stream), time_ms)

    def reducers(self, stream: str) -> Sequence[Reducer]:
        """Return that all records are wanted."""
        return [_RECORDS]

    def add(self, stream: str, parts: Sequence[Part], names: Sequence[str]) -> None:
        """Hand in records."""
        for batch in parts[0].table.to_batches():
            self._query.add(stream, batch)

    def advance(self, stream: str, watermark_ms: int, due_at: float, longest_wait: float) -> Iterator[Answer]:
        """Yield the answers that are due."""
        return self._query.advance(stream, watermark_ms, due_at, longest_wait)

    def finish(self, stream: str) -> Iterator[Answer]:
        """Yield the answers that are due without the stream."""
        return self._query.finish(stream)

    def close(self) -> None:
        """Let go of the replicas' feeds."""
        self._query.close()

    def snapshot(self) -> bytes:
        """Return the query's state."""
        return self._query.snapshot()

    def saved(self) -> None:
        """Do nothing: all that is kept is in the snapshot."""

    def resume(self, snapshot: bytes) -> None:
        """Go on from a snapshot."""
        self._query.resume(snapshot)
        self._snapshot = snapshot

    def held(self, name: str) -> Held:
        """Return nothing: there are no candidates."""
        return Held()


_RECORDS = Records()
