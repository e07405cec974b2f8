"""A query on two services is recorded, and its recording gives a report and advice."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from acquatop.app.cli import main
from acquatop.lab.record.remote_log import PatternTape, RemoteTape
from acquatop.lab.record.table_column import TableColumn
from acquatop.lab.replay.oracle import Oracle
from acquatop.lab.replay.trace import open_trace
from examples.oxigraph import OxigraphServer
from tests.support.recorded_runs import USERS, append, replayed
from tests.support.worlds import NS, Event, catalog_text, integer, user_term

SECOND = """
[services."http://example.org/skills"]
endpoint = "{endpoint}"
load = false
[services."http://example.org/skills".refresh]
items = 1
deadline = "30s"
"""
QUERY = f"""PREFIX : <{NS}>
SELECT ?user ?mentions ?tool ?age (?mentions + ?age AS ?score)
FROM NAMED WINDOW :w ON :stream [RANGE 9ms STEP 3ms]
WHERE {{ WINDOW :w {{ ?user :mentions ?mentions }} SERVICE :people {{ ?user :tool ?tool }}
  SERVICE :skills {{ ?tool :age ?age }} FILTER(?age > 0) }}
ORDER BY DESC(?score) LIMIT 2
"""


def test_a_query_on_two_services_is_recorded_evaluated_and_advised(
    server: OxigraphServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chance = random.Random(3)
    tools = [
        f"{user_term(user)} :tool :t{at} . :t{at} :age {chance.randint(0, 9)} ."
        for user in USERS
        for at in chance.sample(range(5), 2)
    ]
    server.update(f"PREFIX : <{NS}> CLEAR ALL; INSERT DATA {{ {' '.join(tools)} }}")
    catalog = catalog_text(endpoint=server.query_url, start="start_ms = 0", deadline="30s")
    (tmp_path / "catalog.toml").write_text(
        catalog + SECOND.format(endpoint=server.query_url), "utf-8"
    )
    (tmp_path / "q.rspql").write_text(QUERY, "utf-8")
    append(tmp_path, [Event(at, chance.choice(USERS), chance.randint(0, 5)) for at in range(1, 40)])
    files = ["--catalog", "catalog.toml", "--query", "q.rspql", "--out", "out"]
    files = [str(tmp_path / each) if "." in each or each == "out" else each for each in files]
    assert main(["record", *files, "--events", "39", "--snapshot-every", "3ms", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["left_out"], said["snapshots_failed"]) == ({}, {})
    assert said["snapshot_requests"] > 0

    trace = open_trace(tmp_path / "out", QUERY)
    right = {each.closes_ms: each for each in Oracle(trace)}
    answers = replayed(tmp_path / "out")
    assert len(answers) >= len(right) > 10
    assert any(answer.rows for answer in answers)

    recording = ["--trace", str(tmp_path / "out"), "--query", str(tmp_path / "out" / "query.rspql")]
    more = ["--policies", "ANY-IMP,WSJ-LRU", "--budgets", "1,9", "--processes", "1"]
    assert main(["evaluate", *recording, *more, "--json"]) == 0
    cells = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    precision = {(each["policy"], each["budget"]): each["precision"]["mean"] for each in cells}
    assert precision["ANY-IMP", 9] == 1
    assert precision["ANY-IMP", 1] < 1
    assert main(["advise", *recording, *more, "--target", "precision=0.9", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["choice"]["budget"] == 9


def test_patterns_of_one_service_share_a_file_and_survive_a_kill(tmp_path: Path) -> None:
    path, keys = tmp_path / "remote.jsonl", [user_term("a"), user_term("b")]

    def opened() -> tuple[PatternTape, PatternTape]:
        columns = [[TableColumn("p0", "urn:f", "f")], [TableColumn("p1", "urn:n", "n")]]
        tape = RemoteTape(path, columns)
        second = PatternTape(tape, "user", 1, {"m": "n"}, many=True)
        return PatternTape(tape, "user", 0, many=True), second

    first, second = opened()
    first.meet(keys, 0)
    first.add(keys[:1], [{"user": keys[0], "f": integer(each)} for each in (1, 2)], 5)
    second.add(keys[:1], [{"user": keys[0], "m": integer(7)}], 6)
    second.add(keys[1:], [], 6)
    first.tape.close()
    with path.open("ab") as file:
        file.write(b'{"time_ms": 9')
    first, second = opened()
    assert first.due(9, 7) == keys
    first.add(keys[:1], [{"user": keys[0], "f": integer(each)} for each in (2, 1)], 6)
    first.add(keys[:1], [], 8)
    first.tape.close()
    a, b = f"{NS}user/a", f"{NS}user/b"
    assert [json.loads(line) for line in path.read_text("utf-8").splitlines()] == [
        {"time_ms": 0, "subject": a},
        {"time_ms": 0, "subject": b},
        {"time_ms": 5, "subject": a, "p0": 1},
        {"time_ms": 5, "subject": a, "p0": 2},
        {"time_ms": 6, "subject": a, "p0": 1, "p1": 7},
        {"time_ms": 6, "subject": a, "p0": 2, "p1": 7},
        {"time_ms": 6, "subject": b},
        {"time_ms": 8, "subject": a, "p1": 7},
    ]
