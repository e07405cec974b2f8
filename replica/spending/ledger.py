"""Durable record of spending: no crash, restart or second process can spend it again."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from replica.clocks import Clock, MachineClock
from replica.spending.spent import Spent

_APPLICATION: Final = 0x41635470  # "AcTp"
_VERSION: Final = 2
_PATIENCE_AT_OPENING = 5.0

_TABLES = """
CREATE TABLE IF NOT EXISTS anchor (boot TEXT NOT NULL, began REAL NOT NULL);
CREATE TABLE IF NOT EXISTS spent (
    service TEXT NOT NULL,
    at REAL NOT NULL,
    items INTEGER NOT NULL CHECK (items >= 0),
    requests INTEGER NOT NULL CHECK (requests >= 0)
);
CREATE INDEX IF NOT EXISTS spent_by_time ON spent (service, at);
CREATE TABLE IF NOT EXISTS kept (service TEXT PRIMARY KEY, seconds REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS marks (
    service TEXT NOT NULL,
    query TEXT NOT NULL,
    evaluation INTEGER NOT NULL,
    items INTEGER NOT NULL CHECK (items >= 0),
    requests INTEGER NOT NULL CHECK (requests >= 0),
    allowed_items INTEGER NOT NULL CHECK (allowed_items >= 0),
    allowed_requests INTEGER NOT NULL CHECK (allowed_requests >= 0),
    PRIMARY KEY (service, query)
) WITHOUT ROWID;
"""


class LedgerError(Exception):
    """Failure to read or write the ledger; nothing may be spent."""

    exit_code = 1


@dataclass(frozen=True)
class Mark:
    """Latest evaluation in which a query spent anything: its spending and its allowance."""

    evaluation: int
    items: int
    requests: int
    allowed_items: int
    allowed_requests: int


class Ledger:
    """Spending by service and time, and the progress of each query, in a file.

    One file serves any number of threads and processes on one machine. One :meth:`transaction` is
    atomic for all of them. When it has ended, its writes are on disk: SQLite's write-ahead log with
    ``synchronous=FULL``, one flush each. They survive the end of the process and a power failure,
    if the disk keeps its promises. The file must be on a local disk (the log needs shared memory).
    Its companions ``-wal`` and ``-shm`` belong to it.

    :meth:`now` is the time of its rows. The first process after a boot takes it from the time of
    day and notes it in the file; from then on it advances by the ``machine``'s clock in all
    processes. So setting the time of day has no effect before the next boot.

    If the file is locked for longer than ``longest_wait`` seconds, damaged, full, removed or not a
    ledger, :class:`LedgerError` is raised and nothing is spent. Removing the file between two runs
    discards the record of spending.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger(Path(folder.name, "spending.db"))
    >>> with ledger.transaction():
    ...     ledger.log_of("users").add(Spent(at=10.0, items=100, requests=1))
    ...     ledger.set_mark(
    ...         "users",
    ...         "query",
    ...         Mark(7, items=100, requests=1, allowed_items=100, allowed_requests=3),
    ...     )
    >>> ledger.close()
    >>> again = Ledger(Path(folder.name, "spending.db"))
    >>> again.log_of("users").rows()
    [Spent(at=10.0, items=100, requests=1)]
    >>> again.mark("users", "query").evaluation
    7
    >>> again.close()
    >>> folder.cleanup()
    """

    def __init__(
        self,
        path: Path | str,
        *,
        longest_wait: float = 0.25,
        machine: MachineClock | None = None,
        wall: Clock = time.time,
    ) -> None:
        self.path = self._named(path)
        self._machine = machine or MachineClock.of_this_machine()
        self._lock = threading.RLock()
        self._is_within = False
        with self.telling():
            self._connection = self._connect()
        try:
            with self.telling():
                self._open()
                self._place = self._place_now()
                self._began = self._anchored(wall)
                self._connection.execute(f"PRAGMA busy_timeout = {int(longest_wait * 1000)}")
        except LedgerError:
            self._connection.close()
            raise

    def close(self) -> None:
        """Close the file. Nothing can be spent any more."""
        with self._lock:
            self._connection.close()

    @contextmanager
    def transaction(self, *, to_write: bool = True) -> Iterator[None]:
        """Do several things atomically; part of the outer transaction if this thread is in one.

        Its writes are durable when it ends, and undone if it raises.
        """
        with self._lock:
            if self._is_within:
                yield
                return
            with self.telling():
                if self._place_now() != self._place:
                    raise LedgerError(
                        f"the ledger {self.path} was replaced while it was in use: nothing is spent"
                    )
                self._connection.execute("BEGIN IMMEDIATE" if to_write else "BEGIN")
            self._is_within = True
            try:
                yield
                with self.telling():
                    self._connection.execute("COMMIT")
                    self._committed()
            finally:
                self._is_within = False
                with contextlib.suppress(sqlite3.Error):
                    if self._connection.in_transaction:
                        self._connection.execute("ROLLBACK")

    def now(self) -> float:
        """Return the time of a row that is added now: the same in all processes of this boot."""
        return self._began + self._machine.seconds()

    def log_of(self, service: str) -> SpentInLedger:
        """Return the spending on a service."""
        return SpentInLedger(self, service)

    def mark(self, service: str, query: str) -> Mark | None:
        """Return a query's progress with a service."""
        rows = self.run(
            "SELECT evaluation, items, requests, allowed_items, allowed_requests FROM marks"
            " WHERE service = ? AND query = ?",
            (service, query),
        )
        with self.telling():
            return Mark(*map(int, rows[0])) if rows else None

    def set_mark(self, service: str, query: str, mark: Mark) -> None:
        """Set a query's progress with a service."""
        self.run(
            "INSERT OR REPLACE INTO marks VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                service,
                query,
                mark.evaluation,
                mark.items,
                mark.requests,
                mark.allowed_items,
                mark.allowed_requests,
            ),
        )

    def run(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run one statement."""
        with self._lock, self.telling():
            return self._connection.execute(statement, values).fetchall()

    @contextmanager
    def telling(self) -> Iterator[None]:
        """Raise LedgerError for any error of an unusable file or invalid content."""
        try:
            yield
        except (sqlite3.Error, OSError, OverflowError, TypeError, ValueError) as error:
            raise LedgerError(
                f"the ledger {self.path} cannot be used, so nothing is spent: {error}"
            ) from error

    def _named(self, path: Path | str) -> str:
        return str(Path(path).absolute())

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(
            self.path,
            timeout=_PATIENCE_AT_OPENING,
            isolation_level=None,
            check_same_thread=False,
        )

    def _committed(self) -> None:
        """Do nothing: it is on disk."""

    def _open(self) -> None:
        # In one transaction, as another process may be creating the tables.
        self._connection.execute("BEGIN")
        application, version = (
            self._value("PRAGMA application_id"),
            self._value("PRAGMA user_version"),
        )
        tables = self._value("SELECT count(*) FROM sqlite_master")
        self._connection.execute("COMMIT")
        if application != _APPLICATION and (application or tables):
            raise LedgerError(f"{self.path} is a database, but not a ledger of spending")
        if tables and version not in range(1, _VERSION + 1):
            raise LedgerError(f"the ledger {self.path} has version {version}, not {_VERSION}")
        self._start_log()
        self._connection.execute("PRAGMA synchronous = FULL")
        if version != _VERSION:
            self._connection.executescript(
                f"BEGIN IMMEDIATE; {_TABLES} PRAGMA application_id = {_APPLICATION};"
                f" PRAGMA user_version = {_VERSION}; COMMIT"
            )
        health = self._value("PRAGMA quick_check(1)")
        if health != "ok":
            raise LedgerError(f"the ledger {self.path} is damaged, so nothing is spent: {health}")

    def _anchored(self, wall: Clock) -> float:
        """Return the ledger's time when the machine's clock began, as the first process saw it."""
        began = self._anchor()
        if began is not None:
            return began
        with self.transaction():
            # Another process may have been faster.
            began = self._anchor()
            if began is None:
                newest = self._value("SELECT max(at) FROM spent")
                now = wall() if newest is None else max(wall(), float(newest))
                began = now - self._machine.seconds()
                self.run("DELETE FROM anchor")
                self.run("INSERT INTO anchor VALUES (?, ?)", (self._machine.boot, began))
        return began

    def _anchor(self) -> float | None:
        rows = self.run("SELECT began FROM anchor WHERE boot = ?", (self._machine.boot,))
        return float(rows[0][0]) if rows else None

    def _start_log(self) -> None:
        """Turn on the write-ahead log.

        SQLite refuses this at once, without waiting, while others do the same.
        """
        patience = time.monotonic() + _PATIENCE_AT_OPENING
        while True:
            try:
                self._connection.execute("PRAGMA journal_mode = WAL").fetchall()
            except sqlite3.OperationalError as error:
                if (
                    error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY
                    or time.monotonic() > patience
                ):
                    raise
                time.sleep(0.01)
            else:
                return

    def _value(self, statement: str) -> Any:
        return self._connection.execute(statement).fetchone()[0]

    def _place_now(self) -> tuple[int, int]:
        """Return the identity of the file at the path."""
        found = Path(self.path).stat()
        return found.st_dev, found.st_ino


class SpentInLedger:
    """Spending on one service: see :class:`replica.spending.spent.SpentLog`."""

    def __init__(self, ledger: Ledger, service: str) -> None:
        self._ledger = ledger
        self._service = service

    def transaction(self, *, to_write: bool = True) -> AbstractContextManager[None]:
        """Prevent other writers, in any process, during the transaction."""
        return self._ledger.transaction(to_write=to_write)

    def keep(self, seconds: float) -> float:
        """Ask for rows to be kept for some seconds; return the longest time asked for."""
        rows = self._ledger.run("SELECT seconds FROM kept WHERE service = ?", (self._service,))
        longest = float(rows[0][0]) if rows else 0.0
        if seconds > longest:
            self._ledger.run("INSERT OR REPLACE INTO kept VALUES (?, ?)", (self._service, seconds))
        return max(longest, seconds)

    def rows(self) -> list[Spent]:
        """Return the spending, oldest first."""
        found = self._ledger.run(
            "SELECT at, items, requests FROM spent WHERE service = ? ORDER BY at", (self._service,)
        )
        with self._ledger.telling():
            return [Spent(float(at), int(items), int(requests)) for at, items, requests in found]

    def add(self, row: Spent) -> None:
        """Add a row that is no older than all others."""
        self._ledger.run("INSERT INTO spent VALUES (?, ?, ?, ?)", (self._service, *row))

    def forget(self, until: float) -> None:
        """Remove the spending up to and including a time."""
        self._ledger.run("DELETE FROM spent WHERE service = ? AND at <= ?", (self._service, until))

    def replace(self, rows: Sequence[Spent]) -> None:
        """Replace all rows."""
        self._ledger.run("DELETE FROM spent WHERE service = ?", (self._service,))
        for row in rows:
            self.add(row)
