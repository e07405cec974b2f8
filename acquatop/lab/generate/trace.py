"""Generated trace: a stream of mentions, and a remote whose values change."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv

from acquatop.lab.generate.contract import GeneratedChanges, GeneratedMentions
from acquatop.lab.generate.kinds import KindOfData
from acquatop.lab.generate.texts import CATALOG

WIDTH, SLIDE = 100, 60
"""Width and slide of the AcquaTop paper's windows, in seconds."""

COLUMNS = ("time_ms", "subject", "value")
"""Columns of both files."""

_USER = "http://example.org/user/"


@dataclass(frozen=True)
class GeneratedTrace:
    """The stream, the remote's history, and the numbers of users and windows."""

    kind: KindOfData
    mentions: GeneratedMentions
    changes: GeneratedChanges
    users: int
    windows: int

    @property
    def query(self) -> str:
        """The kind's query, with the ranges of this trace's numbers."""
        values = self.changes.values
        return self.kind.query.format(
            mentions=self._most(),
            low=float(np.floor(values.min(initial=0.0))),
            high=float(np.ceil(values.max(initial=0.0))),
            width=WIDTH,
            slide=SLIDE,
        )

    def write(self, folder: Path) -> None:
        """Write the trace's files into a folder, which is created if needed.

        The files are ``stream.csv``, ``remote.csv``, ``catalog.toml`` and ``query.rspql``. If the
        last change is before the end, a last row of the remote repeats its value to mark the end of
        the recording.
        """
        folder.mkdir(parents=True, exist_ok=True)
        names = np.array([f"{_USER}{number}" for number in range(self.users)])
        said = self.mentions
        _write(folder / "stream.csv", said.times_ms, names[said.users], said.numbers)
        _write(folder / "remote.csv", *self._told(names))
        (folder / "catalog.toml").write_text(CATALOG, "utf-8")
        (folder / "query.rspql").write_text(self.query, "utf-8")

    def _told(self, names: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the remote's rows: all changes, and a row that marks the end."""
        changes = self.changes
        end_ms = 1000 * (SLIDE * (self.windows - 1) + WIDTH)
        if int(changes.times_ms[-1]) >= end_ms:
            return changes.times_ms, names[changes.users], changes.values
        users = np.append(changes.users, changes.users[-1])
        return (
            np.append(changes.times_ms, end_ms),
            names[users],
            np.append(changes.values, changes.values[-1]),
        )

    def _most(self) -> int:
        """Return the largest number of mentions of one user in one window, or of any mention."""
        if not self.kind.adds_up:
            return int(self.mentions.numbers.max(initial=1))
        most, times = 1, self.mentions.times_ms
        for start in range(0, 1000 * SLIDE * self.windows, 1000 * SLIDE):
            inside = slice(*np.searchsorted(times, [start, start + 1000 * WIDTH], side="right"))
            most = max(most, int(np.bincount(self.mentions.users[inside], minlength=1).max()))
        return most


def generate(
    kind: KindOfData, *, seed: int, users: int = 400, windows: int = 150
) -> GeneratedTrace:
    """Return a trace of data like the AcquaTop paper's: the same for the same arguments.

    It has mentions of ``users`` users, and their values, until ``windows`` windows of 100 s, one
    every 60 s, have closed. With one seed the mentions are the same for all kinds with one stream.

    >>> from acquatop.lab.generate.kinds import KINDS
    >>> made = generate(KINDS["walks"], seed=1, windows=10)
    >>> len(made.mentions) > 200, len(made.changes) > 400
    (True, True)
    """
    if users < 1 or windows < 1:
        raise ValueError("a trace has at least one user and one window")
    seconds = float(SLIDE * (windows - 1) + WIDTH)
    of_stream, of_remote = np.random.default_rng(seed).spawn(2)
    return GeneratedTrace(
        kind,
        kind.stream(users, seconds, of_stream),
        kind.change(users, seconds, of_remote),
        users=users,
        windows=windows,
    )


def _write(path: Path, times_ms: np.ndarray, subjects: np.ndarray, values: np.ndarray) -> None:
    table = pa.table([times_ms, subjects, values], names=COLUMNS)
    with path.open("wb") as file:
        file.write(",".join(COLUMNS).encode() + b"\n")
        pcsv.write_csv(table, file, pcsv.WriteOptions(include_header=False, quoting_style="none"))
