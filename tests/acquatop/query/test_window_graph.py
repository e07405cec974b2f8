"""A window's graph, carried on incrementally, against one built anew for each window."""

from __future__ import annotations

import random

import pyarrow as pa
import pyoxigraph as ox
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acquatop.query.counters import WindowCounters
from acquatop.query.sparql import quad_store
from acquatop.query.sparql.engine import LocalEngine
from acquatop.query.sparql.quad_store import QuadStore
from acquatop.query.sparql.window_graph import WindowGraph
from acquatop.windows import Windows
from tests.support.windowed import Record, batch, bound, content
from tests.support.worlds import NS

BOUND = bound("SELECT ?s FROM NAMED WINDOW :w ON :a [RANGE 1ms] WHERE { WINDOW :w { ?s :p ?p } }")
STREAM = NS + "a"
GRAPH = NS + "w"
records = st.builds(
    Record,
    t=st.integers(0, 40),
    s=st.sampled_from("kl"),
    p=st.none() | st.integers(0, 2),
    q=st.none() | st.sampled_from([0.0, 1.5, 1e30]),
    r=st.none() | st.sampled_from(["x", 'y\n\\"', ""]),
)


def show_next(graph: WindowGraph) -> None:
    """Close the next window and show it."""
    graph.close(graph.cursor.close())


def graph(windows: Windows, *, latest: bool = False) -> tuple[WindowGraph, QuadStore]:
    store = QuadStore()
    mapping = BOUND.windows[0].stream.mapping
    return WindowGraph(store, GRAPH, windows, mapping, latest_only=latest), store


def held(store: QuadStore) -> ox.Store:
    assert isinstance(store.engine, LocalEngine)
    return store.engine.store


def shown(store: QuadStore) -> list[str]:
    return sorted(f"{quad.subject} {quad.predicate} {quad.object}" for quad in held(store))


@pytest.mark.parametrize("renewal", [1, quad_store.RENEWAL])
@settings(max_examples=150)
@given(
    st.builds(Windows, st.integers(1, 15), st.integers(1, 15), st.none() | st.integers(0, 9)),
    st.lists(records, max_size=40),
    st.booleans(),
    st.integers(0, 2**32),
)
def test_every_window_shows_what_its_records_say(
    renewal: int, windows: Windows, events: list[Record], latest: bool, seed: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quad_store, "RENEWAL", renewal)
        compare(windows, events, latest, seed)


def compare(windows: Windows, events: list[Record], latest: bool, seed: int) -> None:
    """Let time go on, records coming in some order, and compare the content of each window."""
    chance = random.Random(seed)
    one, store = graph(windows, latest=latest)
    waiting = list(events)
    for watermark in range(42):
        due = [each for each in waiting if each.t <= watermark or chance.random() < 0.1]
        waiting = [each for each in waiting if each not in due]
        chance.shuffle(due)
        for record in due:
            assert one.add(batch(BOUND, STREAM, [record])) == 0
        one.cursor.begin(one.earliest_ms, watermark)
        while (close := one.cursor.next_close_ms) is not None and close <= watermark:
            show_next(one)
            assert one.shown is not None
            right = content(events, *windows.bounds(one.shown), latest=latest)
            assert shown(store) == sorted(
                {f"{each.subject} {each.predicate} {each.object}" for each in right}
            )
            assert not one.is_uncertain


def test_a_triple_stays_as_long_as_some_record_in_the_window_says_it() -> None:
    one, store = graph(Windows(10, 5, 0))
    one.add(batch(BOUND, STREAM, [Record(4, "k", 1), Record(9, "k", 1), Record(9, "k", 1)]))
    counts = []
    for _ in range(4):
        show_next(one)
        counts.append(len(held(store)))
    assert counts == [1, 1, 0, 0]
    assert one.is_empty


def test_a_newer_record_replaces_all_that_an_older_one_said_of_its_subject() -> None:
    one, store = graph(Windows(10, 10, 0), latest=True)
    one.add(
        batch(BOUND, STREAM, [Record(5, "k", r="y"), Record(4, "k", 1, r="x"), Record(4, "l", 2)])
    )
    show_next(one)
    assert shown(store) == sorted([f'<{NS}k> <{NS}r> "y"', f"<{NS}l> <{NS}p> {ox.Literal(2)}"])


def test_what_is_late_is_left_out_and_remembered_for_the_windows_that_should_hold_it() -> None:
    one, store = graph(Windows(10, 5, 0))
    one.add(batch(BOUND, STREAM, [Record(12, "k", 1)]))
    show_next(one)
    assert not one.is_uncertain
    assert one.add(batch(BOUND, STREAM, [Record(8, "l", 1), Record(11, "l", 2)])) == 1
    uncertain = [one.is_uncertain]  # what is shown may be shown again, beside another window
    for _ in range(3):
        show_next(one)
        uncertain.append(one.is_uncertain)
    assert uncertain == [True, True, False, False]
    assert len(held(store)) == 0


def test_bad_records_are_passed_over_and_odd_subjects_are_not() -> None:
    mapping = BOUND.windows[0].stream.mapping
    one, store = graph(Windows(10, 10, 0))
    odd = Record(3, "a:b:c", 1)
    one.add(batch(BOUND, STREAM, [odd]))
    one.add(mapping.decode(pa.array([b"{", b'{"t": 1}'])))
    show_next(one)
    assert len(held(store)) == 1


def test_after_skipped_windows_the_next_shows_its_records() -> None:
    one, store = graph(Windows(10, 10, 0))
    one.close(one.cursor.skip(7, WindowCounters()))
    assert (one.shown, one.cursor.next_close_ms) == (6, 80)
    assert one.add(batch(BOUND, STREAM, [Record(65, "k", 1), Record(75, "k", 1)])) == 1
    show_next(one)
    assert len(held(store)) == 1


def test_the_store_is_renewed_and_keeps_what_it_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quad_store, "RENEWAL", 3)
    store = QuadStore()
    lines = [f"<urn:s> <urn:p> <urn:o{at}> ." for at in range(10)]
    store.change(GRAPH, [], lines)
    first = held(store)
    store.change(GRAPH, lines[:4], [])
    assert held(store) is first
    store.change(GRAPH, lines[4:6], [])
    assert held(store) is not first
    assert sorted(str(quad.object) for quad in held(store)) == [
        f"<urn:o{at}>" for at in range(6, 10)
    ]
