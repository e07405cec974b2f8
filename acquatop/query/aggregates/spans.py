"""Spans: runs of complete panes whose chunks are also kept as one, so that a close reads less."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from acquatop.ingest.buckets.task import Chunk, Pane, PaneSpan

USES = 4
"""Number of later closes that read a span at least, if it is made: making it writes texts, too."""


class Cover(NamedTuple):
    """Panes and spans that hold a window together, and the spans to be made of some of them."""

    panes: Sequence[Pane]
    spans: Sequence[PaneSpan]
    made: Mapping[PaneSpan, Sequence[Pane | PaneSpan]]


@dataclass
class _Made:
    """PaneSpan that was made: its last window, and its chunk in each bucket that has any."""

    last: int
    chunks: dict[int, Chunk] = field(default_factory=dict)


class Spans:
    """Spans of 2, 4, 8 … panes, each made of two smaller ones by the close that completes it.

    Panes are numbered in their order, and a span begins at a multiple of its length. So a window of
    P panes is read as O(log P) of both, and each pane is written once more per length, by which
    time it has been merged with its neighbours. What is made is not part of any state: after a
    restart panes are read themselves.
    """

    def __init__(self) -> None:
        self._numbers: dict[Pane, int] = {}
        self._panes: dict[int, Pane] = {}
        self._next = 0
        self._made: dict[PaneSpan, _Made] = {}

    def cover(self, panes: Iterable[Pane], window: int) -> Cover:
        """Return the way to read a closing window's panes: they are complete."""
        new = self._number(sorted(panes))
        numbers = sorted(self._numbers[pane] for pane in panes)
        if not numbers:
            return Cover((), (), {})
        read = list(self._cut(numbers[0], numbers[-1] + 1))
        made = {
            span: self._parts(span, read)
            for number in new
            for span in self._ending_with(number, numbers[0])
            if self._last(span) - window >= USES
        }
        return Cover(
            [self._panes[start] for start, stop in read if stop - start == 1],
            [PaneSpan(start, stop) for start, stop in read if stop - start > 1],
            made,
        )

    def chunks(self, spans: Iterable[PaneSpan], bucket: int) -> dict[PaneSpan, Chunk]:
        """Return the spans' chunks in a bucket."""
        found = ((span, self._made[span].chunks.get(bucket)) for span in spans)
        return {span: chunk for span, chunk in found if chunk is not None}

    def note(
        self, spans: Iterable[PaneSpan], found: Iterable[tuple[int, Mapping[PaneSpan, Chunk]]]
    ) -> None:
        """Note that spans have been made, and their chunks in the buckets."""
        for span in spans:
            self._made[span] = _Made(self._last(span))
        for bucket, chunks in found:
            for span, chunk in chunks.items():
                self._made[span].chunks[bucket] = chunk

    def close_before(self, window: int) -> list[Chunk]:
        """Forget panes that lie only in earlier windows; return chunks that nobody reads again."""
        for pane in [pane for pane in self._numbers if pane[1] < window]:
            del self._panes[self._numbers.pop(pane)]
        gone = [self._made.pop(span) for span in list(self._made) if self._made[span].last < window]
        return [chunk for made in gone for chunk in made.chunks.values()]

    def _number(self, panes: Sequence[Pane]) -> list[int]:
        """Give numbers to panes that have none, and return these."""
        new = [pane for pane in panes if pane not in self._numbers]
        for pane in new:
            self._numbers[pane], self._panes[self._next] = self._next, pane
            self._next += 1
        return [self._numbers[pane] for pane in new]

    def _cut(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """Yield a run of panes as the longest spans there are, and as single panes."""
        while start < stop:
            length = 1
            while (
                start % (2 * length) == 0
                and start + 2 * length <= stop
                and PaneSpan(start, start + 2 * length) in self._made
            ):
                length *= 2
            yield start, start + length
            start += length

    @staticmethod
    def _ending_with(number: int, first: int) -> Iterator[PaneSpan]:
        """Yield the spans of panes from the ``first`` on that end with a pane."""
        length, stop = 2, number + 1
        while stop % length == 0 and stop - length >= first:
            yield PaneSpan(stop - length, stop)
            length *= 2

    def _parts(self, span: PaneSpan, read: Sequence[tuple[int, int]]) -> list[Pane | PaneSpan]:
        """Return what is read of a span's panes."""
        return [
            self._panes[start] if stop - start == 1 else PaneSpan(start, stop)
            for start, stop in read
            if span.start <= start and stop <= span.stop
        ]

    def _last(self, span: PaneSpan) -> int:
        """Return the last window that holds all panes of a span."""
        return self._panes[span.start][1]
