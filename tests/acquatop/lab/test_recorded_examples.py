"""The examples' queries, recorded, evaluated and advised by the verbs of the command line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyoxigraph as ox
import pytest

from acquatop.app.cli import main
from acquatop.lab.replay.oracle import Oracle
from acquatop.lab.replay.trace import open_trace
from examples.manufacturing import plant
from examples.oxigraph import OxigraphServer
from examples.social_media.world import LOOKS_BACK_SECONDS, SocialNetwork
from tests.support.markers import THOROUGH

EXAMPLES = Path(__file__).parents[3] / "examples"
BEGIN_MS, SECONDS = 1_000_000, 24
Rows = list[dict[str, Any]]

SOCIAL_MEDIA = """
[prefixes]
"" = "http://example.org/social#"
[streams.":S"]
connector = "lines"
arrivals = "latest"
options = { path = "stream.ndjson" }
[streams.":S".mapping]
subject = "http://example.org/social/user/{user}"
time = "time_ms"
properties = { ":hasMentions" = { field = "mentions", datatype = "xsd:integer" } }
[services.":BKG"]
remote = "table"
path = "remote.jsonl"
time = "time_ms"
refresh = { policy = "AT-TSM", items = 8, deadline = "60s" }
[services.":BKG".mapping]
key = "http://example.org/social/user/{user}"
properties = { ":hasFollowers" = { field = "followers", datatype = "xsd:integer" } }
"""
MANUFACTURING = """
[prefixes]
"" = "http://example.org/plant#"
[streams.":Sensors"]
connector = "lines"
arrivals = "latest"
options = { path = "stream.ndjson" }
[streams.":Sensors".mapping]
subject = "http://example.org/plant/machine/{machine}"
time = "time_ms"
properties = { ":vibration" = { field = "vibration", datatype = "xsd:double" } }
"""
ENDPOINT = """
[services.":ERP"]
endpoint = "%s"
solutions = "many"
refresh = { policy = "AT-TSM", items = 8, deadline = "60s" }
"""
TABLE = """
[services.":ERP"]
remote = "table"
path = "remote.jsonl"
time = "time_ms"
solutions = "many"
refresh = { policy = "AT-TSM", items = 8, deadline = "60s" }
[services.":ERP".mapping]
key = "http://example.org/plant/machine/{machine}"
[services.":ERP".mapping.patterns.\
"?instrument :mountedOn ?machine ; :makes ?product ; :daysSinceMaintenance ?days"]
key = "machine"
[services.":ERP".mapping.patterns.\
"?instrument :mountedOn ?machine ; :makes ?product ; :daysSinceMaintenance ?days".variables]
instrument = { field = "instrument", datatype = "http://example.org/plant/instrument/{}" }
product = { field = "product" }
days = { field = "days", datatype = "xsd:integer" }
"""


def write(path: Path, rows: Rows) -> None:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")


def mentions_and_followers(folder: Path) -> tuple[Rows, Rows]:
    """Write what a simulated network says and has; return it."""
    network = SocialNetwork(1)
    mentions: Rows = []
    followers = [
        {"time_ms": BEGIN_MS - 60_000, "user": user, "followers": count}
        for user, count in network.followers.items()
    ]
    for at in range(BEGIN_MS, BEGIN_MS + 1000 * SECONDS, 10):
        mentions += network.mentions(at, count=1)
        if at % 250 == 0:
            changed = network.followers_change(count=10).items()
            followers += [{"time_ms": at, "user": user, "followers": n} for user, n in changed]
    write(folder / "stream.ndjson", mentions)
    write(folder / "remote.jsonl", followers)
    return mentions, followers


def readings_and_instruments(folder: Path) -> tuple[Rows, Rows]:
    """Write what a simulated plant says and has; return it."""
    world = plant.Plant(7)
    readings: Rows = []
    instruments: Rows = []

    def note(at: int, machines: list[str]) -> None:
        instruments.extend(
            {
                "time_ms": at,
                "machine": machine,
                "instrument": instrument,
                "product": world.products[instrument],
                "days": world.days[instrument],
            }
            for instrument, machine in plant.INSTRUMENTS.items()
            if machine in machines
        )

    note(BEGIN_MS - 60_000, plant.MACHINES)
    for at in range(BEGIN_MS, BEGIN_MS + 1000 * SECONDS, 10):
        for topic, payload in world.readings(at, count=1):
            readings.append({**json.loads(payload), "machine": topic.split("/")[1]})
        if at % 1000 == 0:
            note(at, [plant.INSTRUMENTS[each] for each in world.maintain(6)])
    write(folder / "stream.ndjson", readings)
    write(folder / "remote.jsonl", instruments)
    return readings, instruments


def recorded(folder: Path, query: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """Record a query; return what the command says of the recording."""
    files = ["--catalog", str(folder / "catalog.toml"), "--query", str(query)]
    count = len((folder / "stream.ndjson").read_text("utf-8").splitlines())
    more = ["--events", str(count), "--snapshot-every", "2s", "--json"]
    assert main(["record", *files, "--out", str(folder / "out"), *more]) == 0
    said: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (said["events"], said["left_out"], said["snapshots_failed"]) == (count, {}, {})
    return said


def judged(folder: Path, capsys: pytest.CaptureFixture[str], *options: str) -> Iterator[Any]:
    """Yield what evaluate says of a recording in some settings."""
    files = ["--trace", str(folder), "--query", str(folder / "query.rspql")]
    assert main(["evaluate", *files, *options, "--processes", "1", "--json"]) == 0
    yield from map(json.loads, capsys.readouterr().out.splitlines())


def advised(folder: Path, capsys: pytest.CaptureFixture[str], target: str) -> dict[str, Any]:
    files = ["--trace", str(folder), "--query", str(folder / "query.rspql")]
    few = ["--policies", "ANY-IMP,AT-LRU", "--budgets", "2,8,40", "-n", "0,40", "--processes", "1"]
    assert main(["advise", *files, *few, "--target", target, "--json"]) == 0
    said: dict[str, Any] = json.loads(capsys.readouterr().out)
    return said


@THOROUGH
@pytest.mark.parametrize("name", ["query.rspql", "contacts.rspql"])
def test_the_social_media_example_is_recorded_evaluated_and_advised(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    mentions_and_followers(tmp_path)
    (tmp_path / "catalog.toml").write_text(SOCIAL_MEDIA, "utf-8")
    recorded(tmp_path, EXAMPLES / "social_media" / name, capsys)
    settings = ["--policies", "WSJ-ASM,ANY-IMP", "--budgets", "1,40"]
    cells = list(judged(tmp_path / "out", capsys, *settings))
    precision = {(each["policy"], each["budget"]): each["precision"]["mean"] for each in cells}
    assert precision["WSJ-ASM", 40] > 0.95
    assert precision["ANY-IMP", 1] < precision["ANY-IMP", 40]
    assert advised(tmp_path / "out", capsys, "precision=0.7")["choice"]["budget"] in (2, 8, 40)


def test_growth_is_judged_by_what_the_remote_had(tmp_path: Path) -> None:
    mentions, followers = mentions_and_followers(tmp_path)
    (tmp_path / "catalog.toml").write_text(SOCIAL_MEDIA, "utf-8")
    trace = open_trace(tmp_path, (EXAMPLES / "social_media" / "query.rspql").read_text("utf-8"))

    def at(time_ms: int) -> dict[str, int]:
        return {row["user"]: row["followers"] for row in followers if row["time_ms"] <= time_ms}

    judged = 0
    for right in Oracle(trace):
        then = right.closes_ms - round(1000 * LOOKS_BACK_SECONDS)
        now, before = at(right.closes_ms), at(then) if then >= BEGIN_MS else {}
        latest = {
            row["user"]: row["mentions"]
            for row in mentions
            if right.closes_ms - 6000 < row["time_ms"] <= right.closes_ms
        }
        expected = {
            user: 0.5 * min(1, count / 40)
            + 0.5 * max(0, min(1, (now[user] - before[user]) / before[user]))
            for user, count in latest.items()
            if now[user] < 50_000 and user in before
        }
        users = [each.rpartition("/")[2].rstrip(">") for each in right.identities]
        assert dict(zip(users, right.merits.tolist(), strict=True)) == pytest.approx(expected)
        judged += len(expected)
    assert judged > 100


@THOROUGH
def test_the_manufacturing_example_is_recorded_evaluated_and_advised(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    readings_and_instruments(tmp_path)
    (tmp_path / "catalog.toml").write_text(MANUFACTURING + TABLE, "utf-8")
    recorded(tmp_path, EXAMPLES / "manufacturing" / "query.rspql", capsys)
    settings = ["--policies", "WSJ-ASM,ANY-IMP", "--budgets", "1,40", "-n", "40"]
    cells = list(judged(tmp_path / "out", capsys, *settings))
    precision = {(each["policy"], each["budget"]): each["precision"]["mean"] for each in cells}
    assert precision["WSJ-ASM", 40] == precision["ANY-IMP", 40] == 1
    assert precision["ANY-IMP", 1] < 1
    assert advised(tmp_path / "out", capsys, "precision=0.9")["choice"]["budget"] in (2, 8, 40)


def test_instruments_on_machines_are_judged_as_a_sparql_engine_would(tmp_path: Path) -> None:
    readings, instruments = readings_and_instruments(tmp_path)
    (tmp_path / "catalog.toml").write_text(MANUFACTURING + TABLE, "utf-8")
    trace = open_trace(tmp_path, (EXAMPLES / "manufacturing" / "query.rspql").read_text("utf-8"))
    for right in Oracle(trace):
        held: dict[str, tuple[int, Rows]] = {}
        for row in instruments:
            if row["time_ms"] <= right.closes_ms:
                time_ms, rows = held.get(row["machine"], (0, []))
                rows = rows if time_ms == row["time_ms"] else []
                held[row["machine"]] = row["time_ms"], [*rows, row]
        latest = {
            row["machine"]: row["vibration"]
            for row in readings
            if right.closes_ms - 6000 < row["time_ms"] <= right.closes_ms
        }
        store = ox.Store()
        lines = [
            f'<urn:i:{row["instrument"]}> <urn:on> "{machine}" ; <urn:days> {row["days"]} .'
            for machine, (_, rows) in held.items()
            for row in rows
        ]
        lines += [
            f'<urn:m:{each}> <urn:m> "{each}" ; <urn:v> {v}e0 .' for each, v in latest.items()
        ]
        store.load("\n".join(lines), ox.RdfFormat.TURTLE)
        found = store.query(
            "SELECT ?i (0.6 * ?v / 50 + 0.4 * ?days / 365 AS ?score) {"
            "?x <urn:m> ?m ; <urn:v> ?v . ?i <urn:on> ?m ; <urn:days> ?days } ORDER BY DESC(?score)"
        )
        assert isinstance(found, ox.QuerySolutions)
        scores = [float(each["score"].value) for each in found]  # type: ignore[union-attr]
        assert right.merits.tolist() == pytest.approx(scores)


@pytest.mark.server
def test_the_manufacturing_example_is_recorded_from_an_endpoint(
    tmp_path: Path, server: OxigraphServer, capsys: pytest.CaptureFixture[str]
) -> None:
    world = plant.Plant(7)
    server.update("CLEAR ALL")
    plant.store(server, world)
    readings_and_instruments(tmp_path)
    text = MANUFACTURING + ENDPOINT % server.query_url
    (tmp_path / "catalog.toml").write_text(text, "utf-8")
    recorded(tmp_path, EXAMPLES / "manufacturing" / "query.rspql", capsys)
    kept = [json.loads(line) for line in (tmp_path / "out" / "remote.jsonl").open("rb")]
    assert {
        (row["subject"].rpartition("/")[2], row["p0"].rpartition("/")[2], row["p1"], row["p2"])
        for row in kept
        if "p0" in row
    } == {
        (machine, each, world.products[each], world.days[each])
        for each, machine in plant.INSTRUMENTS.items()
    }
    (cell,) = judged(tmp_path / "out", capsys, "--policies", "ANY-IMP", "--budgets", "40")
    assert cell["precision"]["mean"] == 1
