"""The service with a real engine in process: queries come and go, and are there again after a
restart or a kill.
"""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest
import requests

from acquatop.app.serve.client import Client, ServiceError
from acquatop.app.serve.http_metrics import Meters
from acquatop.app.serve.limits import Limits
from acquatop.app.serve.registrations import InFolder, QueryRegistration
from acquatop.app.serve.server import Server
from acquatop.app.serve.service import QueryService, Refused
from acquatop.app.watch.prometheus import Metrics
from acquatop.errors import EnvironmentProblem
from rspql.diagnostics import QueryError
from tests.support.certificate import CERTIFICATE
from tests.support.markers import THOROUGH
from tests.support.serving import QUERY, World, serving
from tests.support.staged import ANYWHERE, LIMIT, staged, wait_for
from tests.support.worlds import STREAM


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def closes(service: QueryService, id: str) -> list[int]:
    return [each.id for each in service.query(id).answers.after(0).events]


def test_queries_survive_a_restart_with_what_they_are(world: World) -> None:
    service = world.service()
    first, second, third = (service.register(QUERY, name) for name in ("one", "two", "three"))
    service.pause(second.registration.id)
    service.remove(third.registration.id)
    world.events(20)
    wait_for(lambda: len(closes(service, "one")) > 3)
    before = closes(service, "one")
    service.stop()
    service = world.service()
    try:
        assert [(each.registration, each.state) for each in service.queries()] == [
            (first.registration, "running"),
            (second.registration, "paused"),
        ]
        world.events(20)
        wait_for(lambda: closes(service, "one") and closes(service, "one")[-1] > 30)
        after = closes(service, "one")
        assert [each - other for each, other in zip(after[1:], after, strict=False)] == [3] * (
            len(after) - 1
        )
        assert after[0] <= before[-1] + 3
        assert closes(service, "two") == []
    finally:
        service.stop()


@pytest.mark.parametrize("with_others", [False, True])
def test_a_query_that_is_resumed_begins_with_the_windows_that_open_then(
    world: World, with_others: bool
) -> None:
    service = world.service()
    try:
        if with_others:
            service.register(QUERY, "other")
        service.register(QUERY, "one")
        world.events(20)
        wait_for(lambda: len(closes(service, "one")) > 3)
        service.pause("one")
        given = closes(service, "one")
        world.events(30)
        if with_others:
            wait_for(lambda: closes(service, "other")[-1] > 45)
            assert closes(service, "one") == given
        service.resume("one")
        # Back before its stream has seen that it was gone.
        service.pause("one")
        service.resume("one")
        wait_for(lambda: (world.events(3), closes(service, "one") != given)[1])
        new = closes(service, "one")[len(given) :]
        assert new[0] > (50 if with_others else given[-1])
    finally:
        service.stop()


def test_a_query_without_a_window_yet_is_paused_resumed_and_removed_over_http(world: World) -> None:
    service = world.service()
    try:
        with (
            Server(service, Meters(Metrics(process=False).registry), ANYWHERE) as server,
            Client(server.url, timeout=LIMIT) as client,
        ):
            client.register(QUERY, name="one")
            for _ in range(3):
                assert client.pause("one")["state"] == "paused"
                assert client.resume("one")["state"] == "running"
            wait_for(lambda: (world.events(3), client.answers("one"))[1])
            client.register(QUERY, name="other")
            assert client.pause("other")["state"] == "paused"
            # A busy engine may have had windows of it to close before.
            other = client.answers("other")
            client.register(QUERY, name="gone")
            client.remove("gone")
            given = len(client.answers("one"))
            wait_for(lambda: (world.events(3), len(client.answers("one")) > given + 5)[1])
            assert client.answers("other") == other
            client.resume("other")
            client.pause("one")
            wait_for(lambda: (world.events(3), client.answers("other") != other)[1])
            for each in ("one", "other"):
                client.remove(each)
            assert world.is_forgotten()
            assert client.queries() == []
            wait_for(world.is_forgotten)
    finally:
        service.stop()


def test_a_query_that_cannot_be_resumed_still_says_why_it_has_failed(world: World) -> None:
    bad = QueryRegistration("bad", "bad", QUERY.replace(":stream", ":streem"), 1)
    InFolder(world.folder / "state" / "queries").write(bad)
    service = world.service()
    try:
        for _ in range(2):
            with pytest.raises(QueryError):
                service.resume("bad")
            served = service.query("bad")
            assert (served.state, served.error) == (
                "failed",
                "the catalog has no stream <http://example.org/streem>",
            )
    finally:
        service.stop()


def test_queries_that_come_and_go_leave_nothing_behind(world: World) -> None:
    service = world.service(limits=Limits(queries=3))
    try:
        for at in range(5):
            service.register(QUERY, f"query {at}")
            world.events(3)
            service.remove(f"query-{at}")
        assert world.is_forgotten()
        assert list((world.folder / "state" / "queries").iterdir()) == []
        for at in range(3):
            service.register(QUERY, f"last {at}")
        with pytest.raises(Refused, match="3 queries are registered"):
            service.register(QUERY)
    finally:
        service.stop()


def test_a_query_that_the_catalog_does_not_allow_any_more_says_so_and_the_others_go_on(
    world: World,
) -> None:
    service = world.service()
    service.register(QUERY, "good")
    service.stop()
    kept = InFolder(world.folder / "state" / "queries")
    kept.write(QueryRegistration("bad", "bad", QUERY.replace(":stream", ":streem"), 1))
    service = world.service()
    try:
        states = {each.registration.id: (each.state, each.error) for each in service.queries()}
        assert states == {
            "good": ("running", None),
            "bad": ("failed", "the catalog has no stream <http://example.org/streem>"),
        }
    finally:
        service.stop()


def test_what_cannot_be_kept_is_not_registered(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = world.service()
    try:

        def full(self: InFolder, registration: QueryRegistration) -> None:
            raise EnvironmentProblem("/srv/state: cannot keep the query: No space left on device")

        monkeypatch.setattr(InFolder, "write", full)
        with pytest.raises(Refused, match="No space left"):
            service.register(QUERY)
        assert service.queries() == []
        assert world.engines[-1].queries == []
    finally:
        service.stop()


def test_a_registration_is_there_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    kept = InFolder(tmp_path / "queries")
    assert kept.read() == []
    registrations = [QueryRegistration(f"q{at}", f"ü {at}", QUERY, at) for at in range(3)]
    for each in reversed(registrations):
        kept.write(each)
    (tmp_path / "queries" / "q9.new").write_text('{"id": "q')
    assert kept.read() == registrations
    kept.remove("q1")
    kept.remove("q1")
    assert [each.id for each in kept.read()] == ["q0", "q2"]
    (tmp_path / "queries" / "q0.json").write_text("{}")
    with pytest.raises(EnvironmentProblem, match=r"q0\.json: this is not a registered query"):
        kept.read()


# As a program -------------------------------------------------------------------------------------


@THOROUGH
def test_one_service_has_the_state_and_after_kill_9_another_goes_on_where_it_was(
    world: World,
) -> None:
    (world.folder / "first.rspql").write_text(QUERY)
    with serving(world.folder, "first.rspql") as (child, client):
        assert client.register(QUERY, name="second")["id"] == "second"
        client.pause("second")
        with pytest.raises(AssertionError, match="is in use by process"), serving(world.folder):
            pass
        world.events(30)
        reading = client.stream("first")
        next(reading)
        child.send_signal(signal.SIGKILL)
        child.wait()
    world.events(30)
    token = "a token from the environment"
    with serving(world.folder, "first.rspql", "--log", "log", ACQUATOP_TOKEN=token) as (
        child,
        client,
    ):
        assert [(each["id"], each["state"]) for each in client.queries()] == [
            ("first", "running"),
            ("second", "paused"),
        ]
        wait_for(
            lambda: (
                [each["window"]["closes"] for each in client.answers("first")][-1:]
                > ["1970-01-01T00:00:00.050Z"]
            )
        )
        with (
            Client(client.url, timeout=LIMIT) as stranger,
            pytest.raises(ServiceError, match="send the token"),
        ):
            stranger.queries()
        child.send_signal(signal.SIGTERM)
        assert child.wait(LIMIT) == 0
    events = [json.loads(line)["event"] for line in (world.folder / "log").read_text().splitlines()]
    assert {"query_registered", "started", "stopping", "stopped"} <= set(events)


@THOROUGH
def test_over_https_the_catalog_is_read_again_when_told_to(world: World) -> None:
    (world.folder / "first.rspql").write_text(QUERY)
    catalog = world.folder / "catalog.toml"
    before = catalog.read_text("utf-8")
    encrypted = ("--tls-certificate", str(CERTIFICATE), "--log", "log")
    entry = '[graphs."http://example.org/more"]\npath = "more.ttl"'
    more = before.replace("[streams.", f"{entry}\n\n[streams.", 1)
    (world.folder / "more.ttl").write_text("")
    with serving(
        world.folder,
        "first.rspql",
        *encrypted,
        certificates=CERTIFICATE,
        ACQUATOP_TOKEN="a token from the environment",
    ) as (child, client):
        assert client.url.startswith("https://")
        with (
            Client(client.url, timeout=LIMIT) as stranger,
            pytest.raises(requests.exceptions.SSLError),
        ):
            stranger.queries()
        with pytest.raises(requests.ConnectionError):
            requests.get(client.url.replace("https", "http"), timeout=LIMIT)
        world.events(30)
        stream = client.stream("first")
        assert next(stream)["results"]
        catalog.write_text(more, "utf-8")
        assert client.reload()["graphs"] == ["http://example.org/more"]
        # It is in use.
        catalog.write_text(before.replace("start_ms = 0", "start_ms = 1"), "utf-8")
        with pytest.raises(ServiceError, match="is used by first"):
            client.reload()
        child.send_signal(signal.SIGHUP)
        wait_for(lambda: "not reloaded" in (world.folder / "log").read_text())
        catalog.write_text(before, "utf-8")
        child.send_signal(signal.SIGHUP)
        wait_for(lambda: '"reloaded"' in (world.folder / "log").read_text())
        world.events(30)
        assert next(stream)["results"]


@THOROUGH
def test_bad_items_are_said_at_once_and_shown_while_there_is_no_answer(world: World) -> None:
    (world.folder / "first.rspql").write_text(QUERY)
    with serving(world.folder, "first.rspql") as (child, client):
        (world.folder / "events").write_bytes(b"{\n")
        assert child.stderr is not None
        said = (
            f"acquatop: 1 of 1 item of <{STREAM}> so far cannot be used: not JSON (1, the first "
            f"at position 0"
        )
        assert any(line.startswith(said) for line in child.stderr)
        assert client.query("first")["streams"] == [
            {"iri": STREAM, "items": 1, "bad": {"not JSON": 1}}
        ]
        assert client.answer("first") is None


def test_a_stream_of_a_client_goes_on_when_the_service_is_back() -> None:
    pauses: list[float] = []
    with staged() as first:
        port = int(first.url.rpartition(":")[2])
        first.client.register(QUERY, name="query")
        first.give("query", 1000)
        reading = Client(first.url, timeout=LIMIT, sleep=pauses.append).stream("query")
        assert next(reading)["window"]["index"] == 1
    from acquatop.app.watch.address import ListenAddress

    with staged(address=ListenAddress("127.0.0.1", port)) as second:
        second.client.register(QUERY, name="query")
        second.give("query", 1000)
        second.give("query", 2000)
        assert next(reading)["window"]["index"] == 2
    assert pauses


# Queries on queries -------------------------------------------------------------------------------


def test_a_query_that_others_read_stays_until_they_go(world: World) -> None:
    source = QUERY.replace("SELECT", "REGISTER STREAM :a AS SELECT", 1)
    reader = """PREFIX : <http://example.org/>
        SELECT ?user (COUNT(*) AS ?n) FROM NAMED WINDOW :w ON :a [RANGE 6ms STEP 6ms]
        WHERE { WINDOW :w { ?row :user ?user } } GROUP BY ?user"""
    service = world.service()
    try:
        with (
            Server(service, Meters(Metrics(process=False).registry), ANYWHERE) as server,
            Client(server.url, timeout=LIMIT) as client,
        ):
            with pytest.raises(ServiceError, match="the catalog has no stream"):
                client.register(reader, name="reader")
            client.register(source)
            client.register(reader, name="reader")
            wait_for(lambda: (world.events(3), client.answers("reader"))[1])
            for change in (client.remove, client.pause):
                with pytest.raises(ServiceError, match="a is read by reader, which would") as said:
                    change("a")
                problem = said.value.problem
                assert (problem["status"], problem["readers"]) == (409, ["reader"])
                assert problem["type"] == "urn:acquatop:problem:is-read"
            # What goes and comes again is read by those that were there before.
            client.pause("reader")
            client.remove("a")
            with pytest.raises(ServiceError, match="the catalog has no stream"):
                client.resume("reader")
            client.register(source)
            client.resume("reader")
    finally:
        service.stop()
    service = world.service()
    try:
        states = {each.registration.id: each.state for each in service.queries()}
        assert states == {"reader": "running", "a": "running"}
        wait_for(lambda: (world.events(3), closes(service, "reader"))[1])
    finally:
        service.stop()
