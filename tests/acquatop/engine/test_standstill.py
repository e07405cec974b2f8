"""Streams whose records keep coming while their time stands still."""

from __future__ import annotations

from pathlib import Path

from prometheus_client import generate_latest

from acquatop.app.watch.prometheus import Metrics
from acquatop.catalog.catalog import Catalog
from acquatop.engine.commits import Committer
from acquatop.engine.delivery import Delivery
from acquatop.engine.observer import BatchSeen, Silent
from acquatop.engine.queries import QueryRegistry
from acquatop.engine.slots import SlotTable
from acquatop.engine.standstill import Hindrance, Standstill, StandstillWatch
from acquatop.engine.stream import StreamOperator
from acquatop.engine.stream_driver import StreamDriver
from acquatop.engine.stream_settings import StreamSettings
from acquatop.ingest.reduce.late_finder import TOO_FAR_AHEAD
from acquatop.plan.bind import bind_query
from acquatop.plan.bound import BoundWindowed
from acquatop.query.kinds import Resources
from acquatop.refresh.open_replicas import Replicas
from acquatop.runtime import Batch
from replica.rankers import DEFAULT_RANKERS
from tests.support.standing import NOW, QUERY, catalog_of, columns


class Clock:
    """Clock that a test moves."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def note(watch: StandstillWatch, at: Clock, now: float, **seen: object) -> Standstill | None:
    at.now = now
    known = {"events": 1, "bad": {}, "late": 0, "watermark_ms": 5, **seen}
    return watch.note(**known)  # type: ignore[arg-type]


def test_records_that_move_no_time_are_told_with_what_is_wrong_with_them() -> None:
    clock = Clock()
    watch = StandstillWatch(clock, after_seconds=60)
    assert note(watch, clock, 0, events=9) is None
    assert note(watch, clock, 1_000, events=0) is None, "nothing comes"
    assert note(watch, clock, 2_000, events=3, late=3) is None
    assert note(watch, clock, 2_059, events=2, bad={"not JSON": 1, TOO_FAR_AHEAD: 1}) is None
    seen = note(watch, clock, 2_060, events=2, late=1)
    assert seen == watch.present
    assert seen is not None
    assert (seen.watermark_ms, seen.seconds, seen.total, seen.main) == (5, 60, 7, Hindrance.LATE)
    assert seen.records == {
        Hindrance.LATE: 4,
        Hindrance.BAD: 1,
        Hindrance.AHEAD: 1,
        Hindrance.NOT_NEWER: 1,
    }
    assert note(watch, clock, 9_999, events=0) == seen, "a tick changes nothing"
    assert note(watch, clock, 9_999, watermark_ms=6) is None
    assert watch.present is None
    assert note(watch, clock, 10_000, events=1) is None, "it is counted anew"


def test_a_stream_that_has_brought_nothing_of_use_is_told_too() -> None:
    clock = Clock()
    watch = StandstillWatch(clock, after_seconds=60)
    assert note(watch, clock, 0, bad={"not JSON": 1}, watermark_ms=None) is None
    seen = note(watch, clock, 60, bad={"not JSON": 1}, watermark_ms=None)
    assert seen is not None
    assert (seen.watermark_ms, seen.main, seen.total) == (None, Hindrance.BAD, 2)


class Told(Silent):
    """Observer that keeps what it is told."""

    def __init__(self) -> None:
        self.seen: list[BatchSeen] = []

    def batch(self, seen: BatchSeen) -> None:
        self.seen.append(seen)


def driver_of(catalog: Catalog, clock: Clock, told: Told) -> StreamDriver:
    settings = StreamSettings(clock, live=True, wall_clock=lambda: NOW)
    resources = Resources(Replicas(), clock, DEFAULT_RANKERS, map, Path, durable=False)  # type: ignore[arg-type]
    slots = SlotTable(resources, None, reads_together=True)
    queries = QueryRegistry(slots, told, live=True)
    driver = StreamDriver(
        StreamOperator(catalog.streams["urn:s"], settings),
        Committer(None, slots, clock),
        Delivery(queries, slots, told, durable=False),
        told,
        settings,
    )
    bound = bind_query(QUERY, catalog, name="q")
    assert isinstance(bound, BoundWindowed)
    query = queries.add(bound, QUERY, [], 0, leave=lambda query: None).query
    assert driver.join(slots.assign(query, bound, ()), bound)
    return driver


def test_one_time_for_ever_one_time_far_ahead_and_the_last_time_in_reach(tmp_path: Path) -> None:
    clock, told = Clock(), Told()
    driver = driver_of(catalog_of(tmp_path), clock, told)
    now_ms = round(NOW * 1_000)

    def feed(now: float, *times_ms: int) -> BatchSeen:
        clock.now = now
        driver.take(Batch({"batch": 0}, [list(driver.job()([columns(times_ms)]))]))
        return told.seen[-1]

    assert feed(0, now_ms).standstill is None
    assert feed(1, now_ms, now_ms).standstill is None
    still = feed(61, now_ms).standstill
    assert still is not None
    assert (still.main, still.total) == (Hindrance.NOT_NEWER, 3)
    ahead = feed(62, now_ms + 60_001)
    assert (ahead.bad, ahead.watermark_ms) == ({TOO_FAR_AHEAD: 1}, now_ms - 1)
    assert ahead.standstill is not None
    assert ahead.standstill.records[Hindrance.AHEAD] == 1
    assert driver.standstill == ahead.standstill
    # Exactly as far ahead as is allowed.
    within = feed(63, now_ms + 60_000)
    assert (within.bad, within.watermark_ms, within.standstill) == ({}, now_ms + 59_999, None)
    # What comes behind it moves no time, until the clock has caught up.
    assert feed(64, now_ms).standstill is None
    behind = feed(124, now_ms + 30_000).standstill
    assert behind is not None
    assert behind.total == 2
    assert driver.standstill == behind


def test_metrics_say_for_how_long_a_watermark_stands_still() -> None:
    metrics = Metrics(process=False)
    still = Standstill(watermark_ms=5, seconds=75.0, records={Hindrance.LATE: 3})
    name = b'acquatop_watermark_standstill_seconds{stream="s"}'
    metrics.batch(BatchSeen(stream="s", events=1, standstill=still))
    assert name + b" 75.0" in generate_latest(metrics.registry)
    metrics.batch(BatchSeen(stream="s", events=1))
    assert name + b" 0.0" in generate_latest(metrics.registry)
