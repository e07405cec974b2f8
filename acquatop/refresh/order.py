"""Order of asking a remote: keys without a value, then the policy's order, then absent keys."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np

from acquatop.answer.estimate import Estimate
from acquatop.catalog.quality_target import QualityTarget
from acquatop.ingest.scoring import ReplicaScoring
from acquatop.refresh.changed_scores import ChangedMerits
from acquatop.refresh.enough_items import EnoughItems, MeritsNow
from acquatop.refresh.proposers import Proposed
from acquatop.topk.contract import FloatArray, IntArray
from acquatop.topk.snapshot import (
    State,
    pack,
    pack_parts,
    random_settings,
    reading,
    set_random,
    unpack,
    unpack_parts,
)
from replica.freshness.change_model import ChangeModel
from replica.rankers import Candidates, Ranker
from replica.rankers.contract import Outlook, appraised, no_outlook
from replica.rankers.imp import worth_of
from replica.spending.allowance import SPEND_ALL, ItemAllowance
from replica.store import JoinedStore, SolutionStore

_KIND, _VERSION = "refresh order", 1

StoreT = TypeVar("StoreT", bound=JoinedStore | SolutionStore)


_MOST_PLACES = 1 << 10
"""Number of places beyond which all are worth the same."""

_NEXT_TO_NOTHING = 1e-9
"""Worth of what no place in the answer depends on."""


class Appraised(NamedTuple):
    """Keys in the order in which to ask, and what the answer is expected to gain by each."""

    keys: list[str]
    worths: FloatArray


@runtime_checkable
class Remembering(Protocol):
    """Ranker whose order depends on earlier input."""

    def snapshot(self) -> bytes:
        """Return the whole state."""

    def resume(self, snapshot: bytes) -> None:
        """Restore a snapshot."""


class RefreshOrder(Generic[StoreT]):
    """Order in which a ranker asks for a replica's keys.

    Unknown keys come first. Keys with values follow in the order of the ranker, which sees them as
    arrays. Keys that the remote did not have come last, and only ``ask_absent_after`` seconds after
    they were asked for. With a ``target``, no more of the ranker's are asked for than bring the
    expected quality there, and of the last kind at most one more. Without a ``slide_ms``, as of
    windows that count elements, the time between evaluations is the mean of those so far.
    """

    def __init__(
        self,
        store: StoreT,
        ranker: Ranker,
        *,
        slide_ms: int | None,
        ask_absent_after: float = 0.0,
        random: np.random.Generator,
        target: QualityTarget | None = None,
    ) -> None:
        self._store = store
        self._ranker = ranker
        self._model = ChangeModel(store.history)
        self._slide = None if slide_ms is None else slide_ms / 1000
        self._first: tuple[int, float] | None = None
        """First window and its time, if a slide has to be measured."""
        self._ask_absent_after = ask_absent_after
        self._random = random
        self._enough = None if target is None else EnoughItems(target)

    def __call__(
        self,
        unknown: Sequence[str],
        proposed: Proposed,
        absent: Sequence[str],
        *,
        window: int,
        k: int,
        now: float,
        scoring: ReplicaScoring | None = None,
        allowance: ItemAllowance = SPEND_ALL,
    ) -> Appraised:
        """Return keys, each once, in the order in which to ask, with their worths.

        The ranker may leave out some, to save their part of the ``allowance``; absent keys get no
        more of it for that. With the ``scoring`` of the proposed keys, the ranker can see their
        possible present merits. A key without a value is worth the place that it may take. So is
        one with a value, in the order of a ranker that tells no worths. None is worth less than
        those behind it.
        """
        rows = self._store.rows(proposed.keys)
        is_absent = (rows >= 0) & ~self._store.present(rows)
        kept = np.flatnonzero(~is_absent)
        rows = rows[kept]
        candidates = Candidates(
            rows=rows,
            fetched_at=self._store.fetched_at(rows),
            merits=proposed.merits[kept],
            k=k,
            now=now,
            slide=self.slide_at(window, now),
            remaining=np.maximum(proposed.lasts[kept] - window, 0),
            intervals=self._model.intervals(rows),
            chances=self._model.chance(rows, now),
            outlook=self._outlook(proposed, kept, rows, now, scoring),
            random=self._random,
            allowance=allowance.without(len(unknown)),
        )
        order, worths = appraised(self._ranker, candidates)
        if self._enough is not None:
            now_known = self._merits_of(rows, proposed, kept, scoring)
            order = order[: self._enough.of(candidates, order, now_known)]
            worths = None if worths is None else worths[: len(order)]
        chosen = [proposed.keys[at] for at in kept[order].tolist()]
        gone = [*absent, *(proposed.keys[at] for at in np.flatnonzero(is_absent).tolist())]
        due = self._due(gone, now)
        if self._enough is not None:
            due = due[: 1 + len(order)]
        if allowance.keeps:
            due = due[: max(0, allowance.now - len(unknown) - len(candidates))]
        worth = np.concatenate(
            [
                _worths_by_place(k, len(unknown)),
                _worths_by_place(k, len(chosen)) if worths is None else worths,
                np.full(len(due), _NEXT_TO_NOTHING),
            ]
        )
        return _each_once([*unknown, *chosen, *due], worth)

    def _merits_of(
        self,
        rows: IntArray,
        proposed: Proposed,
        kept: IntArray,
        scoring: ReplicaScoring | None,
    ) -> MeritsNow | None:
        """Return a function that returns merits with the replica's present values, if known."""
        if scoring is None or len(proposed.parts) != len(scoring.stream_variables):
            return None
        parts = tuple(part[kept] for part in proposed.parts)
        return lambda: scoring.merits_at(rows, parts)

    def note_quality(self, expected: Estimate) -> None:
        """Note the quality that an answer is expected to have after the refresh."""
        if self._enough is not None:
            self._enough.note(expected)

    def slide_at(self, window: int, now: float) -> float:
        """Return the seconds between evaluations, as far as they are known."""
        if self._slide is not None:
            return self._slide
        self._first = self._first or (window, now)
        passed = window - self._first[0]
        return (now - self._first[1]) / passed if passed > 0 else 0.0

    def _outlook(
        self,
        proposed: Proposed,
        kept: IntArray,
        rows: IntArray,
        now: float,
        scoring: ReplicaScoring | None,
    ) -> Outlook:
        """Return no outlook: merits are not computed from the replica's values."""
        return no_outlook

    def _possible(
        self,
        values: JoinedStore,
        model: ChangeModel,
        proposed: Proposed,
        kept: IntArray,
        rows: IntArray,
        now: float,
        scoring: ReplicaScoring | None,
    ) -> Outlook:
        """Return the merits that some proposed keys could have now, by values at some rows.

        Without the scoring, or without the parts that it needs, there is no outlook.
        """
        if scoring is None or len(proposed.parts) != len(scoring.stream_variables):
            return no_outlook
        parts = tuple(part[kept] for part in proposed.parts)
        return ChangedMerits(scoring, values, model, rows, parts, now=now, random=self._random)

    def absent_before(self, now: float) -> float:
        """Return the latest time of a request after which an absent key may be asked for again."""
        return now - self._ask_absent_after if self._ask_absent_after > 0 else math.inf

    def snapshot(self) -> bytes:
        """Return the whole state: the random state, and the ranker's memory."""
        settings: dict[str, Any] = {"random": random_settings(self._random)}
        if self._first is not None:
            settings["first"] = list(self._first)
        if self._enough is not None:
            settings["enough"] = self._enough.settings()
        parts = {"state": pack(_KIND, _VERSION, State(settings, {}))}
        if isinstance(self._ranker, Remembering):
            parts["ranker"] = self._ranker.snapshot()
        return pack_parts(parts)

    def resume(self, snapshot: bytes) -> None:
        """Restore a snapshot; raises ``SnapshotError`` for any other bytes."""
        with reading():
            parts = unpack_parts(snapshot)
            settings = unpack(_KIND, _VERSION, parts["state"]).settings
            set_random(self._random, settings["random"])
            if "first" in settings:
                window, now = settings["first"]
                self._first = window, now
            if self._enough is not None:
                self._enough.set(settings.get("enough", []))
            # A ranker that had nothing to remember before wrote no part.
            if isinstance(self._ranker, Remembering) and "ranker" in parts:
                self._ranker.resume(parts["ranker"])

    def _due(self, absent: Sequence[str], now: float) -> list[str]:
        is_due = self._store.fetched_at(self._store.rows(absent)) <= self.absent_before(now)
        return [absent[at] for at in np.flatnonzero(is_due).tolist()]


def _worths_by_place(k: int, count: int) -> FloatArray:
    """Return the worth of the places 0 to ``count`` of an answer with k."""
    worths = worth_of(min(k, _MOST_PLACES))
    found: FloatArray = worths[np.minimum(np.arange(count), len(worths) - 1)] + _NEXT_TO_NOTHING
    return found


def _each_once(keys: Sequence[str], worths: FloatArray) -> Appraised:
    """Return keys at their first places, each worth no less than those behind."""
    lifted = np.maximum.accumulate(worths[::-1])[::-1]
    first = {key: at for at, key in reversed(list(enumerate(keys)))}
    places = sorted(first.values())
    return Appraised([keys[at] for at in places], lifted[places])


class ScoredOrder(RefreshOrder[JoinedStore]):
    """Order for keys whose merits follow from the replica's values: rankers see possible merits."""

    def _outlook(
        self,
        proposed: Proposed,
        kept: IntArray,
        rows: IntArray,
        now: float,
        scoring: ReplicaScoring | None,
    ) -> Outlook:
        return self._possible(self._store, self._model, proposed, kept, rows, now, scoring)
