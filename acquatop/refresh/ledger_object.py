"""Object in an object store that keeps a ledger of spending."""

from __future__ import annotations

import uuid
import zlib

from connectors.object_store.address import StoreAddress
from connectors.object_store.contract import ObjectStore, StoreError, Version
from connectors.object_store.opening import open_objects
from connectors.object_store.patient import PatientObjects
from replica.spending.ledger import LedgerError

NAME = "spending"
MAGIC = b"acquatop-ledger 1\n"

_PATIENCE = 30.0
"""Seconds for which the store is asked again at the start."""


class LedgerObject:
    """Keeper of a ledger's content in one object, which its newest user alone may replace.

    Each writing has a number and its writer's name in its head, so that no two are equal.
    """

    def __init__(self, objects: ObjectStore, patient: ObjectStore, place: object) -> None:
        self._objects = objects
        self._patient = patient
        self._place = place
        self._owner = uuid.uuid4().hex
        self._count = 0
        self._version: Version | None = None
        self._is_unsure = False

    def load(self) -> bytes | None:
        """Return the content, None if there is none; from now on no other process may store it."""
        try:
            while True:
                found = self._patient.get(NAME)
                content = None if found is None else self._opened(found.content)
                signed = self._signed(content or b"")
                if found is None:
                    self._version = self._patient.put_new(NAME, signed)
                else:
                    self._version = self._patient.put_over(NAME, signed, found.version)
                if self._version is not None:
                    return content or None
        except StoreError as error:
            raise LedgerError(f"the ledger {self._place} cannot be used: {error}") from error

    def store(self, content: bytes) -> None:
        """Replace the content; raises :class:`LedgerError` if another process has it."""
        try:
            if self._is_unsure:
                self._look_again()
            assert self._version is not None, "it is loaded first"
            self._is_unsure = True
            version = self._objects.put_over(NAME, self._signed(content), self._version)
            self._is_unsure = False
        except StoreError as error:
            raise LedgerError(
                f"the ledger {self._place} cannot be written, so nothing is spent: {error}"
            ) from error
        if version is None:
            raise LedgerError(
                f"another process uses the ledger {self._place} now, so nothing is spent here"
            )
        self._version = version

    def _look_again(self) -> None:
        """Find out whether a writing came that was not confirmed: what it spent was not spent."""
        found = self._objects.get(NAME)
        if found is not None and self._owner.encode() in found.content[: len(MAGIC) + 50]:
            self._version = found.version

    def _signed(self, content: bytes) -> bytes:
        self._count += 1
        head = f"{self._owner} {self._count:016d} {zlib.crc32(content):08x}\n"
        return MAGIC + head.encode() + content

    def _opened(self, signed: bytes) -> bytes:
        head, _, content = signed.removeprefix(MAGIC).partition(b"\n")
        if not signed.startswith(MAGIC) or not head.endswith(b" %08x" % zlib.crc32(content)):
            raise LedgerError(f"{self._place} is damaged, or no ledger of spending")
        return content


def open_keeper(place: str, seconds: float) -> LedgerObject:
    """Return the keeper at an address, each of whose requests takes so many seconds at most.

    Raises :class:`LedgerError`.
    """
    try:
        address = StoreAddress.parse(place)
        return LedgerObject(
            open_objects(address, timeout=seconds),
            PatientObjects(open_objects(address), place, patience=_PATIENCE),
            place,
        )
    except (StoreError, ValueError) as error:
        raise LedgerError(f"the ledger {place} cannot be used: {error}") from error
