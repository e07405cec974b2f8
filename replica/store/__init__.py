"""Replica store: keys, the remote's last values for them, and the times of fetching.

:class:`ReplicaStore` holds at most one solution per key, :class:`SolutionStore` all of them.
"""

from __future__ import annotations

from replica.snapshot import SnapshotError
from replica.store.contract import NEVER, WHOLE, Solution, Stored
from replica.store.replica_store import ReplicaStore
from replica.store.solution_store import SolutionStore

__all__ = ["NEVER", "WHOLE", "ReplicaStore", "SnapshotError", "Solution", "SolutionStore", "Stored"]
