"""Rankers: in which order to refresh the candidates. One file each, told apart by name."""

from __future__ import annotations

from collections.abc import Mapping

from replica.rankers.bsm import border_selection
from replica.rankers.contract import Candidates, Ranker
from replica.rankers.lru import least_recently_refreshed
from replica.rankers.tsm import top_selection
from replica.rankers.wst import never

RANKERS: Mapping[str, Ranker] = {
    "TSM": top_selection,
    "BSM": border_selection,
    "LRU": least_recently_refreshed,
    "WST": never,
}
"""All rankers by the name that the papers give them."""

__all__ = ["RANKERS", "Candidates", "Ranker"]
