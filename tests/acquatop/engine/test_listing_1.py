"""The query of the AcquaTop paper, Listing 1 as printed, over the events of its Figure 1."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from acquatop.catalog.catalog import Catalog
from acquatop.engine.engine import Engine
from acquatop.plan.bind import bind_query
from acquatop.plan.bound import BoundQuery

LISTING_1 = """
REGISTER STREAM :TopkUsersToContact AS
SELECT ?user
F(?mentionCount,?followerCount) as ?score
FROM NAMED WINDOW :W ON :S [RANGE 9m STEP 3m]
WHERE{
WINDOW :W {?user :hasMentions ?mentionCount}
SERVICE :BKG {?user :hasFollowers ?followerCount}
}
ORDER BY DESC (?score)
LIMIT 1
"""
CATALOG = """
[prefixes]
"" = "http://example.org/"

[functions.F]
call = "tests.support.declared_functions:normalised_sum"
directions = [1, 1]
range = [0, 2]

[streams.":S"]
connector = "lines"
start_ms = 60000
options = { path = "mentions.jsonl" }
mapping = { subject = "http://example.org/{user}", time = "t", properties = { \
":hasMentions" = { field = "mentions", datatype = "xsd:integer" } } }

[services.":BKG"]
remote = "table"
path = "followers.csv"
time = "t"
mapping = { key = "http://example.org/{id}", properties = { \
":hasFollowers" = { field = "followers", datatype = "xsd:integer" } } }
refresh = { items = 9 }
"""
MINUTE_MS = 60_000
MENTIONS = [
    (2, "A", 1),
    (3, "B", 2),
    (4, "C", 1),
    (5, "D", 1),
    (7, "E", 3),
    (8, "F", 2),
    (11, "A", 2),
    (12, "G", 4),
]
FOLLOWERS = {"A": 2, "B": 3, "C": 2, "D": 1, "E": 4, "F": 3, "G": 4}


@pytest.mark.parametrize(
    ("change", "best"),
    [([], [("E", 0.7), ("G", 0.8)]), ([(11, "E", 7)], [("E", 0.7), ("E", 1.0)])],
    ids=["Figures 1a and 1b", "Figure 1c"],
)
def test_listing_1_runs_as_printed(
    tmp_path: Path, change: list[tuple[int, str, int]], best: list[tuple[str, float]]
) -> None:
    events = [{"t": t * MINUTE_MS, "user": user, "mentions": m} for t, user, m in MENTIONS]
    (tmp_path / "mentions.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in events))
    rows = [*((0, user, count) for user, count in FOLLOWERS.items()), *change]
    lines = [f"{t * MINUTE_MS},{user},{count}" for t, user, count in rows]
    (tmp_path / "followers.csv").write_text("\n".join(["t,id,followers", *lines]) + "\n")
    catalog = Catalog.parse(CATALOG, file=tmp_path / "catalog.toml", variables={})
    assert isinstance(bind_query(LISTING_1, catalog), BoundQuery)
    with Engine(catalog, runtime="local", until_end=True) as engine:
        answers = list(engine.register(LISTING_1))
    first, second, *_ = [each for each in answers if each.closes_ms >= 10 * MINUTE_MS]
    assert [each.closes_ms // MINUTE_MS for each in (first, second)] == [10, 13]
    found = [
        (str(each.rows[0].bindings["user"])[-1], each.rows[0].score) for each in (first, second)
    ]
    assert found == best
    assert {str(each.status) for each in (first, second)} == {"exact"}
