"""The top k of a table that changes, against the table ranked by itself."""

from __future__ import annotations

import queue
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acquatop.answer.answer import Status
from acquatop.catalog.catalog import Catalog
from acquatop.plan.bind import bind_query
from acquatop.plan.bound import BoundTable
from acquatop.query.table.fast_merits import fast_merits
from acquatop.query.table.merits import Merits
from acquatop.query.table.shared_table import SharedTable
from acquatop.query.table.source import HeldTable
from acquatop.refresh.ranked_remote import RankedRemote
from acquatop.topk.papers.views.table_view import TableView
from acquatop.topk.refill.controller import Controller, Tuning
from replica.access import Access
from replica.feeds.contract import ChangeSink
from replica.feeds.subscription import Subscription
from replica.remotes import RemoteError
from replica.remotes.best import BestRows
from replica.spending.account import Account
from replica.spending.quota import Quota
from replica.store import Solution
from replica.workers import Workers
from rspql.diagnostics import QueryError

CATALOG = """
[prefixes]
"" = "http://e/"

[services.":market"]
endpoint = "http://127.0.0.1:1/query"
feed = { kind = "lines", path = "feed.jsonl" }
refresh = { items = ITEMS, deadline = "0s" }

[services.":market".mapping]
key = "http://e/{id}"

[services.":market".mapping.properties]
":p" = { field = "p", datatype = "xsd:integer" }
":c" = { field = "c", datatype = "xsd:integer" }
"""

QUERY = """
PREFIX : <http://e/>
REGISTER STREAM :out COMPUTED EVERY 1s AS
SELECT ?s (2 * ?p - ?c AS ?score)
WHERE { SERVICE :market { ?s :p ?p ; :c ?c FILTER(?p != 3) } }
ORDER BY DESC(?score)
LIMIT 3
"""

Row = tuple[int, int]
"""The values of a subject."""


def bound_for(query: str = QUERY, items: int = 1_000) -> BoundTable:
    catalog = Catalog.parse(CATALOG.replace("ITEMS", str(items)), file=Path("catalog.toml"))
    bound = bind_query(query, catalog)
    assert isinstance(bound, BoundTable)
    return bound


def solution(subject: str, row: Row) -> Solution:
    price, cost = (f'"{each}"^^<http://www.w3.org/2001/XMLSchema#integer>' for each in row)
    return {"s": f"<http://e/{subject}>", "p": price, "c": cost}


class Market(dict[str, Row]):
    """A remote's table. It may refuse, and give ties in any order."""

    def __init__(self, rows: Mapping[str, Row], *, ties_by_key: bool = True) -> None:
        super().__init__(rows)
        self.refuses = False
        self.asked = 0
        self._ties_by_key = ties_by_key
        self._chance = Random(3)

    def become(self, rows: dict[str, Row]) -> None:
        """Hold other rows."""
        self.clear()
        self.update(rows)

    def ranked(self, descending: bool = True) -> list[tuple[float, str]]:
        """Return all that counts, best first."""
        sign = 1 if descending else -1
        counted = [(2 * p - c, key) for key, (p, c) in self.items() if p != 3]
        return sorted(counted, key=lambda each: (-sign * each[0], each[1]))

    def best(self, count: int, timeout: float) -> BestRows:
        if self.refuses:
            raise RemoteError("it refuses")
        self.asked += 1
        ranked = self.ranked()
        if not self._ties_by_key:
            self._chance.shuffle(ranked)
            ranked.sort(key=lambda each: -each[0])
        chosen = [solution(key, self[key]) for _, key in ranked[:count]]
        return BestRows(chosen, len(chosen) < count, self._ties_by_key)


class Feed:
    """A feed that says what it is told to."""

    failure: str | None = None
    connections = 0

    def start(self, sink: ChangeSink) -> None:
        self._sink = sink

    def stop(self) -> None:
        pass

    def say(self, changes: Mapping[str, Row | None]) -> None:
        said = {
            f"<http://e/{key}>": [] if row is None else [solution(key, row)]
            for key, row in changes.items()
        }
        self._sink(said, 0.0)


class PatientWorkers(Workers):
    """Workers that work when they are told to, or at once, with the table as it was when asked."""

    def __init__(self, market: Market) -> None:
        super().__init__(4)
        self.waits = False
        self._market = market
        self._waiting: list[tuple[Callable[[], None], dict[str, Row]]] = []

    def mailbox(self) -> queue.SimpleQueue[Any]:
        return queue.SimpleQueue()

    def start(self, work: Callable[[], None]) -> None:
        self._waiting.append((work, dict(self._market)))
        if not self.waits:
            self.finish()

    def finish(self) -> None:
        waiting, self._waiting = self._waiting, []
        now = dict(self._market)
        for work, then in waiting:
            self._market.become(then)
            work()
            self._market.become(now)
            self.release()


class World:
    """A table, its feed, and the view of it."""

    def __init__(
        self, market: Market, *, k: int = 3, items: int = 1_000, recomputes: bool = False
    ) -> None:
        self.now = 0.0
        self.market, self.feed, self.workers = market, Feed(), PatientWorkers(market)
        self.bound = bound_for(items=items)
        service, ranking = self.bound.service, self.bound.ranking
        access = Access(clock=lambda: self.now, jitter=lambda: 0.5, workers=self.workers)
        account = Account(service.refresh.budget, quota=Quota(), clock=lambda: self.now)
        remote = RankedRemote(market, account, access, clock=lambda: self.now, timeout=1.0)
        controller = Controller(k, k + service.refresh.n, Tuning(limit=max(k, items - 1)))
        self.table = SharedTable(
            ranking.key,
            Merits(ranking, self.bound.plan.functions),
            remote,
            TableView(controller, lambda: self.now),
            feed=Subscription.open(self.feed),
            recomputes=recomputes,
            spare=service.refresh.n,
            clock=lambda: self.now,
        )
        self.table.join("q", k)

    def change(self, changes: Mapping[str, Row | None], *, silently: bool = False) -> None:
        for key, row in changes.items():
            self.market.pop(key, None)
            if row is not None:
                self.market[key] = row
        if not silently:
            self.feed.say(changes)

    def look(self, k: int = 3) -> tuple[list[str], Status]:
        self.now += 1_000.0  # a breaker that has opened lets one request pass again
        self.table.look(round(self.now * 1000), 0.0)
        rows, certificate = self.table.best(k)
        return [each["s"][len("<http://e/") : -1] for each in rows], certificate.status

    def right(self, k: int = 3) -> list[str]:
        return [key for _, key in self.market.ranked()[:k]]


values = st.tuples(st.integers(0, 5), st.integers(0, 3))
subjects = st.sampled_from([f"s{at:02}" for at in range(14)])
changes = st.dictionaries(subjects, st.none() | values, max_size=4)


@settings(max_examples=60, deadline=None)
@given(
    rows=st.dictionaries(subjects, values, min_size=6, max_size=14),
    steps=st.lists(st.tuples(changes, st.sampled_from("nnnnrwgf")), max_size=12),
    k=st.integers(1, 4),
    spare=st.integers(0, 3),
    by_key=st.booleans(),
    items=st.sampled_from([4, 6, 1_000]),
)
def test_an_exact_answer_is_the_table_s(
    rows: dict[str, Row],
    steps: list[tuple[dict[str, Row | None], str]],
    k: int,
    spare: int,
    by_key: bool,
    items: int,
) -> None:
    """Whatever changes, refuses, comes late or is missed: exact is exact, and nothing is hidden."""
    world = World(Market(rows, ties_by_key=by_key), k=k, items=items)
    world.table.view.controller.kmax = k + spare
    for some, what in steps:
        world.market.refuses, world.workers.waits = what == "r", what == "w"
        world.feed.failure = "away" if what == "f" else None
        world.feed.connections += what in "gf"
        world.change(some, silently=what in "gf")
        found, status = world.look(k)
        if status is Status.EXACT:
            assert found == world.right(k)
        elif status is Status.APPROXIMATE:
            assert found == world.right(k)[: len(found)] or world.feed.connections
        if what != "w":
            world.workers.finish()
    world.market.refuses = world.workers.waits = False
    world.feed.failure = None
    world.workers.finish()
    world.look(k)
    found, status = world.look(k)
    if items == 1_000 and by_key:
        assert (found, status) == (world.right(k), Status.EXACT)


@settings(max_examples=20, deadline=None)
@given(rows=st.dictionaries(subjects, values, max_size=14), steps=st.lists(changes, max_size=6))
def test_a_table_that_is_asked_each_time_is_right_each_time(
    rows: dict[str, Row], steps: list[dict[str, Row | None]]
) -> None:
    world = World(Market(rows), recomputes=True)
    for some in steps:
        world.change(some, silently=True)
        assert world.look() == (world.right(), Status.EXACT)


def test_what_changes_while_a_refill_is_under_way_is_not_lost() -> None:
    world = World(Market({f"s{at:02}": (at + 10, 0) for at in range(30)}))
    assert world.look() == (["s29", "s28", "s27"], Status.EXACT)
    world.workers.waits = True
    world.feed.connections += 1
    assert world.look() == (["s29", "s28", "s27"], Status.CERTIFIED)
    world.change({"s00": (99, 0), "s29": None})
    world.workers.finish()
    assert world.look() == (["s00", "s28", "s27"], Status.EXACT)


def test_while_a_feed_is_away_the_remote_is_asked_each_time() -> None:
    world = World(Market({f"s{at:02}": (at + 10, 0) for at in range(30)}))
    world.look()
    world.feed.failure = "away"
    world.change({"s29": None}, silently=True)
    assert world.look() == (["s28", "s27", "s26"], Status.EXACT)
    world.market.refuses = True
    assert world.look() == (["s28", "s27", "s26"], Status.CERTIFIED)
    said = "the feed does not tell what changes: away; right as of 1000 s ago"
    assert world.table.best(3)[1].reason == said
    assert world.market.asked == 2


def test_a_reply_older_than_a_change_does_not_undo_it() -> None:
    world = World(Market({f"s{at:02}": (at + 10, 0) for at in range(30)}))
    world.look()
    world.workers.waits = True
    world.feed.connections += 1
    world.look()
    world.change({"s29": (0, 0)})
    assert world.look() == (["s28", "s27", "s26"], Status.CERTIFIED)
    world.workers.finish()
    assert world.look() == (["s28", "s27", "s26"], Status.EXACT)


def test_ties_that_a_database_gives_in_any_order_are_not_cut_anywhere() -> None:
    rows: dict[str, Row] = {f"a{at}": (9, at % 2) for at in range(4)}
    tied: dict[str, Row] = {f"b{at:02}": (1, 1) for at in range(40)}
    world = World(Market({**tied, **rows}, ties_by_key=False), k=4)
    assert world.look(4) == (["a0", "a2", "a1", "a3"], Status.EXACT)
    world.change({"a0": None})
    assert world.look(4) == (["a2", "a1", "a3"], Status.APPROXIMATE)


def test_solutions_of_one_subject_that_tie_are_not_parted() -> None:
    several = [solution("a", (9, 0)), *(solution("b", (p, 2 * p - 10)) for p in (7, 6, 5))]

    class Several(Market):
        def best(self, count: int, timeout: float) -> BestRows:
            return BestRows(several[:count], count > len(several), True)

    world = World(Several({}), k=2)
    world.table.view.controller.kmax = 2
    assert world.look(2) == (["a"], Status.APPROXIMATE)
    world.look(2)
    world.look(2)
    assert world.table.best(2)[0] == [several[0], several[3]]


def test_queries_of_several_k_share_a_view() -> None:
    world = World(Market({f"s{at:02}": (at + 10, 0) for at in range(40)}), k=2)
    assert world.look(2) == (["s39", "s38"], Status.EXACT)
    world.table.join("more", 15)
    world.look()
    assert world.table.best(15)[1].status is Status.EXACT
    assert [each["s"] for each in world.table.best(2)[0]] == [
        "<http://e/s39>",
        "<http://e/s38>",
    ]
    assert world.market.asked == 2
    assert not world.table.leave("more")
    assert world.table.view.controller.k == 2
    assert world.table.leave("q")


def test_one_look_serves_all_queries_of_a_time() -> None:
    world = World(Market({"a": (9, 0)}))
    world.table.look(1_000, 0.0)
    world.table.look(1_000, 0.0)
    assert world.market.asked == 1


def test_a_state_is_gone_on_from_and_asked_for_anew() -> None:
    rows: dict[str, Row] = {f"s{at:02}": (at + 10, 0) for at in range(30)}
    world, other = World(Market(rows)), World(Market(rows))
    world.look()
    other.table.resume(world.table.snapshot())
    other.market.refuses = True
    assert other.look() == (["s29", "s28", "s27"], Status.CERTIFIED)
    other.market.refuses = False
    other.change({"s29": None}, silently=True)
    assert other.look() == (["s28", "s27", "s26"], Status.EXACT)


def test_a_database_that_orders_otherwise_is_not_believed() -> None:
    class Texts(Market):
        def best(self, count: int, timeout: float) -> BestRows:
            keys = sorted(self, key=lambda key: str(self[key][0]), reverse=True)
            return BestRows([solution(key, self[key]) for key in keys[:count]], False, False)

    world = World(Texts({"a": (9, 0), "b": (10, 0), "c": (1, 0)}))
    world.now += 1
    look = world.table.look(1_000, 0.0)
    assert look.failure == "the remote does not order by the score as it is computed here"
    assert world.table.best(3)[1].status is Status.APPROXIMATE


@settings(max_examples=20, deadline=None)
@given(steps=st.lists(changes, min_size=1, max_size=10), k=st.integers(1, 4))
def test_what_cannot_be_asked_is_ranked_here(
    steps: Sequence[dict[str, Row | None]], k: int
) -> None:
    ranking = bound_for().ranking
    merits = Merits(ranking, bound_for().plan.functions)
    feed, market = Feed(), Market({})
    table = SharedTable(
        ranking.key,
        merits,
        HeldTable(ranking.key, merits),
        TableView(Controller(k, k + 1), lambda: 0.0),
        feed=Subscription.open(feed),
        recomputes=False,
        spare=1,
        clock=lambda: 0.0,
    )
    table.join("q", k)
    for at, some in enumerate(steps):
        for key, row in some.items():
            market.pop(key, None)
            if row is not None:
                market[key] = row
        if some:
            feed.say(some)
        table.look(at, 0.0)
        rows, certificate = table.best(k)
        has_heard = any(steps[: at + 1])
        assert (certificate.status is Status.EXACT) == has_heard
        assert [each["s"] for each in rows] == [
            f"<http://e/{key}>" for _, key in market.ranked()[:k]
        ]


terms = st.sampled_from(
    [
        *(f'"{each}"^^<http://www.w3.org/2001/XMLSchema#integer>' for each in (0, 3, -7, 2**60)),
        *(f'"{each}"^^<http://www.w3.org/2001/XMLSchema#decimal>' for each in ("3.0", "0.1")),
        *(
            f'"{each}"^^<http://www.w3.org/2001/XMLSchema#double>'
            for each in ("3.0E0", "NaN", "INF")
        ),
        '"3"',
        "<http://e/3>",
        '"true"^^<http://www.w3.org/2001/XMLSchema#boolean>',
    ]
)


@settings(max_examples=40, deadline=None)
@given(
    rows=st.lists(st.tuples(terms, terms), min_size=1, max_size=12),
    condition=st.sampled_from(["?p != 3", "?p < 3 || ?c >= 0.1", "3 = ?p && ?c > -8", "?p <= 3.0"]),
    score=st.sampled_from(["2 * ?p - ?c", "?p", "-?c + 1.5"]),
)
def test_merits_on_columns_are_the_engine_s(
    rows: list[tuple[str, str]], condition: str, score: str
) -> None:
    text = QUERY.replace("?p != 3", condition).replace("2 * ?p - ?c", score)
    bound = bound_for(text)
    merits = Merits(bound.ranking, bound.plan.functions)
    assert fast_merits(bound.ranking, bound.plan.functions) is not None
    solutions = [
        {"s": f"<http://e/s{at}>", "p": price, "c": cost} for at, (price, cost) in enumerate(rows)
    ]
    np.testing.assert_allclose(merits(solutions), merits.by_engine(solutions), rtol=1e-12)


def test_what_is_held_of_a_feed_that_is_away_is_not_exact() -> None:
    ranking = bound_for().ranking
    merits, feed = Merits(ranking, bound_for().plan.functions), Feed()
    table = SharedTable(
        ranking.key,
        merits,
        HeldTable(ranking.key, merits),
        TableView(Controller(1, 1), lambda: 0.0),
        feed=Subscription.open(feed),
        recomputes=False,
        spare=0,
        clock=lambda: 0.0,
    )
    table.join("q", 1)
    feed.say({"a": (1, 1)})
    feed.failure = "away"
    table.look(1, 0.0)
    assert table.best(1)[1].status is Status.CERTIFIED
    feed.failure = None
    table.look(2, 0.0)
    assert table.best(1)[1].status is Status.EXACT


def test_merits_are_the_engine_s() -> None:
    bound = bound_for(QUERY.replace("DESC", "ASC"))
    merits = Merits(bound.ranking, bound.plan.functions)
    rows = [solution("a", (4, 1)), solution("b", (3, 0)), {**solution("c", (1, 1)), "p": '"x"'}]
    np.testing.assert_array_equal(merits(rows), [-7.0, np.nan, np.nan])
    assert len(merits([])) == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (QUERY.replace("LIMIT 3", ""), "has no LIMIT"),
        (QUERY.replace("ORDER BY DESC(?score)", ""), "has no ORDER BY"),
        (QUERY.replace("DESC(?score)", "DESC(STR(?s))"), "ordered by a number"),
        (QUERY.replace("SELECT ?s", "SELECT DISTINCT ?s"), "groups, or makes rows one"),
        (QUERY.replace("DESC(?score)", "DESC(?score) ?p"), "by nothing else"),
        (QUERY.replace("?p != 3", "RAND() < 0.5"), "rand is none"),
        (QUERY.replace(":p ?p ;", ":other ?p ;"), "other"),
    ],
)
def test_what_is_no_top_k_of_a_table_is_refused_by_name(text: str, said: str) -> None:
    with pytest.raises(QueryError, match=said):
        bound_for(text)


def test_the_subject_may_be_named_as_the_order_of_ties() -> None:
    assert bound_for(QUERY.replace("DESC(?score)", "DESC(?score) ?s")).ranking.k == 3


def test_a_budget_below_k_is_warned_of() -> None:
    assert [each.code for each in bound_for(items=3).warnings] == ["small-budget"]
    assert bound_for(items=4).warnings == ()
