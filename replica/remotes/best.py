"""Remotes that order by a score themselves, so that they can be asked for their best rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from replica.store import Solution


@dataclass(frozen=True)
class BestRows:
    """Best solutions of a remote, best first; all that it has if they are the ``whole``.

    If ``ties_by_key``, equal scores are in the order of the keys as texts, so of those that tie
    with the last the first are there.
    """

    solutions: Sequence[Solution]
    whole: bool
    ties_by_key: bool


class BestRemote(Protocol):
    """Remote that can be asked for its best. Raises :class:`~replica.remotes.RemoteError`."""

    def best(self, count: int, timeout: float) -> BestRows:
        """Return the best ``count`` rows, with one request."""
        ...
