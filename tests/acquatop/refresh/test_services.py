"""Queries over every kind of service that a catalog can name, from its text to the answers."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from acquatop import Answer, Engine
from acquatop.catalog.catalog import Catalog
from acquatop.errors import EnvironmentProblem
from acquatop.plan.bind import bind_query
from rspql.diagnostics import QueryError
from tests.support.json_server import Answer as Reply
from tests.support.json_server import Asked, serving
from tests.support.worlds import NS, Event, catalog_text, query_text

ROOT = Path(__file__).parents[3]
MAPPING = f"""
[services."{NS}people".mapping]
key = "{NS}user/{{id}}"
[services."{NS}people".mapping.properties]
"{NS}followers" = {{ field = "followers", datatype = "xsd:integer" }}
"""
FOLLOWERS = {"ann": 5, "bob": 7}


def look_up(ids: list[str]) -> dict[str, dict[str, object]]:
    """Answer as a remote in Python would; the catalogs below name this function."""
    return {id_: {"id": id_, "followers": FOLLOWERS[id_]} for id_ in ids if id_ in FOLLOWERS}


def catalog(folder: Path, service: str, tables: str = MAPPING, **changes: object) -> Catalog:
    values = {
        "path": folder / "events",
        "start": "start_ms = 0",
        "items": 9,
        "requests": 9,
        **changes,
    }
    text = catalog_text(**values).replace('endpoint = "http://127.0.0.1:9/query"', service)
    return Catalog.parse(text + tables, file=folder / "catalog.toml", variables={"TOKEN": "hush"})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    events = [
        Event(1, "ann", 1),
        Event(2, "bob", 1),
        Event(3, "cid", 9),
        Event(8, "ann", 3),
        Event(14, "bob", 1),
    ]
    (tmp_path / "events").write_bytes(b"".join(event.line() + b"\n" for event in events))
    return tmp_path


def answers(catalog: Catalog, text: str = "") -> list[Answer]:
    with Engine(catalog, runtime="local", until_end=True) as engine:
        return list(engine.register(text or query_text()))


def shown(answer: Answer) -> dict[str, float | None]:
    return {str(row.bindings["user"]).rsplit("/", 1)[1]: row.score for row in answer.rows}


def test_a_python_function(folder: Path) -> None:
    first, *_, last = answers(
        catalog(folder, f'remote = "python"\nfunction = "{__name__}:look_up"')
    )
    assert shown(first) == {"ann": 11.0, "bob": 9.0}
    assert shown(last) == {"bob": 9.0}
    assert (first.status, first.spending.items, first.expected is not None) == ("exact", 3, True)
    with pytest.raises(EnvironmentProblem, match="nowhere"):
        answers(catalog(folder, 'remote = "python"\nfunction = "nowhere:look_up"'))


@pytest.mark.parametrize("load", ["true", "false"])
@pytest.mark.parametrize("text", ["", query_text().replace("DESC(?score)", "DESC(?score) ?user")])
def test_a_table_that_is_replayed_along_with_the_stream(folder: Path, text: str, load: str) -> None:
    rows = ["id,t,followers", "ann,0,5", "bob,0,7", "ann,10,50", "bob,13,0", "cid,12,x"]
    (folder / "people.csv").write_text("\n".join(rows) + "\n", "utf-8")
    service = f'remote = "table"\npath = "people.csv"\ntime = "t"\nload = {load}'
    found = answers(catalog(folder, service), text)
    by_close = {answer.closes_ms: shown(answer) for answer in found}
    assert by_close[9] == {"bob": 9.0, "ann": 11.0}
    assert by_close[12] == {"ann": 56.0}
    assert by_close[15] == {"ann": 56.0, "bob": 2.0}
    ages = [row.age_seconds for answer in found for row in answer.rows]
    assert all(age == 0.0 for age in ages)


def test_what_a_remote_has_and_cannot_be_used_is_counted(folder: Path) -> None:
    (folder / "people.jsonl").write_text(
        '{"id": "ann", "followers": "many"}\n{"id": "bob", "followers": 7}\n', "utf-8"
    )
    first, *_ = answers(catalog(folder, 'remote = "table"\npath = "people.jsonl"\nload = false'))
    assert shown(first) == {"bob": 9.0}
    assert dict(first.counts.rejected) == {'"followers" is not xsd:integer': 1}


def test_an_address_that_is_asked_for_ids_with_credentials(folder: Path) -> None:
    def reply(asked: Asked) -> Reply:
        ids = asked.path.partition("ids=")[2].split(",")
        return Reply.json({"data": list(look_up(ids).values()), "errors": [{}]})

    auth = f'[services."{NS}people".auth]\ntype = "bearer"\ntoken = "${{TOKEN}}"\n'
    with serving(reply) as server:
        service = f'remote = "rest"\nendpoint = "{server.url}/users?ids={{keys}}"\nitems = "data"'
        first, *_ = answers(catalog(folder, service, MAPPING + auth))
        assert shown(first) == {"ann": 11.0, "bob": 9.0}
        assert (len(server.asked), first.spending.requests) == (len(server.asked), 1)
        assert {each.headers["Authorization"] for each in server.asked} == {"Bearer hush"}
        assert "hush" not in json.dumps([first.to_json()])


def test_limits_over_time_hold_for_all_queries_of_an_engine(folder: Path) -> None:
    with serving(
        lambda asked: Reply.json(list(look_up(asked.path.partition("ids=")[2].split(",")).values()))
    ) as server:
        service = (
            f'remote = "rest"\nendpoint = "{server.url}/users?ids={{keys}}"\n'
            'limits = ["2 requests per 1h"]'
        )
        with Engine(catalog(folder, service), runtime="local", until_end=True) as engine:
            found = [list(engine.register(query_text())) for _ in range(3)]
        assert len(server.asked) == 2
        last = found[-1][-1]
        assert (last.spending.requests, len(last.rows)) == (0, 0)
        assert last.status == "approximate"
        assert "the limits over time allow no request" in (last.failure or "")


def test_a_remote_that_tells_of_its_changes_itself(folder: Path) -> None:
    feed = f'[services."{NS}people".feed]\nkind = "lines"\npath = "changes.jsonl"\n'
    (folder / "changes.jsonl").write_text('{"id": "ann", "followers": 5}\n', "utf-8")
    with Engine(catalog(folder, 'remote = "push"', MAPPING + feed), runtime="local") as engine:
        for answer in engine.register(query_text()).answers(limit=1):
            assert answer.spending.requests == 0
    # What it has told by when depends on when it is looked at: that is for the tests of feeds.


def test_a_run_again_with_the_same_ledger_spends_nothing_more(folder: Path) -> None:
    service = f'remote = "python"\nfunction = "{__name__}:look_up"'
    strict = catalog(folder, service, "strict = true\n" + MAPPING)
    first, again = answers(strict), answers(strict)
    assert sum(answer.spending.items for answer in first) > 0
    assert all(
        one.spending.items + two.spending.items <= 9 for one, two in zip(first, again, strict=True)
    )
    # Only the evaluation that spent last may spend what it left over.
    assert sum(answer.spending.items > 0 for answer in again) <= 1
    assert (folder / "acquatop-spending.sqlite").exists()
    (folder / "acquatop-spending.sqlite").write_text(
        "no ledger at all, but long enough to look like something" * 99
    )
    with pytest.raises(EnvironmentProblem, match=r"acquatop-spending\.sqlite"):
        answers(strict)


def test_a_replica_that_is_bounded_gives_the_same_answers(folder: Path) -> None:
    service = f'remote = "python"\nfunction = "{__name__}:look_up"'
    free, bounded = (
        answers(catalog(folder, service)),
        answers(catalog(folder, service + "\ncapacity = 1")),
    )
    assert [answer.canonical() for answer in free] == [answer.canonical() for answer in bounded]


def test_a_table_s_feed_is_dated_as_the_table_is(folder: Path) -> None:
    rows = ["id,t,followers", "ann,0,5", "bob,0,7", "ann,10,50", "bob,13,0"]
    (folder / "people.csv").write_text("\n".join(rows) + "\n", "utf-8")
    (folder / "changes.jsonl").write_text(
        '{"id": "ann", "followers": 44}\n{"id": "bob"}\nnonsense\n', "utf-8"
    )
    feed = f'[services."{NS}people".feed]\nkind = "lines"\npath = "changes.jsonl"\n'
    service = 'remote = "table"\npath = "people.csv"\ntime = "t"'
    for answer in answers(catalog(folder, service, MAPPING + feed)):
        truth = {
            "ann": 50 if answer.closes_ms >= 10 else 5,
            "bob": 0 if answer.closes_ms >= 13 else 7,
        }
        if answer.status == "exact":
            mentions = {"ann": 3 if answer.closes_ms >= 8 else 1, "bob": 1}
            assert shown(answer) == {
                name: 2.0 * mentions[name] + truth[name] for name in shown(answer)
            }


def test_feeds_end_with_their_queries(folder: Path) -> None:
    feed = f'[services."{NS}people".feed]\nkind = "lines"\npath = "changes.jsonl"\n'
    before = threading.active_count()
    with Engine(
        catalog(folder, 'remote = "push"', MAPPING + feed), runtime="local", until_end=True
    ) as engine:
        for _ in range(3):
            list(engine.register(query_text()))
        ended = [each for each in threading.enumerate() if "feed" in each.name]
        for each in ended:
            each.join(30)
        assert not [each for each in threading.enumerate() if "feed" in each.name]
    assert before


def test_what_an_address_takes_from_the_environment_shows_nowhere(folder: Path) -> None:
    with serving(lambda asked: Reply(f"you asked {asked.path}".encode(), status=500)) as server:
        service = f'remote = "rest"\nendpoint = "{server.url}/${{TOKEN}}/users?ids={{keys}}"'
        first, *_ = answers(catalog(folder, service))
        assert "/hush/" in server.asked[0].path
        assert "you asked" in (first.failure or "")
        assert "hush" not in json.dumps(first.to_json())


def test_what_records_cannot_answer_is_said_with_its_place(folder: Path) -> None:
    text = query_text().replace("?user :followers ?followers", "?user :folowers ?followers")
    with pytest.raises(QueryError, match=r"did you mean <http://example\.org/followers>"):
        bind_query(text, catalog(folder, f'remote = "python"\nfunction = "{__name__}:look_up"'))


def test_the_example_of_x_is_a_good_catalog_and_a_good_query() -> None:
    example = ROOT / "examples" / "x"
    address = {
        "X_URL": "https://api.x.com",
        "X_LOG": "received",
        "X_BEARER_TOKEN": "hush",
        "LATENESS": "10s",
    }
    found = Catalog.load(example / "catalog.toml", variables=address)
    bound = bind_query((example / "query.rspql").read_text("utf-8"), found)
    (service,) = found.services.values()
    assert (service.block_size, [str(limit) for limit in service.limits]) == (
        100,
        ["300 requests per 15m"],
    )
    assert bound.name
