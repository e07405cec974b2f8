"""Recordings: the forms they may have, what is wrong with them, and what is only odd."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from acquatop.errors import UserError
from acquatop.lab.replay.oracle import Oracle
from acquatop.lab.replay.row_trace import RowTrace, open_recorded
from acquatop.lab.replay.trace import Trace, open_trace
from tests.support.recordings import (
    BY_EVENT,
    COUNTED,
    NS,
    REMOTE,
    STREAM,
    Row,
    catalog,
    lines,
    opened,
    query,
    rows_text,
    write,
)

USERS = f"{NS}user/"


def answers(trace: Trace) -> list[tuple[list[str], list[float]]]:
    return [(right.identities, right.merits.tolist()) for right in Oracle(trace)]


def test_windows_close_within_the_recording(tmp_path: Path) -> None:
    trace = opened(tmp_path)
    assert (trace.start_ms, trace.end_ms) == (0, 15)
    assert [trace.bound.windows.bounds(window)[1] for window in trace.windows()] == [9, 12, 15]


def test_without_a_start_it_is_the_first_event_s_time(tmp_path: Path) -> None:
    trace = opened(tmp_path, start="")
    assert trace.start_ms == 1
    assert trace.bound.windows.bounds(trace.windows()[0])[1] >= 1


def test_a_recording_lasts_as_long_as_either_file(tmp_path: Path) -> None:
    trace = opened(tmp_path, remote=[*REMOTE, (18, "cyd", 8)])
    assert [trace.bound.windows.bounds(window)[1] for window in trace.windows()] == [9, 12, 15, 18]
    assert trace.notes["rows of the remote that say what held already"] == 1


def test_plain_ids_and_iris_are_the_same(tmp_path: Path) -> None:
    asked = query(COUNTED)
    ids = opened(tmp_path / "ids", query=asked, arrivals="distinct", **BY_EVENT)
    as_iris: list[list[Row]] = [
        [(time, f"{USERS}{user}", n) for time, user, n in rows] for rows in (STREAM, REMOTE)
    ]
    text = catalog(arrivals="distinct", **BY_EVENT).replace(
        'key = "http://example.org/user/{subject}"', 'key = "{subject}"'
    )
    iris = open_trace(write(tmp_path / "iris", *as_iris, text), asked)
    assert answers(ids) == answers(iris) != []


def test_a_template_s_field_and_a_property_s_may_have_other_names(tmp_path: Path) -> None:
    mapping = {
        "subject": "http://example.org/user/{login}",
        "properties": '":mentions" = { field = "count", datatype = "xsd:integer" }, '
        '":unused" = { field = "other", datatype = "xsd:double" }',
    }
    assert answers(opened(tmp_path / "other", **mapping)) == answers(opened(tmp_path / "usual"))


def test_a_service_that_is_no_recording_is_replaced_by_remote_csv(tmp_path: Path) -> None:
    text = catalog()
    begin, end = text.index('remote = "table"'), text.index('[services.":people".refresh]')
    text = text[:begin] + 'endpoint = "http://127.0.0.1:9/query"\n' + text[end:]
    trace = open_trace(write(tmp_path / "sparql", STREAM, REMOTE, text), query())
    assert answers(trace) == answers(opened(tmp_path / "table"))


def test_parquet_is_read_as_csv_is(tmp_path: Path) -> None:
    folder = write(
        tmp_path / "parquet", STREAM, REMOTE, catalog().replace("remote.csv", "remote.parquet")
    )
    for name, rows in (("stream", STREAM), ("remote", REMOTE)):
        (folder / f"{name}.csv").unlink()
        columns = dict(
            zip(("time_ms", "subject", "value"), map(list, zip(*rows, strict=True)), strict=True)
        )
        pq.write_table(pa.table(columns), folder / f"{name}.parquet")
    assert answers(open_trace(folder, query())) == answers(opened(tmp_path / "csv"))


def test_what_a_recorder_has_written_is_a_recording(tmp_path: Path) -> None:
    text = (
        catalog(subject="http://example.org/user/{user}")
        .replace("stream.csv", "events")
        .replace("time_ms", "t", 1)
    )
    text = text.replace('"value"', '"n"', 1).replace("remote.csv", "remote.jsonl")
    folder = write(tmp_path / "recorded", [], [], text)
    (folder / "stream.csv").unlink()
    (folder / "events").mkdir()
    (folder / "events" / "1.ndjson").write_text(lines(STREAM[:3]) + "not JSON\n", "utf-8")
    (folder / "events" / "2.ndjson").write_text(lines(STREAM[3:]), "utf-8")
    said = [
        f'{{"time_ms": {time}, "subject": "{user}", "value": {n}}}\n' for time, user, n in REMOTE
    ]
    (folder / "remote.jsonl").write_text("".join(said), "utf-8")
    trace = open_trace(folder, query())
    assert answers(trace) == answers(opened(tmp_path / "plain"))
    assert trace.notes["events that cannot be used"] == 1


def test_rows_may_stand_in_any_order(tmp_path: Path) -> None:
    usual = opened(tmp_path / "sorted")
    shuffled = opened(
        tmp_path / "shuffled", stream=[*STREAM[3:], *STREAM[:3]], remote=[*REMOTE[::-1]]
    )
    assert answers(shuffled) == answers(usual)
    assert shuffled.notes["events behind later ones, taken in the order of their times"] == 3
    assert (
        shuffled.notes["rows of the remote behind later ones, taken in the order of their times"]
        == 4
    )


def test_equal_rows_are_as_many_events_and_counted(tmp_path: Path) -> None:
    said = {"arrivals": "distinct", "query": query(COUNTED), **BY_EVENT}
    once = opened(tmp_path / "once", **said)
    twice = opened(tmp_path / "twice", stream=[*STREAM, (15, "ann", 9)], **said)
    assert twice.notes["events that are the same as another"] == 1
    assert (
        dict(zip(*answers(twice)[-1], strict=True))[f"<{USERS}ann>"]
        == 18 + dict(zip(*answers(once)[-1], strict=True))[f"<{USERS}ann>"]
    )


def test_what_is_odd_is_counted(tmp_path: Path) -> None:
    stream = [*STREAM, (15, "ann", 9), (60, "dan", 1), (61, "eve", 1), (90, "ann", 1)]
    trace = opened(tmp_path, stream=stream, remote=[*REMOTE, (70, "eve", 1)])
    notes = {what: count for what, count in trace.notes.items() if "later ones" not in what}
    assert notes == {
        "events that are the same as another": 1,
        "windows without events": 18,
        "subjects of the stream that the remote never has": 1,
        "subjects of the stream that the remote has only later": 1,
    }


def test_a_remote_may_have_nothing_any_more(tmp_path: Path) -> None:
    trace = opened(tmp_path, remote=[*REMOTE, (14, "ann", "")])
    assert [f"<{USERS}ann>" in found for found, _ in answers(trace)] == [True, True, False]


BAD = {
    "time": (
        [(1, "ann", 1), ("noon", "bob", 2)],
        REMOTE,
        "stream.csv:3: time_ms is not in whole milliseconds",
    ),
    "no time": ([("", "ann", 1)], REMOTE, "stream.csv:2: time_ms is not"),
    "subject": ([(1, "", 1)], REMOTE, "stream.csv:2: there is no subject"),
    "value": (
        [(1, "ann", 1.5), (2, "bob", "x")],
        REMOTE,
        r"stream.csv:2: the value is not a whole number \(and in 1",
    ),
    "no value": ([(1, "ann", "")], REMOTE, "stream.csv:2: the value is not a whole number"),
    "no IRI": (
        [(1, "a b", 1)],
        REMOTE,
        'stream.csv:2: the field "subject" does not fit into an IRI',
    ),
    "no events": ([], REMOTE, "no event that can be used"),
    "remote's time": (
        STREAM,
        [("x", "ann", 1)],
        'remote.csv:2: "time_ms" is not in whole milliseconds',
    ),
    "remote's value": (
        STREAM,
        [(0, "ann", 1), (1, "ann", "x")],
        'remote.csv:3: "value" is not xsd:integer',
    ),
    "remote's subject": (STREAM, [(0, "", 1)], 'remote.csv:2: no "subject"'),
    "two values": (
        STREAM,
        [(0, "ann", 1), (3, "ann", 2), (3, "ann", 4)],
        "remote.csv:4: .* has another value at the",
    ),
    "no remote": (STREAM, [], "remote.csv has no rows"),
    "late remote": (
        STREAM,
        [(3, "ann", 1)],
        "the remote's recording begins at 3 ms, the replay at 0 ms",
    ),
    "too short": (
        [(1, "ann", 1)],
        [(0, "ann", 1)],
        "no window of 9 ms closes within the recording",
    ),
    "a clock that jumps": (
        [(1, "ann", 1), (10**9, "ann", 1), (10**9 + 1, "ann", 1)],
        REMOTE,
        "more than 100,000\n  hint: the longest gap between events is from 1 to 1000000000 ms",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_used_is_named_with_its_place(case: str, tmp_path: Path) -> None:
    stream, remote, message = BAD[case]
    with pytest.raises(UserError, match=message):
        opened(tmp_path, stream=stream, remote=remote)


def test_a_folder_without_a_catalog_is_no_recording(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is not there\n  hint: a trace is a folder with"):
        open_trace(tmp_path, query())


def test_a_header_must_be_the_plain_one(tmp_path: Path) -> None:
    folder = write(tmp_path, STREAM, REMOTE)
    (folder / "stream.csv").write_text(rows_text(STREAM, header="when,who,what"), "utf-8")
    with pytest.raises(
        UserError,
        match="has the columns when, who, what\n  hint: the first line of a plain file is",
    ):
        open_trace(folder, query())


def test_two_files_of_one_thing_are_one_too_many(tmp_path: Path) -> None:
    folder = write(tmp_path, STREAM, REMOTE)
    pq.write_table(
        pa.table({"time_ms": [1], "subject": ["a"], "value": [1]}), folder / "stream.parquet"
    )
    with pytest.raises(UserError, match=r"has both stream\.csv and stream\.parquet"):
        open_trace(folder, query())


def test_ids_and_iris_are_not_mixed(tmp_path: Path) -> None:
    text = catalog().replace(
        'remote = "table"\npath = "remote.csv"\ntime = "time_ms"',
        'remote = "table"\npath = "x.csv"',
    )
    with pytest.raises(UserError, match="both plain ids and IRIs"):
        open_trace(write(tmp_path, STREAM, [(0, "ann", 1), (0, f"{USERS}bob", 1)], text), query())


def test_only_queries_that_ask_a_remote_are_replayed(tmp_path: Path) -> None:
    folder = write(tmp_path, STREAM, REMOTE)
    alone = (
        query()
        .replace("SERVICE :people { ?user :followers ?followers }", "")
        .replace("+ ?followers", "")
        .replace("?followers", "")
    )
    with pytest.raises(UserError, match="asks no remote"):
        open_recorded(folder, alone)
    anew = query().replace("SELECT ?user", "SELECT (UUID() AS ?id) ?user")
    assert isinstance(open_recorded(folder, anew), RowTrace)
    with pytest.raises(ValueError, match="judged by their rows"):
        open_trace(folder, anew)


def test_what_was_before_the_recording_is_not_guessed(tmp_path: Path) -> None:
    (history,) = opened(tmp_path).histories
    with pytest.raises(UserError, match="what the remote had at -1 ms is not in its recording"):
        list(history.states([-1], []))
