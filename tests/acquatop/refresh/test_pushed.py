"""A remote that tells of its changes: each answer is right for what it told, though none asks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acquatop import Status
from acquatop.catalog.catalog import Catalog, CatalogError
from acquatop.plan.bound import BoundQuery
from acquatop.plan.check import check_query, replicas_of, structure_of
from acquatop.topk.refill.refilled import Refilled
from replica.budget import NOTHING
from replica.feeds.subscription import Subscription
from replica.maintainer import Maintainer
from replica.store import ReplicaStore
from rspql.explain import explain, render
from tests.support.single_query import ContinuousQuery
from tests.support.told import Told
from tests.support.worlds import (
    STREAM,
    Event,
    TableRemote,
    bound,
    catalog_text,
    integer,
    query_text,
    records,
    solutions_in,
    user_term,
)

CHOSEN = catalog_text(n='"auto"', refill="true", items=0, requests=0)
SCORES = {"2 * ?mentions + ?followers": (2, 1), "0 + ?followers": (0, 1)}
USERS = [f"u{at}" for at in range(12)]


class Pushed:
    """A query over a remote that is never asked."""

    def __init__(self, bound_query: BoundQuery, known: Mapping[str, int]) -> None:
        self.feed = Told()
        self.known = dict(known)
        store = ReplicaStore("user", ["user", "followers"])
        rows = [
            {"user": user_term(user), "followers": integer(count)} for user, count in known.items()
        ]
        store.put([row["user"] for row in rows], rows, 0.0)
        keeper = Maintainer(store, TableRemote(), NOTHING, feed=Subscription.open(self.feed))
        self.query = ContinuousQuery(bound_query, keeper, clock=lambda: 0.0)

    def tell(self, user: str, count: int, now: float) -> None:
        self.known[user] = count
        self.feed.sink(
            {user_term(user): [{"user": user_term(user), "followers": integer(count)}]}, now
        )


steps = st.lists(
    st.one_of(
        st.tuples(st.just("event"), st.sampled_from(USERS), st.integers(0, 20)),
        st.tuples(st.just("told"), st.sampled_from(USERS), st.integers(0, 60)),
        st.just(("close", "", 0)),
    ),
    max_size=80,
)


@settings(max_examples=40)
@given(
    steps, st.sampled_from(sorted(SCORES)), st.sampled_from(["latest", "distinct"]), st.booleans()
)
def test_answers_are_right_for_what_it_has_told(
    steps: list[tuple[str, str, int]], score: str, arrivals: str, descending: bool
) -> None:
    text = query_text(score=score, width=9, slide=3, k=2, direction="DESC" if descending else "ASC")
    bound_query = bound(text, CHOSEN.replace('"latest"', f'"{arrivals}"'))
    world = Pushed(bound_query, {user: 5 * at for at, user in enumerate(USERS)})
    of_mentions, of_followers = SCORES[score]
    events: list[Event] = []
    now, seen = 1, set[str]()
    for kind, user, value in [*steps, ("close", "", 0)]:
        if kind == "told":
            world.tell(user, value, float(now))
        elif kind == "event" and not (arrivals == "distinct" and user in seen):
            seen.add(user)
            events.append(Event(now, user, value))
            world.query.add(STREAM, records(bound_query, events[-1:]))
        elif kind == "close":
            now += 3
            for answer in world.query.advance(STREAM, now - 1):
                inside = solutions_in(events, answer.opens_ms, answer.closes_ms, latest=True)
                worth = {
                    pair: of_mentions * pair[1] + of_followers * world.known[pair[0]]
                    for pair in inside
                }
                right = sorted(worth.values(), reverse=descending)[:2]
                assert [row.score for row in answer.rows] == right
                assert answer.status is not Status.APPROXIMATE
                assert answer.spending.requests == 0


def test_how_many_are_kept_is_found_from_what_changes() -> None:
    bound_query = bound(query_text(width=9_000, slide=3, k=2), CHOSEN)
    users = [f"u{at}" for at in range(400)]
    world = Pushed(bound_query, {user: at for at, user in enumerate(users)})
    world.query = ContinuousQuery(bound_query, world.query.maintainer, clock=lambda: 0.0)
    held = world.query.operator.list
    assert isinstance(held, Refilled)
    assert held.controller.kmax == 2
    world.query.add(STREAM, records(bound_query, [Event(1, user, 0) for user in users]))
    sizes = set()
    for at in range(60):
        best = sorted(world.known, key=world.known.__getitem__)[-3:]
        for user in best:
            world.tell(user, -at, float(at))
        list(world.query.advance(STREAM, 10 + 3 * at))
        sizes.add(held.controller.kmax)
    assert len(sizes) > 1
    assert held.refills > 0


def test_it_is_said_that_it_is_chosen() -> None:
    catalog = Catalog.parse(CHOSEN, file=Path("catalog.toml"), variables={})
    analysis = check_query(query_text(), catalog=catalog)
    said = render(explain(analysis, replicas_of(catalog), structure_of(analysis, catalog)))
    assert "N chosen while running" in said
    assert "structure: refilled" in said
    assert catalog.services["http://example.org/people"].refresh.refill
    with pytest.raises(
        CatalogError, match='n = "auto" is found from what has to be refilled: leave "refill" out'
    ):
        Catalog.parse(
            catalog_text(n='"auto"', refill="false"), file=Path("catalog.toml"), variables={}
        )
    with pytest.raises(CatalogError, match='"n" must be a whole number'):
        Catalog.parse(catalog_text(n='"some"'), file=Path("catalog.toml"), variables={})
