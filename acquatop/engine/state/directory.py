"""State directory: crash-safe storage of the last snapshot and its journal."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Self

from acquatop.engine.state.contract import Recovered
from acquatop.engine.state.folder import Folder, make_folder
from acquatop.engine.state.journal import Journal
from acquatop.engine.state.lock import DirectoryLock
from acquatop.engine.state.manifest import Manifest
from acquatop.engine.state.names import (
    DAMAGED,
    UNFINISHED,
    Numbered,
    journal_name,
    read_name,
    snapshot_name,
)
from acquatop.engine.state.placement import LARGE
from acquatop.engine.state.problems import Damaged, explained
from acquatop.engine.state.snapshots import Snapshots
from acquatop.errors import EnvironmentProblem

_FOLDER = re.compile(r"[a-z][a-z0-9_]*")


class StateDirectory:
    """Snapshots and a journal in one directory, for one engine at a time; its threads take turns.

    After :meth:`save` or :meth:`append` has returned, :meth:`recover` finds their data after a kill
    or a power failure. The data of an interrupted call is found as a whole or not at all. If they
    raise, the state before is valid, and they may be called again. One case is open: if the disk
    does not even allow the removal of the failed data, either of the two states may be found. Then
    nothing is appended until that is settled.

    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp()) / "state"
    >>> with StateDirectory.open(place, {"query top": "SELECT ..."}) as state:
    ...     state.recover()
    ...     state.save({"replica": b"values", "position": b"1"})
    ...     state.append({"position": b"2"})
    >>> with StateDirectory.open(place, {"query top": "SELECT ..."}) as state:
    ...     state.recover()  # doctest: +NORMALIZE_WHITESPACE
    Recovered(parts={'replica': b'values', 'position': b'1'},
              journal=[{'position': b'2'}], problem=None)
    """

    def __init__(self, folder: Folder, lock: DirectoryLock, large: int) -> None:
        self.path = folder.path
        self.dropped: tuple[str, ...] = ()
        """Names of the manifest that were in use before, and are not any more."""
        self._folder = folder
        self._lock = lock
        self._snapshots = Snapshots(folder, large)
        self._journal: Journal | None = None
        self._kept: list[int] = []
        self._damaged: list[int] = []
        self._unsure: list[int] = []
        self._next = 1
        self._turn = threading.RLock()
        self._closed = False
        self._recovered = False

    @classmethod
    def open(
        cls,
        path: Path,
        manifest: Mapping[str, str],
        *,
        folder: Callable[[Path], Folder] = Folder,
        large: int = LARGE,
    ) -> Self:
        """Open a directory, or make a new one, and lock it.

        A part of at least ``large`` bytes that does not change gets a file of its own. Raises
        :class:`UserError` if a text of the manifest has changed or the directory is not a state
        directory, and :class:`EnvironmentProblem` if another process uses it or the system refuses.
        """
        path = path.absolute()
        with explained(path, "open the state directory"), ExitStack() as undo:
            make_folder(path)
            opened = folder(path)
            undo.callback(opened.close)
            # Before the lock is made: nothing is touched in a directory with other files.
            Manifest.read(opened)
            lock = DirectoryLock.take(opened)
            undo.callback(lock.release)
            state = cls(opened, lock, large)
            state._agree(manifest)
            undo.pop_all()
        return state

    def declare(self, manifest: Mapping[str, str]) -> None:
        """Update the manifest after a change of queries; raises the errors of :meth:`open`."""
        with self._doing("write the manifest", recovered=False):
            self._agree(manifest)

    def recover(self) -> Recovered | None:
        """Return the newest complete snapshot, and the journal after it; None if nothing was saved.

        Changes nothing except that it removes unfinished files. Damaged files are renamed at the
        next save or append. O(bytes of the snapshot and of its journal), all of it in memory.
        """
        with self._doing("read the state", recovered=False):
            self._take_back()
            self._remove_unfinished()
            numbered = self._numbered().values()
            numbers = sorted(
                {each.number for each in numbered if not each.state and each.kind != "part"},
                reverse=True,
            )
            self._next = 1 + max((each.number for each in numbered), default=0)
            found = self._newest_whole(numbers) if numbers else None
            self._recovered = True
            return found

    def save(self, parts: Mapping[str, bytes]) -> None:
        """Write a new snapshot, which is durable on return, and begin a new journal.

        This snapshot and the one before are kept, with their journals.
        """
        with self._doing("save the state"):
            self._set_aside()
            number, self._next = self._next, self._next + 1
            self._unsure.append(number)
            try:
                self._snapshots.write(number, parts)
            except BaseException:
                self._snapshots.forget_but(self._kept)
                with suppress(OSError):
                    self._take_back()
                raise
            if self._journal is not None:
                self._journal.close()
            journal, kept = Journal(self._folder, number), [*self._kept[-1:], number]
            # One statement, so that a signal cannot separate the assignments.
            self._journal, self._kept, self._unsure = journal, kept, []
            self._snapshots.forget_but(kept)
            # The snapshot is saved. Files that cannot be removed now are removed after the next.
            with suppress(OSError):
                self._remove_old()

    def append(self, parts: Mapping[str, bytes]) -> None:
        """Append an entry to the journal of the newest snapshot; it is durable on return."""
        with self._doing("write the journal"):
            if self._journal is None:
                raise ValueError("there is no snapshot yet that a journal could follow")
            self._take_back()
            self._set_aside()
            self._journal.append(parts)

    @property
    def journal_length(self) -> int:
        """The bytes of the journal since the newest snapshot; a recovery reads all of it."""
        return 0 if self._journal is None else self._journal.length

    def check_right(self) -> None:
        """Do nothing: the lock lasts as long as the process, and each call checks it."""

    def folder(self, name: str) -> Path:
        """Return a subfolder for other data, made if missing.

        Its name consists of small letters, digits and underscores.
        """
        if not _FOLDER.fullmatch(name):
            raise ValueError(f"{name!r} cannot be a folder in a state directory")
        with self._doing("make a folder", recovered=False):
            self._folder.make_folder(name)
            self._folder.sync_names()
        return self.path / name

    def close(self) -> None:
        """Release the directory for another engine. May be called again."""
        with self._turn:
            if not self._closed:
                self._closed = True
                if self._journal is not None:
                    self._journal.close()
                self._lock.release()
                self._folder.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _doing(self, what: str, *, recovered: bool = True) -> Iterator[None]:
        """Take a turn at the disk: check the lock, and explain the system's errors."""
        with self._turn, explained(self.path, what):
            if self._closed:
                raise ValueError("the state directory is closed")
            self._lock.check()
            if recovered and not self._recovered:
                if self._numbered():
                    raise ValueError("recover() comes first")
                self._recovered = True
            yield

    def _agree(self, manifest: Mapping[str, str]) -> None:
        before = Manifest.read(self._folder)
        numbered = self._numbered().values()
        snapshots = [each.number for each in numbered if each.kind == "snapshot" and not each.state]
        known = before or Manifest({})
        now = known.agreed(manifest, snapshots, self.path)
        if now != before:
            now.write(self._folder)
        self.dropped = known.dropped_by(manifest)

    def _newest_whole(self, numbers: Sequence[int]) -> Recovered:
        problems: list[str] = []
        for number in numbers:
            try:
                parts = self._snapshots.read(number)
            except Damaged as damage:
                problems.append(str(damage))
                continue
            entries = self._read_journal(number, numbers)
            return Recovered(parts, entries, self._say_used(number, problems))
        raise EnvironmentProblem(
            f"{self.path}: no snapshot is whole: {'; '.join(problems)}\n"
            "  hint: put back these files from a copy, or delete the directory to begin anew"
        )

    def _read_journal(self, number: int, numbers: Sequence[int]) -> Sequence[Mapping[str, bytes]]:
        if self._journal is not None:
            self._journal.close()
        self._journal = Journal(self._folder, number)
        try:
            entries = self._journal.read()
        except Damaged as damage:
            self._journal = None
            path = self.path / journal_name(number)
            raise EnvironmentProblem(
                f"{self.path}: {damage}, and so are some behind it\n"
                f"  hint: put back {path} from a copy, or remove it to go on from "
                f"{snapshot_name(number)} alone "
                "(what came after it is then read from the streams again)"
            ) from damage
        # If their writer was killed, the names that were found may not be on the disk yet.
        self._folder.sync_names()
        self._kept = [number]
        self._snapshots.forget_but(self._kept)
        self._damaged = [each for each in numbers if each > number]
        return entries

    def _say_used(self, number: int, problems: Sequence[str]) -> str | None:
        said = []
        if problems:
            said.append(f"{'; '.join(problems)}; {snapshot_name(number)} and its journal are used")
        if self._journal is not None and self._journal.problem is not None:
            said.append(self._journal.problem)
        return f"{self.path}: {'; '.join(said)}" if said else None

    def _set_aside(self) -> None:
        """Rename damaged files, so that they are not used if they become readable again."""
        names = self._numbered() if self._damaged else {}
        aside = [
            name for name, each in names.items() if not each.state and each.number in self._damaged
        ]
        for name in aside:
            self._folder.rename(name, DAMAGED + name)
        if aside:
            self._folder.sync_names()
        self._damaged = []

    def _take_back(self) -> None:
        """Remove all files of a failed snapshot.

        Otherwise entries that are appended to the one before would be lost.
        """
        if not self._unsure:
            return
        names = [name for name, each in self._numbered().items() if each.number in self._unsure]
        snapshots = [name for name in names if name in map(snapshot_name, self._unsure)]
        for name in snapshots:
            self._folder.remove(name)
        # The snapshot must be gone for certain before the parts that it names are removed.
        self._folder.sync_names()
        self._unsure = []
        for name in names:
            if name not in snapshots:
                self._folder.remove(name)

    def _remove_unfinished(self) -> None:
        """Remove unfinished files, and parts of snapshots that were not finished."""
        names = self._numbered()
        finished = (
            each.number
            for each in names.values()
            if each.kind != "part" and each.state != UNFINISHED
        )
        newest = max(finished, default=0)
        orphans = [
            name for name, each in names.items() if each.kind == "part" and each.number > newest
        ]
        for name in [
            *orphans,
            *(name for name in self._folder.names() if name.startswith(UNFINISHED)),
        ]:
            self._folder.remove(name)

    def _remove_old(self) -> None:
        """Remove files that the kept snapshots do not need.

        A damaged file stays as long as a snapshot from before it is kept.
        """
        # Snapshots are removed before their journals and parts: after an interruption nothing looks
        # complete.
        for name, each in sorted(self._numbered().items(), reverse=True):
            if not self._is_kept(name, each):
                self._folder.remove(name)

    def _is_kept(self, name: str, each: Numbered) -> bool:
        if each.state == DAMAGED:
            return each.number > self._kept[0]
        if each.kind == "part":
            return name in self._snapshots.files
        return not each.state and each.number in self._kept

    def _numbered(self) -> dict[str, Numbered]:
        found = {name: read_name(name) for name in self._folder.names()}
        return {name: each for name, each in found.items() if each is not None}
