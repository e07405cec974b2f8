"""Services of a catalog: limits for asking a remote, and the refresh of its replica."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from acquatop.catalog.quality_target import ITEMS, QualityTarget, read_target
from acquatop.catalog.remotes import (
    KINDS,
    FeedSource,
    Source,
    can_load,
    keys_of,
    read_feed,
    read_source,
)
from acquatop.catalog.section import Section
from acquatop.catalog.vocabulary import TableStrategy
from acquatop.plugins import PROPOSERS, RANKERS, REMOTES
from replica.access import CONCURRENCY
from replica.budget import NOTHING, Budget
from replica.spending.limit import Limit

SOLUTIONS = ("one", "many")
LEDGER = "acquatop-spending.sqlite"
"""Default ledger, in the catalog's folder, of the spending of strict services."""
COMMON_KEYS = (
    "remote block_size timeout solutions concurrency capacity limits ask_absent_after mapping "
    "feed refresh strategy"
).split()
"""Catalog keys of services of all kinds."""
DEFAULT_POLICY = "ANY-IMP"
AUTO = "auto"
"""Value in place of a number: the engine chooses by observation."""


@dataclass(frozen=True)
class Refresh:
    """Refresh of a service's replica: the policy, the N of Topk+N, the budget of one evaluation.

    With ``refill`` the windows' content is kept, too, and N is only the initial value; with
    ``chooses_n``, the initial value is chosen as well. ``bank`` is the unspent budget that may be
    saved up. With a ``ledger``, spending outlives the process. With a ``target``, no more of the
    budget is spent than brings the expected quality there. Queries share the budget and the values
    if it is ``shared``.
    """

    policy: str
    n: int
    budget: Budget
    refill: bool = False
    bank: Budget = NOTHING
    ledger: str | None = None
    chooses_n: bool = False
    target: QualityTarget | None = None
    shared: bool = True


@dataclass(frozen=True)
class Service:
    """Remote, and limits for asking it.

    ``solutions`` says with how many of the remote's solutions a key joins: ``one`` or ``many``.
    ``capacity`` is the maximum number of keys in its replica; None for any number. ``limits`` hold
    over time, whatever the budgets of evaluations. A ``strategy`` is for queries without a window;
    None if it is chosen.
    """

    iri: str
    remote: str
    source: Source
    feed: FeedSource | None
    block_size: int
    load: bool
    timeout_seconds: float
    solutions: str
    concurrency: int
    capacity: int | None
    limits: tuple[Limit, ...]
    ask_absent_after: float
    refresh: Refresh
    strategy: str | None = None


def read_service(
    iri: str, section: Section, prefixes: Mapping[str, str], rankers: Collection[str]
) -> Service:
    """Return the service that a table of the catalog describes; problems are noted there."""
    kind = section.choice("remote", tuple(REMOTES), default=KINDS[0])
    kind = kind if kind in REMOTES else KINDS[0]
    section.allow(*COMMON_KEYS, *keys_of(kind))
    loads = can_load(kind, section)
    return Service(
        iri=iri,
        remote=kind,
        source=read_source(kind, section, prefixes),
        feed=read_feed(section, prefixes),
        block_size=section.whole("block_size", default=100, least=1),
        # A file or an endpoint is made for its query; a table may hold any number of rows.
        load=section.flag("load", default=loads and kind != "sql") and loads,
        timeout_seconds=section.duration_ms("timeout", default=10_000, zero=False) / 1000,
        solutions=section.choice(
            "solutions", SOLUTIONS, default="many" if kind == "sparql" else "one"
        ),
        concurrency=section.whole("concurrency", default=CONCURRENCY, least=1),
        capacity=section.whole("capacity", default=None, least=1),
        limits=_limits(section),
        ask_absent_after=section.duration_ms("ask_absent_after", default=0) / 1000,
        refresh=_refresh(section.section("refresh", required=True), rankers),
        strategy=_strategy(section),
    )


def _strategy(section: Section) -> str | None:
    """Return the strategy that a service's table asks for."""
    if "strategy" not in section:
        return None
    strategy = section.choice("strategy", tuple(TableStrategy))
    if strategy == TableStrategy.VIEW and "feed" not in section:
        section.problem("a view needs the table feed, which says what changes", "strategy")
    return strategy


def policies(rankers: Collection[str] = RANKERS) -> tuple[str, ...]:
    """Return the policies that a catalog may name."""
    return tuple(f"{proposer}-{ranker}" for proposer in PROPOSERS for ranker in rankers)


def _limits(section: Section) -> tuple[Limit, ...]:
    limits = []
    for written in section.texts("limits"):
        try:
            limits.append(Limit.parse(written))
        except ValueError as error:
            section.problem(str(error), "limits")
    return tuple(limits)


def _refresh(section: Section, rankers: Collection[str]) -> Refresh:
    section.allow(
        "policy",
        "n",
        "refill",
        "items",
        "requests",
        "deadline",
        "bank",
        "strict",
        "ledger",
        "target",
        "shared",
    )
    bank = section.section("bank")
    bank.allow("items", "requests")
    strict = section.flag("strict", default=False)
    if "ledger" in section and not strict:
        section.problem('"ledger" is for strict = true alone', "ledger")
    chooses_n = "n" in section and section.scalar("n") == AUTO
    refill = section.flag("refill", default=chooses_n)
    if chooses_n and not refill:
        section.problem(
            f'n = "{AUTO}" is found from what has to be refilled: leave "refill" out', "refill"
        )
    target = read_target(section)
    items = (
        section.whole("items", least=0)
        if target is None
        else section.whole("items", default=ITEMS, least=0)
    )
    return Refresh(
        policy=section.choice("policy", policies(rankers), default=DEFAULT_POLICY),
        n=10 if chooses_n else section.whole("n", default=10, least=0),
        refill=refill,
        budget=Budget(
            items=items,
            requests=section.whole("requests", default=items, least=0),
            seconds=section.duration_ms("deadline", default=1_000) / 1000,
        ),
        bank=Budget(
            bank.whole("items", default=0, least=0), bank.whole("requests", default=0, least=0), 0.0
        ),
        ledger=section.place("ledger", default=LEDGER) if strict else None,
        chooses_n=chooses_n,
        target=target,
        shared=section.flag("shared", default=True),
    )
