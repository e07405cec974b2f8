"""Use of resources by a process and by folders, as Linux tells it."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

_MEGABYTE = 1 << 20


@dataclass(frozen=True)
class Usage:
    """Memory, processor time, threads and open files of a process at one time.

    ``children_mb`` is the memory of its child processes, ``cpu_seconds`` is its own time alone.
    """

    memory_mb: float
    children_mb: float
    cpu_seconds: float
    threads: int
    descriptors: int
    sockets: int


def usage_of(process: int) -> Usage:
    """Return what a process uses now."""
    folder = Path(f"/proc/{process}")
    fields = (folder / "stat").read_text().rpartition(")")[2].split()
    targets = _targets(folder / "fd")
    return Usage(
        memory_mb=_memory_mb(folder),
        children_mb=sum(map(_memory_mb, children(folder))),
        cpu_seconds=(int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"),
        threads=int(fields[17]),
        descriptors=len(targets),
        sockets=sum(each.startswith("socket:") for each in targets),
    )


def folder_bytes(folder: Path) -> int:
    """Return the size of all files in a folder; those removed meanwhile do not count."""
    return sum(map(_size, folder.rglob("*")))


def folder_files(folder: Path) -> int:
    """Return the number of files and folders in a folder."""
    return sum(1 for _ in folder.rglob("*"))


def _memory_mb(folder: Path) -> float:
    try:
        found = re.search(r"VmRSS:\s+([0-9]+) kB", (folder / "status").read_text())
    except OSError:
        return 0.0
    return int(found[1]) / 1024 if found else 0.0


def children(folder: Path) -> list[Path]:
    """Return the folders of the processes that the process of a folder has started."""
    found: list[Path] = []
    for thread in (folder / "task").iterdir():
        try:
            numbers = (thread / "children").read_text().split()
        except OSError:
            continue
        for number in numbers:
            child = folder.parent / number
            found += [child, *(children(child) if (child / "task").is_dir() else ())]
    return found


def _targets(folder: Path) -> list[str]:
    found = []
    for each in folder.iterdir():
        try:
            found.append(str(each.readlink()))
        except OSError:
            continue
    return found


def _size(path: Path) -> int:
    try:
        return path.stat().st_size if path.is_file() else 0
    except OSError:
        return 0


def megabytes(size: int) -> float:
    """Return a number of bytes in megabytes, to one place."""
    return round(size / _MEGABYTE, 1)
