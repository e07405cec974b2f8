"""Keys that executors keep: the same answers as the driver's, no file too few or too many."""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from acquatop import Engine
from acquatop.catalog.catalog import Catalog, CatalogError
from acquatop.errors import EnvironmentProblem, UserError
from acquatop.ingest.buckets import bucket_keys
from acquatop.ingest.buckets.chunk_folder import ChunkFolder
from acquatop.ingest.buckets.task import Bucket, BucketFound, BucketTask
from acquatop.ingest.reduce.contract import Part
from acquatop.ingest.reduce.job import reduced
from acquatop.plan.bind import bind_query
from acquatop.plan.bound import BoundQuery
from acquatop.query.aggregates import executor_content as scattered_content
from acquatop.query.aggregates import moving, spans
from acquatop.query.aggregates.in_driver import PLACE
from acquatop.query.contract import Tick
from acquatop.runtime.local import LocalRuntime
from acquatop.topk.snapshot import unpack_parts
from rspql.diagnostics import QueryError
from tests.support.disks import quick_folder
from tests.support.queries.aggregated import CATALOG, SPAN, Post, Shape, decoded, plain, shapes
from tests.support.queries.twins import Twins
from tests.support.s3.running import held, new_place
from tests.support.worlds import STREAM, with_optional


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let few chunks be many, and few rows be summed at a time."""
    monkeypatch.setattr(bucket_keys, "ROWS", 7)
    monkeypatch.setattr(scattered_content, "_FEW", 2)
    monkeypatch.setattr(scattered_content, "_MANY", 4)
    monkeypatch.setattr(spans, "USES", 1)


@settings(max_examples=10)
@given(shapes)
def test_answers_are_the_same_bytes(shape: Shape) -> None:
    with quick_folder() as folder:
        twins = Twins(shape, folder)
        for here, there in twins.answers():
            assert there.canonical() == here.canonical()
            assert there.counts == here.counts
            assert there.refreshed == here.refreshed
            event(f"{here.status}, {'joined' if shape.joined else 'alone'}")


# Files --------------------------------------------------------------------------------------------


class Lives:
    """A group that is killed and resumed, from the newest state or an older; another lives on."""

    def __init__(self, twins: Twins) -> None:
        self.twins = twins
        self.here, self.group = twins.groups
        self.done: list[tuple[Any, list[Any]]] = []
        """Steps done so far, each with its results."""
        self.kept: list[tuple[bytes, int]] = []

    @property
    def are_moved(self) -> bool:
        """True if executors have the keys."""
        return not self.twins.moves or PLACE in unpack_parts(self.group.snapshot())

    def has_files(self, state: bytes) -> bool:
        """Return True if a state tells of files."""
        return not self.twins.moves or not {PLACE, "left"}.isdisjoint(unpack_parts(state))

    def do(self, step: Any) -> list[Any]:
        """Hand in parts, or tell how far time has come."""
        if isinstance(step, int):
            return [answer.canonical() for answer in self.group.advance(Tick(STREAM, step, 0.0))]
        self.group.add(STREAM, step, self.group.names)
        return []

    def hand_in(self, posts: Sequence[Post]) -> None:
        records = decoded(self.twins.bound, posts)
        self.here.add(STREAM, list(reduced(records, self.here.reducers(STREAM))), self.here.names)
        self.step(
            [
                Part.from_bytes(part.to_bytes())
                for part in reduced(records, self.group.reducers(STREAM))
            ]
        )

    def advance(self, watermark: int) -> None:
        right = [answer.canonical() for answer in self.here.advance(Tick(STREAM, watermark, 0.0))]
        assert self.step(watermark) == right

    def step(self, step: Any) -> list[Any]:
        found = self.do(step)
        self.done.append((step, found))
        return found

    def save(self) -> None:
        self.kept = [*self.kept[-1:], (self.group.snapshot(), len(self.done))]
        self.group.snapshot_committed()

    def die(self, at: int) -> None:
        """End, with files left that nobody knows of, and resume one of the states that are kept."""
        self.kept = self.kept[: at + 1]
        state, count = self.kept[at]
        for name in ("unfinished-1", 32 * "f") if self.has_files(state) else ():
            (self.twins.folder / name).write_bytes(b"half")
        self.group = self.twins.scattered()
        self.group.resume(state)
        assert self.group.resume_query(self.twins.there)
        for step, found in self.done[count:]:
            assert self.do(step) == found


def live_and_die(twins: Twins, seed: int) -> None:
    """Hand in everything, and be killed now and then; no file may be missing or left."""
    chance, lives, folder, places = random.Random(seed), Lives(twins), twins.folder, set[bool]()
    for watermark, partitions in twins.steps():
        for posts in partitions:
            lives.hand_in(posts)
            places.add(lives.are_moved)
            assert not (lives.are_moved and list(folder.glob("unfinished-*")))
        lives.advance(watermark)
        if chance.random() < 0.4:
            lives.save()
        if lives.kept and chance.random() < 0.2:
            lives.die(chance.randrange(len(lives.kept)))
            event("died")
    lives.group.reducers(STREAM)
    lives.advance(3 * SPAN)
    lives.save()
    lives.save()
    lives.group.reducers(STREAM)
    event(f"moved: {lives.are_moved}, before: {sorted(places)}")
    assert not (lives.are_moved or True in places) or list(folder.iterdir()) == []


@settings(max_examples=10)
@given(shapes, st.integers(0, 2**32))
def test_it_goes_on_from_either_state_and_no_file_is_missing_or_left(
    shape: Shape, seed: int
) -> None:
    with quick_folder() as folder:
        live_and_die(Twins(replace(shape, joined=False), folder), seed)


def some_posts(count: int = 60) -> list[Post]:
    chance = random.Random(3)
    return [
        Post(1 + at // 3, f"s{at}", chance.choice("abcdefgh"), chance.randrange(9), None)
        for at in range(count)
    ]


def test_chunks_are_made_one_before_they_are_many() -> None:
    with quick_folder() as folder:
        twins = Twins(plain(pattern="?post :mentions ?user", width=30, slide=10), folder, buckets=1)
        for post in some_posts(30):
            twins.add(STREAM, decoded(twins.bound, [post]))
            content = twins.groups[1]._content._content
            assert all(len(chunks) <= 4 for pane in content._panes.values() for chunks in pane)
        assert [
            there.canonical() == here.canonical() for here, there in twins.advance(STREAM, 40)
        ] == 4 * [True]


def test_the_same_events_in_two_partitions_are_in_two_files_and_done_again_in_one() -> None:
    with quick_folder() as folder:
        twins = Twins(plain(pattern="?post :mentions ?user"), folder)
        for posts in ("s1", "s2", "s2"):
            list(
                reduced(
                    decoded(twins.bound, [Post(1, posts, "a", None, None)]),
                    twins.groups[1].reducers(STREAM),
                )
            )
        assert len(list(folder.iterdir())) == 2


@pytest.mark.parametrize("durable", [True, False])
def test_a_file_stays_for_the_panes_that_are_in_time(durable: bool) -> None:
    with quick_folder() as folder:
        twins = Twins(plain(pattern="?post :mentions ?user"), folder, durable=durable)
        twins.add(STREAM, decoded(twins.bound, some_posts(12)))
        assert list(twins.advance(STREAM, 3))
        # The first of these is late for all windows that hold it.
        posts = [Post(1, "late", "a", None, None), Post(5, "timely", "b", None, None)]
        twins.add(STREAM, decoded(twins.bound, posts))
        assert all(
            there.canonical() == here.canonical() for here, there in twins.advance(STREAM, SPAN)
        )


def test_a_file_that_is_missing_is_named() -> None:
    with quick_folder() as folder:
        twins = Twins(plain(pattern="?post :mentions ?user"), folder)
        twins.add(STREAM, decoded(twins.bound, some_posts(3)))
        (file,) = folder.iterdir()
        file.unlink()
        with pytest.raises(EnvironmentProblem, match=rf"(?s){file.name}.*every executor"):
            list(twins.groups[1].advance(Tick(STREAM, SPAN, 0.0)))


# The catalog --------------------------------------------------------------------------------------


def catalog(path: Path, keys: str = "executors", **changes: object) -> Catalog:
    values: dict[str, object] = {
        "start": "",
        "solutions": "",
        "policy": None,
        "n": 2,
        "items": 3,
        **changes,
    }
    text = CATALOG.format(
        **{"arrivals": f'distinct"\nbuckets = 3\nkeys = "{keys}', **with_optional(values)}
    )
    return Catalog.parse(
        text.replace('"events"', f'"{path}", maxBytesPerBatch = 1000'),
        file=Path("catalog.toml"),
        variables={},
    )


def test_executors_need_distinct_arrivals(tmp_path: Path) -> None:
    with pytest.raises(
        CatalogError, match=r'(?s)needs a stream whose arrivals are distinct, not "all".*hint: set'
    ):
        catalog(tmp_path, arrivals='all"\nkeys = "executors')


@pytest.mark.parametrize(
    ("changes", "said"), [({"policy": "WSJ-LRU"}, "WSJ-LRU"), ({"n": "2\nrefill = true"}, "refill")]
)
def test_what_looks_at_solutions_is_refused(
    tmp_path: Path, changes: dict[str, object], said: str
) -> None:
    text = plain(pattern="?post :mentions ?user", joined=True).text()
    with pytest.raises(QueryError, match=said):
        bind_query(text, catalog(tmp_path, **changes))
    assert isinstance(bind_query(text, catalog(tmp_path, "driver", **changes)), BoundQuery)


# The engine ---------------------------------------------------------------------------------------


def canonical(tmp_path: Path, keys: str, *, slide: int = 3, **arguments: Any) -> str:
    text = plain(pattern="?post :mentions ?user ; :x ?x", width=9, slide=slide).text()
    with Engine(catalog(tmp_path / "events", keys), until_end=True, **arguments) as engine:
        query = engine.register(text)
        engine.start()
        return json.dumps([answer.canonical() for answer in query])


def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "events").write_bytes(b"".join(post.line() + b"\n" for post in some_posts()))
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "scratch"))
    return tmp_path / "scratch"


def test_an_engine_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scratch = write(tmp_path, monkeypatch)
    right = canonical(tmp_path, "driver", runtime="local")
    assert canonical(tmp_path, "executors", runtime="local") == right
    assert '"rank": 2' in right
    assert list(scratch.iterdir()) == []


def test_an_engine_with_a_state_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scratch = write(tmp_path, monkeypatch)
    right = canonical(tmp_path, "driver", runtime="local")
    state = tmp_path / "state"
    assert canonical(tmp_path, "executors", runtime="local", state=state) == right
    assert list(scratch.iterdir()) == []
    (kept,) = state.glob("keys_*")
    assert len(list(kept.iterdir())) <= 2
    with pytest.raises(UserError, match="cannot go on"):
        canonical(tmp_path, "driver", runtime="local", state=state)


@pytest.mark.usefixtures("s3")
def test_keys_are_kept_with_a_state_in_an_object_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = write(tmp_path, monkeypatch)
    right = canonical(tmp_path, "driver", runtime="local")
    kept, moved = new_place(), new_place()
    assert canonical(tmp_path, "executors", runtime="local", state=kept) == right
    monkeypatch.setattr(moving, "MOST_KEYS", 3)
    assert canonical(tmp_path, "auto", runtime=Beside(), state=moved) == right
    for place in (kept, moved):
        names = [name for name in held(place.address) if name.startswith("keys_")]
        assert 0 < len(names) <= 2
    assert canonical(tmp_path, "executors", runtime="local", state=kept)
    assert list(scratch.iterdir()) == []


class Beside(LocalRuntime):
    """Runtime in this process that claims to have executors."""

    has_executors = True


def test_an_engine_whose_keys_have_moved_goes_on_in_any_runtime(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = write(tmp_path, monkeypatch)
    monkeypatch.setattr(moving, "MOST_KEYS", 3)
    right = canonical(tmp_path, "driver", runtime="local")
    state = tmp_path / "state"
    assert canonical(tmp_path, "auto", runtime="local", state=tmp_path / "unmoved") == right
    assert list((tmp_path / "unmoved").glob("keys_*")) == []
    assert canonical(tmp_path, "auto", runtime=Beside(), state=state) == right
    (kept,) = state.glob("keys_*")
    assert canonical(tmp_path, "auto", runtime="local", state=state)
    assert kept.exists()
    with pytest.raises(UserError, match="cannot go on"):
        canonical(tmp_path, "driver", runtime="local", state=state)
    assert canonical(tmp_path, "auto", runtime=Beside()) == right
    assert list(scratch.iterdir()) == []


@pytest.mark.spark
@pytest.mark.usefixtures("executors")
def test_spark_does_the_tasks_in_its_executors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: SparkSession
) -> None:
    write(tmp_path, monkeypatch)
    right = canonical(tmp_path, "driver", slide=9, runtime="local")
    assert canonical(tmp_path, "executors", slide=9, runtime="spark", spark=spark) == right
    monkeypatch.setattr(moving, "MOST_KEYS", 3)
    assert canonical(tmp_path, "auto", slide=9, runtime="spark", spark=spark) == right


@pytest.mark.spark
@pytest.mark.usefixtures("executors")
def test_keys_move_back_on_spark(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    spark: SparkSession,
) -> None:
    caplog.set_level("INFO", logger="acquatop")
    many = [Post(1 + at // 12, f"s{at}", f"u{at % 12}", at % 9, None) for at in range(120)]
    few = [Post(11 + at // 2, f"t{at}", f"u{at % 2}", at % 9, None) for at in range(120)]
    (tmp_path / "events").write_bytes(
        b"".join(post.line() + b"\n" for post in [*many, *few, *some_more(many, 60)])
    )
    right = canonical(tmp_path, "driver", runtime="local")
    monkeypatch.setattr(moving, "MOST_KEYS", 8)
    monkeypatch.setattr(moving, "RETURN_CLOSES", 2)
    assert canonical(tmp_path, "auto", runtime="spark", spark=spark, state=tmp_path / "s") == right
    moves = [record.getMessage() for record in caplog.records if " keys move " in record.msg]
    assert ["to the driver" in each for each in moves] == [False, True, False]


def some_more(posts: Sequence[Post], after: int) -> list[Post]:
    return [replace(post, t=post.t + after + 11, s=f"m{post.s}") for post in posts]


# Keys that move -----------------------------------------------------------------------------------


returns = st.tuples(st.sampled_from([1, 2]), st.sampled_from([1, 2, 99]))
"""The share of many keys at which they move back, and the number of closes until then."""


def let_move(patch: pytest.MonkeyPatch, most: int, returning: tuple[int, int]) -> None:
    """Let so many keys be many, and few ones move back."""
    patch.setattr(moving, "MOST_KEYS", most)
    patch.setattr(moving, "RETURN_SHARE", returning[0])
    patch.setattr(moving, "RETURN_CLOSES", returning[1])


@settings(max_examples=20)
@given(shapes, st.integers(0, 12), returns)
def test_keys_that_move_give_the_same_bytes(
    shape: Shape, most: int, returning: tuple[int, int]
) -> None:
    with quick_folder() as folder, pytest.MonkeyPatch.context() as patch:
        let_move(patch, most, returning)
        twins, places = Twins(shape, folder, move=True), list[bool]()
        for here, there in twins.answers():
            assert there.canonical() == here.canonical()
            assert there.counts == here.counts
            assert there.refreshed == here.refreshed
            moved = PLACE in unpack_parts(twins.groups[1].snapshot())
            places += [moved] if places[-1:] != [moved] else []
        event(f"places: {len(places)}")


def test_keys_move_back_once_they_are_few_and_again_when_they_are_many(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="acquatop")
    monkeypatch.setattr(moving, "MOST_KEYS", 8)
    with quick_folder() as folder:
        twins = Twins(
            plain(pattern="?post :mentions ?user", width=3, slide=3),
            folder,
            move=True,
            durable=False,
        )
        for pane, users in enumerate([12, 12, 1, 2, 2, 2, 2, 3, 12, 12]):
            posts = [Post(3 * pane + 1, f"s{pane}-{at}", f"u{at}", 1, None) for at in range(users)]
            twins.add(STREAM, decoded(twins.bound, posts))
            for here, there in twins.advance(STREAM, 3 * pane + 3):
                assert there.canonical() == here.canonical()
            moved = PLACE in unpack_parts(twins.groups[1].snapshot())
            # Windows of two keys at most, four in succession; each move is before a batch.
            assert moved == (pane in (1, 2, 3, 4, 5, 9))
            assert moved or list(folder.iterdir()) == []
    assert [record.getMessage() for record in caplog.records] == [
        "12 keys move from the driver to the executors",
        "0 keys move from the executors to the driver",
        "12 keys move from the driver to the executors",
    ]


def test_keys_stay_with_the_executors_if_panes_to_come_have_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(moving, "MOST_KEYS", 8)
    monkeypatch.setattr(moving, "RETURN_CLOSES", 1)
    with quick_folder() as folder:
        twins = Twins(plain(pattern="?post :mentions ?user", width=3, slide=3), folder, move=True)
        for pane, users in enumerate([12, 12, 1, 1]):
            posts = [Post(3 * pane + 1, f"s{pane}-{at}", f"u{at}", 1, None) for at in range(users)]
            # While the windows with few keys close, more have come for the next one.
            ahead = [Post(14, f"a{pane}-{at}", f"u{at}", 1, None) for at in range(4)]
            twins.add(STREAM, decoded(twins.bound, posts + (ahead if pane else [])))
            for here, there in twins.advance(STREAM, 3 * pane + 3):
                assert there.canonical() == here.canonical()
        assert PLACE in unpack_parts(twins.groups[1].snapshot())


def refuse(*_: object) -> str:
    raise OSError("read-only file system")


@pytest.mark.parametrize("cannot", ["read", "write"])
def test_keys_stay_if_executors_cannot_use_the_folder(
    cannot: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(moving, "MOST_KEYS", 0)

    def elsewhere(task: BucketTask, buckets: Sequence[Bucket]) -> list[BucketFound]:
        with monkeypatch.context() as there:
            there.setattr(ChunkFolder, cannot, refuse)
            return list(map(task, buckets))

    with quick_folder() as folder:
        monkeypatch.setattr("tests.support.queries.twins.in_process", elsewhere)
        twins = Twins(plain(pattern="?post :mentions ?user"), folder, move=True)
        for posts in (some_posts()[:20], some_posts()[20:]):
            twins.add(STREAM, decoded(twins.bound, posts))
        answers = list(twins.advance(STREAM, SPAN))
        assert answers
        assert all(there.canonical() == here.canonical() for here, there in answers)
        assert list(folder.iterdir()) == []
    (said,) = [record.getMessage() for record in caplog.records]
    assert said.startswith("the driver goes on to hold")
    assert "read-only file system" in said


@settings(max_examples=20)
@given(shapes, st.integers(0, 6), returns, st.integers(0, 2**32))
def test_it_goes_on_from_either_state_before_and_after_a_move(
    shape: Shape, most: int, returning: tuple[int, int], seed: int
) -> None:
    with quick_folder() as folder, pytest.MonkeyPatch.context() as patch:
        let_move(patch, most, returning)
        live_and_die(Twins(replace(shape, joined=False), folder, move=True), seed)
