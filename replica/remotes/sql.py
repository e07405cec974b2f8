"""Tables of an SQL database as a remote: one query per block of keys."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from replica.remotes import MayAsk, RemoteError, always
from replica.remotes.records import RecordMapping, RecordReader, Star
from replica.remotes.sql_connections import SqlConnections
from replica.remotes.sql_statement import SqlStatement
from replica.store import Solution

MOST_ROWS = 1_000_000
"""Most rows of one reply."""
_PAGE = 10_000


class SqlRemote:
    """Remote that asks a database for at most ``block_size`` keys per query.

    A row is a record whose fields are its columns. Values keep the database's digits. A query that
    has not ended in time is cancelled. Nothing is ever committed, and connections are read-only
    where their driver can make them so. With ``integers`` keys are whole numbers to the database.
    """

    def __init__(
        self,
        statement: SqlStatement,
        connections: SqlConnections,
        *,
        mapping: RecordMapping,
        star: Star,
        integers: bool = False,
        block_size: int = 100,
    ) -> None:
        self.block_size = block_size
        self._statement = statement
        self._connections = connections
        self._parameter: Callable[[str], object] = _integer if integers else str
        self._reader = RecordReader(mapping, star)
        self.rejected = self._reader.rejected
        of_properties = (mapping.properties[each] for each in _predicates(star))
        fields = (*of_properties, *star.fields.values())
        paths = (mapping.key.path, *(each.path for each in fields))
        self._columns = tuple(dict.fromkeys(paths))

    def fetch(self, keys: Sequence[str], timeout: float) -> list[Solution]:
        """Return the solutions for some keys, with one query; none if no key can be in it."""
        ids = {
            parameter: key
            for id_, key in self._reader.ids(keys).items()
            if (parameter := self._parameter(id_)) is not None
        }
        if len(ids) > self.block_size:
            raise RemoteError(
                f"{self._connections.name} is asked for {self.block_size} keys per query",
                too_large=True,
            )
        if not ids:
            return []
        text, parameters = self._statement.of(list(ids), self._columns, self.block_size)
        rows = (row for page in self._pages(text, parameters, timeout) for row in page)
        return self._reader.solutions(((row, None) for row in rows), ids.values())

    def load(self, timeout: float, may_ask: MayAsk = always) -> Iterator[list[Solution]]:
        """Yield all solutions of a table, as one request; nothing of a query with keys in it."""
        text = self._statement.of_all(self._columns)
        if text is None or not may_ask():
            return
        # A table may be large: the time is that of one page.
        for page in self._pages(text, (), timeout, is_whole=True):
            yield self._reader.solutions(((row, None) for row in page), None)

    def ordered(self, clauses: str, count: int, timeout: float) -> tuple[int, Sequence[Solution]]:
        """Return the number of a table's first rows under some clauses, and their solutions."""
        text = f"{self._statement.of_all(self._columns)} {clauses} LIMIT {count}"
        rows = [row for page in self._pages(text, (), timeout) for row in page]
        return len(rows), self._reader.solutions(((row, None) for row in rows), None)

    def _pages(
        self,
        text: str,
        parameters: Sequence[object] | Mapping[str, object],
        timeout: float,
        *,
        is_whole: bool = False,
    ) -> Iterator[list[dict[str, object]]]:
        """Yield the rows of a query, as records."""
        count = 0
        with self._connections.cursor(timeout) as (cursor, deadline):
            cursor.execute(text, parameters) if parameters else cursor.execute(text)
            names = [each[0] for each in cursor.description or ()]
            while page := cursor.fetchmany(_PAGE):
                count += len(page)
                if is_whole:
                    deadline.renew()
                elif count > MOST_ROWS:
                    raise RemoteError(
                        f"{self._connections.name} has more than {MOST_ROWS} rows for some keys",
                        too_large=True,
                    )
                yield [dict(zip(names, map(_value, row), strict=True)) for row in page]


def _predicates(star: Star) -> Iterator[str]:
    yield from star.columns.values()
    yield from star.constants


def _integer(id_: str) -> int | None:
    """Return the number that an id is the usual text of."""
    try:
        return int(id_) if str(int(id_)) == id_ else None
    except ValueError:
        return None


def _value(value: Any) -> object:
    """Return a database's value as a record has it."""
    match value:
        case Decimal() if value.is_finite() and value == value.to_integral_value():
            return int(value) if abs(value.adjusted()) < 4_000 else value
        case date() if not isinstance(value, datetime):
            return value.isoformat()
        case uuid.UUID():
            return str(value)
    return value
