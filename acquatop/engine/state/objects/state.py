"""State of an engine in an object store."""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

from acquatop.engine.state.contract import Recovered
from acquatop.engine.state.manifest import Manifest
from acquatop.engine.state.objects.chain import Chain, Fenced, foreign
from acquatop.engine.state.objects.lease import NAME as LEASE
from acquatop.engine.state.objects.lease import Lease, LeaseTiming, lost
from acquatop.engine.state.objects.record import RecordKind, record_name
from acquatop.engine.state.placement import LARGE, Placement, pieces_of
from acquatop.engine.state.problems import Damaged
from acquatop.errors import EnvironmentProblem, UserError
from connectors.object_store.contract import ObjectStore, StoreError


class ObjectState:
    """Snapshots and a journal in an object store, for one engine at a time.

    Each save or append is one object, written if no other engine has written since. Raises
    :class:`EnvironmentProblem` if one has, or if the store refuses or stays away: then nothing more
    may be written by this object, as nobody knows if the last write has come.
    """

    def __init__(
        self, brief: ObjectStore, place: object, chain: Chain, lease: Lease, large: int
    ) -> None:
        self._brief = brief
        self._remover = ThreadPoolExecutor(1, "acquatop-remover")
        self._place = place
        self._chain = chain
        self._lease = lease
        self._placement = Placement(large)
        self._manifest = Manifest({})
        self._journal_length = 0
        self._local: Path | None = None
        self._turn = threading.RLock()
        self._failed: EnvironmentProblem | None = None
        self._closed = False

    @classmethod
    def open(
        cls,
        objects: ObjectStore,
        place: object,
        manifest: Mapping[str, str],
        *,
        timing: LeaseTiming | None = None,
        brief: ObjectStore | None = None,
        large: int = LARGE,
    ) -> Self:
        """Take the lease, and fence off all engines before.

        ``brief`` are the same objects, asked for with less patience where little depends on it.
        Raises :class:`UserError` if a text of the manifest has changed, or if the place holds
        something else, and :class:`EnvironmentProblem` if another engine uses it or the store
        refuses.
        """
        with _explained(place, "open the state"):
            chain = Chain(objects, place)
            _check_others(objects.names(), place)
            lease = Lease.take(objects, place, timing or LeaseTiming())
            state = cls(brief or objects, place, chain, lease, large)
            try:
                lease.prove_conditions(place)
                state._begin(manifest)
            except BaseException:
                lease.release(brief or objects)
                raise
            lease.start(brief or objects, place)
        return state

    def declare(self, manifest: Mapping[str, str]) -> None:
        """Update the manifest after a change of queries."""
        with self._doing("write the manifest"):
            agreed = self._agreed(manifest)
            if agreed != self._manifest:
                self._chain.add(RecordKind.TEXTS, manifest=agreed.document())
                self._manifest = agreed

    def recover(self) -> Recovered | None:
        """Return the newest complete snapshot, and the journal after it; None if there is none."""
        with self._doing("read the state"):
            assert self._chain.tail is not None
            base, before = self._chain.tail.base, self._chain.tail.before
            if not base:
                return None
            try:
                parts, problem = self._read_snapshot(base), None
            except Damaged as damage:
                parts = self._read_before(before, damage)
                used = f"{record_name(before)} and its journal are used"
                problem = f"{self._place}: {damage}; {used}"
                self._chain.go_back_to(before)
            entries = self._chain.entries()
            self._journal_length = sum(sum(map(len, entry.values())) for entry in entries)
            return Recovered(parts, entries, problem)

    def save(self, parts: Mapping[str, bytes]) -> None:
        """Write a new snapshot, which is durable on return, and begin a new journal."""
        with self._doing("save the state"):
            placed = self._placement.place(parts, lambda at: self._chain.new_part_name())
            for file, part in self._placement.new_files(placed).items():
                self._chain.write_part(file, parts[part])
            number = self._chain.add(RecordKind.SNAPSHOT, pieces=placed.pieces, parts=parts)
            self._placement.written(number, placed)
            assert self._chain.tail is not None
            self._placement.forget_but((self._chain.tail.before, number))
            self._journal_length = 0
            self._remover.submit(self._remove, self._chain.take_old(self._placement.files))

    def append(self, parts: Mapping[str, bytes]) -> None:
        """Append an entry to the journal of the newest snapshot; it is durable on return."""
        with self._doing("write the journal"):
            assert self._chain.tail is not None
            if not self._chain.tail.base:
                raise ValueError("there is no snapshot yet that a journal could follow")
            self._chain.add(RecordKind.ENTRY, pieces=pieces_of(parts), parts=parts)
            self._journal_length += sum(map(len, parts.values()))

    @property
    def journal_length(self) -> int:
        """The bytes of the journal since the newest snapshot; a recovery reads all of it."""
        return self._journal_length

    def check_right(self) -> None:
        """Raise :class:`EnvironmentProblem` if another engine has the state now."""
        with _explained(self._place, "ask for the lease"):
            self._lease.check(self._place)

    def folder(self, name: str) -> Path:
        """Return a local folder for data that a restart can do without; it ends with the engine."""
        with self._turn:
            self._local = self._local or Path(tempfile.mkdtemp(prefix="acquatop-"))
            (self._local / name).mkdir(exist_ok=True)
            return self._local / name

    def close(self) -> None:
        """Release the state for another engine. May be called again."""
        with self._turn:
            if not self._closed:
                self._closed = True
                self._remover.shutdown()
                self._lease.release(self._brief)
                if self._local is not None:
                    shutil.rmtree(self._local, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _doing(self, what: str) -> Iterator[None]:
        """Take a turn: check the lease, and explain the store's errors."""
        with self._turn:
            if self._closed:
                raise ValueError("the state is closed")
            if self._failed is not None:
                raise self._failed
            try:
                with _explained(self._place, what):
                    self._lease.check(self._place)
                    yield
            except Fenced:
                self._failed = self._fenced()
                raise self._failed from None
            except EnvironmentProblem as problem:
                self._failed = problem
                raise

    def _remove(self, names: Sequence[str]) -> None:
        """Remove objects while the engine goes on; those left are removed after the next start."""
        with suppress(StoreError):
            if names:
                self._brief.remove(names)

    def _fenced(self) -> EnvironmentProblem:
        try:
            self._lease.renew(self._brief)
            self._lease.check(self._place)
        except EnvironmentProblem as problem:
            return problem
        except StoreError:
            pass
        return lost(self._place, "another engine")

    def _begin(self, manifest: Mapping[str, str]) -> None:
        """Write this engine's first record behind the newest one, whoever writes meanwhile."""
        while True:
            self._chain.read_tail()
            known = self._chain.manifest()
            self._manifest = Manifest({}) if known is None else Manifest.of_document(known)
            agreed = self._agreed(manifest)
            if self._chain.open(self._lease.holder.owner, agreed.document()):
                self._manifest = agreed
                return

    def _agreed(self, manifest: Mapping[str, str]) -> Manifest:
        tail = self._chain.tail
        snapshots = [] if tail is None else [each for each in (tail.before, tail.base) if each]
        return self._manifest.agreed(manifest, snapshots, self._place)

    def _read_snapshot(self, number: int) -> Mapping[str, bytes]:
        record, parts = self._chain.read(number)
        self._placement.read(number, record.pieces, parts)
        return parts

    def _read_before(self, number: int, damage: Damaged) -> Mapping[str, bytes]:
        """Return the snapshot before a damaged one."""
        said = str(damage)
        try:
            if number:
                return self._read_snapshot(number)
        except Damaged as older:
            said = f"{said}; {older}"
        raise EnvironmentProblem(
            f"{self._place}: no snapshot is whole: {said}\n"
            "  hint: put back these objects from a copy, or use another prefix to begin anew"
        )


def _check_others(names: list[str], place: object) -> None:
    """Raise :class:`UserError` if a place holds objects of others."""
    others = [name for name in foreign(names) if name != LEASE]
    if others:
        shown = ", ".join(others[:3]) + (", …" if len(others) > 3 else "")
        raise UserError(
            f"{place} is not a state: it holds other objects ({shown})\n"
            "  hint: name a new or an empty prefix"
        )


@contextmanager
def _explained(place: object, doing: str) -> Iterator[None]:
    """Translate an error of the store into one with what was being done, and a remedy."""
    try:
        yield
    except StoreError as error:
        raise EnvironmentProblem(
            f"cannot {doing}: {error}\n"
            "  hint: see that the bucket exists, that the keys in the environment may read, write, "
            "list and remove there, and that its server is right; what was saved before is whole"
        ) from error
