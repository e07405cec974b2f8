"""Restarts: permitted and forbidden changes between two runs, and failures in between."""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import pytest

from acquatop import Engine
from acquatop.answer.sinks import growing
from acquatop.engine.commits import Committer
from acquatop.engine.observer import Kept, Silent, StateSeen
from acquatop.engine.persistence import EngineState
from acquatop.engine.queries import QueryRegistry, RegistryEntry
from acquatop.engine.state.folder import Folder
from acquatop.engine.stream_driver import StreamDriver
from acquatop.errors import EnvironmentProblem, UserError
from acquatop.runtime.checkpoint import Checkpoint
from connectors import ConnectorError
from tests.support.crash.killing import in_process
from tests.support.crash.life import Life, content
from tests.support.crash.reaper import Point
from tests.support.crash.world import People, queries, write_catalog, write_world
from tests.support.disks import quick_folder
from tests.support.markers import THOROUGH

HALF_WAY = Point("after NdjsonSink.write", 4)


@dataclass
class World:
    """A folder, a server, and lives in it."""

    folder: Path
    people: People
    wholes: dict[tuple[str, ...], dict[str, bytes]] = field(default_factory=dict)
    lives: int = 0

    def life(self, *names: str) -> Life:
        self.lives += 1
        place = self.folder / str(self.lives)
        return Life(self.folder / "catalog.toml", place / "state", place / "out", queries(*names))

    def whole(self, *names: str) -> dict[str, bytes]:
        """Return what an uninterrupted life writes, from the first catalog and recording."""
        if names not in self.wholes:
            life = self.life(*names)
            life.live()
            self.wholes[names] = content(life.out)
        return self.wholes[names]

    def killed(self, *names: str) -> Life:
        life = self.life(*names)
        assert in_process(HALF_WAY)(life)
        assert content(life.out)
        return life

    def write_catalog(self, **changes: object) -> None:
        write_catalog(self.folder, self.people.url, **changes)


@pytest.fixture(scope="module")
def _world() -> Iterator[World]:
    with People() as people, quick_folder() as folder:
        yield World(folder, people)


@pytest.fixture
def world(_world: World) -> World:
    write_world(_world.folder, _world.people.url, events=150)
    _world.people.take()
    return _world


def lines(found: Mapping[str, bytes], *names: str) -> list[bytes]:
    return [found[f"lines/{name}.ndjson"] for name in names]


# Queries come and go ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "names", [("least", "most", "counts"), ("counts", "least"), ("least", "ranked", "most")]
)
def test_queries_go_on_whichever_others_there_are(world: World, names: Sequence[str]) -> None:
    """In another order, without one, with one more.

    The journal names all of them.
    """
    whole = world.whole("most", "least", "counts")
    life = replace(world.killed("most", "least", "counts"), queries=queries(*names))
    life.live()
    found = content(life.out)
    known = [name for name in names if name != "ranked"]
    assert lines(found, *known) == lines(whole, *known)
    if "ranked" in names:
        (new,) = lines(found, "ranked")
        assert 0 < new.count(b"\n") < whole["lines/most.ndjson"].count(b"\n")


def test_a_query_that_comes_back_after_others_have_gone_on_begins_anew(world: World) -> None:
    life = world.killed("most", "counts")
    assert in_process(Point("after NdjsonSink.write", 2))(replace(life, queries=queries("counts")))
    written = content(life.out)["lines/most.ndjson"]
    life.live()
    found = content(life.out)
    assert found["lines/most.ndjson"].startswith(written)
    assert lines(found, "counts") == lines(world.whole("most", "counts"), "counts")


# What must not change -----------------------------------------------------------------------------


def test_a_changed_query_is_refused(world: World) -> None:
    life = world.killed("most")
    with pytest.raises(
        UserError, match=r"query most has changed(.|\n)*hint: take the old text again"
    ):
        replace(life, queries={"most": queries("least")["least"]}).live()


def test_a_changed_stream_is_refused(world: World) -> None:
    life = world.killed("most")
    text = life.catalog.read_text()
    life.catalog.write_text(text.replace('lateness = "200ms"', 'lateness = "300ms"'))
    with pytest.raises(
        UserError, match=r"stream http://example.org/distinct has changed(.|\n)*hint"
    ):
        life.live()
    life.catalog.write_text(text)
    life.live()
    assert content(life.out) == world.whole("most")


@pytest.mark.parametrize("same_length", [True, False])
def test_a_recording_with_other_content_is_refused_until_the_old_one_is_put_back(
    world: World, same_length: bool
) -> None:
    life = world.killed("most")
    written = content(life.out)
    recording = world.folder / "events.jsonl"
    whole = recording.read_bytes()
    first, _, rest = whole.partition(b"\n")
    other = first.replace(b"0", b"1") + b"\n" + rest if same_length else rest
    assert other != whole
    recording.write_bytes(other)
    with pytest.raises(
        ConnectorError, match=r"events\.jsonl is not what has been read of it(.|\n)*hint: put back"
    ):
        life.live()
    assert lines(content(life.out), "most")[0].startswith(lines(written, "most")[0])
    recording.unlink()
    recording.write_bytes(whole)
    life.live()
    assert content(life.out) == world.whole("most")


def test_settings_that_change_how_a_query_is_evaluated_are_refused(world: World) -> None:
    life = world.killed("top")
    world.write_catalog(refill="true")
    with pytest.raises(
        UserError, match=r"query top cannot go on(.|\n)*hint: take the old settings again"
    ):
        life.live()
    world.write_catalog()
    life.live()
    assert content(life.out) == world.whole("top")


@pytest.mark.parametrize(
    "changes", [{"items": 5}, {"items": 1}, {"n": 6}, {"n": 1}, {"batch": 5_000}]
)
def test_other_settings_may_change(world: World, changes: Mapping[str, Any]) -> None:
    whole = world.whole("top", "sums", "friends")
    life = world.killed("top", "sums", "friends")
    written = content(life.out)
    world.write_catalog(**changes)
    world.people.take()
    life.live()
    found = content(life.out)
    assert found.keys() == whole.keys()
    assert all(found[file].startswith(text) for file, text in written.items())
    if "items" in changes:
        asked = world.people.take()
        assert (
            max(len(keys) for requests in asked.values() for keys in requests) == changes["items"]
        )


def test_two_engines_cannot_have_the_same_directory(world: World) -> None:
    life = world.life("most")
    refused: list[str] = []
    commit = Committer.commit

    def try_another(committer: Committer, *arguments: Any) -> float:
        if not refused:
            with pytest.raises(EnvironmentProblem, match=r"is in use by(.|\n)*hint") as raised:
                life.live()
            refused.append(str(raised.value))
        return commit(committer, *arguments)

    with patch.object(Committer, "commit", try_another):
        life.live()
    assert refused
    assert content(life.out) == world.whole("most")


# What happens to disks ----------------------------------------------------------------------------


class Told(Silent):
    """Remembers what was said of the state."""

    def __init__(self) -> None:
        self.seen: list[StateSeen] = []

    def kept(self, seen: StateSeen) -> None:
        self.seen.append(seen)


@THOROUGH
def test_a_changed_bit_anywhere_in_a_state_is_said_or_costs_nothing(
    world: World, tmp_path: Path
) -> None:
    life, whole, random = world.killed("most", "counts"), world.whole("most", "counts"), Random(11)
    shutil.copytree(life.state.parent, tmp_path / "killed")
    files = sorted(each.name for each in life.state.iterdir() if each.is_file())
    refused = []
    for name in [each for each in files if (life.state / each).stat().st_size] * 3:
        shutil.rmtree(life.state.parent)
        shutil.copytree(tmp_path / "killed", life.state.parent)
        changed = bytearray((life.state / name).read_bytes())
        changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
        (life.state / name).write_bytes(changed)
        try:
            life.live()
        except EnvironmentProblem as problem:
            refused.append((name, str(problem)))
        else:
            assert content(life.out) == whole
    assert refused
    wrong = [said for name, said in refused if not re.search(rf"{name} is damaged.*\n  hint", said)]
    assert wrong == []


def test_a_damaged_snapshot_costs_nothing_but_time(world: World) -> None:
    whole = world.whole()
    for nth in (13, 14):
        life = world.life()
        assert in_process(Point("after Committer.commit", nth))(life)
        newest = max(life.state.glob("snapshot-*"))
        damaged = bytearray(newest.read_bytes())
        damaged[-9] ^= 1
        newest.write_bytes(damaged)
        told = Told()
        with patch("acquatop.engine.engine.Silent", lambda: told):  # noqa: B023
            life.live()
        assert [each.kind for each in told.seen].count(Kept.DAMAGED) == 1
        assert content(life.out) == whole


@pytest.mark.parametrize(
    ("error", "nth"), [(errno.ENOSPC, 3), (errno.EROFS, 12), (errno.EIO, 30), (errno.ENOSPC, 38)]
)
def test_a_disk_that_fails_is_an_error_and_loses_nothing(
    world: World, error: int, nth: int
) -> None:
    """Once, and well again at once: others must not go on without what could not be kept."""
    whole = world.whole("top", "friends", "most", "counts")
    write, calls = Folder.write, 0

    def fail(folder: Folder, *arguments: Any) -> int:
        nonlocal calls
        calls += 1
        if calls == nth:
            raise OSError(error, os.strerror(error))
        return write(folder, *arguments)

    life = world.life("top", "friends", "most", "counts")
    with (
        patch.object(Folder, "write", fail),
        pytest.raises(EnvironmentProblem, match=rf"{os.strerror(error)}(.|\n)*hint"),
    ):
        life.live()
    life.live()
    assert content(life.out) == whole


def test_a_sink_that_fails_is_an_error_and_gets_all_answers_in_the_end(world: World) -> None:
    whole = world.whole("top", "most")
    calls, write_all = 0, growing.write_all

    def fail(*arguments: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == 5:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write_all(*arguments)

    life = world.life("top", "most")
    with (
        patch.object(growing, "write_all", fail),
        pytest.raises(EnvironmentProblem, match=r"cannot write answers(.|\n)*hint"),
    ):
        life.live()
    life.live()
    assert content(life.out) == whole


# Stopped, not killed ------------------------------------------------------------------------------


def test_an_engine_that_is_stopped_in_a_recording_leaves_its_windows_open(world: World) -> None:
    whole = world.whole("pairs", "top", "counts")
    life = world.life("pairs", "top", "counts")
    with life.sinks() as (lines_, tables):
        engine = Engine.from_catalog(
            life.catalog, runtime="local", until_end=True, state=life.state, autostart=False
        )
        for name, text in life.queries.items():
            engine.register(text, name=name, sinks=[lines_, tables])
        engine.start()
        assert len(list(engine.answers(limit=4))) == 4
        engine.stop()
    before = content(life.out)
    life.live()
    found = content(life.out)
    assert found == whole
    assert all(found[file].startswith(text) for file, text in before.items())


def test_a_recording_that_grows_between_two_lives(world: World) -> None:
    """Live at first, then to its end."""
    whole = world.whole("most", "friends")
    recording = world.folder / "events.jsonl"
    events = recording.read_bytes()
    # In the middle of a line, which waits for its end.
    recording.write_bytes(events[: len(events) * 3 // 4])
    life = world.life("most", "friends")
    with life.sinks() as (lines_, tables):
        engine = Engine.from_catalog(
            life.catalog, runtime="local", state=life.state, autostart=False
        )
        for name, text in life.queries.items():
            engine.register(
                text, name=name, sinks=[lines_] if name == "friends" else [lines_, tables]
            )
        engine.start()
        for query in engine.queries:
            assert len(list(query.answers(limit=2))) == 2
        engine.stop()
    recording.write_bytes(events)
    life.live()
    assert content(life.out) == whole


# Spark's notes ------------------------------------------------------------------------------------


def test_a_checkpoint_says_what_the_position_does_whatever_was_there(tmp_path: Path) -> None:
    old = Checkpoint(tmp_path)
    assert old.last == -1
    for name in ("offsets/0", "offsets/9", "commits/9", "metadata"):
        (old.path / name).parent.mkdir(exist_ok=True)
        (old.path / name).write_bytes(b"\0torn")
    new = Checkpoint(tmp_path, {"batch": 4, "offsets": "v1\n{}\n7"})
    assert (new.last, new.offsets(4), old.path.exists()) == (4, "v1\n{}\n7", False)
    assert sorted(file.name for file in (new.path / "offsets").iterdir()) == ["3", "4"]
    assert [file.name for file in (new.path / "commits").iterdir()] == ["4"]
    new.remove()
    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentProblem, match=r"cannot be written(.|\n)*hint"):
        Checkpoint(tmp_path / "nowhere")


def test_the_first_error_ends_all_streams(world: World) -> None:
    """A failed stream does not let others go on, of which nothing could be kept."""
    life = world.life("top", "counts")
    take, calls = StreamDriver.take, 0

    def fail(driver: StreamDriver, batch: Any) -> None:
        nonlocal calls
        if driver.stream.stream.arrivals == "latest" and (calls := calls + 1) == 6:
            raise RuntimeError("no luck")
        take(driver, batch)

    with patch.object(StreamDriver, "take", fail), pytest.raises(RuntimeError, match="no luck"):
        life.live()
    life.live()
    assert content(life.out) == world.whole("top", "counts")


def test_a_query_may_end_while_all_is_saved(world: World) -> None:
    """Another thread forgets a slot between its snapshot and the news that this is durable."""
    life, save = world.life("top", "counts"), EngineState.save
    ended: list[str] = []

    def save_as_one_ends(state: EngineState, *arguments: Any) -> None:
        save(state, *arguments)
        if not ended:
            queries = registries[0]
            query = queries.get("counts")
            assert query is not None
            ended.append(query.name)
            queries.end(query)

    registries: list[QueryRegistry] = []
    add = QueryRegistry.add

    def noted(queries: QueryRegistry, *arguments: Any, **options: Any) -> RegistryEntry:
        registries.append(queries)
        return add(queries, *arguments, **options)

    with (
        patch.object(EngineState, "save", save_as_one_ends),
        patch.object(QueryRegistry, "add", noted),
    ):
        life.live()
    assert ended == ["counts"]
    found, right = (
        {name: lines for name, lines in each.items() if "top" in str(name)}
        for each in (content(life.out), world.whole("top", "counts"))
    )
    assert found == right != {}
