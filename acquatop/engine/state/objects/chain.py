"""Chain of records: each is written under the next number, unless another engine was faster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from acquatop.engine.state.objects.record import (
    Record,
    RecordKind,
    decoded,
    part_name,
    record_name,
    record_number,
)
from acquatop.engine.state.placement import PartLocation
from acquatop.engine.state.problems import Damaged
from acquatop.errors import EnvironmentProblem
from connectors.object_store.contract import ObjectStore

_PART = "part-"
_AT_ONCE = 8
"""Number of records that are read at once."""
_FENCES = 1000
"""Number of engines' beginnings that are kept: an engine from before those is not fenced off."""


class Fenced(Exception):  # noqa: N818 (a finding; the caller says who has the state)
    """The next number is taken: another engine has the state."""


class Chain:
    """Writer and reader of one engine's records, behind those of the engines before it.

    A number is given once, as the store refuses to write over an object. An engine that takes over
    writes a record first, so that one that wakes up later finds its next number taken. That record
    is not removed. All that an engine needs is said in the newest record: :attr:`tail`.
    """

    def __init__(self, objects: ObjectStore, place: object) -> None:
        self._objects = objects
        self._place = place
        self._there: set[str] = set()
        self._fences: list[int] = []
        self._parts = 0
        self.tail: Record | None = None

    def read_tail(self) -> None:
        """Find the newest record."""
        self._there = set(self._objects.names())
        numbers = self._numbers()
        self.tail = self._read(max(numbers))[0] if numbers else None
        self._fences = []
        if self.tail is not None and self.tail.opened:
            self._fences = [*self._read(self.tail.opened)[0].fences]

    def open(self, owner: str, manifest: Mapping[str, object]) -> bool:
        """Write the record that fences off all engines before; False if one was faster."""
        number = self.next_number
        tail = self.tail or Record(RecordKind.OPENED, 0, owner)
        record = replace(
            tail,
            kind=RecordKind.OPENED,
            number=number,
            owner=owner,
            opened=number,
            texts=number,
            fences=(*self._fences, number)[-_FENCES:],
            manifest=manifest,
            pieces={},
        )
        try:
            self._write(record, {})
        except Fenced:
            return False
        self._fences = [*record.fences]
        return True

    @property
    def next_number(self) -> int:
        """The number of the next record."""
        return 1 + (self.tail.number if self.tail is not None else 0)

    def add(
        self,
        kind: RecordKind,
        *,
        manifest: Mapping[str, object] | None = None,
        pieces: Mapping[str, PartLocation] | None = None,
        parts: Mapping[str, bytes] | None = None,
    ) -> int:
        """Write a record and return its number; raises :class:`Fenced` if that is taken."""
        assert self.tail is not None, "a chain is opened first"
        number, tail = self.next_number, self.tail
        is_snapshot = kind is RecordKind.SNAPSHOT
        record = replace(
            tail,
            kind=kind,
            number=number,
            base=number if is_snapshot else tail.base,
            before=tail.base if is_snapshot else tail.before,
            skipped=() if is_snapshot else tail.skipped,
            texts=tail.texts if manifest is None else number,
            fences=(),
            manifest=manifest,
            pieces=pieces or {},
        )
        self._write(record, parts or {})
        return number

    def go_back_to(self, base: int) -> None:
        """Go on from an older snapshot: what follows belongs to that one."""
        assert self.tail is not None
        skipped = (*self.tail.skipped, self.tail.base)
        self.tail = replace(self.tail, base=base, before=0, skipped=skipped)

    def new_part_name(self) -> str:
        """Return the name of a new object for a large part."""
        assert self.tail is not None
        self._parts += 1
        return part_name(self.tail.opened, self._parts)

    def write_part(self, name: str, content: bytes) -> None:
        """Write the object of a large part."""
        self._objects.put(name, content)
        self._there.add(name)

    def read(self, number: int) -> tuple[Record, dict[str, bytes]]:
        """Return a record and all its parts; raises :class:`Damaged`."""
        record, parts = self._decoded(number)
        for name, piece in record.pieces.items():
            if piece.file is not None:
                found = self._objects.get(piece.file)
                if found is None:
                    raise Damaged(f"{piece.file} is missing")
                if not piece.holds(found.content):
                    raise Damaged(f"{piece.file} is damaged (its checksum does not match)")
                parts[name] = found.content
        return record, {name: parts[name] for name in record.pieces}

    def entries(self) -> list[dict[str, bytes]]:
        """Return the journal of the newest snapshot; a missing or damaged record is an error."""
        assert self.tail is not None
        base, skipped = self.tail.base, self.tail.skipped
        numbers = [each for each in range(base + 1, self.tail.number) if each not in skipped]
        with ThreadPoolExecutor(_AT_ONCE) as readers:
            found = list(readers.map(self._read, numbers))
        return [
            parts
            for record, parts in found
            if record.kind is RecordKind.ENTRY and record.base == base
        ]

    def manifest(self) -> Mapping[str, object] | None:
        """Return the newest manifest."""
        return None if self.tail is None else self._read(self.tail.texts)[0].manifest

    def take_old(self, files: Iterable[str]) -> list[str]:
        """Return once what may be removed: all but the fences, the manifest, the two newest
        snapshots with their journals, and ``files`` of parts.
        """
        assert self.tail is not None
        oldest = self.tail.before or self.tail.base
        kept = {record_name(number) for number in (*self._fences, self.tail.texts)} | set(files)
        old = [
            name
            for name in sorted(self._there)
            if name not in kept and (name.startswith(_PART) or _is_before(name, oldest))
        ]
        self._there.difference_update(old)
        return old

    def _numbers(self) -> list[int]:
        return [number for name in self._there if (number := record_number(name)) is not None]

    def _write(self, record: Record, parts: Mapping[str, bytes]) -> None:
        name = record_name(record.number)
        if self._objects.put_new(name, record.encoded(parts)) is None:
            raise Fenced
        self._there.add(name)
        self.tail = record

    def _decoded(self, number: int) -> tuple[Record, dict[str, bytes]]:
        name = record_name(number)
        found = self._objects.get(name)
        return decoded(name, None if found is None else found.content)

    def _read(self, number: int) -> tuple[Record, dict[str, bytes]]:
        """Return a record that nothing can replace."""
        try:
            return self._decoded(number)
        except Damaged as damage:
            raise EnvironmentProblem(
                f"{self._place}: {damage}\n"
                "  hint: put back a copy of it, or use another prefix to begin anew"
            ) from damage


def foreign(names: Iterable[str]) -> list[str]:
    """Return the names of objects that are neither records nor parts."""
    return [name for name in names if record_number(name) is None and not name.startswith(_PART)]


def _is_before(name: str, oldest: int) -> bool:
    number = record_number(name)
    return number is not None and number < oldest
