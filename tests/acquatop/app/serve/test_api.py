"""The service over HTTP, with an engine that does what the tests say."""

from __future__ import annotations

import csv
import http.client
import io
import json
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import requests
from rdflib import Graph, Literal

from acquatop.app.cli import main
from acquatop.app.serve.access import Role, Tokens
from acquatop.app.serve.client import Client, ServiceError
from acquatop.app.serve.guard import HEADERS
from acquatop.app.serve.limits import Limits
from acquatop.app.serve.server import Server
from acquatop.app.watch.address import ListenAddress
from acquatop.engine.waiting.kinds import Waiting, WaitingKind
from acquatop.errors import EnvironmentProblem, EvaluationError, UserError
from acquatop.plan.check import check_query
from tests.support.staged import LIMIT, QUERY, Stage, ranking, staged, wait_for
from tests.support.worlds import STREAM, query_text

JSON, SRJ = "application/json", "application/sparql-results+json"
PROBLEM = "application/problem+json"
RSPQL = {"Content-Type": "application/sparql-query"}
TOKEN = "a token of these tests"


@pytest.fixture(scope="module")
def _stage() -> Iterator[Stage]:
    with staged(Limits(work_rate=1e6, work_burst=1_000_000)) as stage:
        yield stage


@pytest.fixture
def stage(_stage: Stage) -> Stage:
    """A service without queries."""
    for query in _stage.client.queries():
        _stage.client.remove(query["id"])
    _stage.engine.refuses = None
    return _stage


def get(stage: Stage, path: str, **headers: str) -> requests.Response:
    return requests.get(stage.url + path, headers=headers, timeout=LIMIT)


def post(stage: Stage, path: str, text: str | bytes = b"", **headers: str) -> requests.Response:
    return requests.post(stage.url + path, data=text, headers={**RSPQL, **headers}, timeout=LIMIT)


def kind_of(reply: requests.Response) -> str:
    assert reply.headers["Content-Type"] == PROBLEM
    document = reply.json()
    assert document["status"] == reply.status_code
    return str(document["type"]).removeprefix("urn:acquatop:problem:")


# Queries ------------------------------------------------------------------------------------------


def test_a_query_is_registered_listed_shown_and_removed(stage: Stage) -> None:
    reply = post(stage, "/queries", QUERY)
    query = reply.json()
    assert (reply.status_code, reply.headers["Location"]) == (201, "/queries/query")
    assert query | {"registered": ""} == {
        "id": "query",
        "name": "query",
        "state": "running",
        "error": None,
        "registered": "",
        "newest": None,
        "streams": [{"iri": STREAM, "items": 0, "bad": {}}],
        "unanswered": {"windows": {}, "last": None},
        "waiting": None,
        "text": QUERY,
        "warnings": [],
    }
    assert stage.client.queries() == [query] == [stage.client.query("query")]
    stage.client.remove("query")
    assert stage.client.queries() == []
    assert stage.engine.running == {}
    assert kind_of(get(stage, "/queries/query")) == "not-found"


def test_a_query_is_known_by_its_name_and_by_a_short_id(stage: Stage) -> None:
    text = QUERY.replace("SELECT", "REGISTER STREAM <urn:x/top users#éé> AS SELECT", 1).replace(
        "top users#éé", "top"
    )
    assert stage.client.register(text)["name"] == "urn:x/top"
    assert stage.client.register(QUERY, name="été/../top ten")["id"] == "top-ten"
    assert [stage.client.register(QUERY)["id"] for _ in range(2)] == ["query", "query-2"]
    reply = post(stage, "/queries", text)
    assert (kind_of(reply), reply.json()["query"]) == ("name-taken", "top")
    assert kind_of(post(stage, "/queries?name=%0A", QUERY)) == "invalid-request"
    for weight in ("0", "x", "nan", "1&weight=2"):
        assert kind_of(post(stage, f"/queries?weight={weight}", QUERY)) == "invalid-request"
    heavy = stage.client.register(QUERY, name="heavy", weight=2.5)["id"]
    assert stage.service.query(heavy).registration.weight == 2.5
    assert kind_of(post(stage, "/queries?nom=x", QUERY)) == "invalid-request"


def test_diagnostics_are_those_of_check(
    stage: Stage, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = QUERY.replace("WINDOW :w {", "WINDOW :v {").replace("LIMIT 2", "LIMIT 2 # ünï")
    (tmp_path / "query").write_text(text, "utf-8")
    assert main(["check", "--json", str(tmp_path / "query")]) == 2
    said = json.loads(capsys.readouterr().out.replace(str(tmp_path / "query"), "query"))
    reply = post(stage, "/queries", text)
    assert kind_of(reply) == "invalid-query"
    assert len(said["diagnostics"]) == 2
    assert reply.json()["diagnostics"] == said["diagnostics"]
    assert stage.client.check(text) == said
    assert stage.client.check(QUERY) == {"file": "query", "ok": True, "diagnostics": []}


def test_what_is_too_wide_is_refused_as_check_refuses_it(stage: Stage) -> None:
    wide = QUERY.replace(
        "WHERE {", "WHERE { " + " ".join(f"BIND({at} AS ?b{at})" for at in range(3_000))
    )
    (found,) = check_query(wide).diagnostics
    assert found.code == "nesting"
    for path in ("/queries", "/explain"):
        reply = post(stage, path, wide)
        assert (reply.status_code, kind_of(reply)) == (400, "invalid-query")
        (said,) = reply.json()["diagnostics"]
        assert said == found.to_json(said["file"])
    assert get(stage, "/queries").status_code == 200


def test_what_a_query_names_must_be_in_the_catalog(stage: Stage) -> None:
    with socket.socket() as elsewhere:
        elsewhere.bind(("127.0.0.1", 0))
        elsewhere.listen()
        elsewhere.setblocking(False)
        address = f"<http://127.0.0.1:{elsewhere.getsockname()[1]}/>"
        for name in (":people", ":stream"):
            assert kind_of(post(stage, "/queries", QUERY.replace(name, address))) == "invalid-query"
        for clause in (f"FROM {address}", f"FROM NAMED {address}"):
            assert (
                kind_of(post(stage, "/queries", QUERY.replace("WHERE", f"{clause} WHERE")))
                == "invalid-query"
            )
        with pytest.raises(BlockingIOError):
            elsewhere.accept()


def test_a_query_says_what_has_come_since_it_began_and_what_of_it_was_bad(stage: Stage) -> None:
    stage.engine.bring(7, not_JSON=7)
    stage.client.register(QUERY)
    assert stage.client.query("query")["streams"] == [{"iri": STREAM, "items": 0, "bad": {}}]
    stage.engine.bring(3, not_JSON=1)
    stage.engine.bring(2, no_time=2)
    came = [{"iri": STREAM, "items": 5, "bad": {"not JSON": 1, "no time": 2}}]
    assert stage.client.query("query")["streams"] == came == stage.client.queries()[0]["streams"]
    stage.give("query", 1000)
    assert stage.client.query("query")["streams"] == came
    assert stage.client.pause("query")["streams"] == []
    stage.engine.bring(9)
    assert stage.client.resume("query")["streams"] == [{"iri": STREAM, "items": 0, "bad": {}}]


def test_readers_are_told_what_comes_for_queries_without_an_answer() -> None:
    with staged(Limits(items_seconds=0.01)) as stage:
        for name in ("first", "second"):
            stage.client.register(QUERY, name=name)
        with requests.get(stage.url + "/events", stream=True, timeout=LIMIT) as reply:
            events = events_of(reply)
            assert next(events)[0] == "snapshot"
            stage.engine.bring(4, not_JSON=4)
            came = [{"iri": STREAM, "items": 4, "bad": {"not JSON": 4}}]
            kind, _, data = next(events)
            assert (kind, data) == ("items", {"queries": {"first": came, "second": came}})
            stage.give("first", 1000)
            assert next(events)[0] == "answer"
            stage.engine.bring(1)
            kind, _, data = next(events)
            more = [{"iri": STREAM, "items": 5, "bad": {"not JSON": 4}}]
            assert (kind, data) == ("items", {"queries": {"second": more}})
            stage.client.remove("second")
            assert next(events)[0] == "removed"


SILENT = Waiting(kind=WaitingKind.SILENT, since=1.5, text="nothing comes", remedy="send it")
WINDOW = Waiting(kind=WaitingKind.WINDOW, since=1.5, text="a window is open")


def test_a_query_says_what_it_waits_for_and_readers_are_told_when_that_changes() -> None:
    with staged(Limits(items_seconds=0.01)) as stage:
        stage.client.register(QUERY)
        with requests.get(stage.url + "/events", stream=True, timeout=LIMIT) as reply:
            events = events_of(reply)
            assert next(events)[0] == "snapshot"
            stage.engine.waits = {"query": SILENT}
            shown = {
                "kind": "silent",
                "since": "1970-01-01T00:00:01.500Z",
                "text": "nothing comes",
                "remedy": "send it",
            }
            kind, _, data = next(events)
            assert (kind, data) == ("waiting", {"queries": {"query": shown}})
            assert stage.client.query("query")["waiting"] == shown
            stage.engine.waits = {"query": WINDOW}
            assert next(events)[2]["queries"]["query"]["remedy"] is None
            stage.give("query", 1000)
            assert next(events)[0] == "answer"
            # All is well: an answer is there, and the next one will come.
            assert next(events)[2] == {"queries": {"query": None}}
            assert stage.client.query("query")["waiting"] is None
            stage.engine.waits = {"query": SILENT}
            assert next(events)[2] == {"queries": {"query": shown}}
            assert stage.client.pause("query")["waiting"] is None


def test_the_plan_comes_as_json_and_as_text(stage: Stage) -> None:
    stage.client.register(QUERY)
    assert get(stage, "/queries/query/plan").json() == stage.client.explain(QUERY)
    text = get(stage, "/queries/query/plan", Accept="text/plain").text
    assert "Topk+N" in text
    assert kind_of(get(stage, "/queries/query/plan", Accept="image/png")) == "not-acceptable"
    assert kind_of(post(stage, "/explain", "SELECT")) == "invalid-query"


def test_the_candidates_of_open_windows_are_shown(stage: Stage) -> None:
    stage.client.register(QUERY)
    (window,) = get(stage, "/queries/query/state").json()["windows"]
    assert (window["window"]["index"], len(window["k_list"]), window["n_list"]) == (0, 1, [])
    stage.client.pause("query")
    assert get(stage, "/queries/query/state").json() == {"windows": []}
    assert kind_of(get(stage, "/queries/nobody/state")) == "not-found"


def test_a_paused_query_is_not_there_and_its_answers_stay(stage: Stage) -> None:
    stage.client.register(QUERY)
    stage.give("query", 1000)
    assert stage.client.pause("query")["state"] == "paused" == stage.client.pause("query")["state"]
    assert stage.engine.running == {}
    assert [answer["window"]["index"] for answer in stage.client.answers("query")] == [1]
    assert (
        stage.client.resume("query")["state"] == "running" == stage.client.resume("query")["state"]
    )
    stage.give("query", 5000)
    assert [answer["window"]["index"] for answer in stage.client.answers("query")] == [1, 5]


def test_a_query_that_waits_for_its_first_window_is_paused_resumed_and_removed(
    stage: Stage,
) -> None:
    with requests.get(stage.url + "/events", stream=True, timeout=LIMIT) as reply:
        events = events_of(reply)
        assert next(events)[0] == "snapshot"
        assert stage.client.register(QUERY)["newest"] is None
        assert stage.client.pause("query")["state"] == "paused"
        assert (stage.client.query("query")["state"], stage.engine.running) == ("paused", {})
        assert stage.client.resume("query")["state"] == "running"
        assert list(stage.engine.running) == ["query"]
        stage.client.pause("query")
        stage.client.remove("query")
        stage.client.register(QUERY)
        stage.client.remove("query")
        assert (stage.client.queries(), stage.engine.running) == ([], {})
        told = [next(events) for _ in range(7)]
    assert [data.get("state", kind) for kind, _, data in told] == [
        *("running", "paused", "running", "paused", "removed"),
        *("running", "removed"),
    ]


def test_no_answer_of_a_batch_under_way_comes_after_a_pause(stage: Stage) -> None:
    stage.client.register(QUERY)
    stage.give("query", 1000)
    (sink,) = stage.engine.running["query"].sinks
    stage.client.pause("query")
    sink.write([ranking("query", 2000, "ann")])
    stage.client.resume("query")
    sink.write([ranking("query", 3000, "ann")])
    stage.give("query", 4000)
    stage.client.remove("query")
    sink.write([ranking("query", 5000, "ann")])
    told = [each.kind for each in stage.service.events.after(0).events[-6:]]
    assert told == ["query", "answer", "query", "query", "answer", "removed"]


def test_requests_in_one_breath_are_all_heeded_in_their_order(stage: Stage) -> None:
    body = QUERY.encode()
    host, port = stage.url.removeprefix("http://").split(":")
    asked = [
        f"POST /queries/query/{each}"
        for each in ("pause", "resume", "pause", "pause", "resume", "resume")
    ]
    asked = [
        "POST /queries",
        *asked,
        "DELETE /queries/query",
        "POST /queries",
        "POST /queries/query/pause",
    ]
    sent = b""
    for each in asked:
        part = body if each == "POST /queries" else b""
        head = f"{each} HTTP/1.1\r\nHost: {host}\r\nContent-Type: {RSPQL['Content-Type']}\r\n"
        sent += f"{head}Content-Length: {len(part)}\r\n\r\n".encode() + part
    with socket.create_connection((host, int(port)), LIMIT) as connection:
        connection.sendall(sent)
        replies = [replied(connection) for _ in asked]
    assert [status for status, _ in replies] == [201, 200, 200, 200, 200, 200, 200, 204, 201, 200]
    states = [document and document["state"] for _, document in replies]
    paused, running = "paused", "running"
    assert states == [
        running,
        paused,
        running,
        paused,
        paused,
        running,
        running,
        None,
        running,
        paused,
    ]
    assert (stage.client.query("query")["state"], stage.engine.running) == ("paused", {})


def replied(connection: socket.socket) -> tuple[int, Any]:
    reply = http.client.HTTPResponse(connection)
    # A file of its own would read ahead, into the next reply.
    reply.fp.close()
    reply.fp = connection.makefile("rb", buffering=0)
    reply.begin()
    body = b""
    while reply.length:
        body += reply.read(reply.length)
    return reply.status, json.loads(body) if body else None


def test_a_query_can_be_paused_and_removed_while_it_is_being_registered(stage: Stage) -> None:
    register, begun, go_on = stage.engine.register, threading.Event(), threading.Event()

    def slowly(*given: Any, **more: Any) -> Any:
        begun.set()
        assert go_on.wait(LIMIT)
        return register(*given, **more)

    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(2) as pool:
        for work, code in (("POST /queries/query/pause", 200), ("DELETE /queries/query", 204)):
            patch.setattr(stage.engine, "register", slowly)
            begun.clear()
            go_on.clear()
            name = pool.submit(post, stage, "/queries", QUERY)
            assert begun.wait(LIMIT)
            method, path = work.split()
            asked = pool.submit(requests.request, method, stage.url + path, timeout=LIMIT)
            assert get(stage, "/queries").json() == {"queries": []}
            go_on.set()
            assert (name.result().status_code, asked.result().status_code) == (201, code)
            assert stage.engine.running == {}
            patch.undo()
            for each in stage.client.queries():
                assert each["state"] == "paused"
                stage.client.remove(each["id"])


def test_two_who_press_at_once_are_both_heard(stage: Stage) -> None:
    stage.client.register(QUERY)
    with ThreadPoolExecutor(8) as pool:
        for path, state in [
            ("/queries/query/pause", "paused"),
            ("/queries/query/resume", "running"),
        ] * 5:
            replies = list(pool.map(lambda _, path=path: post(stage, path), range(8)))
            assert {(each.status_code, each.json()["state"]) for each in replies} == {(200, state)}
            assert list(stage.engine.running) == (["query"] if state == "running" else [])
        mixed = list(
            pool.map(
                lambda at: post(stage, f"/queries/query/{('pause', 'resume')[at % 2]}"), range(40)
            )
        )
        assert [each.json()["state"] for each in mixed] == ["paused", "running"] * 20
        gone = list(
            pool.map(
                lambda _: requests.delete(f"{stage.url}/queries/query", timeout=LIMIT), range(8)
            )
        )
    assert sorted(each.status_code for each in gone) == [204, *[404] * 7]
    assert stage.engine.running == {}


def test_nothing_is_told_of_a_query_after_its_end(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.client.register(QUERY)
    found = stage.service.queries

    def removed_meanwhile() -> Any:
        queries = found()
        monkeypatch.undo()
        stage.service.remove("query")
        return queries

    monkeypatch.setattr(stage.service, "queries", removed_meanwhile)
    stage.service.query_changed("query")
    newest = stage.service.events.newest()
    assert newest is not None
    assert newest.kind == "removed"


def test_a_query_that_fails_says_so_without_what_is_nobody_s_business_and_can_be_resumed(
    stage: Stage,
) -> None:
    stage.client.register(QUERY)
    stage.engine.fail(
        "query", EvaluationError("the SPARQL engine refuses /etc/secret of http://me:pw@h/x?key=s")
    )
    query = stage.client.query("query")
    assert (query["state"], query["error"]) == (
        "failed",
        "the SPARQL engine refuses … of http://h/…",
    )
    assert stage.client.resume("query")["state"] == "running"
    stage.engine.fail("query", KeyError("/etc/passwd"))
    assert "passwd" not in stage.client.query("query")["error"]
    stage.client.remove("query")
    assert stage.engine.running == {}


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (
            EnvironmentProblem("http://u:p@host/q?token=abc cannot be reached, see /var/log/x"),
            "surroundings",
        ),
        (UserError("the state in /var/state holds another text"), "conflict"),
        (RuntimeError("/home/me/defect.py"), "internal"),
    ],
)
def test_what_goes_wrong_is_said_without_paths_and_secrets(
    stage: Stage, error: Exception, kind: str
) -> None:
    stage.engine.refuses = error
    reply = post(stage, "/queries", QUERY)
    assert kind_of(reply) == kind
    assert not [
        word for word in ("/var", "abc", "u:p", "home", "Traceback", "Error") if word in reply.text
    ]
    assert stage.client.queries() == []


# Answers ------------------------------------------------------------------------------------------


def test_answers_come_in_the_form_that_is_asked_for(stage: Stage) -> None:
    stage.client.register(QUERY)
    assert stage.client.answer("query") is None
    stage.give("query", 1000, "ann")
    forms = {
        accept: get(stage, "/queries/query/answer", Accept=accept)
        for accept in (JSON, SRJ, "text/csv", "text/*")
    }
    assert [each.headers["Content-Type"] for each in forms.values()] == [
        JSON,
        SRJ,
        "text/csv; charset=utf-8",
        "text/csv; charset=utf-8",
    ]
    assert forms[JSON].json()["results"][0]["rank"] == 1
    assert forms[SRJ].json()["head"]["vars"] == ["user", "mentions", "followers", "score"]
    assert (
        forms["text/csv"].text
        == "user,mentions,followers,score\r\nhttp://example.org/user/ann,37,83000,1.0\r\n"
    )
    tsv = get(
        stage, "/queries/query/answer", Accept="text/tab-separated-values, text/csv;q=0.9"
    ).text
    assert tsv.startswith("?user\t?mentions")
    reply = get(stage, "/queries/query/answer", Accept="text/turtle")
    assert (kind_of(reply), SRJ in reply.json()["offered"]) == ("not-acceptable", True)


def test_a_spreadsheet_runs_nothing_of_an_answer(stage: Stage) -> None:
    stage.client.register(QUERY)
    texts = {
        "=HYPERLINK(1)": "'=HYPERLINK(1)",
        "+1+1": "'+1+1",
        "-1+1": "'-1+1",
        "@SUM(A1)": "'@SUM(A1)",
        "\t=1": "'\t=1",
        "-1.5": "-1.5",
        "+3e7": "+3e7",
        "-INF": "-INF",
        "a=1": "a=1",
    }
    row = ranking("query", 1000, "ann").rows[0]
    rows = tuple(replace(row, bindings={"user": Literal(text)}) for text in texts)
    stage.give("query", 1000, rows=rows, variables=("user",))
    browser = {"Sec-Fetch-Site": "same-origin"}
    for path in ("/queries/query/answer", "/queries/query/answers/1000"):
        for more, headers, expected in (
            ("", {}, list(texts)),
            ("", browser, list(texts.values())),
            ("?spreadsheet=true", {}, list(texts.values())),
            ("?spreadsheet=false", browser, list(texts)),
        ):
            reply = get(stage, path + more, Accept="text/csv", **headers)
            assert [line[0] for line in csv.reader(io.StringIO(reply.text))][1:] == expected
            tsv = get(stage, path + more, Accept="text/tab-separated-values", **headers).text
            assert ('"=HYPERLINK' in tsv) == (expected == list(texts))
            whole = get(stage, path + more, Accept=JSON, **headers).json()
            assert [each["bindings"]["user"]["value"] for each in whole["results"]] == list(texts)
        assert kind_of(get(stage, path + "?spreadsheet=1")) == "invalid-request"
    plain = get(stage, "/queries/query/answer", Accept="text/csv").headers["ETag"]
    known = {**browser, "If-None-Match": plain}
    reply = get(stage, "/queries/query/answer", Accept="text/csv", **known)
    assert reply.status_code == 200


def test_a_construct_is_rdf(stage: Stage) -> None:
    stage.client.register(QUERY)
    triple = "<urn:a> <urn:b> <urn:c> ."
    stage.give("query", 1000, form="construct", rows=(), triples=(triple,))
    for media_type, name in (("text/turtle", "turtle"), ("application/n-triples", "nt")):
        answer = stage.client.answer("query", media_type)
        assert answer is not None
        assert len(Graph().parse(data=answer, format=name)) == 1
    with pytest.raises(ServiceError, match="can be had as"):
        stage.client.answer("query", "text/csv")


def test_who_polls_is_told_only_what_is_new(stage: Stage) -> None:
    stage.client.register(QUERY)
    stage.give("query", 1000)
    tag = get(stage, "/queries/query/answer").headers["ETag"]
    assert get(stage, "/queries/query/answer", **{"If-None-Match": tag}).status_code == 304
    stage.give("query", 2000)
    assert get(stage, "/queries/query/answer", **{"If-None-Match": tag}).status_code == 200
    assert [each["window"]["index"] for each in stage.client.answers("query", after=1000)] == [2]
    assert len(get(stage, "/queries/query/answers?limit=1").json()["answers"]) == 1
    assert get(stage, "/queries/query/answers/1000").json()["window"]["index"] == 1
    assert kind_of(get(stage, "/queries/query/answers/1001")) == "not-found"
    for wrong in ("after=x", "after=--1", "after=-", "limit=0", "limit=-1", "after=1&after=2"):
        assert kind_of(get(stage, f"/queries/query/answers?{wrong}")) == "invalid-request"


def test_windows_before_1970_are_told_as_all_others(stage: Stage) -> None:
    stage.client.register(QUERY)
    for closes_ms in (-62_135_596_800_000, -1_000, 1_000):
        stage.give("query", closes_ms)
    assert [each["window"]["index"] for each in stage.client.answers("query")] == [
        -62_135_596_800,
        -1,
        1,
    ]
    assert [each["window"]["index"] for each in stage.client.answers("query", after=-1_000)] == [1]
    found = get(stage, "/queries/query/answers/-62135596800000").json()["window"]
    assert found["closes"] == "0001-01-01T00:00:00.000Z"
    again = stage.client.stream("query", last="-1000")
    assert next(again)["window"]["index"] == 1


def test_the_last_answers_are_kept_up_to_a_bound() -> None:
    with staged(Limits(answers=3, answers_bytes=20_000)) as stage:
        stage.client.register(QUERY)
        for at in range(1, 8):
            stage.give("query", 1000 * at)
        assert [each["window"]["index"] for each in stage.client.answers("query")] == [5, 6, 7]
        stage.give("query", 8000, *(f"user{at}" for at in range(1000)))
        assert stage.client.answers("query") == []
        stage.give("query", 9000)
        assert [each["window"]["index"] for each in stage.client.answers("query")] == [9]


def test_a_reader_gets_answers_with_ids_and_goes_on_where_it_was(stage: Stage) -> None:
    stage.client.register(QUERY)
    stage.give("query", 1000)
    stage.give("query", 2000)
    reading = stage.client.stream("query")
    assert next(reading)["window"]["index"] == 2
    stage.give("query", 3000)
    assert next(reading)["window"]["index"] == 3
    again = stage.client.stream("query", last="1000")
    assert [next(again)["window"]["index"] for _ in range(2)] == [2, 3]
    stage.client.remove("query")
    assert list(reading) == list(again) == []


def test_an_answer_that_is_given_again_takes_its_place(stage: Stage) -> None:
    stage.client.register(QUERY)
    for closes in (1000, 2000, 3000, 2000):
        stage.give("query", closes)
    assert [each["window"]["index"] for each in stage.client.answers("query")] == [1, 2]


def test_who_only_asks_for_the_head_is_not_kept(stage: Stage) -> None:
    stage.client.register(QUERY)
    for path in ("/events", "/queries/query/events", "/queries"):
        assert requests.head(stage.url + path, timeout=LIMIT).status_code == 200


def test_a_reader_of_all_is_told_how_it_is_and_what_comes(stage: Stage) -> None:
    stage.client.register(QUERY)
    stage.give("query", 1000)
    with requests.get(stage.url + "/events", stream=True, timeout=LIMIT) as reply:
        events = events_of(reply)
        assert [kind for kind, _, _ in (next(events), next(events))] == ["snapshot", "answer"]
        stage.client.pause("query")
        kind, last, data = next(events)
        assert (kind, data["state"]) == ("query", "paused")
    stage.client.resume("query")
    stage.give("query", 2000)
    stage.client.remove("query")
    with requests.get(
        stage.url + "/events", stream=True, timeout=LIMIT, headers={"Last-Event-ID": last}
    ) as reply:
        events = events_of(reply)
        found = [next(events) for _ in range(3)]
    assert [kind for kind, _, _ in found] == ["query", "answer", "removed"]
    assert found[1][2]["answer"]["window"]["index"] == 2


def events_of(reply: requests.Response) -> Iterator[tuple[str, str, Any]]:
    fields: dict[str, str] = {}
    for line in reply.iter_lines(chunk_size=None, decode_unicode=True):
        name, _, value = line.partition(": ")
        if line:
            fields[name] = value
        elif "event" in fields:
            yield fields["event"], fields.get("id", ""), json.loads(fields["data"])
            fields = {}


def test_a_reader_that_takes_nothing_holds_up_nobody_and_is_told_what_it_missed() -> None:
    with staged(Limits(answers=5, stuck_seconds=100 * LIMIT)) as stage:
        stage.client.register(QUERY)
        users = [f"user-{at}" for at in range(300)]
        with slow_reader(stage, "/queries/query/events") as slow:
            quick = stage.client.stream("query")
            seen = []
            for at in range(1, 41):
                stage.give("query", 1000 * at, *users)
                seen.append(next(quick)["window"]["index"])
            assert seen == list(range(1, 41))
            wait_for(lambda: b'"index": 40,' in slow())
            text = slow()
            assert b"event: missed" in text
            assert text.index(b"event: missed") < text.index(b'"index": 40,')
        quick.close()  # type: ignore[attr-defined]
        wait_for(lambda: stage.meters.registry.get_sample_value("acquatop_stream_readers") == 0)


class slow_reader:  # noqa: N801
    """A reader that asks for a stream and takes nothing until it is called, with as little room as
    there may be.
    """

    def __init__(self, stage: Stage, path: str) -> None:
        host, port = stage.url.removeprefix("http://").split(":")
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self._socket.connect((host, int(port)))
        self._socket.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        self._socket.settimeout(0.2)
        self._text = b""

    def __call__(self) -> bytes:
        try:
            while part := self._socket.recv(65536):
                self._text += part
        except TimeoutError:
            pass
        return self._text

    def __enter__(self) -> slow_reader:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()


def test_a_reader_that_has_vanished_is_cut_off() -> None:
    with staged(Limits(stuck_seconds=0.5, heartbeat_seconds=0.05)) as stage:
        stage.client.register(QUERY)
        users = [f"user-{at}" for at in range(2000)]
        with slow_reader(stage, "/queries/query/events"):
            wait_for(lambda: stage.meters.registry.get_sample_value("acquatop_stream_readers") == 1)
            closes = iter(range(1000, 10**9, 1000))

            def is_gone() -> bool:
                stage.give("query", next(closes), *users)
                return stage.meters.registry.get_sample_value("acquatop_stream_readers") == 0

            wait_for(is_gone)


# Safety -------------------------------------------------------------------------------------------


def test_every_response_has_the_headers_that_a_scan_expects(stage: Stage) -> None:
    replies = [
        get(stage, path) for path in ("/", "/page/main.js", "/queries", "/nowhere", "/metrics")
    ]
    replies += [
        get(stage, "/queries", Origin="http://elsewhere.example"),
        requests.patch(stage.url + "/queries", timeout=LIMIT),
    ]
    for reply in replies:
        assert {name: reply.headers.get(name) for name in HEADERS} == dict(HEADERS)
        assert "Server" not in reply.headers
    assert replies[0].headers["Content-Type"] == "text/html; charset=utf-8"
    assert "'unsafe" not in HEADERS["content-security-policy"]


@pytest.mark.parametrize(
    "name", ["..%2fapp.py", "%2e%2e/app.py", "__init__.py", "%00", "main.js%00"]
)
def test_the_page_has_its_own_files_only(stage: Stage, name: str) -> None:
    assert get(stage, f"/page/{name}").status_code == 404


def test_other_hosts_and_sites_are_refused() -> None:
    with staged(hosts=["acquatop.example"]) as stage:
        for host in (
            "acquatop.example",
            "acquatop.example:80",
            "localhost:8322",
            "127.0.0.1",
            "[::1]:80",
            "10.0.0.1",
        ):
            assert get(stage, "/healthz", Host=host).status_code == 200
        for host in ("evil.example", "evil.example:8322", "localhost.evil.example", "", "[::1"):
            assert kind_of(get(stage, "/healthz", Host=host)) == "unknown-host"
        ours = stage.url
        assert post(stage, "/check", QUERY, Origin=ours).status_code == 200
        for origin in (
            "http://evil.example",
            "null",
            "http://127.0.0.1:1",
            ours.replace("127.0.0.1", "localhost"),
        ):
            assert kind_of(post(stage, "/check", QUERY, Origin=origin)) == "foreign-origin"
        assert (
            kind_of(get(stage, "/queries", **{"Sec-Fetch-Site": "cross-site"})) == "foreign-origin"
        )
        link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
        assert get(stage, "/", **link).status_code == 200


def test_a_token_opens_all_but_the_page() -> None:
    with staged(token=TOKEN) as stage:
        for path in ("/", "/page/style.css", "/healthz", "/readyz", "/openapi.json"):
            assert get(stage, path).status_code == 200
        for path in ("/queries", "/events", "/metrics", "/catalog", "/nowhere", "/page"):
            for given in (
                {},
                {"Authorization": "Bearer wrong"},
                {"Authorization": f"Basic {TOKEN}"},
            ):
                reply = get(stage, path, **given)
                assert kind_of(reply) == "unauthorised"
                assert reply.headers["WWW-Authenticate"] == "Bearer"
        with Client(stage.url, token=TOKEN) as client:
            assert client.register(QUERY)["state"] == "running"


def test_nobody_but_this_machine_is_let_in_without_a_token() -> None:
    with (
        pytest.raises(UserError, match="a token is needed"),
        staged(address=ListenAddress("0.0.0.0", 0)),
    ):
        pass
    with staged(address=ListenAddress("0.0.0.0", 0), token=TOKEN) as stage:
        assert kind_of(
            requests.get(stage.url.replace("0.0.0.0", "127.0.0.1") + "/queries", timeout=LIMIT)
        )


def test_a_token_must_not_be_easily_guessed() -> None:
    assert not Tokens.from_variables({})
    assert Tokens.from_variables({"ACQUATOP_TOKEN": TOKEN}).role_of(TOKEN) is Role.ADMIN
    for weak in ("short", "ü" * 20, "line\n" * 10):
        for name in ("ACQUATOP_TOKEN", "ACQUATOP_READ_TOKENS"):
            with pytest.raises(UserError, match="16 printable characters"):
                Tokens.from_variables({name: weak})


def test_tokens_may_be_several_and_have_roles() -> None:
    first, second = "0123456789abcdef", "fedcba9876543210"
    known = Tokens.from_variables(
        {
            "ACQUATOP_TOKEN": TOKEN,
            "ACQUATOP_REGISTER_TOKENS": second,
            "ACQUATOP_READ_TOKENS": f"{first}  {second}",
        }
    )
    given = [TOKEN, first, second, "", first + second, "fedcba9876543210\xff"]
    assert [known.role_of(each) for each in given] == [
        *(Role.ADMIN, Role.READ, Role.REGISTER),
        *(None, None, None),
    ]
    assert first not in repr(known)


def test_each_role_may_do_what_it_says_and_no_more() -> None:
    tokens = {f"a token that may {role.name}": role for role in Role}
    with staged(tokens=tokens) as stage:
        for token, role in tokens.items():
            given = {"Authorization": f"Bearer {token}"}
            assert get(stage, "/queries", **given).status_code == 200
            assert post(stage, "/check", QUERY, **given).status_code == 200
            made = post(stage, f"/queries?name={role.name}", QUERY, **given)
            assert made.status_code == (201 if role >= Role.REGISTER else 403)
            # There is no catalog file here.
            reloaded = kind_of(post(stage, "/reload", **given))
            assert reloaded == ("conflict" if role is Role.ADMIN else "forbidden")
        for token, role in tokens.items():
            reply = post(stage, "/queries/ADMIN/pause", Authorization=f"Bearer {token}")
            assert reply.status_code == (200 if role >= Role.REGISTER else 403)


def test_an_address_that_is_taken_is_named() -> None:
    with (
        staged() as stage,
        pytest.raises(EnvironmentProblem, match=r"cannot listen at 127\.0\.0\.1"),
    ):
        Server(
            stage.service,
            stage.meters,
            ListenAddress("127.0.0.1", int(stage.url.rpartition(":")[2])),
        )


def test_a_server_that_was_never_started_frees_its_address() -> None:
    with staged() as stage:
        server = Server(stage.service, stage.meters, ListenAddress("127.0.0.1", 0))
        port = int(server.url.rpartition(":")[2])
        server.close()
        Server(stage.service, stage.meters, ListenAddress("127.0.0.1", port)).close()


def test_bodies_are_bounded_and_must_be_text() -> None:
    with staged(Limits(text_bytes=5_000, request_seconds=LIMIT)) as stage:
        assert kind_of(post(stage, "/queries", "#" * 5_001)) == "too-large"
        assert kind_of(
            requests.post(
                stage.url + "/check", data=iter([b"#" * 4_000] * 3), headers=RSPQL, timeout=LIMIT
            )
        )
        assert kind_of(post(stage, "/check", b"\xff\xfe")) == "invalid-request"
        assert (
            kind_of(post(stage, "/check", "{}", **{"Content-Type": JSON}))
            == "unsupported-media-type"
        )


def test_a_body_that_does_not_come_is_not_waited_for() -> None:
    with staged(Limits(request_seconds=0.2)) as stage:
        host, port = stage.url.removeprefix("http://").split(":")
        connection = http.client.HTTPConnection(host, int(port), timeout=LIMIT)
        connection.putrequest("POST", "/check")
        for name, value in (*RSPQL.items(), ("Content-Length", "10")):
            connection.putheader(name, value)
        connection.endheaders(b"SEL")
        assert connection.getresponse().status == 408
        connection.close()


def test_the_number_of_queries_and_readers_is_bounded() -> None:
    with staged(Limits(queries=2, readers=1)) as stage:
        for _ in range(2):
            stage.client.register(QUERY)
        assert kind_of(post(stage, "/queries", QUERY)) == "too-many-queries"
        with requests.get(stage.url + "/events", stream=True, timeout=LIMIT):
            reply = get(stage, "/events")
            assert (kind_of(reply), reply.headers["Retry-After"]) == ("unavailable", "5")


def test_a_burst_is_answered_or_refused_clearly() -> None:
    with (
        staged(Limits(queries=30, work_burst=100, work_rate=0.001)) as stage,
        ThreadPoolExecutor(16) as pool,
    ):
        replies = list(pool.map(lambda at: post(stage, f"/queries?name=q{at}", QUERY), range(140)))
        counts = {
            code: [each.status_code for each in replies].count(code) for code in (201, 409, 429)
        }
        assert counts == {201: 30, 409: 70, 429: 40}
        assert all("Retry-After" in each.headers for each in replies if each.status_code == 429)
        assert len(stage.service.queries()) == 30


def test_too_long_a_line_is_refused_at_once() -> None:
    with staged(Limits(waiting=1, work_burst=1000)) as stage:
        go_on = threading.Event()

        def registering(*_: object, **__: object) -> Any:
            assert go_on.wait(LIMIT)
            raise EnvironmentProblem("nothing there")

        stage.engine.register = registering  # type: ignore[method-assign]
        with ThreadPoolExecutor(5) as pool:
            posts = [pool.submit(post, stage, "/queries", QUERY) for _ in range(5)]
            wait_for(lambda: sum(each.done() for each in posts) == 3)
            assert {kind_of(each.result()) for each in posts if each.done()} == {"unavailable"}
            assert get(stage, "/healthz").status_code == 200
            go_on.set()
            kinds = [kind_of(each.result(LIMIT)) for each in posts]
        assert kinds.count("surroundings") == 2


def test_a_service_that_is_not_ready_says_so(stage: Stage) -> None:
    stage.service.is_ready = False
    try:
        assert get(stage, "/healthz").status_code == 200
        assert kind_of(get(stage, "/readyz")) == "unavailable"
        assert kind_of(post(stage, "/queries", QUERY)) == "unavailable"
        assert kind_of(post(stage, "/queries/query/pause")) == "unavailable"
    finally:
        stage.service.is_ready = True
    assert get(stage, "/readyz").json() == {"status": "ready"}


def test_the_service_counts_among_the_engine_s_metrics(stage: Stage) -> None:
    stage.client.register(QUERY)
    stage.give("query", 1000)
    next(stage.client.stream("query"))
    text = get(stage, "/metrics").text
    assert 'acquatop_answers_total{query="query",status="certified"}' in text
    assert 'acquatop_http_requests_total{method="POST",route="queries",status="201"}' in text
    assert "acquatop_stream_delay_seconds_count" in text


def test_messages_of_remotes_hold_no_paths(stage: Stage) -> None:
    stage.client.register(QUERY)
    failure = "/srv/table.csv cannot be read"
    stage.engine.give(replace(ranking("query", 1000, "ann"), failure=failure))
    assert stage.client.answers("query")[0]["failure"] == "… cannot be read"


def test_names_of_queries_are_shown_as_they_are_and_harm_nothing(stage: Stage) -> None:
    name = "<script>alert(1)</script>\"&'é"
    query = stage.client.register(query_text(), name=name)
    assert query["name"] == name
    assert query["id"].isascii()
    assert get(stage, "/queries").headers["Content-Type"] == JSON


def test_the_program_in_the_document_runs(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (Path(__file__).parents[4] / "docs" / "serve.md").read_text("utf-8")
    program = (
        text.partition("```python\n")[2]
        .partition("```")[0]
        .replace("http://127.0.0.1:8322", stage.url)
    )
    assert stage.url in program
    (tmp_path / "query.rspql").write_text(QUERY, "utf-8")
    monkeypatch.chdir(tmp_path)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(exec, program, {})
        wait_for(lambda: stage.meters.registry.get_sample_value("acquatop_stream_readers") == 1)
        stage.give("query", 1000)
        stage.client.remove("query")
        running.result(LIMIT)
