"""Replica store: keys, the remote's last values for them, and the times of fetching.

:class:`ReplicaStore` holds at most one solution per key, :class:`SolutionStore` all of them, and
:class:`RunStore` all of them as numbers, too.
"""

from __future__ import annotations

from replica.snapshot import SnapshotError
from replica.store.contract import NEVER, WHOLE, Solution, Stored
from replica.store.joined_store import JoinedStore
from replica.store.replica_store import ReplicaStore
from replica.store.run_store import RunStore
from replica.store.solution_store import SolutionStore

__all__ = [
    "NEVER",
    "WHOLE",
    "JoinedStore",
    "ReplicaStore",
    "RunStore",
    "SnapshotError",
    "Solution",
    "SolutionStore",
    "Stored",
]
