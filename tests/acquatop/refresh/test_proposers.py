"""Proposals of each proposer: the list, the window's join, everything."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acquatop.ingest.panes import Pane
from acquatop.ingest.solution_columns import GONE, KEY
from acquatop.refresh.proposers import PROPOSERS, Proposed, proposer_of
from acquatop.refresh.proposers.window_join import WindowJoin
from replica.store import ReplicaStore


def pane(first: int, last: int, keys: str, gone: str = "") -> Pane:
    is_gone = pa.array([False] * len(keys) + [True] * len(gone), pa.bool_())
    columns = {KEY: pa.array(list(keys + gone), pa.string()), GONE: is_gone}
    return Pane(pa.table(columns), first, last)


def held(keys: str, window: int = 0) -> Proposed:
    merits = -np.arange(len(keys), dtype=np.float64)
    return Proposed(tuple(keys), merits, np.full(len(keys), window))


def test_each_proposes_what_its_name_says() -> None:
    store = ReplicaStore("k", ["v"])
    store.put(["b", "x", "y"], [], now=1.0)
    found = {}
    for name in PROPOSERS:
        proposer = proposer_of(f"{name}-LRU", store)
        proposer.add_pane(pane(0, 3, "cab", gone="z"))
        found[name] = "".join(proposer.propose(1, held("b")).keys)
    assert found == {"AT": "b", "ANY": "b", "WSJ": "bac", "ALL": "bxy"}
    with pytest.raises(ValueError, match='no proposer "QQ": known are AT, ANY, WSJ, ALL'):
        proposer_of("QQ-LRU", store)


@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.integers(1, 4), st.text("abcdefgh", max_size=6)),
        max_size=12,
    )
)
def test_the_window_s_join_proposes_the_keys_of_the_open_windows_and_their_last(
    steps: list[tuple[int, int, str]],
) -> None:
    proposer, seen, window = WindowJoin(), list[tuple[int, str]](), 0
    for forward, length, keys in steps:
        window += forward
        proposer.close_before(window)
        proposer.add_pane(pane(window, window + length - 1, keys))
        seen += [(window + length - 1, key) for key in keys]
        lasts = {key: last for last, key in sorted(seen) if last >= window}
        proposed = proposer.propose(window, held(""))
        assert dict(zip(proposed.keys, proposed.lasts.tolist(), strict=True)) == lasts
        assert list(proposed.keys) == sorted(lasts)
