"""Recordings of several services, and of several solutions of a key, replayed and judged."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acquatop.errors import UserError
from acquatop.lab.replay.oracle import Oracle
from acquatop.lab.replay.replay import Replay
from acquatop.lab.replay.setting import Setting
from acquatop.lab.replay.trace import open_trace
from tests.support.joined_recordings import QUERIES, Recorded

SEEDS = st.integers(0, 2**32)


@settings(max_examples=30)
@given(st.sampled_from(QUERIES), SEEDS)
def test_the_oracle_knows_all_results_of_a_join(query: str, seed: int) -> None:
    with TemporaryDirectory() as folder:
        world = Recorded(Path(folder), query, seed)
        for right in Oracle(world.trace):
            bounds = world.trace.bound.windows.bounds(right.window)
            expected = world.right(*bounds)
            assert right.merits.tolist() == [score for _, score in expected]
            subjects = Counter(name.partition("\n")[0] for name in right.identities)
            assert subjects == Counter(subject for subject, _ in expected)
            assert len(set(right.identities)) == len(right.identities)


@settings(max_examples=30)
@given(st.sampled_from(QUERIES), SEEDS, st.sampled_from(["WSJ-ASM", "ANY-IMP", "AT-TSM"]))
def test_a_replay_that_fetches_everything_is_right(query: str, seed: int, policy: str) -> None:
    with TemporaryDirectory() as folder:
        world = Recorded(Path(folder), query, seed)
        right = {each.window: each for each in Oracle(world.trace)}
        for given_ in Replay(world.trace).answers(Setting(policy, 1000, 3, 1000, 0)):
            expected = right[given_.window]
            assert given_.identities == expected.identities[:3]
            assert given_.merits.tolist() == expected.merits[:3].tolist()
            assert given_.status != "approximate"


@settings(max_examples=30)
@given(
    st.sampled_from(QUERIES),
    SEEDS,
    st.sampled_from([0, 1, 2]),
    st.sampled_from(["load = false", "block_size = 1", 'limits = ["3 items per 8ms"]']),
)
def test_each_service_has_the_budget_for_itself(
    query: str, seed: int, budget: int, more: str
) -> None:
    with TemporaryDirectory() as folder:
        world = Recorded(Path(folder), query, seed, more)
        right = {each.window: each for each in Oracle(world.trace)}
        for given_ in Replay(world.trace).answers(Setting("ALL-LRU", budget, 3, 3, 0)):
            assert given_.fetches <= budget * len(world.names)
            if given_.status == "exact":
                assert given_.identities == right[given_.window].identities[:3]


def test_one_plain_file_is_one_service_s(tmp_path: Path) -> None:
    query = Recorded(tmp_path, QUERIES[1], 1).query
    text = (tmp_path / "catalog.toml").read_text("utf-8").replace('time = "t"\nsol', "sol")
    (tmp_path / "catalog.toml").write_text(text, "utf-8")
    with pytest.raises(UserError, match=r"is no recording.*\n.*one service"):
        open_trace(tmp_path, query)
