"""Proposers of the keys that may be refreshed: one file each, named by a policy's first part."""

from __future__ import annotations

from acquatop.plugins import PROPOSERS
from acquatop.refresh.proposers.anything import Anything
from acquatop.refresh.proposers.contract import Proposed, Proposer
from acquatop.refresh.proposers.everything import Everything
from acquatop.refresh.proposers.super_mtkn import SuperMTKNProposer
from acquatop.refresh.proposers.window_join import WindowJoin
from replica.store import JoinedStore

__all__ = ["PROPOSERS", "Proposed", "Proposer", "proposer_of", "ranker_name"]


def ranker_name(policy: str) -> str:
    """Return the name of the ranker that a policy ends with.

    >>> ranker_name("WSJ-LRU")
    'LRU'
    """
    return policy.partition("-")[2]


def proposer_of(policy: str, store: JoinedStore) -> Proposer:
    """Return the proposer that a policy such as ``WSJ-LRU`` begins with."""
    match policy.partition("-")[0]:
        case "AT":
            return SuperMTKNProposer()
        case "ANY":
            return Anything()
        case "WSJ":
            return WindowJoin()
        case "ALL":
            return Everything(store)
        case name if name in PROPOSERS:
            installed: Proposer = PROPOSERS[name](store)
            return installed
        case name:
            raise ValueError(f'there is no proposer "{name}": known are {", ".join(PROPOSERS)}')
