"""Ledger in memory, of which another place keeps a copy: after each write, before it counts."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from replica.clocks import Clock, MachineClock
from replica.spending.ledger import Ledger, LedgerError


class LedgerKeeper(Protocol):
    """Keeper of a ledger's content, for one process at a time."""

    def load(self) -> bytes | None:
        """Return the content, None if there is none; from now on no other process may store it.

        Raises :class:`LedgerError`.
        """
        ...

    def store(self, content: bytes) -> None:
        """Replace the content, durably; raises :class:`LedgerError` if another process has it."""
        ...


class LedgerElsewhere(Ledger):
    """Ledger that no disk of this machine holds; one process uses it at a time.

    Each transaction that writes costs one request to its keeper. If that fails, the transaction is
    undone: nothing is spent.
    """

    def __init__(
        self,
        keeper: LedgerKeeper,
        place: str,
        *,
        machine: MachineClock | None = None,
        wall: Clock = time.time,
    ) -> None:
        self._keeper = keeper
        self._kept: bytes | None = None
        self._changes = 0
        super().__init__(place, machine=machine, wall=wall)

    def run(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run one statement, in a transaction of its own if there is none."""
        if self._is_within:
            return super().run(statement, values)
        with self.transaction():
            return super().run(statement, values)

    def _named(self, path: Path | str) -> str:
        return str(path)

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self._kept = self._keeper.load()
        if self._kept is not None:
            connection.deserialize(self._kept)
        return connection

    def _committed(self) -> None:
        """Let the keeper have the content, or go back to the one before."""
        if self._connection.total_changes == self._changes:
            return
        content = self._connection.serialize()
        try:
            self._keeper.store(content)
        except LedgerError:
            if self._kept is not None:
                self._connection.deserialize(self._kept)
            self._changes = self._connection.total_changes
            raise
        self._kept, self._changes = content, self._connection.total_changes

    def _start_log(self) -> None:
        """Do nothing: nothing is on a disk."""

    def _place_now(self) -> tuple[int, int]:
        return 0, 0
