"""The benchmark of the Spark runtime: its data, the answers that all engines must give,
and what peers print.
"""

import json
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pyoxigraph
import pytest

from benchmarks.spark_bench import rspjs
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
from benchmarks.spark_bench.ours import query

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
    for key, value in {(key, value) for _, key, value in inside}:
        totals[key] += value * feed.weights[key]
    best = np.argsort(-totals, kind="stable")[:TOP]
    assert feed.answers()[slides[2].close] == [(int(key), totals[key]) for key in best]


def test_what_rspjs_prints_becomes_answers() -> None:
    printed = '[[3000, [{"key": "http://example.org/key/7", "score": "12"}]], [6000, []]]'
    assert rspjs.parse(json.loads(printed)) == {3000: [(7, 12.0)], 6000: []}


def test_the_lock_file_of_rspjs_holds_hashes_and_no_addresses_of_packages() -> None:
    packages = json.loads((rspjs.PEER / "package-lock.json").read_text())["packages"]
    assert all(each["integrity"] for name, each in packages.items() if name)
    assert not any("resolved" in each for each in packages.values())


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
