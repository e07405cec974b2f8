"""The demo's query over a real PostgreSQL, which comes and goes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest

from acquatop import Answer, Engine, Status
from tests.support.databases.postgres import find_program, postgres

pytestmark = pytest.mark.skipif(find_program("initdb") is None, reason="there is no PostgreSQL")

QUERY = Path("examples/social_media/contacts.rspql")
FOLLOWERS = {f"u{number}": 1_000 * (number * 37 % 100) for number in range(60)}
CATALOG = """
[prefixes]
"" = "http://example.org/social#"

[streams.":S"]
connector = "lines"
options = {{ path = "{stream}" }}
[streams.":S".mapping]
subject = "http://example.org/user/{{user}}"
time = "t"
properties = {{ ":hasMentions" = {{ field = "n", datatype = "xsd:integer" }} }}

[services.":BKG"]
{service}
refresh = {{ items = 60, deadline = "60s" }}
[services.":BKG".mapping]
key = "http://example.org/user/{{name}}"
properties = {{ ":hasFollowers" = {{ field = "followers", datatype = "xsd:integer" }} }}
"""
SQL = """
remote = "sql"
driver = "psycopg"
connection = "${POSTGRES}"
query = '''
    SELECT u.name, f.followers FROM users u JOIN follower_counts f ON f.user_id = u.id
    WHERE u.name IN ({keys})
'''
"""


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    with postgres() as target:
        with psycopg.connect(target) as connection:
            connection.execute("CREATE TABLE users (id bigint PRIMARY KEY, name text UNIQUE)")
            connection.execute("CREATE TABLE follower_counts (user_id bigint, followers bigint)")
            for number, (name, followers) in enumerate(FOLLOWERS.items()):
                connection.execute("INSERT INTO users VALUES (%s, %s)", (number, name))
                connection.execute(
                    "INSERT INTO follower_counts VALUES (%s, %s)", (number, followers)
                )
        yield target


def answers(folder: Path, service: str, postgres_target: str = "") -> list[Answer]:
    stream = folder / "mentions.ndjson"
    stream.write_text(
        "".join(
            json.dumps({"t": 100 * at, "user": f"u{at * at % 60}", "n": at % 40}) + "\n"
            for at in range(200)
        )
    )
    catalog = folder / "catalog.toml"
    catalog.write_text(CATALOG.format(stream=stream, service=service))
    variables = {"POSTGRES": postgres_target}
    with Engine.from_catalog(
        catalog, runtime="local", until_end=True, variables=variables
    ) as engine:
        return list(engine.register(QUERY.read_text("utf-8")))


def shown(found: list[Answer]) -> list[object]:
    return [(each.closes_ms, [(row.bindings, row.score) for row in each.rows]) for each in found]


def test_answers_are_those_over_a_file_with_the_same_rows(tmp_path: Path, database: str) -> None:
    table = tmp_path / "people.jsonl"
    table.write_text(
        "".join(
            json.dumps({"name": name, "followers": count}) + "\n"
            for name, count in FOLLOWERS.items()
        )
    )
    over_sql = answers(tmp_path, SQL, database)
    over_file = answers(tmp_path, f'remote = "table"\npath = "{table}"\nload = false')
    assert len(over_sql) > 8
    assert {each.status for each in over_sql} <= {Status.EXACT, Status.CERTIFIED}
    assert shown(over_sql) == shown(over_file)


def test_a_query_without_a_window_has_the_database_order_its_table(
    tmp_path: Path, database: str
) -> None:
    with psycopg.connect(database) as connection:
        connection.execute("CREATE TABLE fame (name text PRIMARY KEY, followers numeric(12, 1))")
        for name, followers in FOLLOWERS.items():
            connection.execute("INSERT INTO fame VALUES (%s, %s)", (name, followers or None))
    catalog = tmp_path / "catalog.toml"
    service = 'remote = "sql"\ndriver = "psycopg"\nconnection = "${POSTGRES}"\ntable = "fame"'
    text = CATALOG.format(stream=tmp_path / "none", service=service)
    catalog.write_text(text.replace("xsd:integer", "xsd:decimal"))
    query = (
        "PREFIX : <http://example.org/social#> SELECT ?user (2 * ?f AS ?score) "
        "WHERE { SERVICE :BKG { ?user :hasFollowers ?f FILTER(?f <= 50000 && ?f > 0) } } "
        "ORDER BY DESC(?score) LIMIT 3"
    )
    variables = {"POSTGRES": database}
    with Engine.from_catalog(
        catalog, runtime="local", until_end=True, variables=variables
    ) as engine:
        (answer,) = engine.register(query)
    best = sorted((each for each in FOLLOWERS.values() if each <= 50_000), reverse=True)[:3]
    assert [row.score for row in answer.rows] == [2 * each for each in best]
    assert (answer.status, answer.spending.requests) == (Status.EXACT, 1)


def test_without_its_database_a_query_answers_and_says_why(tmp_path: Path) -> None:
    with ExitStack() as running:
        target = running.enter_context(postgres())
    # Its server has ended.
    found = answers(tmp_path, SQL, target)
    assert len(found) > 8
    assert {each.status for each in found} == {Status.APPROXIMATE}
    failures = [each.failure for each in found if each.failure]
    said = "the database of <http://example.org/social#BKG> cannot be reached"
    assert failures
    assert all(said in each for each in failures)
    assert not any("user=test" in each for each in failures)
