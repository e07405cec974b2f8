"""Files of a source, which must stay what they were when they were read."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from connectors import ConnectorError
from connectors.fingerprint import fingerprint
from connectors.offsets_by_file import Offset, Place, is_unfinished, print_at, reached

_log = logging.getLogger(__name__)

ANEW = "begin anew with another checkpoint or state directory"
_REMEDY = f"put back what was read and start again, or {ANEW}"


class Seen(NamedTuple):
    """Facts about a file that change with its content."""

    device: int
    inode: int
    size: int
    changed_ns: int

    @classmethod
    def of(cls, about: os.stat_result) -> Seen:
        """Return the facts in the system's description of a file."""
        return cls(about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns)


class SourceFiles:
    """The file, or the files of a folder, at a path.

    A file is known by its content, not by its number on the disk: a copy of the same bytes is the
    same file. The content is compared when the system says that the file has changed, and once at
    the start. ``rule`` tells users how their files may change. Files that ``grow`` are compared
    up to the place that was read, others as a whole. With ``names_stay`` a file that was renamed is
    an error; without it, files may be equal to others.
    """

    def __init__(self, path: Path, rule: str, *, grow: bool, names_stay: bool = True) -> None:
        self.path = path
        self._rule = rule
        self._grow = grow
        self._names_stay = names_stay
        self._seen: dict[str, tuple[Seen, str]] = {}
        self._missed: set[str] = set()

    def file(self, name: str) -> Path:
        """Return the path of a file."""
        return self.path / name if self.path.is_dir() else self.path

    def present(self) -> dict[str, Seen]:
        """Return the visible files in the order of their names; none if there is nothing yet."""
        with self.reading(self.path):
            if not self.path.is_dir():
                is_there = self.path.exists()
                return {self.path.name: Seen.of(self.path.stat())} if is_there else {}
            with os.scandir(self.path) as entries:
                return dict(sorted(_visible(entries)))

    # Access -----------------------------------------------------------------------------------

    @contextmanager
    def reading(self, file: Path) -> Iterator[None]:
        """Name the file, and a remedy, if the system refuses."""
        try:
            yield
        except PermissionError as error:
            hint = "let this user read it (and look into its folder), and start again"
            raise ConnectorError(
                f"{file} cannot be read: {_reason(error)}\n  hint: {hint}"
            ) from error
        except OSError as error:
            hint = "files must stay as long as they may be read again"
            raise ConnectorError(
                f"{file} cannot be read: {_reason(error)}\n  hint: {hint}"
            ) from error

    @contextmanager
    def opened(self, name: str) -> Iterator[int]:
        """Open a file for reading."""
        path = self.file(name)
        with self.reading(path):
            file = os.open(path, os.O_RDONLY)
            try:
                yield file
            finally:
                os.close(file)

    # Identity ---------------------------------------------------------------------------------

    def print_of(self, name: str, place: int) -> str:
        """Return the fingerprint of a file that was read up to a place."""
        with self.opened(name) as file:
            # Before its content: a later change is then noticed.
            seen = Seen.of(os.fstat(file))
            found = self._print(file, place)
        self._seen[name] = seen, found
        return found

    def check(self, offset: Offset, present: Mapping[str, Seen]) -> None:
        """Raise :class:`~connectors.ConnectorError` if files are not those that were read."""
        self._check_gone(offset, present)
        for name, place in offset.items():
            if name in present:
                self._check(name, place, present[name])

    def _check(self, name: str, place: Place, seen: Seen) -> None:
        if self._grow and seen.size < reached(place):
            how = f"it has shrunk from {reached(place)} to {seen.size} bytes"
            raise self.changed(name, how)
        known = print_at(place)
        if known is None or self._seen.get(name) == (seen, known):
            return
        with self.opened(name) as file:
            self.check_opened(file, name, place)
        self._seen[name] = seen, known

    def check_opened(self, file: int, name: str, place: Place) -> None:
        """Raise :class:`~connectors.ConnectorError` if an open file is not the one to be read."""
        known = print_at(place)
        if known is not None and self._print(file, reached(place)) != known:
            raise self.changed(name, self._way(name, Seen.of(os.fstat(file))))

    def _print(self, file: int, place: int) -> str:
        return fingerprint(file, place if self._grow else os.fstat(file).st_size)

    def _way(self, name: str, seen: Seen) -> str:
        before = self._seen.get(name)
        if before is None:
            return "it was replaced, or written over"
        is_same = before[0][:2] == seen[:2]
        return "it was written over" if is_same else "another file has taken its place"

    def changed(self, name: str, how: str) -> ConnectorError:
        """Return the error of a file that is not the one that was read."""
        return ConnectorError(
            f"{self.file(name)} is not what has been read of it: {how}; {self._rule}\n"
            f"  hint: {_REMEDY}"
        )

    # Files that have gone ---------------------------------------------------------------------

    def lost(self, name: str, place: int) -> ConnectorError:
        """Return the error of a file that has gone too early."""
        return ConnectorError(
            f"{self.file(name)} has gone before it was read to its end (up to {place})\n"
            f"  hint: {_REMEDY}"
        )

    def _check_gone(self, offset: Offset, present: Mapping[str, Seen]) -> None:
        gone = offset.keys() - present.keys()
        if gone and not self.path.exists():
            raise ConnectorError(
                f"{self.path} has gone, after it was read in part or in whole\n  hint: {_REMEDY}"
            )
        new = {name: seen for name, seen in present.items() if name not in offset}
        for name in sorted(gone):
            if is_unfinished(offset[name]):
                raise self.lost(name, reached(offset[name]))
            if self._names_stay:
                self._check_renamed(name, offset[name], new)
        self._say_missed(gone)

    def _check_renamed(self, gone: str, place: Place, new: Mapping[str, Seen]) -> None:
        known, before = print_at(place), self._seen.get(gone)
        for name, seen in new.items() if known is not None and reached(place) else ():
            is_other = before is not None and before[0][:2] != seen[:2]
            if is_other:
                continue
            with self.opened(name) as file:
                is_same = self._print(file, reached(place)) == known
            if is_same:
                raise ConnectorError(
                    f"{self.file(name)} was {gone} when it was read; under its new name it would "
                    f"be read again\n  hint: give it back its name, or {ANEW}"
                )

    def _say_missed(self, gone: Iterable[str]) -> None:
        new = sorted(set(gone) - self._missed)
        if new:
            shown = ", ".join(new[:3]) + (", …" if len(new) > 3 else "")
            _log.warning(
                "%s: %d files that were read have gone (%s); they are not missing unless a batch "
                "has to be read again",
                self.path,
                len(new),
                shown,
            )
        self._missed = set(gone)


def _reason(error: OSError) -> str:
    # Arrow's own errors repeat the path.
    return str(error) if error.errno is None else os.strerror(error.errno)


def _visible(entries: Iterable[os.DirEntry[str]]) -> Iterator[tuple[str, Seen]]:
    for each in entries:
        if each.name[0] not in "._" and each.is_file():
            # Somebody may just have removed it.
            with suppress(FileNotFoundError):
                yield each.name, Seen.of(each.stat())
