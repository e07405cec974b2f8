"""Explanation of what is sent to the driver: it says what reducers do."""

from __future__ import annotations

import pytest

from acquatop.plan.sent import sent_for
from acquatop.refresh.proposers import PROPOSERS, proposer_of
from replica.store import ReplicaStore
from tests.support.worlds import bound, catalog_text, query_text

ALONE = """PREFIX : <http://example.org/>
SELECT ?user ?mentions FROM NAMED WINDOW :w ON :stream [RANGE 9ms STEP 3ms]
WHERE { WINDOW :w { ?user :mentions ?mentions } } ORDER BY DESC(?mentions) LIMIT 2"""
SUMMED = """PREFIX : <http://example.org/>
SELECT ?user (SUM(?mentions) AS ?sum) FROM NAMED WINDOW :w ON :stream [RANGE 9ms STEP 3ms]
WHERE { WINDOW :w { ?user :mentions ?mentions } } GROUP BY ?user ORDER BY DESC(?sum) LIMIT 2"""


@pytest.mark.parametrize(
    ("query", "arrivals", "said"),
    [
        (ALONE, "all", "the best 2 of each pane and partition"),
        (ALONE, "distinct", "what can be among the best 2 of a window"),
        (
            ALONE,
            "latest",
            "the newest solution of each subject, pane and partition, because the windows' "
            "content is kept",
        ),
        (
            SUMMED,
            "distinct",
            "partial aggregates of each pane, key and partition; on Spark beyond 1,000,000 keys a "
            "row for each pane and partition, as executors keep partial aggregates in files",
        ),
        (SUMMED, 'distinct"\nkeys = "driver', "partial aggregates of each pane, key and partition"),
        (
            SUMMED,
            'distinct"\nkeys = "executors',
            "a row for each pane and partition, as executors keep partial aggregates in files",
        ),
        (SUMMED, "all", "every solution, because one that comes again counts once"),
        (
            query_text(),
            "distinct",
            "the best 4 of each pane and partition, what has no score yet, and a sample",
        ),
        (
            query_text(),
            "all",
            "every solution, because the remote's values may change before its pane is complete",
        ),
    ],
)
def test_it_names_what_is_sent(query: str, arrivals: str, said: str) -> None:
    assert sent_for(bound(query, catalog_text(arrivals=arrivals))) == said


@pytest.mark.parametrize("proposer", PROPOSERS)
def test_it_knows_which_policies_look_at_all_that_a_window_joins_with(proposer: str) -> None:
    policy = f"{proposer}-LRU"
    found = bound(query_text(), catalog_text(policy=policy))
    store = ReplicaStore("user", ["user", "followers"])
    assert found.looks_at_panes == proposer_of(policy, store).looks_at_panes
