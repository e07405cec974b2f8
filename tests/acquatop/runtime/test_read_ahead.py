"""The next batch on Spark is read while the last one is taken in: one ahead, in order, once."""

from __future__ import annotations

import gc
import json
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import patch

import pytest
from pyspark.sql import SparkSession

from acquatop import Answer, Engine
from acquatop.answer.sinks.callback import CallbackSink
from acquatop.catalog.catalog import Catalog
from acquatop.engine.stream_driver import StreamDriver
from acquatop.runtime import Batch, stream_carrier
from acquatop.runtime.spark_view import described
from acquatop.runtime.taker import Taker

LONGEST_WAIT = 240.0
CATALOG = """[prefixes]
"" = "http://example.org/"
[streams.":s"]
connector = "lines"
arrivals = "distinct"
options = {{ path = "{folder}/events", maxBytesPerBatch = 4000 }}
[streams.":s".mapping]
subject = ":event/{{at}}"
time = "t"
[streams.":s".mapping.properties]
":of" = {{ field = "user", datatype = ":user/{{}}" }}
":n" = {{ field = "n", datatype = "xsd:integer" }}
"""
BEST = """PREFIX : <http://example.org/> SELECT ?s ?n
FROM NAMED WINDOW :w ON :s [RANGE 90ms STEP 30ms]
WHERE { WINDOW :w { ?s :n ?n } } ORDER BY DESC(?n) LIMIT 3"""
SUMS = """PREFIX : <http://example.org/> SELECT ?u ?sum
FROM NAMED WINDOW :w ON :s [RANGE 90ms STEP 30ms]
WHERE { WINDOW :w { SELECT ?u (SUM(?n) AS ?sum) WHERE { ?s :of ?u ; :n ?n } GROUP BY ?u } }
ORDER BY DESC(?sum) LIMIT 3"""
WEIGHED = """PREFIX : <http://example.org/> SELECT ?s (?n * ?weight AS ?score)
FROM NAMED WINDOW :w ON :s [RANGE 60ms STEP 60ms]
WHERE { WINDOW :w { ?s :of ?u ; :n ?n } SERVICE :people { ?u :weight ?weight } }
ORDER BY DESC(?score) LIMIT 2"""
PEOPLE = f"""[services.":people"]
remote = "python"
function = "{__name__}:weigh"
[services.":people".refresh]
n = 0
items = 100
requests = 100
[services.":people".mapping]
key = ":user/{{{{id}}}}"
properties = {{{{ ":weight" = {{{{ field = "weight", datatype = "xsd:integer" }}}} }}}}
"""
EVENTS = 600
TAKE, RELEASE = StreamDriver.take, StreamDriver.release


weights = {"best": 0}
"""Number of the user with the greatest weight."""


def weigh(ids: list[str]) -> dict[str, dict[str, object]]:
    """Return the weights of users; the catalog names this function."""
    best = f"u{weights['best']}"
    return {each: {"weight": 100 if each == best else 1 + int(each[1:])} for each in ids}


class BrokenError(Exception):
    """A batch could not be taken in."""


@dataclass
class Watch:
    """Batches that executors have begun to read, and the numbers of those read and taken in.

    One that is read again counts again. ``before`` is called before a batch is taken in, with its
    place.
    """

    before: Callable[[Watch, int], None]
    begun: set[str] = field(default_factory=set)
    read: int = 0
    taken: int = 0
    is_released: bool = False
    changed: threading.Condition = field(default_factory=threading.Condition)
    answers: list[str] = field(default_factory=list)

    def note(self, **more: int) -> None:
        with self.changed:
            for name, count in more.items():
                setattr(self, name, getattr(self, name) + count)
            self.changed.notify_all()

    def wait_for(self, condition: Callable[[], bool]) -> None:
        with self.changed:
            assert self.changed.wait_for(condition, LONGEST_WAIT)

    @contextmanager
    def described(self, session: SparkSession, text: str) -> Iterator[None]:
        """Note a job, as it is described to Spark."""
        self.begun.add(text)
        with described(session, text):
            yield
        self.note(read=1)

    def take(self, driver: StreamDriver, batch: Batch) -> None:
        assert len(self.begun) <= self.taken + 2, "more than one batch was read ahead"
        self.before(self, self.taken)
        TAKE(driver, batch)
        self.note(taken=1)

    def release(self, driver: StreamDriver) -> None:
        RELEASE(driver)
        with self.changed:
            self.is_released = True
            self.changed.notify_all()

    def give(self, answer: Answer) -> None:
        self.answers.append(json.dumps(answer.canonical()))

    @contextmanager
    def over_spark(self) -> Iterator[None]:
        with (
            patch.object(stream_carrier, "described", self.described),
            patch.object(StreamDriver, "take", lambda *each: self.take(*each)),
            patch.object(StreamDriver, "release", lambda *each: self.release(*each)),
        ):
            yield


def until_next_is_read(watch: Watch, place: int) -> None:
    """Return once executors have read the batch behind one; the last ones come as they do."""
    if place < 3:
        watch.wait_for(lambda: watch.read >= place + 2)


def write(folder: Path, count: int = EVENTS, users: int = 0) -> None:
    """Write events of so many users, or of others and others."""
    events = (
        {
            "at": at,
            "user": f"u{at * 7 % users if users else at * 7 % 40 + at // 20}",
            "t": 1_000 + at,
            "n": at * 31 % 1_009,
        }
        for at in range(count)
    )
    (folder / "events").write_text("".join(json.dumps(each) + "\n" for each in events))


def opened(
    folder: Path, spark: SparkSession | None, *, keeps: bool = False, live: bool = False
) -> Engine:
    text = (CATALOG + PEOPLE).format(folder=folder)
    catalog = Catalog.parse(text, file=folder / "catalog.toml", variables={})
    runtime = "local" if spark is None else "spark"
    state = folder / "state" if keeps else None
    return Engine(
        catalog, runtime=runtime, spark=spark, until_end=not live, state=state, autostart=False
    )


def right(folder: Path, query: str) -> list[str]:
    with opened(folder, None) as engine:
        registered = engine.register(query)
        engine.start()
        return [json.dumps(answer.canonical()) for answer in registered]


@pytest.mark.spark
@pytest.mark.usefixtures("executors")
@pytest.mark.parametrize("query", [BEST, SUMS])
def test_the_next_batch_is_read_while_one_is_taken_in(
    spark: SparkSession, tmp_path: Path, query: str
) -> None:
    write(tmp_path)
    watch = Watch(until_next_is_read)
    with watch.over_spark(), opened(tmp_path, spark) as engine:
        registered = engine.register(query, sinks=[CallbackSink(watch.give)])
        engine.start()
        list(registered)
    assert watch.taken > 6
    assert watch.answers == right(tmp_path, query)


@pytest.mark.spark
@pytest.mark.usefixtures("executors")
def test_what_was_read_by_values_that_a_close_then_changes_is_read_again(
    spark: SparkSession, tmp_path: Path
) -> None:
    def change(watch: Watch, place: int) -> None:
        weights["best"] = 0 if place < 4 else 5

    def change_once_next_is_read(watch: Watch, place: int) -> None:
        change(watch, place)
        # The first close finds the values; nothing is read ahead of the second.
        if place in (0, 4):
            watch.wait_for(lambda: watch.read >= (2 if place == 0 else 7))

    def lived(watch: Watch, spark: SparkSession | None) -> Watch:
        with watch.over_spark(), opened(tmp_path, spark) as engine:
            registered = engine.register(WEIGHED, sinks=[CallbackSink(watch.give)])
            engine.start()
            list(registered)
        return watch

    write(tmp_path, users=10)
    there, here = lived(Watch(change_once_next_is_read), spark), lived(Watch(change), None)
    assert there.taken == here.taken
    assert there.read >= there.taken + 2
    assert there.answers == here.answers
    tops = [json.loads(each)["results"][0]["bindings"]["s"]["value"] for each in there.answers]
    assert len(set(tops)) > 6


@pytest.mark.spark
@pytest.mark.usefixtures("executors")
def test_a_batch_that_cannot_be_taken_in_and_the_one_read_behind_it_come_again(
    spark: SparkSession, tmp_path: Path
) -> None:
    def break_third(watch: Watch, place: int) -> None:
        until_next_is_read(watch, place)
        if place == 2:
            raise BrokenError("broken")

    def lived(watch: Watch) -> list[str]:
        with watch.over_spark(), opened(tmp_path, spark, keeps=True) as engine:
            registered = engine.register(SUMS, sinks=[CallbackSink(watch.give)])
            engine.start()
            list(registered)
        return watch.answers

    write(tmp_path)
    expected = right(tmp_path, SUMS)
    first = Watch(break_third)
    with pytest.raises(BrokenError):
        lived(first)
    assert first.taken == 2
    assert first.read == 4
    assert first.answers == expected[: len(first.answers)]
    answers = lived(Watch(until_next_is_read))
    # The last answers that were given before come again, as nobody knows who has seen them.
    assert 0 < len(first.answers) < len(expected)
    assert answers == expected[len(expected) - len(answers) :]
    assert len(expected) - len(first.answers) <= len(answers) < len(expected)


@pytest.mark.spark
@pytest.mark.usefixtures("executors")
def test_a_stop_leaves_what_was_read_ahead_to_the_next_life(
    spark: SparkSession, tmp_path: Path
) -> None:
    def hold_second(watch: Watch, place: int) -> None:
        until_next_is_read(watch, place)
        if place == 1:
            watch.wait_for(lambda: watch.is_released)

    write(tmp_path)
    threads = set(threading.enumerate())
    watch = Watch(hold_second)
    with watch.over_spark(), opened(tmp_path, spark, keeps=True, live=True) as engine:
        engine.register(SUMS, sinks=[CallbackSink(watch.give)])
        engine.start()
        watch.wait_for(lambda: watch.read == 3)
        engine.stop()
    assert (watch.taken, len(watch.begun)) == (2, 3)
    assert not [each for each in set(threading.enumerate()) - threads if "taker" in each.name]
    assert not spark.streams.active
    expected, before = right(tmp_path, SUMS), watch.answers
    assert before == expected[: len(before)]
    after = Watch(until_next_is_read)
    with after.over_spark(), opened(tmp_path, spark, keeps=True) as engine:
        registered = engine.register(SUMS, sinks=[CallbackSink(after.give)])
        engine.start()
        list(registered)
    assert after.answers == expected[len(expected) - len(after.answers) :]
    assert len(expected) - len(before) <= len(after.answers)


@pytest.mark.spark
@pytest.mark.usefixtures("executors")
def test_a_stream_ends_with_an_error_though_nothing_more_comes(
    spark: SparkSession, tmp_path: Path
) -> None:
    def fail(watch: Watch, place: int) -> None:
        raise BrokenError("broken")

    write(tmp_path, 10)
    watch = Watch(fail)
    with watch.over_spark(), opened(tmp_path, spark, live=True) as engine:
        registered = engine.register(BEST)
        engine.start()
        with pytest.raises(BrokenError):
            list(registered)
    assert (len(watch.begun), watch.taken) == (1, 0)


# The thread that takes batches in -----------------------------------------------------------------


def test_work_is_done_in_another_thread_and_in_order() -> None:
    done: list[tuple[int, bool]] = []
    here = threading.current_thread()
    taker = Taker("taker", lambda error: None)
    for number in range(20):
        taker.hand_over(
            lambda number=number: done.append((number, threading.current_thread() is here))  # type: ignore[misc]
        )
        taker.finish()
    taker.close()
    assert done == [(number, False) for number in range(20)]


def test_what_was_taken_in_is_not_kept() -> None:
    class Data:
        def take(self) -> None:
            """Do nothing."""

    taker, data = Taker("taker", lambda error: None), Data()
    kept = weakref.ref(data)
    taker.hand_over(lambda data=data: data.take())  # type: ignore[misc]
    taker.finish()
    del data
    gc.collect()
    assert kept() is None
    taker.close()


def test_an_error_is_told_and_raised_to_who_waits() -> None:
    told: list[BaseException] = []
    taker = Taker("taker", told.append)

    def fail() -> None:
        raise BrokenError("broken")

    taker.hand_over(fail)
    with pytest.raises(BrokenError):
        taker.finish()
    taker.close()
    assert [str(error) for error in told] == ["broken"]
    with pytest.raises(AssertionError, match="has failed"):
        taker.hand_over(fail)


def test_closing_waits_for_the_work_at_hand() -> None:
    begun, may_end, done = threading.Event(), threading.Event(), list[int]()

    def work() -> None:
        begun.set()
        assert may_end.wait(LONGEST_WAIT)
        done.append(1)

    taker = Taker("taker", lambda error: None)
    taker.hand_over(work)
    assert begun.wait(LONGEST_WAIT)
    closing = threading.Thread(target=taker.close)
    closing.start()
    may_end.set()
    closing.join()
    assert done == [1]
    Taker("never used", lambda error: None).close()
