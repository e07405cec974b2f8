"""The benchmark of the Spark runtime: its data, the answers that all engines must give,
and what peers print.
"""

import itertools
import json
import sys
import tempfile
import tomllib
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pyoxigraph
import pytest

from benchmarks.spark_bench import latency, live, peers, rspjs, rsprs
from benchmarks.spark_bench.child import ChildFailed, run
from benchmarks.spark_bench.data import (
    SLIDE_MS,
    START_MS,
    TOP,
    TRIPLE_FILES,
    WIDTH_MS,
    World,
    blocks,
    prepare,
)
from benchmarks.spark_bench.feed import Feed
from benchmarks.spark_bench.floor import differences, events, sums
from benchmarks.spark_bench.lines import Line, checked
from benchmarks.spark_bench.ours import query
from benchmarks.spark_bench.shapes import KEYED, PAIRS, READINGS, Event, Shape

ALL = (KEYED, READINGS, PAIRS)
WORLD = World(rows=2_000, keys=50, rows_per_file=300)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    prepare(WORLD)
    return WORLD


def rows(world: World) -> list[dict]:
    return pq.read_table(world.readings).to_pylist()


def weights(world: World) -> list[float]:
    return pq.read_table(world.weights)["weight"].to_pylist()


def test_data_is_the_same_every_time_and_in_order(world: World) -> None:
    found = rows(world)
    assert found == [row for block in blocks(WORLD) for row in block.to_pylist()]
    assert [row["event"] for row in found] == list(range(WORLD.rows + 1))
    times = [row["time_ms"] for row in found]
    assert times == sorted(times)
    assert all(row["time"].timestamp() * 1000 == row["time_ms"] for row in found)
    assert not any(time % SLIDE_MS == 0 for time in times)


def test_last_row_closes_every_window_and_is_in_none_of_them(world: World) -> None:
    *others, last = (row["time_ms"] for row in rows(world))
    assert last > world.closes[-1] + WIDTH_MS
    assert world.closes[0] - SLIDE_MS < others[0] <= world.closes[0]
    assert world.closes[-1] - WIDTH_MS < others[-1] <= world.closes[-1]
    assert others[0] > START_MS


def test_files_are_read_by_spark_in_their_order(world: World) -> None:
    files = sorted(world.readings.iterdir())
    assert len(files) == -(-WORLD.rows // WORLD.rows_per_file)
    changed = [file.stat().st_mtime for file in files]
    assert changed == sorted(set(changed))


def test_triples_say_what_the_readings_say(world: World) -> None:
    files = sorted(world.triples.iterdir())
    assert len(files) == TRIPLE_FILES
    said = list(pyoxigraph.parse(path=str(files[1]), format=pyoxigraph.RdfFormat.N_TRIPLES))
    first = rows(world)[WORLD.rows_per_file]
    assert len(said) == 3 * WORLD.rows_per_file
    assert [each.object.value for each in said[:3]] == [
        first["key"],
        str(first["value"]).removesuffix(".0"),
        str(first["time_ms"]),
    ]


def naive(world: World, score, who: str) -> dict[int, list[tuple[int, float]]]:
    found = {}
    for close in world.closes:
        inside = [row for row in rows(world) if close - WIDTH_MS < row["time_ms"] <= close]
        scores: dict[int, float] = {}
        for row in inside:
            scores[row[who]] = scores.get(row[who], 0.0) + score(row)
        found[close] = sorted(scores.items(), key=lambda pair: -pair[1])[:TOP]
    return found


def test_sums_are_those_of_a_plain_loop(world: World) -> None:
    weight = weights(world)
    totals = naive(world, lambda row: row["value"], "key_id")
    assert {close: len(each) for close, each in sums(world).items()} == {
        close: len(each) for close, each in totals.items()
    }
    close = world.closes[5]
    inside = [row for row in rows(world) if close - WIDTH_MS < row["time_ms"] <= close]
    scores = [
        (key, sum(row["value"] for row in inside if row["key_id"] == key) * weight[key])
        for key in range(50)
    ]
    assert sums(world)[close] == sorted(scores, key=lambda pair: -pair[1])[:TOP]


def test_events_are_those_of_a_plain_loop(world: World) -> None:
    weight = weights(world)
    assert events(world) == naive(world, lambda row: row["value"] * weight[row["key_id"]], "event")


def test_sums_of_the_first_files_are_of_windows_that_hold_them(world: World) -> None:
    whole, part = sums(world), sums(world, TRIPLE_FILES)
    assert 0 < len(part) < len(whole)
    same = [close for close in part if part[close] == whole[close]]
    assert same == list(world.closes[: len(same)])
    assert len(same) > 5


def test_other_answers_are_noticed(world: World) -> None:
    expected = sums(world)
    assert differences(expected, expected) == []
    close, found = next(iter(expected.items()))
    wrong = {**expected, close: [found[1], found[0], *found[2:]]}
    assert len(differences(expected, wrong)) == 1
    assert len(differences(expected, {})) == len(expected)


def test_a_feed_knows_its_answers() -> None:
    feed = Feed(slides=4, events=30, keys=20)
    slides = list(feed)
    assert slides == list(feed)
    # A window holds its own events, and the one that closed the slide before.
    inside = [each for slide in slides[:3] for each in (*slide.events, slide.closing)][:-1]
    totals = np.zeros(20)
    for key, value in {(each.key, each.value) for each in inside}:
        totals[key] += value * feed.weights[key]
    best = np.argsort(-totals, kind="stable")[:TOP]
    assert feed.answers()[slides[2].close] == [(int(key), totals[key]) for key in best]


def test_equal_triples_count_once_and_equal_events_of_their_own_each_time() -> None:
    twice = [Event(1, 7, 30, 0), Event(2, 7, 30, 1), Event(3, 8, 50, 2)]
    assert KEYED.scores(twice) == {7: 30, 8: 50}
    assert PAIRS.scores(twice) == {7: 60, 8: 50}
    assert READINGS.scores(twice) == {0: 30, 1: 30, 2: 50}
    triples = {shape: [triple for each in twice for triple in shape.triples(each)] for shape in ALL}
    assert [len(triples[each]) for each in ALL] == [3, 3, 6]
    assert [len(set(triples[each])) for each in ALL] == [2, 3, 6]


@pytest.mark.parametrize(
    ("shape", "arrivals"),
    [each for each in itertools.product(ALL, ("all", "distinct")) if each != (KEYED, "distinct")],
    ids=lambda each: getattr(each, "name", each),
)
def test_the_engine_answers_each_shape_as_expected(shape: Shape, arrivals: str) -> None:
    feed = Feed(slides=4, events=40, keys=20, joined=False, shape=shape)
    result = live.live(feed, "local", arrivals)
    assert checked(Line("ours"), feed.answers(), result).is_right
    assert len(result["latencies"]) == len(result["cpu"]) == 4


def test_a_wrong_answer_of_an_engine_is_noted() -> None:
    feed = Feed(slides=4, events=40, keys=20, shape=PAIRS)
    (close, rows), *others = feed.answers().items()
    swapped = {"answers": [(close, [rows[1], rows[0], *rows[2:]]), *others]}
    line = checked(Line("peer", note="1.0"), feed.answers(), swapped)
    assert not line.is_right
    assert "1.0; WRONG in 1 of 4 windows" in line.note


def test_figures_leave_out_the_first_windows_and_tell_wall_from_cpu() -> None:
    feed = Feed(slides=8, events=100, keys=20)
    result = {
        "latencies": [900.0] * 5 + [1.0, 3.0, 2.0],
        "cpu": [800.0] * 5 + [0.5, 1.5, 1.0],
        "seconds": 2.0,
        "cpu_seconds": 1.0,
    }
    assert latency.figures(feed, result) == {
        "windows": 3,
        "median ms": 2,
        "p99 ms": 3,
        "CPU ms": 1,
        "events/s": 400,
        "events/CPU s": 800,
    }


def test_what_rspjs_prints_becomes_answers() -> None:
    printed = '[[3000, [{"key": "http://example.org/key/7", "score": "12"}]], [6000, []]]'
    assert rspjs.parse(json.loads(printed), "key") == {3000: [(7, 12.0)], 6000: []}


def test_what_rsprs_prints_becomes_answers() -> None:
    row = (
        '{Variable { name: "key" }: NamedNode(NamedNode { iri: "http://example.org/key/7" }), '
        'Variable { name: "score" }: Literal(Literal(TypedLiteral { value: "12", datatype: '
        'NamedNode { iri: "http://www.w3.org/2001/XMLSchema#integer" } }))}'
    )
    assert rsprs.parse([(3000, [row]), (6000, [])]) == {3000: [(7, 12.0)], 6000: []}
    with pytest.raises(ChildFailed, match=r"cannot be read: \{\}"):
        rsprs.parse([(3000, ["{}"])])


def test_the_lock_file_of_rspjs_holds_hashes_and_no_addresses_of_packages() -> None:
    packages = json.loads((rspjs.PEER / "package-lock.json").read_text())["packages"]
    assert all(each["integrity"] for name, each in packages.items() if name)
    assert not any("resolved" in each for each in packages.values())


def test_the_lock_file_of_rsprs_holds_hashes_and_no_addresses_of_packages() -> None:
    assert "://" not in rsprs.LOCK.read_text()
    own, *others = sorted(
        tomllib.loads(rsprs.lock_for_cargo())["package"], key=lambda each: "source" in each
    )
    assert own["name"] == tomllib.loads((rsprs.PEER / "Cargo.toml").read_text())["package"]["name"]
    assert all(each["source"] and each["checksum"] for each in others)
    assert rsprs.version() == "0.3.5"


def test_a_missing_cargo_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ChildFailed, match="cargo missing: install Rust"):
        rsprs.measure(Feed(slides=1, events=30, keys=20), lambda _: None)


def test_peers_are_given_the_triples_and_weights_of_a_feed() -> None:
    feed = Feed(slides=2, events=30, keys=20, shape=PAIRS)
    with peers.job_file(feed) as file:
        job = json.loads(Path(file).read_text())
    slide = next(iter(feed))
    time, triples = job["slides"][0]["closing"]
    assert (time, len(triples)) == (slide.closing.time, 2)
    assert triples[0][2] == f"http://example.org/key/{slide.closing.key}"
    assert triples[1][2][0] == str(slide.closing.value)
    assert [each[2][0] for each in job["statics"]] == [str(each) for each in feed.weights]


def test_a_child_hands_back_its_result_and_how_far_it_has_come() -> None:
    heard: list[str] = []
    code = (
        'print("noise"); print(\'{"progress": "1 of 2"}\'); print(\'{"result": {"seconds": 2}}\')'
    )
    assert run([sys.executable, "-c", code], heard.append) == {"seconds": 2}
    assert heard == ["1 of 2"]


def test_a_child_without_a_result_says_why() -> None:
    with pytest.raises(ChildFailed, match="code 3: no memory"):
        run(
            [sys.executable, "-c", "import sys; print('no memory', file=sys.stderr); sys.exit(3)"],
            lambda _: None,
        )


@pytest.mark.parametrize(
    ("job", "filtered"), [("sums", False), ("sums", True), ("events", False), ("events", True)]
)
def test_queries_of_one_job_differ_and_the_first_is_the_job(job: str, *, filtered: bool) -> None:
    texts = [query(job, number, filtered=filtered) for number in range(20)]
    assert len(set(texts)) == 20
    assert texts[0] == query(job) or "FILTER" in texts[0]
