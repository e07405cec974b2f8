"""The REST remote against a real HTTP server: the contract, what misbehaves, and the example of the
X users lookup.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from examples.x.server import USERS, WINDOW_SECONDS, XServer
from replica.access import Access
from replica.budget import Budget
from replica.http.auth import BearerAuth, Secret
from replica.http.client import HttpClient
from replica.maintainer import Maintainer
from replica.remotes import RemoteError
from replica.remotes.addresses import RestAddress
from replica.remotes.json_records import MOST_NESTED, JsonRecords, NotRecordsError
from replica.remotes.records import Field, KeyTemplate, RecordMapping, Star
from replica.remotes.rest import UNSENDABLE, RestRemote
from replica.remotes.values import XSD
from replica.store import ReplicaStore
from tests.support.json_server import Answer, Asked, JsonServer, serving
from tests.support.remote_contract import (
    FOLLOWERS,
    MAPPING,
    TIMEOUT,
    MakeRemote,
    Record,
    RecordRemoteContract,
    integer,
    record,
    user,
)

EXAMPLE = Path(__file__).parents[2] / "examples" / "x"
STAR = Star("u", {"f": FOLLOWERS})
Serve = Callable[[Callable[[Asked], Answer]], JsonServer]


@pytest.fixture
def serve() -> Iterator[Serve]:
    with ExitStack() as stack:
        yield lambda answer: stack.enter_context(serving(answer))


def remote_of(
    address: str, *, star: Star = STAR, items: str = "data", **options: int
) -> RestRemote:
    return RestRemote(
        address,
        mapping=MAPPING,
        star=star,
        client=HttpClient(name="the users"),
        items=items,
        **options,
    )


class TestManyKeys(RecordRemoteContract):
    @pytest.fixture
    def make(self, serve: Serve) -> MakeRemote:
        def make(records: Sequence[Record], star: Star) -> RestRemote:
            def answer(asked: Asked) -> Answer:
                ids = unquote(
                    asked.path.partition("ids=")[2].partition("&")[0], errors="strict"
                ).split(",")
                assert len(ids) <= 100
                assert urlsplit(asked.path).query.endswith("&fields=all")
                found = [each for each in records if each["id"] in ids]
                missing = [{"title": "Not Found", "value": id_} for id_ in ids]
                return Answer.json(
                    {"data": found, "errors": missing} if found else {"errors": missing}
                )

            return remote_of(serve(answer).url + "/users?ids={keys}&fields=all", star=star)

        return make


class TestOneKey(RecordRemoteContract):
    @pytest.fixture
    def make(self, serve: Serve) -> MakeRemote:
        def make(records: Sequence[Record], star: Star) -> RestRemote:
            def answer(asked: Asked) -> Answer:
                prefix, _, rest = asked.path.rpartition("/")
                assert (prefix, rest.partition("?")[2]) == ("/users", "full=1")
                found = [each for each in records if each["id"] == unquote(rest.partition("?")[0])]
                return (
                    Answer.json(found[0]) if found else Answer.json({"error": "no such user"}, 404)
                )

            return remote_of(serve(answer).url + "/users/{key}?full=1", star=star, items="")

        return make


def asking(
    serve: Serve, body: object, *, keys: Sequence[str] = (user(1),), items: str = "data"
) -> list[object]:
    answer = body if isinstance(body, Answer) else Answer.json(body)
    return list(
        remote_of(serve(lambda _: answer).url + "/?ids={keys}", items=items).fetch(keys, TIMEOUT)
    )


FOUND = [{"u": user(1), "f": integer(7)}]
ANN = record("1", 7)


@pytest.mark.parametrize(
    ("body", "items"),
    [
        ({"data": [ANN]}, "data"),
        ({"data": ANN}, "data"),
        ({"errors": [{"title": "Forbidden"}], "data": [ANN, record("2", 8)]}, "data"),
        ([ANN], ""),
        (ANN, ""),
        ({"a": {"x": [], "b": [ANN]}, "z": [{}]}, "a.b"),
        ({"a": [[], [ANN]]}, "a.1"),
        ({"data.item": [record("1", 9)], "data": [5, None, "x", [ANN], ANN, {}]}, "data"),
        ({"data": [ANN], "meta": {"data": [record("1", 9)]}}, "data"),
    ],
)
def test_records_are_found_where_the_catalog_says(serve: Serve, body: object, items: str) -> None:
    assert asking(serve, body, items=items) == FOUND


@pytest.mark.parametrize(
    "body", [{"data": []}, {"data": None}, {"errors": [{"title": "Not Found"}]}]
)
def test_an_answer_without_records_says_that_the_keys_are_absent(
    serve: Serve, body: object
) -> None:
    assert asking(serve, body) == []


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"message": "hello"},
        {"data": "x"},
        {"data": 5},
        5,
        [ANN],
        "data",
        Answer(b""),
        Answer(b"<html>"),
        Answer(b'{"data": [' + json.dumps(ANN).encode() + b", "),
        Answer(b'{"data": []} and more'),
        Answer(b'{"data": [{"id": NaN}]}'),
        Answer(b'{"data": [{"id": "\xff"}]}'),
        Answer(b'{"data": [' + b"9" * 5000 + b"]}"),
        Answer(b'{"data": [' + b"[" * 10_000 + b"]" * 10_000 + b"]}"),
        Answer.json({"data": [ANN]}, 500),
        Answer.json({"data": [ANN]}, 404),
    ],
)
def test_what_is_no_answer_is_an_error_and_not_an_absence(serve: Serve, body: object) -> None:
    with pytest.raises(RemoteError):
        asking(serve, body)


def test_a_lookup_of_one_key_is_absent_only_where_404_is_the_status_itself(serve: Serve) -> None:
    def answer(_: Asked) -> Answer:
        return Answer(b"upstream failed: HTTP 404", 500)

    with pytest.raises(RemoteError, match="HTTP 500"):
        remote_of(serve(answer).url + "/{key}").fetch([user(1)], TIMEOUT)


def test_a_record_without_an_id_is_of_the_one_key_asked_for_and_one_with_another_is_not(
    serve: Serve,
) -> None:
    def answer(asked: Asked) -> Answer:
        return Answer.json(
            {
                "public_metrics": {"followers_count": 7},
                **({"id": "9"} if asked.path == "/2" else {}),
            }
        )

    remote = remote_of(serve(answer).url + "/{key}", items="")
    assert remote.block_size == 1
    assert remote.fetch([user(1)], TIMEOUT) == FOUND
    assert remote.fetch([user(2)], TIMEOUT) == []
    assert dict(remote.rejected) == {"not asked for": 1}


def test_what_was_not_asked_for_is_left_out_and_counted(serve: Serve) -> None:
    server = serve(lambda _: Answer.json({"data": [ANN, record("2", 8), record("A", 1)]}))
    remote = remote_of(server.url + "/?ids={keys}")
    assert remote.fetch([user(1), user("a")], TIMEOUT) == FOUND
    assert dict(remote.rejected) == {"not asked for": 2}


def test_ids_that_a_server_could_take_for_something_else_are_never_sent(serve: Serve) -> None:
    server = serve(lambda _: Answer.json({"data": [ANN]}))
    remote = remote_of(server.url + "/?ids={keys}")
    unsendable = ["1,2", ",", ".", "..", "../x", "a/../b", "a/.."]
    assert remote.fetch([*map(user, unsendable), user(1)], TIMEOUT) == FOUND
    assert remote.fetch([user("1,2")], TIMEOUT) == []
    assert [each.path for each in server.asked] == ["/?ids=1"]
    assert remote.rejected[UNSENDABLE] == len(unsendable) + 1


def test_a_request_carries_as_many_keys_as_the_block_size_says(serve: Serve) -> None:
    server = serve(lambda _: Answer.json({"data": []}))
    remote = remote_of(server.url + "/?ids={keys}", block_size=3)
    assert remote.fetch([user(number) for number in range(3)], TIMEOUT) == []
    with pytest.raises(RemoteError) as caught:
        remote.fetch([user(number) for number in range(4)], TIMEOUT)
    assert caught.value.too_large
    assert [each.path for each in server.asked] == ["/?ids=0,1,2"]
    assert list(remote.load(TIMEOUT)) == []


@pytest.mark.parametrize(
    "address",
    [
        "https://{key}/users",
        "https://{key}.example.org/",
        "https://example.org{key}/",
        "https://example.org/users",
        "https://example.org/{key}/{key}",
        "https://example.org/{keys}?{key}",
        "https://example.org/#{key}",
        "https://example.org/{id}",
        "https://example.org/a b/{key}",
        "ftp://example.org/{key}",
        "file:///etc/{key}",
        "/users/{key}",
    ],
)
def test_an_address_in_which_ids_could_say_where_to_go_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match="is not an http or https address"):
        RestAddress(address)


def test_a_property_that_the_mapping_lacks_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match="no property <urn:other>"):
        remote_of("http://127.0.0.1/{key}", star=Star("u", {"x": "urn:other"}))


@pytest.mark.parametrize("size", [1, 2, 7, 1 << 16])
def test_records_are_the_same_however_their_text_arrives(size: int) -> None:
    text = json.dumps(
        {"meta": [1, {"data": 2}], "data": [record("Zoë 😀", 10**30), {"x": [{}, [], 2.5]}]}
    ).encode()
    places = iter(range(0, len(text) + size, size))
    read = JsonRecords(lambda _: text[(place := next(places)) : place + size], "data")
    found = list(read)
    assert found[0] == record("Zoë 😀", 10**30)
    assert (len(found), read.has_items, read.has_errors) == (2, True, False)


def test_records_that_nest_too_deep_are_refused_before_they_fill_the_memory() -> None:
    for depth, refused in ((MOST_NESTED, False), (MOST_NESTED + 1, True)):
        pieces = iter([b"[" + b"[" * depth, b"]" * depth + b"]", b""])
        records = JsonRecords(lambda _, pieces=pieces: next(pieces), "")  # type: ignore[misc]
        if refused:
            with pytest.raises(NotRecordsError):
                list(records)
        else:
            assert len(list(records)) == 1


@pytest.fixture
def x() -> Iterator[XServer]:
    with XServer(token="xyzzy", limits={USERS: 3}, now=lambda: 1_700_000_000.0) as server:
        for id_ in map(str, range(0, 100, 2)):
            server.users[id_] = {
                "id": id_,
                "name": "x",
                "username": "x",
                "public_metrics": {"followers_count": int(id_)},
            }
        yield server


def test_the_example_asks_x_for_100_users_at_once_with_its_token(x: XServer) -> None:
    remote, template = x_remote(x)
    assert remote.block_size == 100
    found = remote.fetch([str(template.term(number)) for number in range(100)], TIMEOUT)
    assert found == [
        {"user": template.term(number), "followers": integer(number)} for number in range(0, 100, 2)
    ]
    (asked,) = x.requests(USERS)
    assert asked.parameters["user.fields"] == "public_metrics"


def test_x_is_left_alone_from_its_last_answer_on_until_its_limit_is_reset(x: XServer) -> None:
    now = 0.0
    access = Access(block_size=100, clock=lambda: now)
    remote, template = x_remote(x, access)
    store = ReplicaStore("user", ["user", "followers"])
    keeper = Maintainer(store, remote, Budget(9, 1, TIMEOUT), access=access, clock=lambda: now)
    spent = [keeper.refresh([str(template.term(2 * number))]) for number in range(5)]
    assert [each.spending.requests for each in spent] == [1, 1, 1, 0, 0]
    assert "no request is left of those that it allows (it is left alone for another" in (
        spent[-1].failure or ""
    )
    until_reset = WINDOW_SECONDS - 1_700_000_000 % WINDOW_SECONDS
    assert access.breaker.wait == pytest.approx(until_reset)
    assert len(x.requests(USERS)) == 3
    now = until_reset
    assert access.breaker.allowed() == 1
    keeper.close()


def x_remote(x: XServer, access: Access | None = None) -> tuple[RestRemote, KeyTemplate]:
    """Return the remote that the example's catalog describes, and what makes its keys."""
    catalog = tomllib.loads((EXAMPLE / "catalog.toml").read_text("utf-8"))
    service, prefix = catalog["services"][":X"], catalog["prefixes"][""]
    fields = {
        name.replace(":", prefix, 1): Field(table["field"], table["datatype"].replace("xsd:", XSD))
        for name, table in service["mapping"]["properties"].items()
    }
    assert service["remote"] == "rest"
    assert service["auth"] == {"type": "bearer", "token": "${X_BEARER_TOKEN}"}
    template = KeyTemplate.parse(service["mapping"]["key"])
    client = HttpClient(
        name="X",
        auth=BearerAuth(Secret("xyzzy")),
        now=lambda: 1_700_000_000.0,
        used_up=access.used_up if access else None,
    )
    remote = RestRemote(
        service["endpoint"].replace("${X_URL}", x.url),
        mapping=RecordMapping(template, fields),
        star=Star("user", {"followers": prefix + "followers"}),
        client=client,
        items=service["items"],
        block_size=service.get("block_size", 100),
    )
    return remote, template
