"""Join with what never changes while a query runs, such as static graphs: nothing is asked."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from acquatop.answer.estimate import Estimate
from acquatop.catalog.graphs import StaticGraph
from acquatop.ingest.panes import Pane
from acquatop.refresh.joined_view import JoinedView
from acquatop.refresh.replica_refresh import NOTHING_REFRESHED, Inquiry, RankingNeeds
from acquatop.topk.snapshot import pack_parts, unpack_parts
from replica.maintainer import Refreshed
from rspql.plan import Join

_VIEW, _CHANGED = "view", "changed"


class ConstantJoin:
    """Results of a join without services, by tuple: each is known as soon as it is looked up.

    Files may have changed while no query ran: windows until ``changed_until`` hold records that
    were joined before.
    """

    def __init__(self, join: Join, graphs: Sequence[StaticGraph]) -> None:
        self.store = JoinedView(join, (), graphs)
        self.changed_until: int | None = None

    def close(self) -> None:
        """Do nothing: nothing feeds it."""


class ConstantRefresh:
    """Refresh that asks nobody: it only lets go of tuples that no open window needs.

    If a file has changed while the query did not run, the first refresh says what has changed. Up
    to ``open_at_once`` windows hold what came before.
    """

    looks_at_panes = False

    def __init__(self, join: ConstantJoin, open_at_once: int) -> None:
        self._join = join
        self._view = join.store
        self._open_at_once = open_at_once
        self._evicts = False

    def add_pane(self, pane: Pane) -> None:
        """Do nothing."""

    def begin(self, window: int, closes_ms: int) -> Inquiry:
        """Ask for nothing; want to know what is needed if very many tuples are held."""
        most = self._view.limit
        self._evicts = most is not None and self._view.held > most
        return Inquiry(touches=self._evicts)

    def touch(self, keys: Iterable[str]) -> None:
        """Keep the results of tuples that open windows need."""
        self._view.touch_needs(keys)

    def note_quality(self, expected: Estimate) -> None:
        """Do nothing: nothing is asked for."""

    def fetch(self, window: int, needs: Sequence[RankingNeeds], longest_wait: float) -> Refreshed:
        """Return what has changed, which is nothing but after a restart with other files."""
        if self._evicts:
            self._view.evict()
        changed = self._view.update((), ()).changed
        if changed:
            self._join.changed_until = window + self._open_at_once
        return replace(NOTHING_REFRESHED, changed=tuple(sorted(changed)))

    def snapshot(self) -> dict[str, bytes]:
        """Return the results: what was joined before a restart may change by it."""
        changed = json.dumps(self._join.changed_until).encode()
        return {"refresher": pack_parts({_VIEW: self._view.snapshot(), _CHANGED: changed})}

    def resume(self, parts: Mapping[str, bytes]) -> None:
        """Restore the results."""
        inner = unpack_parts(parts["refresher"])
        self._join.changed_until = json.loads(inner[_CHANGED])
        self._view.resume(inner[_VIEW])
