"""Queries of many shapes at once, by seeds: each answer is right by the words it says of itself.

``SEEDS=2000 ./run test tests/acquatop/query/test_composed_queries.py`` tries more of them.
"""

from __future__ import annotations

import os

import pytest

from tests.support.queries.composed import ComposedWorld

PARTS = 4
SEEDS = int(os.environ.get("SEEDS", "120"))


@pytest.mark.parametrize("part", range(PARTS))
def test_composed_queries_have_the_answers_of_sparql(part: int) -> None:
    incremental, seeds = 0, range(part, SEEDS, PARTS)
    for seed in seeds:
        world = ComposedWorld(seed)
        incremental += world.is_incremental
        found = next(world.problems(), "")
        assert not found, f"seed {seed}: {found}"
    assert incremental > 0.7 * len(seeds)
