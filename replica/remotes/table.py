"""A file as a remote whose values may change over time: for replays and static tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from replica.remotes import MayAsk, RemoteError, always
from replica.remotes.records import RecordMapping, RecordReader, Star
from replica.remotes.table_files import read_table_file
from replica.remotes.timeline import Timeline
from replica.store import Solution

PAGE_SIZE = 10_000
"""Keys per page while loading."""


class TableRemote:
    """Remote with the records of a file that are valid at the time of the request.

    The file is CSV (with a header), JSON lines or Parquet, by its suffix. ``time`` is the field or
    column with the time from which a record is valid, in whole milliseconds since the epoch or as
    Parquet timestamps; without one all are always valid. For each key the newest records not later
    than ``now_ms()`` are valid; one with only the key means that the key has no values any more.
    The file is read once, at the start, and held as columns: the needed columns of CSV and Parquet,
    or the lines. Records without a usable id or time are ``rejected``.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        mapping: RecordMapping,
        star: Star,
        now_ms: Callable[[], int],
        time: str | None = None,
        block_size: int = 100,
    ) -> None:
        self.path = Path(path)
        self.block_size = block_size
        self._now_ms = now_ms
        fields = [each.path for each in mapping.fields]
        file = read_table_file(self.path, mapping.key.path, time, fields)
        self._reader = RecordReader(mapping.as_written() if file.written else mapping, star)
        self.rejected = self._reader.rejected
        usable = pc.and_(pc.is_valid(file.ids), pc.is_valid(file.times))
        self._rows = np.flatnonzero(usable.to_numpy(zero_copy_only=False))
        self._timeline = Timeline(file.ids.filter(usable), file.times.filter(usable).to_numpy())
        self._records = file.records
        faults = {
            "cannot be read": file.bad,
            f'no "{mapping.key.path}"': file.ids.null_count,
            f'"{time}" is not in whole milliseconds': len(file.ids)
            - file.ids.null_count
            - len(self._rows),
        }
        self._reader.reject(+Counter(faults))

    def fetch(self, keys: Sequence[str], timeout: float) -> list[Solution]:
        """Return the records of some keys that are valid now."""
        ids = self._reader.ids(keys)
        if len(ids) > self.block_size:
            raise RemoteError(
                f"{self.path} takes {self.block_size} keys per request", too_large=True
            )
        rows = self._timeline.holding(list(ids), self._now_ms())
        return self._solutions(rows, ids.values())

    def load(self, timeout: float, may_ask: MayAsk = always) -> Iterator[list[Solution]]:
        """Yield all that is valid when the first page is requested, in pages.

        A key's solutions are on one page.
        """
        now = self._now_ms()
        for rows in self._timeline.pages(now, PAGE_SIZE):
            yield self._solutions(rows, None)

    def _solutions(
        self, rows: npt.NDArray[np.int64], asked: Iterable[str] | None
    ) -> list[Solution]:
        records = self._records(self._rows[rows])
        return self._reader.solutions(((record, None) for record in records), asked)
