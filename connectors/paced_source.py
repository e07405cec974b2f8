"""Data sources that plan a few batches, of the size for which their engine has room.

Spark asks a source in a process of its own. So the engine writes the size of the next batch to a
file, and the source writes if there is more behind a plan. If a stream is behind, a plan holds
several batches: one costs Spark as much as half a batch, and executors wait for it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from connectors.divisible import Divisible, step, within
from connectors.read_limits import ALL, PLANS_WITHIN_LIMITS, ReadLimit, TriggerAvailableNow
from connectors.spark_classes import DataSource, DataSourceStreamReader
from connectors.wrapped_reader import WrappedReader, with_readers

BATCHES = 8
"""Number of batches that a plan may hold."""


class PlanNotes:
    """Notes of an engine for its source, and of the source for the engine, as files in a folder."""

    def __init__(self, folder: Path) -> None:
        self._pace, self._left = folder / "acquatop-pace", folder / "acquatop-left"

    def pace(self) -> int | None:
        """Return the size of the next batch in the unit of the source's limit, None without one."""
        noted: int | None = _read(self._pace)
        return noted

    def note_pace(self, size: int) -> None:
        """Note the size of the next batch."""
        _replace(self._pace, size)

    def has_more(self, end: Any) -> bool:
        """Return True if the source has more behind the end of its last plan."""
        return bool(_read(self._left) == end)

    def note_more(self, end: Any) -> None:
        """Note that there is more behind the end of a plan."""
        _replace(self._left, end)


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        return None


def _replace(path: Path, noted: Any) -> None:
    beside = path.with_name(f".{path.name}")
    beside.write_text(json.dumps(noted))
    beside.replace(path)


def paced(source: type[DataSource], folder: Path) -> type[DataSource]:
    """Return a data source that plans by the notes in a folder, where Spark knows limits."""
    if not PLANS_WITHIN_LIMITS:
        return source

    def wrap(reader: DataSourceStreamReader) -> DataSourceStreamReader:
        return _Paced(reader, PlanNotes(folder)) if isinstance(reader, Divisible) else reader

    return with_readers(source, wrap)


class _Paced(WrappedReader, TriggerAvailableNow):
    """A reader that plans as another does, but as much as its engine will take in some batches.

    What is mixed is not cut, and planned batch by batch: the cut would decide what of it comes too
    late.
    """

    def __init__(self, reader: Any, notes: PlanNotes) -> None:
        super().__init__(reader)
        self._notes = notes

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 (the name is PySpark's)
        """Return the limit of a batch whatever its engine has room for."""
        limit: ReadLimit = self._reader.getDefaultReadLimit()
        return limit

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Find the end."""
        self._reader.prepareForTriggerAvailableNow()

    def latestOffset(self, start: Any = None, limit: ReadLimit = ALL) -> Any:  # noqa: N802
        """Return the offset after the next batches."""
        end, size = self._reader.latestOffset(start, limit), self._notes.pace()
        if start is None or size is None or end == start or self._reader.is_mixed(start, end):
            return end
        unit = step(self._reader)
        most = unit.size(limit)
        if 2 * self._reader.size(start, end) < min(size, most):
            return end  # that is all there is
        several = self._reader.latestOffset(start, unit.limit(BATCHES * most))
        end = end if self._reader.is_mixed(start, several) else several
        end = within(self._reader, start, end, BATCHES * size)
        if self._reader.latestOffset(end, unit.limit(1)) != end:
            self._notes.note_more(end)
        return end
