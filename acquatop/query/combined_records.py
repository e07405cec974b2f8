"""Solutions of a star that records of one subject make together.

Nearly always a subject comes once. Its record is kept, as a later one may say the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import pyarrow as pa

from acquatop.ingest.combining import CombiningMatcher
from acquatop.ingest.panes import Pane
from acquatop.ingest.scoring import BoolArray
from acquatop.ingest.star_join import StarSolutions, star_solutions, value_codes
from acquatop.query.held_records import HeldRecords, in_order_of_coming
from acquatop.topk.contract import IntArray
from acquatop.windows import Windows
from connectors.mapping import TIME


class CombinedRecords:
    """Maker of a star's solutions, pane by pane, of the records of one or several panes.

    A solution lies in the windows that hold all its parts. As earlier windows have closed, its time
    is that of its oldest part. If newer records say the same, it comes again with a later time.

    A pane of n records costs O(n), and O(records held) if subjects come again, besides its
    solutions.
    """

    def __init__(self, matcher: CombiningMatcher, windows: Windows) -> None:
        self._matcher = matcher
        self._held = HeldRecords(windows)

    def __len__(self) -> int:
        """Return the number of records held."""
        return len(self._held)

    def closing(self, window: int, panes: Iterable[Pane]) -> Iterator[Pane]:
        """Yield the solutions that records make; others have gone with their oldest parts."""
        self._held.close_before(window)
        for pane in panes:
            yield from self._solutions(pane)

    def _solutions(self, pane: Pane) -> Iterator[Pane]:
        """Yield the solutions that a pane's records make, by the panes of their oldest parts."""
        self._held.close_before(pane.first)
        said = pane.solutions
        codes, together = self._held.come(said)
        alone = np.flatnonzero(~together)
        if len(alone):
            times = np.asarray(said.column(TIME).to_numpy())[alone]
            rows = (alone,) * len(self._matcher.said)
            yield from self._panes(said, StarSolutions(rows, times))
        if len(alone) < len(codes):
            yield from self._together(said, codes, together)
        self._held.stay(pane, codes)

    def _together(self, said: pa.Table, codes: IntArray, together: BoolArray) -> Iterator[Pane]:
        """Yield the solutions of subjects that several records are about."""
        is_held = self._held.of(codes[together])
        some = [said.filter(pa.array(together))]
        if self._held.table is not None:
            some.insert(0, self._held.table.filter(pa.array(is_held)))
        every = pa.concat_tables(some).combine_chunks()
        subjects = np.concatenate((self._held.subjects[is_held], codes[together]))
        times = np.asarray(every.column(TIME).to_numpy(), dtype=np.int64)
        fresh = np.arange(len(subjects)) >= int(is_held.sum())
        values = [value_codes(every.column(name)) for name in self._matcher.said]
        for found in star_solutions(in_order_of_coming(subjects), times, fresh, values):
            yield from self._panes(every, found)

    def _panes(self, said: pa.Table, found: StarSolutions) -> Iterator[Pane]:
        return self._held.panes(self._matcher.solutions(said, found))

    def open_from(self, window: int) -> None:
        """Release the records that lie only in earlier windows."""
        self._held.close_before(window)

    def snapshot(self) -> dict[str, bytes]:
        """Return the parts of the state. O(records held)."""
        return self._held.snapshot()

    def resume(self, parts: Mapping[str, bytes]) -> None:
        """Restore the parts of a snapshot."""
        self._held.resume(parts)
