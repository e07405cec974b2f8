"""Metrics, read as a Prometheus server reads them."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from rdflib import Literal

from acquatop.answer.answer import Counts, Row
from acquatop.answer.estimate import Estimate
from acquatop.app.watch import AnswerSeen, BatchSeen, Kept, QueryState, StateSeen
from acquatop.app.watch.address import ListenAddress
from acquatop.app.watch.endpoint import Endpoint
from acquatop.app.watch.prometheus import REASONS, Metrics
from acquatop.engine.waiting.kinds import Waiting, WaitingKind
from acquatop.errors import EnvironmentProblem
from replica.budget import Budget, Spending
from tests.support.empty_answer import NOTHING

ANYWHERE = ListenAddress("127.0.0.1", 0)


@contextmanager
def serving(registry: CollectorRegistry) -> Iterator[Endpoint]:
    endpoint = Endpoint(registry, ANYWHERE)
    endpoint.start()
    try:
        yield endpoint
    finally:
        endpoint.close()


def get(endpoint: Endpoint, path: str = "/metrics", method: str = "GET") -> tuple[int, str]:
    connection = http.client.HTTPConnection(endpoint.url.split("/")[2], timeout=10)
    connection.request(method, path)
    reply = connection.getresponse()
    text = reply.read().decode()
    connection.close()
    return reply.status, text


def samples(metrics: Metrics) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    text = generate_latest(metrics.registry).decode()
    return {
        (each.name.removeprefix("acquatop_"), frozenset(each.labels.items())): each.value
        for family in text_string_to_metric_families(text)
        for each in family.samples
    }


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    return samples(metrics).get((name, frozenset(labels.items())))


def test_a_batch_is_counted_by_stream() -> None:
    metrics = Metrics(wall=lambda: 100.0)
    seen = BatchSeen(
        stream="s",
        events=5,
        bad={"not JSON": 2},
        late=1,
        repeated=3,
        sent_rows=3,
        sent_bytes=70,
        watermark_ms=97_500,
        seconds=0.3,
        reduce_seconds=0.2,
    )
    metrics.batch(seen)
    metrics.batch(replace(seen, watermark_ms=98_000, backlog_bytes=10, done=30, total=40))
    expected = {
        "events_total": 10,
        "late_events_total": 2,
        "repeated_messages_total": 6,
        "sent_rows_total": 6,
        "sent_bytes_total": 140,
        "batch_duration_seconds_count": 2,
        "batch_duration_seconds_sum": 0.6,
        "watermark_timestamp_seconds": 98.0,
        "watermark_lag_seconds": 2.0,
        "backlog_bytes": 10,
        "read_ratio": 0.75,
    }
    assert {name: value(metrics, name, stream="s") for name in expected} == expected
    assert value(metrics, "bad_events_total", stream="s", reason="not JSON") == 4
    assert value(metrics, "batch_phase_duration_seconds_sum", stream="s", phase="reduce") == 0.4


def test_the_lag_grows_while_nothing_comes() -> None:
    now = 10.0
    metrics = Metrics(wall=lambda: now)
    metrics.batch(BatchSeen(stream="s", events=0, watermark_ms=9_000))
    assert value(metrics, "watermark_lag_seconds", stream="s") == 1.0
    now = 25.0
    assert value(metrics, "watermark_lag_seconds", stream="s") == 16.0


def test_an_answer_is_counted_by_query_and_what_it_cost() -> None:
    rows = tuple(
        Row(at, {"x": Literal(at)}, None, None, age)
        for at, age in enumerate((1.0, 3.0, None), start=1)
    )
    answer = replace(
        NOTHING,
        rows=rows,
        spending=Spending(4, 2, 0.25, 1),
        budget=Budget(8, 3, float("inf")),
        failure="the remote is down",
        counts=Counts(skipped=7, rejected={"no key": 2}),
        latency_seconds=0.02,
        expected=Estimate(precision=0.9, ndcg=0.8),
    )
    metrics = Metrics()
    metrics.answer(AnswerSeen(answer=answer, candidates=11, panes_waiting=3, replica_keys=100))
    expected = {
        "answer_rows_total": 3,
        "answer_latency_seconds_sum": 0.02,
        "candidates": 11,
        "panes_waiting": 3,
        "replica_keys": 100,
        "refresh_requests_total": 2,
        "refresh_items_total": 4,
        "refresh_failed_requests_total": 1,
        "refresh_wait_seconds_total": 0.25,
        "refresh_allowed_items_total": 8,
        "refresh_allowed_requests_total": 3,
        "degraded_answers_total": 1,
        "skipped_windows_total": 7,
        "value_age_mean_seconds": 2.0,
        "value_age_max_seconds": 3.0,
        "expected_precision": 0.9,
        "expected_ndcg": 0.8,
    }
    assert {name: value(metrics, name, query="q") for name in expected} == expected
    assert value(metrics, "answers_total", query="q", status="exact") == 1
    assert value(metrics, "rejected_records_total", query="q", reason="no key") == 2


def test_what_was_spent_for_several_queries_is_counted_once() -> None:
    metrics = Metrics()
    for name in "qrs":
        spent = Spending(4, 2, 0.25, 1).for_answers(3)
        metrics.answer(
            AnswerSeen(
                answer=replace(NOTHING, query=name, spending=spent, budget=Budget(8, 8, 1.0))
            )
        )
    for name, whole in (
        ("refresh_items_total", 4),
        ("refresh_requests_total", 2),
        ("refresh_wait_seconds_total", 0.25),
        ("refresh_failed_requests_total", 1),
        ("refresh_allowed_items_total", 8),
    ):
        parts = [value(metrics, name, query=each) or 0.0 for each in "qrs"]
        assert sum(parts) == pytest.approx(whole)


def test_what_a_repeated_answer_cost_is_not_counted_again() -> None:
    metrics = Metrics()
    metrics.answer(AnswerSeen(answer=replace(NOTHING, spending=Spending(4, 2)), repeated=True))
    assert value(metrics, "repeated_answers_total", query="q") == 1
    assert value(metrics, "answers_total", query="q", status="exact") is None
    assert value(metrics, "refresh_items_total", query="q") is None


def test_state_queries_and_errors_are_counted() -> None:
    metrics = Metrics()
    metrics.kept(StateSeen(kind=Kept.SNAPSHOT, stream="s", seconds=0.5, bytes=100))
    metrics.kept(StateSeen(kind=Kept.DAMAGED, stream="s"))
    metrics.failed("sink /tmp/x", OSError())
    assert value(metrics, "state_events_total", stream="s", kind="damaged") == 1
    assert value(metrics, "state_written_bytes_total", stream="s", kind="snapshot") == 100
    assert value(metrics, "state_write_duration_seconds_sum", stream="s", kind="snapshot") == 0.5
    assert value(metrics, "state_write_duration_seconds_sum", stream="s", kind="damaged") is None
    assert value(metrics, "errors_total", kind="sink") == 1


def test_a_query_that_is_removed_leaves_no_line_behind() -> None:
    metrics = Metrics()
    for name in ("p", "q"):
        metrics.query(name, QueryState.REGISTERED)
        metrics.answer(
            AnswerSeen(answer=replace(NOTHING, query=name, counts=Counts(rejected={"r": 1})))
        )
    assert value(metrics, "queries") == 2
    metrics.query("p", QueryState.REMOVED)
    assert value(metrics, "queries") == 1
    assert {dict(labels).get("query") for _, labels in samples(metrics)} == {None, "q"}
    assert value(metrics, "query_changes_total", state="removed") == 1


def test_reasons_of_a_removed_query_do_not_count_for_its_successor() -> None:
    metrics = Metrics()
    for reason in (*(f"old {at}" for at in range(50)), "new"):
        if reason == "new":
            metrics.query("q", QueryState.REMOVED)
        counts = Counts(rejected={reason: 1})
        metrics.answer(AnswerSeen(answer=replace(NOTHING, query="q", counts=counts)))
    assert value(metrics, "rejected_records_total", query="q", reason="new") == 1


def test_reasons_without_end_are_counted_as_other_ones() -> None:
    metrics = Metrics()
    for at in range(50):
        metrics.batch(BatchSeen(stream="s", events=0, bad={f"reason {at}": 1}))
    bad = {
        labels: count
        for (name, labels), count in samples(metrics).items()
        if name == "bad_events_total"
    }
    assert len(bad) == REASONS + 1
    assert sum(bad.values()) == 50


def test_queries_are_counted_by_the_thing_that_they_wait_for_at_each_scrape() -> None:
    metrics = Metrics(process=False)
    assert value(metrics, "waiting_queries", kind="silent") == 0
    silent = Waiting(kind=WaitingKind.SILENT, since=0.0, text="nothing comes")
    waits = {"q": silent, "r": silent}
    metrics.watch(lambda: waits)
    assert value(metrics, "waiting_queries", kind="silent") == 2
    waits.clear()
    assert value(metrics, "waiting_queries", kind="silent") == 0


def test_two_of_it_know_nothing_of_each_other() -> None:
    one, other = Metrics(process=False), Metrics(process=False)
    one.batch(BatchSeen(stream="s", events=5))
    assert value(other, "events_total", stream="s") is None


def test_labels_are_escaped_and_come_back_as_they_were() -> None:
    name = 'a "quoted"\\ line\nand another { } \N{SNOWMAN}'
    metrics = Metrics(process=False)
    metrics.batch(BatchSeen(stream=name, events=5))
    metrics.answer(AnswerSeen(answer=replace(NOTHING, query=name)))
    with serving(metrics.registry) as endpoint:
        status, text = get(endpoint)
    assert status == 200
    found = [each for family in text_string_to_metric_families(text) for each in family.samples]
    assert {each.labels["stream"] for each in found if each.name == "acquatop_events_total"} == {
        name
    }
    assert {each.labels["query"] for each in found if each.name == "acquatop_answers_total"} == {
        name
    }


def test_the_endpoint_serves_metrics_on_this_machine_alone_and_nothing_else() -> None:
    with serving(Metrics(process=False).registry) as endpoint:
        assert endpoint.url.startswith("http://127.0.0.1:")
        assert (
            get(endpoint)[0] == get(endpoint, "/metrics?name=x")[0] == get(endpoint, "/")[0] == 200
        )
        assert get(endpoint, "/etc/passwd")[0] == 404
        assert get(endpoint, method="POST")[0] == 501
    with pytest.raises(ConnectionRefusedError):
        get(endpoint)


def test_a_client_that_says_nothing_or_nonsense_does_not_hold_up_the_end(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with serving(Metrics(process=False).registry) as endpoint:
        host, port = endpoint.url.split("/")[2].split(":")
        silent = socket.create_connection((host, int(port)))
        with socket.create_connection((host, int(port))) as rude:
            rude.sendall(b"\x00\xff\r\n\r\n")
            assert b"400" in rude.recv(1000)
        assert get(endpoint)[0] == 200
    silent.close()
    assert capfd.readouterr() == ("", "")


def test_a_port_that_is_taken_is_one_message() -> None:
    with serving(CollectorRegistry()) as endpoint:
        port = int(endpoint.url.split(":")[2].split("/")[0])
        with pytest.raises(
            EnvironmentProblem, match=rf"served at 127.0.0.1:{port}: Address already in use\n  hint"
        ):
            Endpoint(CollectorRegistry(), ListenAddress("127.0.0.1", port))
    with pytest.raises(EnvironmentProblem, match=r"at 192\.0\.2\.1:0: Cannot assign"):
        Endpoint(CollectorRegistry(), ListenAddress("192.0.2.1", 0))


def test_an_endpoint_that_was_never_started_frees_its_port() -> None:
    endpoint = Endpoint(CollectorRegistry(), ANYWHERE)
    port = int(endpoint.url.split(":")[2].split("/")[0])
    endpoint.close()
    Endpoint(CollectorRegistry(), ListenAddress("127.0.0.1", port)).close()


@pytest.mark.parametrize("text", ["", "x", "-1", "65536", ":80", "::1:80", "[::1]", "1.2.3.4", "٣"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not \[HOST:\]PORT"):
        ListenAddress.parse(text)
