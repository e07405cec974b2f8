"""Unions of keys by their hashes, also if heads are alike by chance."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from acquatop.ingest.buckets.sorted_hashes import buckets_of, union, unsigned

Keys = set[tuple[int, int]]
keys = st.sets(st.tuples(st.sampled_from([-5, -1, 0, 2**62]), st.integers(-2, 2)))


@given(st.lists(keys, min_size=1, max_size=4))
def test_a_union_has_each_key_once(several: list[Keys]) -> None:
    columns = []
    for each in several:
        rows = np.array(list(each), dtype=np.int64).reshape(-1, 2)
        rows = rows[np.argsort(unsigned(rows[:, 0].copy()))]
        columns.append((rows[:, 0].copy(), rows[:, 1].copy()))
    found = union(columns)
    pairs = list(zip(*(column.tolist() for column in found.hashes), strict=True))
    assert len(pairs) == len(set(pairs)) == len(found)
    assert set(pairs) == set().union(*several)
    everything = [
        pair for column in columns for pair in zip(*map(np.ndarray.tolist, column), strict=True)
    ]
    assert [everything[at] for at in found.firsts.tolist()] == pairs
    for column, codes in zip(columns, found.codes, strict=True):
        own = list(zip(*map(np.ndarray.tolist, column), strict=True))
        assert [pairs[code] for code in codes.tolist()] == own


@given(st.lists(st.integers(-(2**63), 2**63 - 1)), st.integers(1, 1000))
def test_buckets_are_ranges(heads: list[int], count: int) -> None:
    column = np.array(heads, dtype=np.int64)
    buckets = buckets_of(column[np.argsort(unsigned(column))], count)
    assert (np.diff(buckets) >= 0).all()
    assert ((buckets >= 0) & (buckets < count)).all()
