"""Top-k query with everything that it names found."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

from acquatop.catalog.catalog import Service, Stream
from acquatop.catalog.graphs import StaticGraph
from acquatop.catalog.vocabulary import Strategy
from acquatop.ingest.match import Matcher
from acquatop.plan.strategy import Choice, Workload, choose
from acquatop.plugins import STRATEGIES, family_of, looks_at_panes
from acquatop.topk.shared.contract import TopKRequest
from acquatop.topk.strategies import Family
from acquatop.windows import Windows
from rspql.diagnostics import Diagnostic
from rspql.plan import TopKPlan
from rspql.scoring.distance import Distance, distance_in

_MORE_THAN_K = "equal scores, equal rows or groups may need more than the best k"
_OUTLIVED = "; what k others of its group outlive with better scores is dropped"
_NEW_SCORES = "scores are made anew at each close, of the time or of what was before"

NEAREST = Choice(
    Strategy.GRID, "queries that rank by a distance to a point of theirs share one grid", {}
)
"""Choice for a query that ranks by a distance."""

MANY_OPEN = 1_000
"""Number of windows open at once above which a query that counts elements gets a warning."""

MOST_KEYS = 1_000_000
"""Number of keys up to which the driver holds their aggregates, some 400 MB, if it may choose."""


@dataclass(frozen=True)
class BoundQuery:
    """Top-k plan with everything it names found; ``service`` is None if it asks no remote.

    If the plan joins several, these are the ``services`` of its join in their order, and the
    ``service`` is the first, with whose N candidates are held. If it joins several windows, each of
    the ``parts`` is a query of its own that keeps what one of them holds. The ``graphs`` are the
    static ones that are joined. Of a budget that it shares it gets a part by its ``weight``. One
    that was answered otherwise before a restart may not use a grid.
    """

    name: str
    plan: TopKPlan
    stream: Stream
    service: Service | None
    windows: Windows
    matcher: Matcher
    services: tuple[Service, ...] = ()
    parts: tuple[BoundQuery, ...] = ()
    graphs: tuple[StaticGraph, ...] = ()
    weight: float = 1.0
    may_use_grid: bool = True

    @property
    def arrivals(self) -> str:
        """Effect of a newer arrival on an older one: that of the stream's catalog.

        Distinct values are counted as if all arrivals counted: a value that comes again is one. So
        are the solutions that several records make.
        """
        aggregate = self.plan.aggregate
        is_set = aggregate is not None and aggregate.is_distinct
        is_kept = is_set or self.matcher.combines
        return "all" if is_kept and self.stream.arrivals == "distinct" else self.stream.arrivals

    @property
    def choice(self) -> Choice:
        """Structure that keeps the candidates of a query without aggregates, and the reason.

        The catalog says whether the windows' content is kept because a remote's values change.
        Without a remote nothing but a newer arrival changes a score, and uncertain answers would
        save nothing. What looks back changes with time alone.
        """
        exact = self.service is None or self.service.refresh.refill or self.looks_back
        workload = Workload(
            (TopKRequest(self.windows, self.plan.k + self.plan.offset),),
            changes=self.service is not None,
            recurring=self.stream.arrivals == "latest" or self.matcher.retracts,
            may_retain=exact,
            may_approximate=not exact,
        )
        chosen = choose(workload, available=(Strategy.EACH, Strategy.REFILLED))
        asked = self._list_asked_for
        if chosen.strategy != Strategy.EACH or asked is None:
            return chosen
        return choose(workload, available=(asked,), hint=asked)

    @property
    def _list_asked_for(self) -> str | None:
        """Strategy of a list of candidates that the catalog asks for, if it can keep these."""
        asked = self.stream.strategy
        if asked is None or family_of(asked) is not Family.LIST:
            return None
        return asked if self.can_share or STRATEGIES[asked].scores_change else None

    @property
    def listed_by(self) -> str:
        """Strategy of the list of candidates, if it has one without the windows' content."""
        return Strategy.EACH if self.refills or self.retains else self.choice.strategy

    @property
    def looks_back(self) -> bool:
        """True if past values of a remote are joined."""
        return self.plan.join is not None and self.plan.join.looks_back

    @property
    def joins_constants(self) -> bool:
        """True if the stream is joined, here, with what never changes alone."""
        return self.plan.join is not None and self.plan.join.is_constant

    @property
    def refills(self) -> bool:
        """True if the windows' content is kept to refill a list from."""
        return self.choice.strategy == Strategy.REFILLED and not self.retains

    @property
    def retains(self) -> bool:
        """True if all solutions are kept: the best k, or sums of them, may not suffice."""
        is_ranked = self.plan.finish is not None and self.plan.aggregate is None
        return is_ranked or bool(self.plan.gathered)

    @property
    def looks_at_panes(self) -> bool:
        """True if a refresh policy considers all that a window joins with."""
        services = self.services or ((self.service,) if self.service else ())
        return any(looks_at_panes(each.refresh.policy) for each in services)

    @property
    def keeps_each_solution(self) -> bool:
        """True if the driver needs each solution, not only the best or the sums of each pane."""
        if self.has_fixed_scores:
            return False
        is_joined_here = self.joins_constants and self.plan.aggregate is None
        is_reduced = self.arrivals == "distinct" and not self.retains and not is_joined_here
        return not is_reduced or self.refills or self.looks_at_panes

    @property
    def is_steady(self) -> bool:
        """True if a solution always has the same score: it is the same whenever it comes again."""
        return (
            self.plan.aggregate is None
            and self.plan.service is None
            and self.stream.arrivals != "latest"
            and not self.matcher.combines
        )

    @property
    def drops_outlived(self) -> bool:
        """True if solutions are dropped that k others outlive in their group, with better scores.

        The groups are then by variables of the stream.
        """
        finish = self.plan.finish
        return (
            finish is not None
            and self.is_steady
            and not finish.is_distinct
            and set(finish.per) <= set(self.plan.stream_variables)
        )

    @property
    def has_fixed_scores(self) -> bool:
        """True if only the best k of a pane by the score matter, and their scores never change."""
        return self.is_steady and not self.retains

    @property
    def _has_keys(self) -> bool:
        """True if what is ranked are keys that aggregates are kept for."""
        aggregate = self.plan.aggregate
        return aggregate is not None and bool(aggregate.keys) and self.plan.roll_up is None

    @property
    def keys_may_move(self) -> bool:
        """True if the aggregates of the query's keys are kept wherever there is room for them.

        A replica of limited capacity needs all keys in the driver, to tell which it has to keep.
        """
        service = self.service
        return (
            self._has_keys
            and self.stream.keys == "auto"
            and self.arrivals == "distinct"
            and self.plan.finish is None
            and not self.plan.gathered
            and self.plan.join is None
            and (
                service is None
                or (
                    service.capacity is None
                    and service.solutions == "one"
                    and not service.refresh.refill
                    and not looks_at_panes(service.refresh.policy)
                )
            )
        )

    @property
    def keys_in_executors(self) -> bool:
        """True if the aggregates of the query's keys are kept where the executors read them."""
        return (
            self._has_keys
            and self.stream.keys == "executors"
            and self.arrivals == "distinct"
            and self.plan.finish is None
        )

    @property
    def structure(self) -> Choice | None:
        """Structure that keeps the candidates; None with aggregates, which keep all keys."""
        if self.parts:
            joined = "what several windows hold is joined at a close"
            why = _NEW_SCORES if self.plan.at_close else joined
            return Choice(Strategy.RETAINED, why, {})
        if self.plan.aggregate is not None:
            return None
        if self.plan.finish is None:
            return self.choice
        why = _MORE_THAN_K + (_OUTLIVED if self.drops_outlived else "")
        return Choice(Strategy.RETAINED, why, {})

    def structure_over_positions(self, hint: str | None) -> Choice | None:
        """Return the structure for windows that count elements; None with aggregates.

        A ``hint`` replaces the one that the catalog asks for.
        """
        is_distinct = self.arrivals == "distinct" and not self.matcher.may_be_several
        is_alone = self.plan.aggregate is None and self.plan.service is None
        if self.retains or not (is_distinct and is_alone):
            return self.structure
        if self.is_nearest_over_positions(hint):
            return NEAREST
        workload = Workload(
            (TopKRequest(self.windows, self.plan.k + self.plan.offset),), counts=True
        )
        asked = self.stream.strategy
        if hint is None and family_of(asked) in (Family.LIST, Family.ELEMENTS):
            hint = asked
        error = self.stream.approximate
        if hint is None and error is not None:
            return Choice("PA", "the catalog accepts an error", {}, error)
        available = (Strategy.EACH, Strategy.BLOCKS) if hint is None else (hint,)
        choice = choose(workload, available=available, hint=hint)
        errs = hint is not None and hint in STRATEGIES and STRATEGIES[hint].errs
        return replace(choice, error=error) if errs else choice

    @property
    def can_share(self) -> bool:
        """True if queries with other windows may share its structure: its scores never change."""
        return (
            self.plan.aggregate is None
            and self.plan.service is None
            and self.arrivals == "distinct"
            and not self.retains
            and not self.parts
        )

    @cached_property
    def ranked(self) -> str:
        """Stream, pattern and score as text, in which queries agree that share a structure.

        It is made once: when a query registers, it is compared with that of all others.
        """
        score = self.plan.score
        ranked_by = (score.expression, score.condition, score.descending)
        return repr((self.stream.iri, self.matcher.signature, *ranked_by))

    @cached_property
    def nearest(self) -> Distance | None:
        """Distance that the query ranks by, smallest first, if its scores never change."""
        score = self.plan.score
        is_plain = not (score.descending or score.orders_terms or score.only_place)
        is_here = self.plan.join is None and not self.matcher.combines
        if not (self.may_use_grid and self.can_share and is_plain and is_here):
            return None
        return distance_in(score.expression, score.datatypes)

    @property
    def is_nearest_over_time(self) -> bool:
        """True if a grid finds the nearest of windows of time."""
        hinted = (Family.LIST, Family.SHARED)
        return self.nearest is not None and family_of(self.stream.strategy) not in hinted

    def is_nearest_over_positions(self, hint: str | None) -> bool:
        """Return True if the nearest of the last elements are found by a grid."""
        asked, accepts_error = self.stream.strategy, self.stream.approximate is not None
        if hint is not None or family_of(asked) in (Family.LIST, Family.ELEMENTS):
            return hint == Strategy.GRID and self.nearest is not None
        return (
            self.nearest is not None
            and not self.matcher.may_be_several
            and not (accepts_error and asked is None)
        )

    @property
    def counted_elements(self) -> int:
        """Number of elements that answers depend on, if the query counts them."""
        return self.windows.width_ms

    @property
    def late_bound(self) -> float | None:
        """Bound of the score of a result that an answer may lack because of a late element."""
        return math.inf

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """Warnings: none."""
        return ()

    @property
    def reason(self) -> Diagnostic | None:
        """Reason for another evaluation than the plan allows: none."""
        return None

    def warnings_of_open_windows(self) -> tuple[Diagnostic, ...]:
        """Return a warning if very many windows are open at once."""
        open_at_once = -(-self.windows.width_ms // self.windows.slide_ms)
        if open_at_once <= MANY_OPEN:
            return ()
        message = (
            f"up to {open_at_once} windows are open at once, "
            "and each of them costs something with every STEP"
        )
        hint = "take a larger STEP"
        if self.plan.aggregate is None:
            hint += (
                ', or set arrivals = "distinct" for the stream '
                "if none of its records replaces another"
            )
        span = self.plan.window.name.span
        return (Diagnostic("many-windows", message, span, hint, severity="warning"),)

    @property
    def streams(self) -> tuple[Stream, ...]:
        """Streams that the query reads, each once."""
        return tuple({each.stream.iri: each.stream for each in (self, *self.parts)}.values())
