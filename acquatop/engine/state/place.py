"""Places of state: a local directory, or a prefix in an object store."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from acquatop.engine.state.contract import StateStore
from acquatop.engine.state.directory import StateDirectory
from acquatop.engine.state.folder import Folder
from acquatop.engine.state.objects.lease import SECONDS, LeaseTiming
from acquatop.engine.state.objects.state import ObjectState
from acquatop.errors import EnvironmentProblem, UserError
from connectors.object_store.address import FORMS, StoreAddress, is_address
from connectors.object_store.contract import ObjectStore, StoreError
from connectors.object_store.opening import open_objects
from connectors.object_store.patient import PATIENCE, PatientObjects

_FORM = f"{FORMS}, or a folder"
_SHORTEST, _LONGEST = 1, 3600
_LEASE = "lease"
_BRIEFLY = 5.0
"""Seconds for which the store is asked at the end of an engine."""


@dataclass(frozen=True)
class RemotePlace:
    """Prefix in an object store, and the seconds of the lease there."""

    address: StoreAddress
    lease_seconds: float = SECONDS

    def __truediv__(self, name: str) -> RemotePlace:
        return RemotePlace(self.address / name, self.lease_seconds)

    def __str__(self) -> str:
        return str(self.address)

    @property
    def name(self) -> str:
        """The last part of its prefix."""
        return self.address.prefix.rpartition("/")[2]


StatePlace = Path | RemotePlace


def state_place(text: str | StatePlace) -> StatePlace:
    """Return the place that a text names; raises :class:`UserError` for one that cannot be used.

    >>> state_place("states/one"), str(state_place("s3://bucket/one?lease=5s"))
    (PosixPath('states/one'), 's3://bucket/one')
    >>> state_place("gs://bucket/one")
    Traceback (most recent call last):
    acquatop.errors.UserError: gs://bucket/one cannot hold a state: gs:// cannot be used: its writes
    under conditions were not tried
      hint: name s3://BUCKET/PREFIX, az://CONTAINER/PREFIX or hdfs://HOST/PREFIX, or a folder
    """
    if not isinstance(text, str):
        return text
    if text.startswith("file://"):
        return Path(unquote(urlsplit(text).path))
    if not is_address(text):
        return Path(text)
    bare, _, options = text.partition("?")
    try:
        return RemotePlace(StoreAddress.parse(bare), _lease_seconds(options))
    except ValueError as error:
        raise UserError(f"{bare} cannot hold a state: {error}\n  hint: name {_FORM}") from error


def open_state(
    place: StatePlace, manifest: Mapping[str, str], folder: Callable[[Path], Folder] = Folder
) -> StateStore:
    """Open the state at a place, for this engine alone."""
    if isinstance(place, Path):
        return StateDirectory.open(place, manifest, folder=folder)
    return ObjectState.open(
        open_store(place),
        place,
        manifest,
        timing=LeaseTiming(place.lease_seconds),
        brief=open_store(place, patience=_BRIEFLY),
    )


def open_store(place: RemotePlace, *, patience: float = PATIENCE) -> ObjectStore:
    """Return the objects at a place; for so many seconds a request is made again and again."""
    try:
        return PatientObjects(open_objects(place.address), str(place), patience=patience)
    except StoreError as error:
        raise EnvironmentProblem(str(error)) from error


def _lease_seconds(options: str) -> float:
    """Return the seconds of ``lease=15s``."""
    said = dict(parse_qsl(options, keep_blank_values=True))
    text = said.pop(_LEASE, f"{SECONDS:.0f}s")
    if said or not text.endswith("s") or not text[:-1].isdecimal():
        raise ValueError("after ? there can only be lease=SECONDSs, such as lease=15s")
    seconds = int(text[:-1])
    if not _SHORTEST <= seconds <= _LONGEST:
        raise ValueError(f"a lease lasts {_SHORTEST}s to {_LONGEST}s")
    return float(seconds)
