"""The filtered stream against a real server that behaves as X's documentation says, and as it
should not.
"""

from __future__ import annotations

import json
import logging
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
import pytest

from connectors import ConnectorError
from connectors.log.writer import Remembered
from connectors.x_api.filtered_stream import SILENCE_SECONDS, FilteredStream
from connectors.x_api.rules import Rule
from connectors.x_api.token import VARIABLE
from examples.x.server import RULES, STREAM, WINDOW_SECONDS, XServer
from tests.support.x_posts import HAS_MENTIONS, TOKEN, Follow, Serve, Time, post, received


def ids_of(lines: Sequence[bytes]) -> list[int]:
    return [int(json.loads(line)["data"]["id"]) for line in lines]


def come(*ids: int) -> Callable[[Sequence[bytes]], bool]:
    return lambda lines: [*ids] == ids_of(lines)


def connected(stream: FilteredStream, x: XServer, times: int = 1) -> None:
    received(stream, lambda _: stream.counts["connected"] == times)
    assert x.wait_for(streams=1)


def lasting(stream: FilteredStream, x: XServer, time: Time) -> None:
    """Connect, and let the connection last until it counts as established."""
    connected(stream, x)
    x.publish([post(19)])
    received(stream, come(19))
    time.now += 2


def asked_for(x: XServer) -> list[str | None]:
    return [asked.parameters.get("backfill_minutes") for asked in x.requests(STREAM)]


# Posts ----------------------------------------------------------------------------------------


def test_posts_come_as_they_are_sent_with_the_fields_that_are_asked_for(
    x: XServer, follow: Follow, time: Time
) -> None:
    stream = follow(x, fields=("created_at", "entities"))
    connected(stream, x)
    x.publish([post(20, "7", text="Grüße 👋"), post(21, "7", "8")])
    lines = received(stream, come(20, 21))
    first = json.loads(lines[0])
    assert set(first["data"]) == {"id", "text", "created_at", "entities"}
    assert (first["data"]["text"], first["matching_rules"]) == (
        "Grüße 👋",
        [{"id": "1", "tag": "mentions"}],
    )


def test_pieces_may_end_within_a_character_and_signs_of_life_are_no_posts(
    x: XServer, follow: Follow
) -> None:
    stream = follow(x)
    connected(stream, x)
    line = json.dumps({"data": post(20, text="👋" * 50)}, ensure_ascii=False).encode()
    for at in range(len(line)):
        x.send(line[at : at + 1])
    x.send(b"\r")
    x.send(b"\n\r\n\n")
    assert received(stream, come(20)) == [line]
    assert stream.counts == Counter(connected=1)


def test_what_cannot_be_read_is_kept_and_stops_nothing(x: XServer, follow: Follow) -> None:
    stream = follow(x)
    connected(stream, x)
    broken = [b'{"data": {"id": "2', b"\xff\xfe", b'{"something": "new"}', b'{"data": {"id": "x"}}']
    x.send(b"".join(line + b"\r\n" for line in broken))
    x.publish([post(21)])
    lines = received(stream, lambda lines: len(lines) == 5)
    assert lines[:4] == broken
    assert ids_of(lines[4:]) == [21]
    assert stream.counts["unreadable"] == 4
    assert len(x.requests(STREAM)) == 1


def test_a_post_that_comes_again_is_left_out(x: XServer, follow: Follow) -> None:
    stream = follow(x)
    connected(stream, x)
    x.publish([post(20), post(21), post(20)])
    x.publish([post(21), post(22)])
    received(stream, come(20, 21, 22))
    assert stream.counts["again"] == 2


# Connections ----------------------------------------------------------------------------------


def test_a_good_connection_that_ends_is_made_again_at_once_and_what_was_missed_comes(
    x: XServer, follow: Follow, time: Time
) -> None:
    stream = follow(x, backfill_minutes=5)
    lasting(stream, x, time)
    x.publish([post(20)])
    x.send(
        json.dumps({"data": post(21)}).encode()[:40]
    )  # the connection ends in the middle of a line
    x.disconnect()
    assert x.wait_for(streams=0)
    x.publish([post(21), post(22)])
    received(stream, come(20, 21, 22))
    assert asked_for(x) == [None, "1"]
    assert time.waits == []
    assert stream.counts == Counter({"connected": 2, "again": 2, "cut off": 1})


def test_a_last_line_without_its_break_counts_if_it_is_whole(
    x: XServer, follow: Follow, time: Time
) -> None:
    stream = follow(x)
    connected(stream, x)
    x.send(json.dumps({"data": post(20)}).encode())
    x.disconnect()
    received(stream, come(20))
    assert stream.counts["cut off"] == 0


def test_what_x_says_last_counts_without_a_line_break_too(
    x: XServer, follow: Follow, time: Time
) -> None:
    stream = follow(x)
    lasting(stream, x, time)
    x.send(b'{"title": "ConnectionException", "connection_issue": "TooManyConnections"}')
    x.disconnect()
    received(stream, lambda _: stream.counts["connected"] == 2)
    assert sum(time.waits) == pytest.approx(60)
    assert stream.counts["cut off"] == 0


def test_no_more_is_asked_for_than_was_missed_and_is_allowed(
    x: XServer, follow: Follow, time: Time
) -> None:
    stream = follow(x, backfill_minutes=3)
    lasting(stream, x, time)
    for missed, _minutes in ((20, 1), (40, 2), (120, 3), (1000, 3)):
        time.now += missed
        before = stream.counts["connected"]
        x.disconnect()
        assert x.wait_for(streams=0)
        received(stream, lambda _, before=before: stream.counts["connected"] == before + 1)
        assert x.wait_for(streams=1)
        x.publish([post(100 + before)])
        received(stream, come(100 + before))
        time.now += 2
    assert asked_for(x) == [None, "1", "2", "3", "3"]


def test_silence_ends_a_connection(serve: Serve, follow: Follow, time: Time) -> None:
    x = serve(keep_alive=3600.0, connections=2)
    x.rules["1"] = {"value": "has:mentions", "tag": ""}
    stream = follow(x)
    lasting(stream, x, time)
    time.now += SILENCE_SECONDS - 3
    assert stream.receive(0.0) is None
    assert stream.counts["connected"] == 1
    time.now += 4
    received(stream, lambda _: stream.counts["connected"] == 2)


def test_signs_of_life_keep_a_connection(x: XServer, follow: Follow, time: Time) -> None:
    stream = follow(x)
    connected(stream, x)
    for _ in range(5):
        time.now += SILENCE_SECONDS - 1
        received(stream, lambda _: not stream.is_caught_up())
    assert stream.counts["connected"] == 1


def test_what_x_says_of_the_stream_is_no_post_and_ends_the_connection(
    patient: XServer, follow: Follow, time: Time, caplog: pytest.LogCaptureFixture
) -> None:
    stream = follow(patient)
    lasting(stream, patient, time)
    said = {
        "title": "operational-disconnect",
        "disconnect_type": "UpstreamOperationalDisconnect",
        "detail": "for now",
    }
    patient.send(json.dumps({"errors": [said]}).encode() + b"\r\n")
    received(stream, lambda _: stream.counts["connected"] == 2)
    assert "operational-disconnect: for now; trying again in 0.00 s" in caplog.text
    assert (time.waits, stream.counts["unreadable"]) == ([], 0)


def test_too_many_connections_said_in_the_stream_are_waited_out(
    patient: XServer, follow: Follow, time: Time
) -> None:
    stream = follow(patient)
    lasting(stream, patient, time)
    patient.send(b'{"title": "ConnectionException", "connection_issue": "TooManyConnections"}\r\n')
    received(stream, lambda _: stream.counts["connected"] == 2)
    assert sum(time.waits) == pytest.approx(60)


# Waiting --------------------------------------------------------------------------------------


def test_errors_are_waited_out_ever_longer_and_a_good_connection_forgets_them(
    x: XServer, follow: Follow, time: Time
) -> None:
    stream = follow(x)
    for _ in range(8):
        x.refuse(STREAM, 503, {"title": "Service Unavailable"})
    connected(stream, x)
    assert sum(time.waits) == pytest.approx(5 + 10 + 20 + 40 + 80 + 160 + 320 + 320)
    x.publish([post(20)])
    received(stream, come(20))
    time.now += 2
    x.refuse(STREAM, 500, {})
    x.disconnect()
    time.waits.clear()
    received(stream, lambda _: stream.counts["connected"] == 2)
    assert sum(time.waits) == pytest.approx(5)


def test_where_nobody_answers_the_wait_grows_by_a_quarter_of_a_second(
    follow: Follow, time: Time, caplog: pytest.LogCaptureFixture
) -> None:
    with XServer(token=TOKEN) as gone:
        pass
    stream = follow(gone)
    while len(caplog.records) < 70:
        stream.receive(100.0)
    waits = [
        float(re.findall(r"in ([0-9.]+) s", record.getMessage())[0]) for record in caplog.records
    ]
    assert waits == [min(0.25 * step, 16.0) for step in range(1, 71)]
    assert sum(time.waits) == pytest.approx(sum(waits[:-1]))
    assert "X cannot be reached: Connection refused" in caplog.text


def test_a_connection_that_brings_nothing_is_not_made_again_at_once(
    x: XServer, follow: Follow, time: Time
) -> None:
    stream = follow(x)
    for number in range(1, 4):
        connected(stream, x, number)
        x.disconnect()
        assert x.wait_for(streams=0)
    connected(stream, x, 4)
    assert sum(time.waits) == pytest.approx(0.25 + 0.5 + 0.75)


def test_a_limit_is_obeyed_until_it_is_reset(x: XServer, follow: Follow, time: Time) -> None:
    stream = follow(x)
    reset = {"x-rate-limit-remaining": "0", "x-rate-limit-reset": str(int(time.now) + 700)}
    x.refuse(STREAM, 429, {"title": "Too Many Requests"}, reset)
    x.refuse(
        STREAM,
        429,
        {"title": "Too Many Requests"},
        {"x-rate-limit-remaining": "7", "x-rate-limit-reset": "1"},
    )
    x.refuse(STREAM, 429, {"title": "Too Many Requests"})
    connected(stream, x)
    # The first as the header says, the others a minute that has been doubled once and twice.
    assert sum(time.waits) == pytest.approx(700 + 120 + 240, abs=1)


def test_the_limit_of_connections_per_quarter_of_an_hour_is_obeyed(
    serve: Serve, follow: Follow, time: Time
) -> None:
    x = serve(limits={STREAM: 2, RULES: 9})
    x.rules["1"] = {"value": "has:mentions", "tag": ""}
    stream = follow(x)
    for number in (1, 2, 3):
        connected(stream, x, number)
        x.disconnect()
        assert x.wait_for(streams=0)
    refused = [at for at in time.waits if at]
    assert refused
    assert int(time.now // WINDOW_SECONDS) == int(1_700_000_000 // WINDOW_SECONDS) + 1
    assert len(x.requests(STREAM)) <= 4


# What waiting does not help -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (401, f"token of your X app into the environment variable {VARIABLE}"),
        (403, "which access your X app has"),
    ],
)
def test_a_refusal_that_lasts_ends_the_stream_with_a_remedy(
    x: XServer, follow: Follow, status: int, said: str
) -> None:
    stream = follow(x)
    x.refuse(STREAM, status, {"title": "No", "detail": f"not with {TOKEN}"})
    with pytest.raises(ConnectorError, match=said) as caught:
        stream.receive(0.1)
    assert "not with ***" in str(caught.value)


def test_without_rules_there_is_no_stream(serve: Serve, follow: Follow) -> None:
    with pytest.raises(
        ConnectorError, match=r"(?s)You must define rules.*say with the option rules"
    ):
        follow(serve()).receive(0.1)


def test_a_good_stream_survives_a_refusal(x: XServer, follow: Follow, time: Time) -> None:
    stream = follow(x)
    lasting(stream, x, time)
    x.refuse(STREAM, 401, {"title": "Unauthorized"})
    x.disconnect()
    received(stream, lambda _: stream.counts["connected"] == 2)
    assert sum(time.waits) == pytest.approx(5)


def test_where_backfill_is_not_allowed_the_stream_goes_on_without_it(
    x: XServer, follow: Follow, time: Time, caplog: pytest.LogCaptureFixture
) -> None:
    stream = follow(x, backfill_minutes=2)
    lasting(stream, x, time)
    x.refuse(
        STREAM,
        400,
        {"title": "Invalid Request", "detail": "backfill_minutes needs Enterprise access"},
    )
    time.now += 10
    x.disconnect()
    received(stream, lambda _: stream.counts["connected"] == 2)
    assert asked_for(x) == [None, "1", None]
    assert "asking without backfill_minutes" in caplog.text
    assert re.search(r"posts of \d+ s may be missing", caplog.text)


# After a restart ------------------------------------------------------------------------------


def batches_of(stream: FilteredStream, count: int) -> Iterator[pa.RecordBatch]:
    left = count
    while left > 0:
        batch = stream.receive(0.05)
        if batch is not None:
            left -= len(batch)
            yield batch


@pytest.mark.parametrize("is_in_memory", [False, True])
def test_one_who_begins_where_another_was_killed_knows_what_has_come(
    serve: Serve, follow: Follow, time: Time, is_in_memory: bool
) -> None:
    x = serve(connections=2)
    x.rules["1"] = {"value": "has:mentions", "tag": ""}
    first = follow(x)
    connected(first, x)
    x.publish([post(20), post(21)])
    batches = list(batches_of(first, 2))
    remembered = (
        Remembered(first.memory(), iter(())) if is_in_memory else Remembered(b"", iter(batches))
    )
    time.now += 50
    x.publish([post(22)])
    second = follow(x, remembered, backfill_minutes=5)
    received(second, come(22))
    assert asked_for(x) == [None, "2"]
    assert second.counts["again"] == 2


# Rules ----------------------------------------------------------------------------------------


def test_rules_become_those_that_are_wanted_with_as_few_changes_as_can_be(
    serve: Serve, follow: Follow
) -> None:
    x = serve()
    x.rules = {
        "1": {"value": "cats", "tag": "c"},
        "2": {"value": "dogs", "tag": "d"},
        "3": {"value": "old", "tag": ""},
    }
    wanted = (Rule("cats", "c"), Rule("dogs", "pets"), HAS_MENTIONS)
    connected(follow(x, rules=wanted), x)
    assert {Rule(**rule) for rule in x.rules.values()} == set(wanted)
    assert x.rules["1"] == {"value": "cats", "tag": "c"}
    # Only "dogs" could not be tried before it was deleted, as it stood there with another tag.
    assert [asked.body.get("delete") for asked in x.requests(RULES, "POST")] == [
        None,
        {"ids": ["2", "3"]},
        None,
    ]
    x.disconnect()
    before = len(x.requests(RULES, "POST"))
    assert x.wait_for(streams=0)
    connected(follow(x, rules=wanted), x)
    assert len(x.requests(RULES, "POST")) == before


def test_without_the_option_rules_stay_as_they_are(x: XServer, follow: Follow) -> None:
    connected(follow(x), x)
    assert x.requests(RULES) == []


def test_a_rule_that_x_does_not_understand_changes_nothing(serve: Serve, follow: Follow) -> None:
    x = serve()
    x.rules = {"1": {"value": "cats", "tag": "c"}}
    stream = follow(x, rules=(Rule("near:here", "n"), Rule("fine", "f")))
    with pytest.raises(ConnectorError, match=r"invalid operator 'near:here' \(near:here\)"):
        stream.receive(0.1)
    assert list(x.rules) == ["1"]


# The token ------------------------------------------------------------------------------------


def test_the_token_stands_in_no_message_whatever_x_says(
    patient: XServer, follow: Follow, time: Time, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    stream = follow(patient)
    patient.refuse(STREAM, 503, {"title": TOKEN, "detail": "AAAA/xyzzy="})
    connected(stream, patient)
    patient.send(json.dumps({"title": f"bye {TOKEN}"}).encode() + b"\r\n")
    received(stream, lambda _: stream.counts["connected"] == 2)
    assert "trying again" in caplog.text
    assert "xyzzy" not in caplog.text
    assert "xyzzy" not in repr(vars(stream))


def test_a_token_is_asked_for_by_the_name_of_its_variable(x: XServer, follow: Follow) -> None:
    with pytest.raises(
        ConnectorError, match="the environment variable MY_TOKEN must have the bearer token"
    ):
        follow(x, token_variable="MY_TOKEN")
