"""Messages on the standard error about late records."""

from __future__ import annotations

import threading
from collections import Counter
from types import TracebackType
from typing import Self

from acquatop.app.cli.tell import tell
from acquatop.engine.observer import BatchSeen, Silent
from acquatop.instants import instant_text


class LateReport(Silent):
    """Observer that reports each stream's first late records, and their number at the end.

    With ``at_first`` unset only the end is reported. Use it as a context manager around the run.
    """

    def __init__(self, *, at_first: bool) -> None:
        self._at_first = at_first
        self._late: Counter[str] = Counter()
        self._lock = threading.Lock()

    def batch(self, seen: BatchSeen) -> None:
        """Count late records; report a stream's first ones with its time."""
        if not seen.late:
            return
        with self._lock:
            is_first = not self._late[seen.stream]
            self._late[seen.stream] += seen.late
        if is_first and self._at_first and seen.watermark_ms is not None:
            tell(
                f"{_records(seen.late)} of <{seen.stream}> came too late: windows up to"
                f" {instant_text(seen.watermark_ms)} are closed; see lateness in the catalog"
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        for stream, count in self._late.items():
            tell(f"{_records(count)} of <{stream}> came too late for every window in all")


def _records(count: int) -> str:
    return f"{count:,} record{'' if count == 1 else 's'}"
