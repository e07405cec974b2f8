"""Windows that count elements: every answer against sorting, however a stream is cut."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acquatop import Answer, Status
from acquatop.catalog.catalog import Catalog
from acquatop.catalog.vocabulary import Strategy
from acquatop.ingest.reduce.job import Job
from acquatop.plan.bind import bind_query
from acquatop.plan.bound import BoundCounted
from acquatop.query.contract import Tick
from acquatop.query.count_windows import CountedEvaluation
from acquatop.query.element_positions import Positions
from acquatop.query.per_element import PerElementEvaluation
from acquatop.topk.snapshot import SnapshotError
from acquatop.topk.strategies import OWN, Family
from rspql.diagnostics import QueryError

NS = "http://example.org/"
STREAM = NS + "stream"
CATALOG = """
[prefixes]
"" = "http://example.org/"
[streams.":stream"]
connector = "lines"
arrivals = "{arrivals}"
options = {{ path = "trades" }}
{start}
[streams.":stream".mapping]
subject = "http://example.org/trade/{{id}}"
time = "t"
[streams.":stream".mapping.properties]
":price" = {{ field = "price", datatype = "xsd:integer" }}
":share" = {{ field = "share", datatype = "iri" }}
"""
TOP = """REGISTER {output} :q AS SELECT ?trade ?price (100 / ?price AS ?score)
FROM NAMED WINDOW :w ON :stream [ELEMENTS {n} STEP {step}]
WHERE {{ WINDOW :w {{ ?trade :price ?price }} }}
ORDER BY {order}(?score) LIMIT {k} OFFSET {offset}"""


class Trade(NamedTuple):
    """An element; without a price it is no solution, and one of nothing has no score."""

    t: int
    id: int
    price: int | None

    def line(self) -> bytes:
        record = {"t": self.t, "id": self.id, "price": self.price, "share": NS + "s"}
        return json.dumps(
            {name: value for name, value in record.items() if value is not None}
        ).encode()


@dataclass(frozen=True)
class Shape:
    """A query's parameters, its trades, and the ends of batches among them."""

    trades: tuple[Trade, ...]
    cuts: frozenset[int]
    n: int
    step: int
    k: int
    offset: int
    descending: bool
    arrivals: str
    output: str = "RSTREAM"

    @property
    def text(self) -> str:
        order = "DESC" if self.descending else "ASC"
        return TOP.format(
            n=self.n, step=self.step, k=self.k, offset=self.offset, order=order, output=self.output
        )

    def batches(self) -> Iterator[list[Trade]]:
        """Yield the trades, cut."""
        ends = sorted({*self.cuts, len(self.trades)})
        for start, end in zip([0, *ends], ends, strict=False):
            yield list(self.trades[start:end])


def bind(text: str, arrivals: str = "distinct", start: str = "") -> BoundCounted:
    catalog = Catalog.parse(
        CATALOG.format(arrivals=arrivals, start=start), file=Path("c.toml"), variables={}
    )
    bound = bind_query(text, catalog, name="q")
    assert isinstance(bound, BoundCounted)
    return bound


def begun(bound: BoundCounted) -> CountedEvaluation:
    query = CountedEvaluation(bound, clock=lambda: 0.0)
    query.join(bound, {})
    return query


def hand_in(query: CountedEvaluation, bound: BoundCounted, trades: Sequence[Trade]) -> None:
    lines = pa.record_batch([pa.array([trade.line() for trade in trades], pa.binary())], ["value"])
    parts = list(Job(bound.stream.mapping, query.reducers(STREAM))([lines]))
    if parts:
        query.add(STREAM, parts, query.names)


def answers(shape: Shape, *, lateness: int = 1_000, kept: bool = False) -> list[Answer]:
    """Return all answers; if ``kept``, another query that resumes the last takes each batch."""
    bound = bind(shape.text, shape.arrivals)
    query, given, newest = begun(bound), [], 0
    for batch in shape.batches():
        hand_in(query, bound, batch)
        newest = max([newest, *(trade.t for trade in batch)])
        given += query.advance(Tick(STREAM, newest - lateness, 0.0))
        if kept:
            snapshot, query = query.snapshot(), CountedEvaluation(bound, clock=lambda: 0.0)
            query.resume(snapshot)
            assert query.resume_query(bound)
    return [*given, *query.finish(STREAM)]


def in_order(trades: Sequence[Trade]) -> list[Trade]:
    """Return trades as they are counted: something comes after nothing."""
    return sorted(
        trades,
        key=lambda each: (each.t, f"{NS}trade/{each.id}>", each.price is not None, each.price or 0),
    )


def right(shape: Shape, trades: Sequence[Trade], closes: int) -> list[tuple[int, int]]:
    """Return the ids and prices of the best of a window that closes, by sorting all in it."""
    window = [(at, trades[at]) for at in range(max(0, closes - shape.n), closes)]
    newest: dict[Any, tuple[int, Trade]] = {}
    for at, trade in window:
        newest[(trade.id, trade.price) if shape.arrivals == "all" else trade.id] = (at, trade)
    scored = [(at, each) for at, each in newest.values() if each.price]
    sign = 1 if shape.descending else -1
    scored.sort(key=lambda pair: (-sign * (100 / (pair[1].price or 1)), -pair[0]))
    return [(each.id, each.price or 0) for _, each in scored[shape.offset : shape.offset + shape.k]]


def shown(answer: Answer) -> list[tuple[int, int]]:
    return [
        (int(row.bindings["trade"].rpartition("/")[2]), int(row.bindings["price"]))
        for row in answer.rows
    ]


def canonical(found: Sequence[Answer]) -> str:
    return json.dumps([answer.canonical() for answer in found])


@st.composite
def shapes(draw: st.DrawFn, outputs: Sequence[str] = ("RSTREAM",)) -> Shape:
    arrivals = draw(st.sampled_from(["distinct", "distinct", "all", "latest"]))
    count = draw(st.integers(0, 40))
    ids = (
        list(range(count))
        if arrivals == "distinct"
        else draw(st.lists(st.integers(0, 6), min_size=count, max_size=count))
    )
    prices = st.one_of(st.none(), st.integers(0, 6), st.integers(1, 40))
    trades = [Trade(draw(st.integers(1, max(1, count // 3))), each, draw(prices)) for each in ids]
    return Shape(
        tuple(trades),
        draw(st.frozensets(st.integers(0, count), max_size=5)),
        n=draw(st.integers(1, 15)),
        step=draw(st.sampled_from([1, 1, 1, 2, 3, 7, 20])),
        k=draw(st.integers(1, 4)),
        offset=draw(st.sampled_from([0, 0, 1, 3])),
        descending=draw(st.booleans()),
        arrivals=arrivals,
        output=draw(st.sampled_from(outputs)),
    )


@settings(max_examples=60)
@given(shapes())
def test_every_answer_is_the_one_that_sorting_the_last_elements_gives(shape: Shape) -> None:
    trades, found = in_order(shape.trades), answers(shape)
    assert [answer.window for answer in found] == list(range(len(trades) // shape.step))
    for answer in found:
        closes = (answer.window + 1) * shape.step
        inside = trades[max(0, closes - shape.n) : closes]
        assert shown(answer) == right(shape, trades, closes)
        assert answer.status is Status.EXACT
        assert (answer.opens_ms, answer.closes_ms) == (inside[0].t - 1, inside[-1].t)
        if shape.arrivals == "distinct":
            assert answer.counts.unscored == sum(trade.price == 0 for trade in inside)
    assert sum(answer.counts.events for answer in found) == (len(trades) if found else 0)


@settings(max_examples=20)
@given(shapes(["RSTREAM", "ISTREAM", "DSTREAM"]))
def test_neither_the_cut_nor_an_end_in_between_changes_an_answer(shape: Shape) -> None:
    whole = canonical(answers(replace(shape, cuts=frozenset())))
    assert canonical(answers(shape)) == whole
    assert canonical(answers(shape, kept=True)) == whole
    in_time = replace(shape, trades=tuple(in_order(shape.trades)))
    assert canonical(answers(in_time, lateness=1, kept=True)) == whole


@settings(max_examples=20)
@given(shapes(["ISTREAM", "DSTREAM"]))
def test_only_what_comes_or_goes_is_answered_and_is_what_rstream_differs_in(shape: Shape) -> None:
    expected, before = [], []
    for answer in answers(replace(shape, output="RSTREAM")):
        now = shown(answer)
        these, those = (now, before) if shape.output == "ISTREAM" else (before, now)
        came = [each for each in these if each not in those]
        if came:
            expected.append((answer.window, sorted(came)))
        before = now
    assert [(answer.window, sorted(shown(answer))) for answer in answers(shape)] == expected


@settings(max_examples=15)
@given(shapes(), st.randoms(use_true_random=False))
def test_every_structure_of_elements_answers_as_panes_do(shape: Shape, random: Any) -> None:
    bound = bind(replace(shape, arrivals="distinct").text)
    trades = in_order([trade._replace(id=at) for at, trade in enumerate(shape.trades)])
    given = []
    by_element = [name for name, each in OWN.items() if each.family is Family.ELEMENTS]
    for strategy in (Strategy.EACH, Strategy.BLOCKS, random.choice(by_element)):
        query = begun(replace(bound, hint=str(strategy)))
        assert isinstance(query._work, PerElementEvaluation) == (strategy != Strategy.EACH)
        hand_in(query, bound, trades)
        given.append([*query.finish(STREAM)])
    assert canonical(given[0]) == canonical(given[1]) == canonical(given[2])


# What is not a top-k query of distinct arrivals ---------------------------------------------------


@settings(max_examples=12)
@given(shapes())
def test_aggregates_of_the_last_elements_are_right(shape: Shape) -> None:
    bound = bind(
        f"""SELECT ?price (COUNT(*) AS ?n)
        FROM NAMED WINDOW :w ON :stream [ROWS {shape.n} STEP {shape.step}]
        WHERE {{ WINDOW :w {{ ?trade :price ?price }} }}
        GROUP BY ?price ORDER BY DESC(?n) LIMIT 50""",
        "distinct",
    )
    trades = in_order([trade._replace(id=at) for at, trade in enumerate(shape.trades)])
    query = begun(bound)
    hand_in(query, bound, trades)
    for answer in query.finish(STREAM):
        closes = (answer.window + 1) * shape.step
        prices = [
            trade.price
            for trade in trades[max(0, closes - shape.n) : closes]
            if trade.price is not None
        ]
        counts = {int(row.bindings["price"]): int(row.bindings["n"]) for row in answer.rows}
        assert counts == {price: prices.count(price) for price in prices}


def test_any_query_sees_the_last_elements_and_now_is_when_the_newest_happened() -> None:
    bound = bind(
        """CONSTRUCT { ?trade :was ?price ; :at ?now } FROM NAMED WINDOW :w ON :stream [ITEMS 2]
        WHERE { WINDOW :w { ?trade :price ?price } BIND(MINUTES(NOW()) AS ?now) }"""
    )
    query = begun(bound)
    hand_in(query, bound, [Trade(60_000 * at, at, 10 + at) for at in range(1, 6)])
    found = list(query.finish(STREAM))
    ends = [
        {line.split()[2].split('"')[1] for line in answer.triples if "/at>" in line}
        for answer in found
    ]
    prices = [
        {line.split()[2].split('"')[1] for line in answer.triples if "/was>" in line}
        for answer in found
    ]
    # The fifth is in no window: one closes with every second element.
    assert ends == [{"2"}, {"4"}]
    assert prices == [{"11", "12"}, {"13", "14"}]


def ident(term: Any) -> int:
    return int(str(term).rsplit("/", 1)[1])


BESIDE = """SELECT ?trade ?other FROM NAMED WINDOW :w ON :stream [ELEMENTS {n} STEP {step}]
FROM NAMED WINDOW :v ON :stream [ELEMENTS {m} STEP {other}]
WHERE {{ WINDOW :w {{ ?trade :price ?price }} WINDOW :v {{ ?other :price ?price }} }}"""


@settings(max_examples=25)
@given(data=st.data())
def test_several_windows_over_one_stream_each_show_their_last_close(data: st.DataObject) -> None:
    few = st.integers(1, 5)
    shape = data.draw(shapes())
    n, m = data.draw(st.integers(1, 8)), data.draw(st.integers(1, 8))
    step, other = min(n, data.draw(few)), min(m, data.draw(few))
    bound = bind(BESIDE.format(n=n, step=step, m=m, other=other))
    query, given, newest = begun(bound), [], 0
    for batch in shape.batches():
        hand_in(query, bound, batch)
        newest = max([newest, *(trade.t for trade in batch)])
        given += query.advance(Tick(STREAM, newest - 1_000, 0.0))
        snapshot, query = query.snapshot(), CountedEvaluation(bound, clock=lambda: 0.0)
        query.resume(snapshot)
        assert query.resume_query(bound)
    given += query.finish(STREAM)
    trades = in_order(shape.trades)
    closes = [at for at in range(1, len(trades) + 1) if not (at % step and at % other)]
    assert [answer.window for answer in given] == closes
    for at, answer in zip(closes, given, strict=True):
        end, other_end = at - at % step, at - at % other
        # A triple is there once, however many records say it.
        one = {(each.id, each.price) for each in trades[max(0, end - n) : end]}
        two = {(each.id, each.price) for each in trades[max(0, other_end - m) : other_end]}
        pairs = [(a, b) for a, price in one for b, paid in two if paid == price is not None]
        found = [
            tuple(ident(row.bindings[name]) for name in ("trade", "other")) for row in answer.rows
        ]
        assert sorted(found) == sorted(pairs)
        assert answer.closes_ms == trades[at - 1].t
        assert [(each.window[-1], each.closes_ms) for each in answer.windows] == [
            (name, trades[last - 1].t) for name, last in (("w", end), ("v", other_end)) if last
        ]
        assert answer.status is Status.EXACT


@pytest.mark.parametrize("beside", [":stream [RANGE 3s STEP 3s]", ":other [ELEMENTS 3]"])
def test_only_windows_that_count_the_same_stream_stand_beside_each_other(beside: str) -> None:
    text = f"""SELECT * FROM NAMED WINDOW :w ON :stream [ELEMENTS 2]
    FROM NAMED WINDOW :v ON {beside}
    WHERE {{ WINDOW :w {{ ?a :price ?p }} WINDOW :v {{ ?b :price ?p }} }}"""
    with pytest.raises(QueryError, match="only beside others that count the same stream"):
        bind(text)


def test_triples_are_counted_where_a_record_is_one() -> None:
    text = """ASK FROM NAMED WINDOW :w ON :stream [TRIPLES 5]
              WHERE { WINDOW :w { ?trade :price ?price } }"""
    with pytest.raises(Exception, match="a record of the stream may be up to 2 triples"):
        bind(text)
    one = CATALOG.replace('":share" = {{ field = "share", datatype = "iri" }}', "").format(
        arrivals="all", start=""
    )
    assert isinstance(
        bind_query(text, Catalog.parse(one, file=Path("c.toml"), variables={})), BoundCounted
    )


@pytest.mark.parametrize(
    ("n", "step", "k", "arrivals", "chosen", "warned"),
    [
        (40_000, 1, 10, "distinct", Strategy.BLOCKS, False),
        (40_000, 1_000, 10, "distinct", Strategy.BLOCKS, False),
        (40_000, 40_000, 1_000, "distinct", Strategy.EACH, False),
        (40_000, 1, 10, "all", Strategy.EACH, True),
        (40_000, 1_000, 10, "latest", Strategy.REFILLED, False),
    ],
)
def test_the_cheapest_structure_is_chosen(
    n: int, step: int, k: int, arrivals: str, chosen: Strategy, warned: bool
) -> None:
    bound = bind(
        TOP.format(output="RSTREAM", n=n, step=step, order="DESC", k=k, offset=0), arrivals
    )
    assert bound.structure is not None
    assert (bound.structure.strategy, bool(bound.warnings)) == (chosen, warned)


def test_the_catalog_may_ask_for_panes() -> None:
    text = TOP.format(output="RSTREAM", n=9, step=1, order="DESC", k=1, offset=0)
    for strategy, chosen in (
        ("pane-dominance", Strategy.EACH),
        ("shared-skyline", Strategy.BLOCKS),
        ("mintopk-list", "mintopk-list"),
        ("RAPF", "RAPF"),
    ):
        choice = bind(text, start=f'strategy = "{strategy}"').structure
        assert choice is not None
        assert choice.strategy == chosen


# Time ---------------------------------------------------------------------------------------------


def top(n: int, step: int = 1, k: int = 2) -> str:
    return TOP.format(output="RSTREAM", n=n, step=step, order="ASC", k=k, offset=0)


def test_what_comes_too_late_has_no_position_and_makes_those_windows_uncertain_that_lack_it() -> (
    None
):
    bound = bind(top(n=3))
    query = begun(bound)
    hand_in(query, bound, [Trade(at, at, at) for at in (10, 20, 30, 40)])
    first = list(query.advance(Tick(STREAM, 30, 0.0)))
    hand_in(query, bound, [Trade(25, 25, 99), Trade(50, 50, 50), Trade(60, 60, 60)])
    second = list(query.finish(STREAM))
    # It would have been the third of all, so it is missing up to the fifth.
    assert [(answer.closes_ms, str(answer.status)) for answer in (*first, *second)] == [
        (10, "exact"),
        (20, "exact"),
        (30, "exact"),
        (40, "approximate"),
        (50, "approximate"),
        (60, "exact"),
    ]
    assert second[0].reason == "something that belongs into a window came too late"
    assert [answer.counts.late for answer in second] == [1, 0, 0]
    assert query.windows(STREAM)[0].closed is not None


def test_elements_count_from_the_streams_start_or_from_when_a_query_came() -> None:
    trades = [Trade(at, at, at) for at in range(1, 7)]
    for query_at, start in ((0, "start_ms = 2"), (2, ""), (2, "start_ms = 1")):
        bound = bind(top(n=2, step=2), start=start)
        query = CountedEvaluation(bound, clock=lambda: 0.0)
        query.join(bound, {STREAM: query_at} if query_at else {})
        hand_in(query, bound, trades)
        assert [answer.closes_ms for answer in query.finish(STREAM)] == [4, 6]


def test_what_waits_is_all_that_time_can_bring() -> None:
    """On an idle stream, time advances to the oldest element without a position."""
    bound = bind(top(n=2))
    query = begun(bound)
    assert query.due_after(STREAM, 5) is None
    hand_in(query, bound, [Trade(30, 1, 1), Trade(20, 2, 2)])
    assert query.due_after(STREAM, 5) == 20
    assert len(list(query.advance(Tick(STREAM, 20, 0.0)))) == 1
    assert query.due_after(STREAM, 20) == 30
    assert len(list(query.advance(Tick(STREAM, 30, 0.0)))) == 1
    assert query.due_after(STREAM, 30) is None


# Memory and state ---------------------------------------------------------------------------------


def test_only_what_may_still_be_among_the_best_is_held() -> None:
    bound = bind(top(n=10_000, step=10_000, k=3).replace("ASC", "DESC"))
    bound = replace(bound, hint=Strategy.BLOCKS.value)
    query = begun(bound)
    prices = np.random.default_rng(4).permutation(60_000).tolist()
    for start in range(0, 60_000, 15_000):
        hand_in(
            query, bound, [Trade(at, at, 1 + prices[at]) for at in range(start, start + 15_000)]
        )
        list(query.advance(Tick(STREAM, start + 14_999, 0.0)))
    # The skyband of 3 in 10 000 is some 30.
    assert query.sizes("q").candidates < 1_100


def test_other_bytes_are_no_snapshot() -> None:
    query = begun(bind(top(n=2)))
    with pytest.raises(SnapshotError):
        query.resume(b"something else")
    with pytest.raises(SnapshotError):
        Positions(room=2).resume(query.snapshot())
