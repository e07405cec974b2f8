"""CPU time of this process and of those that it has started, as Linux tells it."""

from __future__ import annotations

import resource
import time
from pathlib import Path

from benchmarks.soak_bench.usage import children

_SELF = Path("/proc/self")


def spent() -> float:
    """Return the CPU seconds so far, with those of processes that have ended."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    running = sum(map(_seconds, children(_SELF))) if _SELF.is_dir() else 0.0
    return time.process_time() + ended.ru_utime + ended.ru_stime + running


def _seconds(process: Path) -> float:
    found = 0
    for thread in process.glob("task/*/schedstat"):
        try:
            found += int(thread.read_text().split()[0])
        except OSError:
            continue
    return found / 1e9
