"""Values of the driver's that executors keep: they are sent what has changed, not the whole."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import uuid4


class SentChange(Protocol):
    """Change of a value, as it is sent: small, and picklable."""

    def apply(self, kept: Any) -> Any:
        """Return the value after the change; it may be the one before, changed in place.

        ``kept`` is the value before. Of a change that is the whole value it is None.
        """


@dataclass(frozen=True)
class SentChanges:
    """Change of a value up to a version; with ``is_whole`` it needs no value before it."""

    change: SentChange
    version: Any
    is_whole: bool


class Published(ABC):
    """Value that changes from batch to batch, and is part of a job.

    In the driver's process the value itself is used. Executors use what :class:`SentChange` makes,
    with the same methods for reducers.
    """

    is_current = True
    """False once what is reduced with it is of no use, as its owner has other values."""

    def __init__(self) -> None:
        self.name = uuid4().hex
        """Name that no other value ever has, in any process."""

    def __reduce__(self) -> tuple[Callable[[SentChange], Any], tuple[SentChange]]:
        """Return the pickled form of the whole, for those that send it but once."""
        changes = self.changes(None)
        assert changes is not None, "the whole is never nothing"
        return _made, (changes.change,)

    @abstractmethod
    def changes(self, since: Any) -> SentChanges | None:
        """Return what has changed since a version, None for the whole; None if nothing has."""


def _made(whole: SentChange) -> Any:
    return whole.apply(None)
