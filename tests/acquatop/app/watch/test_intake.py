"""Items are counted once, for all who say how many there were and how many of them were bad."""

from __future__ import annotations

from acquatop.app.watch import BatchSeen
from acquatop.app.watch.intake import REASONS, Intake, ItemCounts
from acquatop.ingest.place import Place


def test_items_are_counted_by_stream_and_reason_with_the_place_of_the_first() -> None:
    intake = Intake()
    first, later = Place("a", 3), Place("a", 9)
    intake.batch(BatchSeen(stream="s", events=5, bad={"x": 1}, bad_at={"x": first}))
    intake.batch(
        BatchSeen(stream="s", events=4, bad={"x": 1, "y": 3}, bad_at={"x": later, "y": later})
    )
    intake.batch(BatchSeen(stream="t", events=2))
    assert intake.streams() == {
        "s": ItemCounts(9, {"x": 2, "y": 3}, {"x": first, "y": later}),
        "t": ItemCounts(2),
    }
    assert (intake.of("s").reasons, intake.of("s").bad_items, intake.bad_items) == (
        ["y", "x"],
        5,
        5,
    )
    assert intake.of("u") == ItemCounts()


def test_the_first_bad_items_of_each_stream_are_told_once() -> None:
    said: list[tuple[str, int, int]] = []
    intake = Intake(lambda stream, came: said.append((stream, came.bad_items, came.items)))
    for bad in ({}, {"x": 2}, {"x": 1, "y": 1}, {}):
        intake.batch(BatchSeen(stream="s", events=5, bad=bad))
    intake.batch(BatchSeen(stream="t", events=1, bad={"x": 1}))
    assert said == [("s", 2, 10), ("t", 1, 1)]


def test_all_is_bad_only_if_something_is_and_nothing_is_good() -> None:
    intake = Intake()
    assert not intake.is_all_bad
    intake.batch(BatchSeen(stream="quiet", events=0))
    assert not intake.is_all_bad
    intake.batch(BatchSeen(stream="s", events=2, bad={"x": 1, "y": 1}))
    assert intake.is_all_bad
    intake.batch(BatchSeen(stream="t", events=1))
    assert not intake.is_all_bad


def test_reasons_without_end_take_no_memory_without_end() -> None:
    intake = Intake()
    for at in range(200):
        intake.batch(
            BatchSeen(
                stream="s",
                events=1,
                bad={f"reason {at}": 1},
                bad_at={f"reason {at}": Place("a", at)},
            )
        )
    came = intake.of("s")
    assert len(came.bad) == len(came.bad_at) == REASONS + 1
    assert came.bad_items == came.items == 200
