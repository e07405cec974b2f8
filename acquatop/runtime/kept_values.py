"""Published values as executors keep them, one of each in a worker's process."""

from __future__ import annotations

import io
import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.core.broadcast import Broadcast

MOST_SENDERS = 16
"""Number of senders whose values a process keeps."""


@dataclass(frozen=True)
class Pack:
    """Some changes of a value in turn, pickled, and the number of each.

    Numbers grow, and none is ever used twice by a sender.
    """

    numbers: Sequence[int]
    changes: Sequence[bytes] | Broadcast[Sequence[bytes]]

    def after(self, number: int | None) -> Sequence[bytes]:
        """Return the changes behind one of these, all if it is None."""
        first = 0 if number is None else self.numbers.index(number) + 1
        if first == len(self.numbers):
            return ()
        # A broadcast is only loaded by who needs it.
        data = self.changes if isinstance(self.changes, Sequence) else self.changes.value
        return data[first:]


@dataclass(frozen=True)
class SentWork:
    """Work of a task, pickled without the published values in it, and what these are made from.

    ``values`` has each value's changes by its name; the first change is the whole.
    """

    sender: str
    pickled: bytes | Broadcast[bytes]
    values: dict[str, Sequence[Pack]]

    def unpacked(self) -> Any:
        """Return the work, with the values that this process keeps."""
        data = self.pickled if isinstance(self.pickled, bytes) else self.pickled.value
        if not self.values:
            return pickle.loads(data)  # noqa: S301 (made by this engine, for its own executors)
        return _Unpickler(io.BytesIO(data), _of_sender(self.sender).present(self.values)).load()


class KeptValues:
    """Values of one sender, each with the number of its last change."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[int, Any]] = {}

    def present(self, values: dict[str, Sequence[Pack]]) -> dict[str, Any]:
        """Return values up to their last changes. Those that are not asked for are dropped.

        A value is changed in place. One that is ahead of what is asked for is made again from the
        whole: a task may be done again late.
        """
        before, self._kept = self._kept, {}
        for name, packs in values.items():
            self._kept[name] = _caught_up(before.pop(name, None), packs)
        return {name: value for name, (_, value) in self._kept.items()}


def _caught_up(kept: tuple[int, Any] | None, packs: Sequence[Pack]) -> tuple[int, Any]:
    number, value = (None, None) if kept is None else kept
    at = next((at for at, pack in enumerate(packs) if number in pack.numbers), None)
    if at is None:
        at, number, value = 0, None, None
    for pack in packs[at:]:
        for change in pack.after(number):
            value = pickle.loads(change).apply(value)  # noqa: S301 (made by this engine)
        number = None
    return packs[-1].numbers[-1], value


class _Unpickler(pickle.Unpickler):
    def __init__(self, data: io.BytesIO, values: dict[str, Any]) -> None:
        super().__init__(data)
        self._values = values

    def persistent_load(self, name: str) -> Any:
        return self._values[name]


SENDERS: dict[str, KeptValues] = {}
"""Values of this process by their sender, whoever sent last at the end."""


def _of_sender(sender: str) -> KeptValues:
    kept = SENDERS.pop(sender, None) or KeptValues()
    SENDERS[sender] = kept
    while len(SENDERS) > MOST_SENDERS:
        del SENDERS[next(iter(SENDERS))]
    return kept
