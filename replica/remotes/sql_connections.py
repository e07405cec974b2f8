"""Connections to a database by any driver with Python's DB-API, ADBC's included."""

from __future__ import annotations

import importlib
import math
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import ModuleType
from typing import Any
from urllib.parse import unquote, urlsplit

from replica.http.auth import Secret
from replica.remotes import RemoteError

_CANCELLING = ("adbc_cancel", "cancel", "interrupt")
"""Methods of drivers' cursors and connections that end a query from another thread."""

_PASSWORD = re.compile(r"\bpassword\s*=\s*('[^']*'|[^\s&]+)", re.IGNORECASE)
_IS_SECRET = re.compile("pass|pwd|secret|token|key", re.IGNORECASE)
_PATIENCE = "connect_timeout"


def driver_named(name: str) -> ModuleType:
    """Return a driver's module; raises ValueError if it is not installed or is no driver."""
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        raise ValueError(f'the driver "{name}" is not installed: {error}') from error
    if not callable(getattr(module, "connect", None)) or not hasattr(module, "paramstyle"):
        raise ValueError(f'"{name}" is no database driver: it has no connect() of the DB-API')
    return module


def style_of(driver: ModuleType) -> str:
    """Return the style of a driver's placeholders."""
    # What ADBC's module says of itself is not what PostgreSQL understands.
    is_adbc = driver.__name__.startswith("adbc_driver_postgresql")
    return "dollar" if is_adbc else str(driver.paramstyle)


class SqlConnections:
    """Connections that are open and not in use; as many are opened as are needed at once.

    ``secrets`` never stand in messages, nor do passwords in the ``target`` and the ``arguments``.
    Not for use after :meth:`close`.
    """

    def __init__(
        self,
        driver: ModuleType,
        target: str,
        arguments: Mapping[str, object] | None = None,
        *,
        name: str,
        secrets: Sequence[Secret] = (),
    ) -> None:
        self.name = name
        self.style = style_of(driver)
        self._driver = driver
        self._target = target
        self._arguments = dict(arguments or {})
        known = (each.reveal() for each in secrets if each)
        self._secrets = (*known, *_secrets_in(target, self._arguments))
        self._idle: list[Any] = []
        self._lock = threading.Lock()
        self._closed = False

    @contextmanager
    def cursor(self, timeout: float) -> Iterator[tuple[Any, Deadline]]:
        """Give a cursor, and its deadline: a query that runs longer is cancelled.

        Raises :class:`RemoteError` for all that goes wrong in the block.
        """
        connection = self._taken(timeout)
        deadline = Deadline(timeout)
        try:
            cursor = connection.cursor()
            with deadline.over(cursor, connection):
                yield cursor, deadline
                cursor.close()
                _roll_back(connection)
        except BaseException as error:
            # Its transaction has failed, or its query may still be running.
            with suppress(Exception):
                connection.close()
            if isinstance(error, RemoteError) or not isinstance(error, Exception):
                raise
            raise self._failure(error, timeout, is_late=deadline.has_passed) from error
        self._give_back(connection)

    def close(self) -> None:
        """Close all connections that are not in use, and the others after their use."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for each in idle:
            with suppress(Exception):
                each.close()

    def _taken(self, timeout: float) -> Any:
        with self._lock:
            if self._idle:
                return self._idle.pop()
        try:
            return _opened(self._driver, self._target, self._arguments, timeout)
        except Exception as error:
            raise RemoteError(
                f"{self.name} cannot be reached: {self._without_secrets(error)}"
            ) from None

    def _give_back(self, connection: Any) -> None:
        with self._lock:
            if not self._closed:
                self._idle.append(connection)
                return
        connection.close()

    def _failure(self, error: Exception, timeout: float, *, is_late: bool) -> RemoteError:
        if is_late:
            return RemoteError(f"{self.name} did not answer within {timeout:g} s", timed_out=True)
        return RemoteError(f"{self.name} failed: {self._without_secrets(error)}")

    def _without_secrets(self, error: Exception) -> str:
        said = " ".join(str(error).split()) or type(error).__name__
        for secret in self._secrets:
            said = said.replace(secret, "***")
        return said


class Deadline:
    """Time after which a query is cancelled."""

    def __init__(self, seconds: float) -> None:
        self.has_passed = False
        self._seconds = seconds
        self._timer: threading.Timer | None = None
        self._at_work: Sequence[Any] = ()
        self._lock = threading.Lock()

    @contextmanager
    def over(self, *at_work: Any) -> Iterator[None]:
        """Watch over the block: it uses a cursor of a connection."""
        self._at_work = at_work
        self.renew()
        try:
            yield
        finally:
            self._stop()
            with self._lock:
                self._at_work = ()

    def renew(self) -> None:
        """Begin anew: the query is at work."""
        self._stop()
        self._timer = threading.Timer(self._seconds, self.expire)
        self._timer.daemon = True
        self._timer.start()

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def expire(self) -> None:
        """Cancel what is at work, if the block has not ended."""
        # Who ends the block waits: another query of the connection must not be cancelled.
        with self._lock:
            self.has_passed = bool(self._at_work)
            # With some drivers the cursor is what runs a query, with others the connection.
            for each in self._at_work:
                for cancel in (getattr(each, name, None) for name in _CANCELLING):
                    if cancel is not None:
                        with suppress(Exception):
                            cancel()


def _secrets_in(target: str, arguments: Mapping[str, object]) -> tuple[str, ...]:
    """Return the passwords that are written where a driver is told where to connect to."""
    with suppress(ValueError):
        parts = urlsplit(target)
        written = parts.password or ""
        return tuple(
            each
            for each in (
                written,
                unquote(written),
                *(found[1].strip("'") for found in _PASSWORD.finditer(target)),
                *(str(value) for name, value in arguments.items() if _IS_SECRET.search(name)),
            )
            if each
        )
    return (target,)


def _opened(
    driver: ModuleType, target: str, arguments: Mapping[str, object], timeout: float
) -> Any:
    """Return a connection that can only read, as far as its driver allows that."""
    match driver.__name__:
        case "sqlite3":
            uri = {"uri": True} if target.startswith("file:") else {}
            connection = driver.connect(target, **{"check_same_thread": False, **uri, **arguments})
            connection.execute("PRAGMA query_only = ON")
        case "duckdb":
            read_only = {} if target in ("", ":memory:") else {"read_only": True}
            connection = driver.connect(target, **{**read_only, **arguments})
        case "psycopg":
            # Without transactions of several statements: it forgets its plans at a rollback.
            patience = {} if _PATIENCE in target else {_PATIENCE: math.ceil(timeout)}
            connection = driver.connect(target, **{**patience, **arguments, "autocommit": True})
            connection.execute("SET default_transaction_read_only = on")
        case _:
            connection = (
                driver.connect(target, **arguments) if target else driver.connect(**arguments)
            )
    return connection


def _roll_back(connection: Any) -> None:
    """End the transaction that a query has begun, where there is one."""
    roll_back = getattr(connection, "rollback", None)
    if roll_back is not None:
        with suppress(Exception):  # some say so if there is none
            roll_back()
