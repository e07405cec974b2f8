"""Recordings that an experiment replays: a folder, or generated data sets."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import ClassVar

from acquatop.errors import UserError
from acquatop.lab.generate import KINDS, generate
from acquatop.lab.replay.trace import CATALOG

Values = Mapping[str, float]
"""Parameters of a kind of change, by name."""


@dataclass(frozen=True)
class Recorded:
    """A folder, and the query to replay on it. It is the same for every seed."""

    folder: Path
    query: str
    file: str

    @property
    def name(self) -> str:
        """Empty name: there is only one such recording."""
        return ""

    @property
    def varied(self) -> Values:
        """Empty: nothing varies."""
        return {}

    varies_by_seed: ClassVar[bool] = False

    def of_kind(self, kind: str) -> Recorded:
        """Raise :class:`UserError`: nothing was generated."""
        raise UserError(f"{self.folder} is a recording, so it cannot be of the kind {kind}")

    def write(self, seed: int, folder: Path) -> tuple[Path, str, str]:
        """Return the recording's folder, the query, and the query's file."""
        return self.folder, self.query, self.file

    def fingerprint(self, seed: int) -> str:
        """Return a hash of everything that its replays depend on."""
        known = hashlib.sha256(self.query.encode())
        if not self.folder.is_dir():
            raise UserError(
                f"{self.folder} is not a folder with a trace: {CATALOG}, the stream, the "
                "remote's history"
            )
        for file in sorted(self.folder.rglob("*")):
            if file.is_file():
                known.update(f"\n{file.relative_to(self.folder)} {file.stat().st_size}\n".encode())
                known.update(file.read_bytes())
        return known.hexdigest()


@dataclass(frozen=True)
class Generated:
    """Data like the paper's, one data set per seed.

    ``varied`` names the parameters that differ between the data sets of an experiment.
    """

    kind: str
    values: Values
    varied: Values
    users: int = 400
    windows: int = 150

    varies_by_seed: ClassVar[bool] = True

    def of_kind(self, kind: str) -> Generated:
        """Return data of another kind with the same parameters."""
        unknown = [name for name in self.values if name not in values_of(kind)]
        if unknown:
            raise UserError(
                f'the experiment says "{unknown[0]}", which {kind} data does not have\n  hint: it '
                f"has {', '.join(values_of(kind)) or 'no parameters'}"
            )
        return replace(self, kind=kind)

    @property
    def name(self) -> str:
        """Name that distinguishes it from others, such as ``changes-20``."""
        return "-".join(f"{name}-{value:g}" for name, value in self.varied.items())

    def write(self, seed: int, folder: Path) -> tuple[Path, str, str]:
        """Write the data set of a seed into a folder; return that, the query and its file name."""
        kind = KINDS[self.kind]
        change = replace(kind.change, **self.values)  # type: ignore[type-var]
        made = generate(
            replace(kind, change=change), seed=seed, users=self.users, windows=self.windows
        )
        made.write(folder)
        return folder, made.query, "query.rspql"

    def fingerprint(self, seed: int) -> str:
        """Return a hash of everything that its replays depend on."""
        said = [self.kind, *(f"{name}={value!r}" for name, value in sorted(self.values.items()))]
        return hashlib.sha256(repr((said, seed, self.users, self.windows)).encode()).hexdigest()


Data = Recorded | Generated


def values_of(kind: str) -> tuple[str, ...]:
    """Return the names of the parameters of a kind of change."""
    return tuple(each.name for each in fields(KINDS[kind].change))  # type: ignore[arg-type]
