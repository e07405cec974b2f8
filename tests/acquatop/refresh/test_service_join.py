"""In which order a part's keys are asked for, and what it says to the query."""

from __future__ import annotations

import numpy as np
import pytest

from acquatop.refresh.order import RefreshOrder
from acquatop.refresh.service_join import ReplicaJoin, depths, is_bound_from_the_start
from replica.budget import Budget
from replica.maintainer import Maintainer
from replica.rankers import DEFAULT_RANKERS
from replica.store import SolutionStore
from rspql import ast
from rspql.parser import parse
from rspql.plan import RemotePart
from tests.support.worlds import TableRemote, integer


def group(text: str) -> ast.Group:
    where = parse(f"PREFIX : <urn:> ASK {{ {text} }}").where
    assert where is not None
    return where


def part(text: str, key: str | None, source: str = "") -> RemotePart:
    pattern = group(f"SERVICE :s {{ {text} }}").elements[0]
    assert isinstance(pattern, ast.ServicePattern)
    return RemotePart(pattern, ast.Iri("urn:s"), ("k", "v"), key, group(source))


def join(policy: str) -> tuple[ReplicaJoin, SolutionStore]:
    store = SolutionStore("k", ["k", "v"])
    keeper = Maintainer(store, TableRemote(), Budget(9, 9, 1.0))
    order = RefreshOrder(
        store, DEFAULT_RANKERS[policy](), slide_ms=1000, random=np.random.default_rng(0)
    )
    return ReplicaJoin(part("?k :p ?v", "k"), keeper, order), store


@pytest.mark.parametrize(
    ("policy", "results", "order"),
    [
        ("TSM", "", "udabcn"),
        ("TSM", "ba", "ubadcn"),
        ("LRU", "ba", "udabcn"),
        ("BSM", "ba", "uadbcn"),
        ("WST", "ba", "un"),
    ],
)
def test_unknown_keys_come_first_then_the_ranker_s_then_absent_ones(
    policy: str, results: str, order: str
) -> None:
    one, store = join(policy)
    for at, key in enumerate("dabc"):
        store.put([f"<urn:{key}>"], [{"k": f"<urn:{key}>", "v": integer(1)}], now=at)
    store.put(["<urn:n>"], [], now=0)
    keys = [f"<urn:{each}>" for each in "abcdnu"]
    asked = one.appraised(keys, [f"<urn:{each}>" for each in results]).keys
    assert "".join(key[-2] for key in asked) == order


def test_all_that_is_known_becomes_a_block_of_values() -> None:
    one, store = join("TSM")
    store.put(["<urn:a>"], [{"k": "<urn:a>", "v": integer(2)}, {"k": "<urn:a>"}], now=1.0)
    two = ast.Literal("2", ast.XSD + "integer")
    a = ast.Iri("urn:a")
    assert one.values(["<urn:a>", "<urn:b>"]).rows == ((a, None), (a, two))
    store.put(["<urn:a>"], [], now=2.0)
    one.forget_rows(["<urn:a>"])
    assert one.values(["<urn:a>"]).rows == ()


def test_solutions_stay_parsed_for_the_keys_of_the_last_answer_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one, store = join("TSM")
    keys = [f"<urn:{at}>" for at in range(100)]
    store.put(keys, [{"k": key, "v": integer(1)} for key in keys], now=1.0)
    parsed: list[str] = []
    solutions = store.solutions

    def noted(key: str) -> object:
        parsed.append(key)
        return solutions(key)

    monkeypatch.setattr(store, "solutions", noted)
    for key in (*keys, keys[-1]):
        one.values([key])
    assert parsed == keys
    one.values(keys[:1])
    assert parsed[-1] == keys[0], "else one object per key that was ever asked for stays"


@pytest.mark.parametrize(
    ("pattern", "is_bound"),
    [
        ("?k :p ?v", True),
        ("?v :p ?k FILTER(?v > 1) OPTIONAL { ?k :n ?n }", True),
        ("?v :p ?w . ?w :q/:r ?k", True),
        ("?v :p ?w OPTIONAL { ?v :p ?k }", False),
        ("{ ?k :p ?v } UNION { ?k :q ?v }", False),
        ("BIND(1 AS ?w) ?k :p ?v", False),
    ],
)
def test_only_what_begins_with_the_key_is_restricted_from_the_start(
    pattern: str, is_bound: bool
) -> None:
    assert is_bound_from_the_start("k", group(pattern)) is is_bound


def test_parts_whose_keys_come_from_others_are_asked_after_them() -> None:
    first = part("?k :p ?v", "k", "?k :x ?y")
    second = part("?v :q ?w", "v", "SERVICE :s { ?k :p ?v }")
    whole = part("?a :b ?c", None)
    found = depths([second, first, whole])
    assert [found[each.pattern] for each in (second, first, whole)] == [1, 0, 0]
    with pytest.raises(ValueError, match="must not depend on its own answers"):
        depths([second])
