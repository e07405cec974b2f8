"""SQL databases as remotes: SQLite, DuckDB and PostgreSQL, by drivers of the DB-API and ADBC."""

from __future__ import annotations

import itertools
import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import adbc_driver_postgresql.dbapi
import adbc_driver_sqlite.dbapi
import duckdb
import psycopg
import pytest

from replica.http.auth import Secret
from replica.remotes import RemoteError
from replica.remotes.records import Field, KeyTemplate, RecordMapping, Star
from replica.remotes.sql import SqlRemote
from replica.remotes.sql_connections import Deadline, SqlConnections, driver_named
from replica.remotes.sql_statement import STYLES, SqlStatement
from replica.remotes.values import XSD
from tests.support.databases.postgres import find_program, postgres
from tests.support.remote_contract import (
    FOLLOWERS,
    MAPPING,
    TIMEOUT,
    MakeRemote,
    Record,
    RecordRemoteContract,
    fetch,
    integer,
)

needs_postgres = pytest.mark.skipif(find_program("initdb") is None, reason="there is no PostgreSQL")
COLUMNS = {"public_metrics.followers_count": "n", "name": "t", "rate": "d", "friends": "t"}
STAR = Star("u", {"f": FOLLOWERS})
_NUMBERS = itertools.count()
COUNTED = RecordMapping(KeyTemplate.parse("urn:{id}"), {"urn:n": Field("n", XSD + "integer")})
COUNT = Star("u", {"n": "urn:n"})


@dataclass
class Database:
    """A database that tests fill, and how a remote connects to it."""

    driver: Any
    target: str
    write: Callable[[], Any]
    types: dict[str, str]
    opened: list[SqlConnections] = field(default_factory=list)

    def connections(self, *secrets: Secret) -> SqlConnections:
        made = SqlConnections(
            self.driver, self.target, name="the database of <urn:s>", secrets=secrets
        )
        self.opened.append(made)
        return made

    def remote(self, statement: str, star: Star = STAR, **options: Any) -> SqlRemote:
        made = self.connections()
        text = SqlStatement(statement, "id", made.style)
        return SqlRemote(text, made, **{"mapping": MAPPING, "star": star, **options})

    def run(self, *statements: str) -> None:
        connection = self.write()
        for each in statements:
            connection.execute(each)
        connection.commit()
        connection.close()

    def table(self, rows: Sequence[Record]) -> str:
        """Return a query for a new table with some records; a list is a row for each element."""
        name = f"people_{next(_NUMBERS)}"
        mark = "%s" if self.driver.paramstyle == "pyformat" else "?"
        columns = {**COLUMNS, "kind": "t"}
        connection = self.write()
        typed = ", ".join(f"c{at} {self.types[each]}" for at, each in enumerate(columns.values()))
        connection.execute(f"CREATE TABLE {name} (id {self.types['t']}, {typed})")
        insert = f"INSERT INTO {name} VALUES ({', '.join([mark] * (1 + len(columns)))})"
        cursor = connection.cursor()
        for each in rows:
            for values in itertools.product(*(_cells(each, path) for path in columns)):
                cursor.execute(insert, (each["id"], *values))
        connection.commit()
        connection.close()
        named = ", ".join(f'c{at} AS "{path}"' for at, path in enumerate(columns))
        return f"SELECT id, {named} FROM {name} WHERE id IN ({{keys}})"


def _cells(each: Record, path: str) -> list[object]:
    value = each.get(path)
    if path.startswith("public_metrics."):
        value = each.get("public_metrics", {}).get(path.partition(".")[2])
    return [json.dumps(one) if isinstance(one, dict | list) else one for one in _listed(value)]


def _listed(value: object) -> list[object]:
    return (value or [None]) if isinstance(value, list) else [value]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgres() as target:
        yield target


def _sqlite(folder: Path, driver: Any) -> Database:
    file = str(folder / "people.sqlite")
    sqlite3.connect(file).close()
    return Database(driver, file, lambda: sqlite3.connect(file), {"t": "text", "n": "", "d": ""})


def _duckdb(folder: Path) -> Database:
    file = str(folder / "people.duckdb")
    duckdb.connect(file).close()
    return Database(
        duckdb, file, lambda: duckdb.connect(file), {"t": "text", "n": "hugeint", "d": "double"}
    )


def _postgres(target: str, driver: Any = psycopg) -> Database:
    url = "postgresql://{user}@{host}:{port}/{dbname}".format(
        **dict(each.split("=") for each in target.split())
    )
    number = "numeric" if driver is psycopg else "bigint"
    types = {"t": "text", "n": number, "d": "double precision"}
    return Database(driver, url, lambda: psycopg.connect(url), types)


KINDS = [
    "sqlite3",
    "adbc_driver_sqlite.dbapi",
    "duckdb",
    pytest.param("psycopg", marks=needs_postgres),
    pytest.param("adbc_driver_postgresql.dbapi", marks=needs_postgres),
]


@pytest.fixture(params=KINDS)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    match request.param:
        case "sqlite3":
            made = _sqlite(tmp_path, sqlite3)
        case "adbc_driver_sqlite.dbapi":
            made = _sqlite(tmp_path, adbc_driver_sqlite.dbapi)
        case "duckdb":
            made = _duckdb(tmp_path)
        case "psycopg":
            made = _postgres(request.getfixturevalue("server"))
        case _:
            made = _postgres(request.getfixturevalue("server"), adbc_driver_postgresql.dbapi)
    yield made
    for each in made.opened:
        each.close()


class TestEachDriver(RecordRemoteContract):
    @pytest.fixture
    def make(self, database: Database) -> MakeRemote:
        def make(records: Sequence[Record], star: Star) -> SqlRemote:
            return database.remote(database.table(records), star)

        return make

    def test_values_of_all_kinds_are_kept(self, make: MakeRemote, database: Database) -> None:
        if "sqlite" in database.driver.__name__:
            pytest.skip("SQLite has no whole numbers beyond 64 bits")
        if "adbc" in database.driver.__name__:
            pytest.skip("a bigint has 64 bits")
        super().test_values_of_all_kinds_are_kept(make)

    @pytest.mark.parametrize("value", [7.5, None, "seven"])
    def test_a_value_of_another_type_is_no_solution_and_is_counted(
        self, make: MakeRemote, database: Database, value: object
    ) -> None:
        if value is not None and database.driver is not sqlite3:
            pytest.skip("its columns have one type")
        super().test_a_value_of_another_type_is_no_solution_and_is_counted(make, value)


# Statements ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("style", STYLES)
def test_a_block_of_any_size_is_one_of_few_texts(style: str) -> None:
    statement = SqlStatement("people", "id", style)
    texts = {statement.of(range(size), ["id"], 100)[0] for size in range(1, 101)}
    assert len(texts) == 8
    for size in range(1, 101):
        text, parameters = statement.of([f"k{at}" for at in range(size)], ["id"], 100)
        values = parameters.values() if isinstance(parameters, dict) else parameters
        assert len(parameters) <= 100
        assert set(values) == {f"k{at}" for at in range(size)}
        assert text.count(",") == len(parameters) - 1


@pytest.mark.parametrize(
    "text", ["SELECT 1", "SELECT {keys} WHERE {keys}", "people; DROP TABLE people", ""]
)
def test_a_query_without_its_keys_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"must have .keys. in it once"):
        SqlStatement(text, "id", "qmark")


def test_a_percent_sign_is_the_users(server: str) -> None:
    remote = _postgres(server).remote(
        "SELECT v.id, 10 % 4 AS n FROM (VALUES ('a%'), ('b')) v(id) "
        "WHERE id LIKE '%\\%' AND id IN ({keys})",
        mapping=COUNTED,
        star=COUNT,
    )
    assert fetch(remote, ["<urn:a%25>", "<urn:b>"]) == [{"u": "<urn:a%25>", "n": integer(2)}]


# Faults -------------------------------------------------------------------------------------------

SLOW = {
    "sqlite3": "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) "
    "SELECT '1' AS id, max(n) AS n FROM c WHERE '1' IN ({keys})",
    "duckdb": "SELECT '1' AS id, sum(a.range * b.range)::bigint AS n "
    "FROM range(10000000) a, range(10000000) b WHERE '1' IN ({keys})",
    "psycopg": "SELECT '1' AS id, 1 AS n FROM pg_sleep(600) WHERE '1' IN ({keys})",
    "adbc_driver_postgresql.dbapi": "SELECT '1' AS id, 1 AS n FROM pg_sleep(600) "
    "WHERE '1' IN ({keys})",
}


def test_a_query_that_does_not_end_is_cancelled(database: Database) -> None:
    text = SLOW.get(database.driver.__name__)
    if text is None:
        pytest.skip("ADBC's driver for SQLite cannot cancel a query")
    remote = database.remote(text, COUNT, mapping=COUNTED)
    with pytest.raises(RemoteError, match=r"did not answer within 0\.2 s") as caught:
        remote.fetch(["<urn:1>"], 0.2)
    assert caught.value.timed_out
    # The next query is none the worse for it.
    text = "SELECT '1' AS id, 1 AS n WHERE '1' IN ({keys})"
    quick = SqlRemote(
        SqlStatement(text, "id", database.opened[-1].style),
        database.opened[-1],
        mapping=COUNTED,
        star=COUNT,
    )
    assert fetch(quick, ["<urn:1>"]) == [{"u": "<urn:1>", "n": integer(1)}]


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO kept VALUES ({keys}) RETURNING n AS id, n",
        "DELETE FROM kept WHERE n IN ({keys}) RETURNING n AS id, n",
    ],
)
def test_nothing_is_ever_written(database: Database, statement: str) -> None:
    database.run(
        "DROP TABLE IF EXISTS kept", "CREATE TABLE kept (n text)", "INSERT INTO kept VALUES ('1')"
    )
    remote = database.remote(statement, COUNT, mapping=COUNTED)
    with suppress(RemoteError):
        remote.fetch(["<urn:1>"], TIMEOUT)
    for each in database.opened:
        each.close()
    connection = database.write()
    assert connection.execute("SELECT * FROM kept").fetchall() == [("1",)]
    connection.close()


@needs_postgres
def test_a_connection_that_was_ended_is_opened_anew(server: str) -> None:
    database = _postgres(server)
    remote = database.remote(
        "SELECT '1' AS id, 1 AS n WHERE '1' IN ({keys})", COUNT, mapping=COUNTED
    )
    assert fetch(remote, ["<urn:1>"]) == [{"u": "<urn:1>", "n": integer(1)}]
    database.run(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE pid <> pg_backend_pid() AND usename = 'test'"
    )
    with pytest.raises(RemoteError, match="the database of <urn:s> failed"):
        fetch(remote, ["<urn:1>"])
    assert fetch(remote, ["<urn:1>"]) == [{"u": "<urn:1>", "n": integer(1)}]


@needs_postgres
def test_one_plan_is_kept_for_blocks_of_one_size(server: str) -> None:
    database = _postgres(server)
    connections = database.connections()
    text = "SELECT id, 1 AS n FROM (VALUES ('1'), ('2')) v(id) WHERE id IN ({keys})"
    remote = SqlRemote(
        SqlStatement(text, "id", connections.style), connections, mapping=COUNTED, star=COUNT
    )
    for _ in range(10):
        remote.fetch(["<urn:1>", "<urn:2>"], TIMEOUT)
    with connections.cursor(TIMEOUT) as (cursor, _deadline):
        cursor.execute("SELECT count(*) FROM pg_prepared_statements")
        assert cursor.fetchone() == (1,)


def test_an_unreachable_database_is_named_without_its_secrets() -> None:
    secret = Secret("s3cret")
    target = "postgresql://user:s3cret@127.0.0.1:9/no"
    connections = SqlConnections(psycopg, target, name="the database of <urn:s>", secrets=[secret])
    remote = SqlRemote(
        SqlStatement("t", "id", connections.style), connections, mapping=COUNTED, star=COUNT
    )
    with pytest.raises(RemoteError, match="the database of <urn:s> cannot be reached") as caught:
        remote.fetch(["<urn:1>"], TIMEOUT)
    assert "s3cret" not in str(caught.value)


def test_what_a_driver_says_holds_no_secret() -> None:
    def fails(target: str) -> Any:
        raise OSError(f"no such host in {target}")

    driver = SimpleNamespace(__name__="d", connect=fails, paramstyle="qmark")
    made = SqlConnections(driver, "x:s3cret@y", name="it", secrets=[Secret("s3cret")])  # type: ignore[arg-type]
    with (
        pytest.raises(RemoteError, match=r"it cannot be reached: no such host in x:\*\*\*@y"),
        made.cursor(1.0),
    ):
        pass


@pytest.mark.parametrize(
    ("target", "arguments"),
    [
        ("db://user:s3%21cret@host/x", {}),
        ("host=h password=s3!cret", {}),
        ("host=h", {"password": "s3!cret"}),
    ],
)
def test_a_password_in_the_connection_is_a_secret(target: str, arguments: dict[str, Any]) -> None:
    def fails(target: str, **arguments: Any) -> Any:
        raise OSError(f"{target} {arguments} s3!cret")

    driver = SimpleNamespace(__name__="d", connect=fails, paramstyle="qmark")
    made = SqlConnections(driver, target, arguments, name="it")  # type: ignore[arg-type]
    with pytest.raises(RemoteError) as caught, made.cursor(1.0):
        pass
    assert "s3" not in str(caught.value)


def test_a_deadline_that_passes_at_the_end_cancels_no_other_query() -> None:
    cancelled: list[str] = []
    at_work = SimpleNamespace(cancel=lambda: cancelled.append("it"))
    deadline = Deadline(3600.0)
    with deadline.over(at_work):
        pass
    deadline.expire()
    assert (cancelled, deadline.has_passed) == ([], False)


@pytest.mark.parametrize("name", ["no_such_driver", "json"])
def test_what_is_no_driver_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"not installed|no database driver"):
        driver_named(name)


# Values -------------------------------------------------------------------------------------------


@needs_postgres
def test_values_of_postgresql_keep_their_digits_and_types(server: str) -> None:
    names = ("integer", "decimal", "double", "boolean", "string", "dateTime")
    mapping = RecordMapping(
        KeyTemplate.parse("urn:{id}"), {f"urn:{each}": Field(each, XSD + each) for each in names}
    )
    remote = _postgres(server).remote(
        "SELECT 1 AS id, 12345678901234567890123::numeric AS integer, 0.10::numeric AS decimal, "
        "0.1::double precision AS double, true AS boolean, 'x' AS string, "
        "'2026-01-31T12:00:00'::timestamp AS \"dateTime\" WHERE 1 IN ({keys})",
        Star("u", {each: f"urn:{each}" for each in names}),
        mapping=mapping,
        integers=True,
    )
    (found,) = remote.fetch(["<urn:1>"], TIMEOUT)
    assert {name: found[name].partition("^^")[0].strip('"') for name in names} == {
        "integer": "12345678901234567890123",
        "decimal": "0.1",
        "double": "0.1",
        "boolean": "true",
        "string": "x",
        "dateTime": "2026-01-31T12:00:00",
    }


def test_keys_that_are_numbers_are_sent_as_such(database: Database) -> None:
    name = f"numbered_{next(_NUMBERS)}"
    database.run(
        f"CREATE TABLE {name} (id bigint, n bigint)", f"INSERT INTO {name} VALUES (1, 7), (42, 8)"
    )
    remote = database.remote(name, COUNT, mapping=COUNTED, integers=True)
    # Another spelling of a number, and what is none, are keys of no row.
    keys = ["<urn:1>", "<urn:042>", "<urn:x>", "<urn:42>"]
    assert fetch(remote, keys) == [
        {"u": "<urn:1>", "n": integer(7)},
        {"u": "<urn:42>", "n": integer(8)},
    ]
    assert [each for page in remote.load(TIMEOUT) for each in page] == [
        {"u": "<urn:1>", "n": integer(7)},
        {"u": "<urn:42>", "n": integer(8)},
    ]
