"""Replicas that queries need, and the connections to their remotes, shared within an engine."""

from __future__ import annotations

import functools
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import TypeVar

from acquatop.catalog.remotes import FeedSource, RestSource, SparqlSource, TableSource
from acquatop.catalog.services import Service
from acquatop.errors import EnvironmentProblem, UserError
from acquatop.plan.asked_patterns import AskedPattern, asked_patterns
from acquatop.plan.bound import Bound, BoundCounted, BoundQuery, BoundTable, BoundWindowed
from acquatop.plan.remote_query import RemoteQuery
from acquatop.plugins import FEEDS, OWN_FEEDS
from acquatop.refresh.constant_join import ConstantJoin
from acquatop.refresh.join_refresh import JoinedReplicas
from acquatop.refresh.lanes import Lanes
from acquatop.refresh.ledger_object import open_keeper
from acquatop.refresh.open_best import open_best
from acquatop.refresh.open_database import connections_of
from acquatop.refresh.open_remote import RemoteFactory, name_of, open_remote
from acquatop.refresh.pool_lane import PoolLane
from acquatop.refresh.ranked_remote import RankedRemote
from acquatop.refresh.remote_recorder import RemoteRecorder
from acquatop.refresh.service_pool import ServicePool
from acquatop.windows import Windows
from connectors.kafka_client.settings import Brokers
from connectors.object_store.address import is_address
from replica.access import Access
from replica.clocks import Clock, EventTime, MachineClock, SteadyTime
from replica.feeds.contract import Feed
from replica.feeds.subscription import Subscription
from replica.http.client import HttpClient
from replica.maintainer import Maintainer
from replica.remotes import RemoteError
from replica.remotes.records import RecordReader
from replica.remotes.sql_connections import SqlConnections
from replica.shared_facts import FactsInbox
from replica.spending.account import Account
from replica.spending.ledger import Ledger, LedgerError
from replica.spending.ledger_elsewhere import LedgerElsewhere
from replica.spending.quota import Quota
from replica.spending.shared_budget import SharedBudget
from replica.store import JoinedStore, ReplicaStore, RunStore, Solution, SolutionStore
from replica.store.keyed_store import KeyedStore
from replica.workers import Workers

Progress = Callable[[str, int], None]
"""Callback with a service's IRI and the number of its keys that have been loaded so far."""

FeedFactory = Callable[[FeedSource, RecordReader, Clock, Random], Feed]
"""Maker of the feed of a source, from what reads its records, its clock, and randomness."""

StoreT = TypeVar("StoreT", bound=KeyedStore)

Joined = Maintainer[JoinedStore] | JoinedReplicas | ConstantJoin
"""Everything that a top-k query is joined with: one replica, or several, or static graphs alone."""

_PATIENCE = 0.25
"""Maximum number of seconds to wait for a ledger that another process holds.

At most a quarter of the deadline is waited.
"""

_KEPT = 64
"""Evaluations of a service that streams which lag behind all others may still come to."""

_LOG = logging.getLogger(__name__)


@dataclass
class _Way:
    """Connection to one service, shared by all queries."""

    access: Access
    quota: Quota
    ledger: Ledger | None
    client: HttpClient | None
    database: SqlConnections | None


@dataclass
class Replicas:
    """Factory of replicas. Call :meth:`close` when they are no longer needed.

    With a ``recording``, everything that the remotes say is recorded. ``goes_on_elsewhere`` is True
    if the state is where other machines reach it: then ledgers must be as well. ``shares`` says
    that queries see their streams' times together, and so may share budgets and values.
    """

    clock: Clock = time.monotonic
    now: Clock = field(default_factory=SteadyTime)
    progress: Progress | None = None
    random: Random = field(default_factory=Random)
    recording: RemoteRecorder | None = None
    wall_clock: Clock = time.time
    machine: MachineClock = field(default_factory=MachineClock.of_this_machine)
    workers: Callable[[int], Workers] = Workers
    open_feed: FeedFactory = field(default_factory=lambda: open_feed)
    open_remote: RemoteFactory = field(default_factory=lambda: open_remote)
    goes_on_elsewhere: bool = False
    shares: bool = False
    _pools: dict[tuple[str, str | None], ServicePool] = field(default_factory=dict)
    _ways: dict[str, _Way] = field(default_factory=dict)
    _elsewhere: dict[str, LedgerElsewhere] = field(default_factory=dict)

    def lanes(self, bound: Bound) -> Lanes:
        """Return the lanes of a query in the pools of its services, which it then is in.

        Queries whose windows close in the order of one stream's time have a lane together. Others,
        as of windows that count or of several streams, have one of their own.
        """
        query = bound.query if isinstance(bound, BoundCounted) else bound
        windows = () if isinstance(bound, BoundCounted) else _windows_in_order(query)
        course = query.streams[0].iri if windows else bound.name
        services = {each.service.iri: each.service for each in asked_patterns(query)}
        lanes = Lanes(
            {
                iri: self._pool(service, course).lane(course, self._opener(service, bound.name))
                for iri, service in services.items()
                if service.refresh.shared and self.shares
            },
            windows,
        )
        lanes.join(bound.name, query.weight)
        return lanes

    def _opener(self, service: Service, query: str) -> Callable[[SharedBudget], Account]:
        return lambda budget: self._account(service, query, budget)

    def _pool(self, service: Service, course: str) -> ServicePool:
        """Return the pool of a service.

        A table that is replayed has the time of a lane, which others' values are not of.
        """
        key = service.iri, course if _is_replayed(service) else None
        if key not in self._pools:
            refresh = service.refresh
            self._pools[key] = ServicePool(SharedBudget(refresh.budget, refresh.bank, keeps=_KEPT))
        return self._pools[key]

    def open(
        self, bound: BoundQuery, *, load: bool = True, lanes: Lanes | None = None
    ) -> Joined | None:
        """Return the maintainer of a top-k query's replica; None if the query joins nothing.

        The replica is filled if the catalog says so, or with what another one of the pool knows
        already, if the query is in a lane of it. Without ``load`` it stays empty, to be restored
        from elsewhere.

        Raises :class:`~acquatop.errors.EnvironmentProblem` if the remote cannot be reached to fill
        it.
        """
        patterns = asked_patterns(bound)
        if bound.plan.join is not None and bound.plan.join.is_constant:
            return ConstantJoin(bound.plan.join, bound.graphs)
        if not patterns:
            return None
        if bound.plan.join is not None:
            maintainers = self._open_several(patterns, bound, load=load, lanes=lanes)
            return JoinedReplicas(bound.plan.join, bound.services, maintainers, bound.graphs)
        (asked,) = patterns
        kind = ReplicaStore if asked.service.solutions == "one" else RunStore
        store = kind(asked.key, asked.question.variables, limit=asked.service.capacity)
        lane = None if lanes is None else lanes.by_service.get(asked.service.iri)
        if lane is None:
            return self._open(store, asked, self._account(asked.service, bound.name), load=load)
        return self._open_in(lane, store, asked, load=load)

    def _open_in(
        self, lane: PoolLane, store: StoreT, asked: AskedPattern, *, load: bool
    ) -> Maintainer[StoreT]:
        """Return the maintainer of a replica that tells others of its pool what it is told."""
        common, names = asked.question.in_common_names()
        # A remote may leave out solutions of a key of which only one is used.
        question = common, isinstance(store, ReplicaStore)
        facts = lane.facts_of(question).join(store, names)
        try:
            is_filled = load and facts.take_over()
            return self._open(store, asked, lane.account, load=load and not is_filled, facts=facts)
        except BaseException:
            facts.leave()
            raise

    def open_ranked(self, bound: BoundTable) -> tuple[RankedRemote | None, Subscription | None]:
        """Return a table's remote, if it is asked for its best, and its feed, if a view needs it.

        Only patterns of a feed need to be stars.
        """
        (asked,) = asked_patterns(bound)
        service = bound.service
        asked = replace(asked, question=replace(asked.question, key=bound.ranking.key))
        feed = self._subscription(asked, self._now(False)) if bound.keeps_view else None
        if not bound.can_ask_for_best:
            return None, feed
        way = self._way(service)
        connection = way.client or way.database
        remote, rejected = open_best(bound, asked.question, connection)
        account = self._account(service, bound.name)
        return (
            RankedRemote(
                remote,
                account,
                way.access,
                clock=self.clock,
                timeout=service.timeout_seconds,
                rejected=lambda: Counter(dict(rejected)),
            ),
            feed,
        )

    def rows_of(self, bound: BoundTable) -> Iterator[list[Solution]]:
        """Yield what a table that is not asked for its best has at the start, if it can be read."""
        service = bound.service
        if not service.load:
            return
        (asked,) = asked_patterns(bound)
        question = replace(asked.question, key=bound.ranking.key)
        way = self._way(service)
        connection = way.client or way.database
        remote = self.open_remote(service, question, connection, self._now(False), False)
        try:
            yield from remote.load(service.timeout_seconds)
        except RemoteError as error:
            raise EnvironmentProblem(f"<{service.iri}>: {error}") from error

    def open_all(
        self, bound: BoundWindowed, *, load: bool = True, lanes: Lanes | None = None
    ) -> list[Maintainer[SolutionStore]]:
        """Return the maintainers of the replicas of a query's parts, in the parts' order.

        Parts of one service share an account, that of its lane if the query is in one.

        Raises :class:`~acquatop.errors.EnvironmentProblem` if a remote cannot be reached.
        """
        return self._open_several(asked_patterns(bound), bound, load=load, lanes=lanes)

    def _open_several(
        self,
        patterns: Sequence[AskedPattern],
        bound: BoundQuery | BoundWindowed,
        *,
        load: bool,
        lanes: Lanes | None = None,
    ) -> list[Maintainer[SolutionStore]]:
        shared = {} if lanes is None else lanes.by_service
        services = {each.service.iri: each.service for each in patterns}
        accounts = {
            iri: self._account(service, bound.name)
            for iri, service in services.items()
            if iri not in shared
        }
        opened: list[Maintainer[SolutionStore]] = []
        try:
            for each in patterns:
                question, service = each.question, each.service
                store = SolutionStore(question.key, question.variables, limit=service.capacity)
                lane = shared.get(service.iri)
                opened.append(
                    self._open(store, each, accounts[service.iri], load=load)
                    if lane is None
                    else self._open_in(lane, store, each, load=load)
                )
        except BaseException:
            for maintainer in opened:
                maintainer.close()
            raise
        return opened

    def close(self) -> None:
        """Close all connections and files. Feeds end with their queries."""
        for way in self._ways.values():
            if way.client is not None:
                way.client.close()
            if way.database is not None:
                way.database.close()
            if way.ledger is not None:
                way.ledger.close()
        self._ways.clear()
        self._pools.clear()
        self._elsewhere.clear()

    # One service ----------------------------------------------------------------------------------

    def _way(self, service: Service) -> _Way:
        if service.iri not in self._ways:
            ledger = self._ledger(service)
            access = Access(
                concurrency=service.concurrency,
                block_size=service.block_size,
                clock=self.clock,
                jitter=self.random.random,
                workers=self.workers(service.concurrency),
            )
            self._ways[service.iri] = _Way(
                access,
                Quota(
                    service.limits,
                    ledger=ledger,
                    service=service.iri,
                    margin=_margin(service),
                    steady=self.clock,
                    wall=self.wall_clock,
                ),
                ledger,
                _client(service, access),
                connections_of(service),
            )
        return self._ways[service.iri]

    def _ledger(self, service: Service) -> Ledger | None:
        place = service.refresh.ledger
        if place is None:
            return None
        if self.goes_on_elsewhere and not is_address(place):
            raise UserError(
                f"<{service.iri}> is strict, and its ledger is a file of this machine ({place}): "
                "an engine that goes on at another would spend its budget again\n"
                '  hint: set ledger = "s3://BUCKET/PREFIX" or such in its refresh table'
            )
        try:
            if is_address(place):
                return self._ledger_elsewhere(place, service.refresh.budget.seconds / 4)
            return Ledger(
                place,
                longest_wait=min(_PATIENCE, service.refresh.budget.seconds / 4),
                machine=self.machine,
                wall=self.wall_clock,
            )
        except LedgerError as error:
            hint = f"what is spent on <{service.iri}> has to be kept, as it is strict"
            raise EnvironmentProblem(f"{error}\n  hint: {hint}") from error

    def _ledger_elsewhere(self, place: str, seconds: float) -> Ledger:
        """Return the ledger at an address: all services share it, as a newer user ends it."""
        if place not in self._elsewhere:
            keeper = open_keeper(place, max(_PATIENCE, seconds))
            self._elsewhere[place] = LedgerElsewhere(
                keeper, place, machine=self.machine, wall=self.wall_clock
            )
        return self._elsewhere[place]

    def _account(self, service: Service, query: str, shared: SharedBudget | None = None) -> Account:
        way, refresh = self._way(service), service.refresh
        return Account(
            refresh.budget,
            quota=way.quota,
            bank=refresh.bank,
            query=query,
            ledger=way.ledger,
            clock=self.clock,
            shared=shared,
        )

    def _open(
        self,
        store: StoreT,
        asked: AskedPattern,
        account: Account,
        *,
        load: bool,
        facts: FactsInbox | None = None,
    ) -> Maintainer[StoreT]:
        service, question = asked.service, asked.question
        is_replayed = _is_replayed(service)
        now = self._now(is_replayed)
        way, uses_one = self._way(service), isinstance(store, ReplicaStore)
        remote = self.open_remote(service, question, way.client or way.database, now, uses_one)
        maintainer = Maintainer(
            store,
            remote
            if self.recording is None
            else self.recording.of_remote(remote, asked, way.quota),
            account,
            access=self._way(service).access,
            feed=self._subscription(asked, now),
            facts=facts,
            clock=self.clock,
            now=now,
            request_timeout=service.timeout_seconds,
        )
        try:
            if load and service.load and is_replayed:
                maintainer.load_later()
            elif load and service.load:
                self._load(maintainer, service, question)
        except BaseException:
            maintainer.close()
            raise
        return maintainer

    def _now(self, is_replayed: bool) -> Clock:
        """Return the clock that dates values.

        That is the recorder's, if there is one, and event time for a replayed table.
        """
        if self.recording is not None:
            return self.recording.now
        return EventTime() if is_replayed else self.now

    def _subscription(self, asked: AskedPattern, now: Clock) -> Subscription | None:
        source = asked.service.feed
        if source is None:
            return None
        reader = RecordReader(source.mapping, asked.question.star(source.mapping))
        feed = self.open_feed(source, reader, now, self.random)
        return Subscription.open(
            feed if self.recording is None else self.recording.of_feed(feed, asked),
            reader.rejected,
        )

    def _load(
        self, maintainer: Maintainer[StoreT], service: Service, question: RemoteQuery
    ) -> None:
        progress = self.progress

        def tell(count: int) -> None:
            if progress is not None:
                progress(service.iri, count)

        try:
            if not maintainer.load(tell):
                _LOG.warning("<%s> has nothing that matches: %s", service.iri, question.text)
        except RemoteError as error:
            hint = (
                f"start it, correct what the catalog says of <{service.iri}>, "
                "or set load = false there"
            )
            raise EnvironmentProblem(f"{error}\n  hint: {hint}") from error


def _windows_in_order(bound: BoundQuery | BoundWindowed) -> Sequence[Windows]:
    """Return the windows of a query, if they close in the order of one stream's time."""
    if isinstance(bound, BoundQuery):
        return () if bound.parts else [bound.windows]
    return [each.windows for each in bound.windows] if len(bound.streams) == 1 else ()


def _is_replayed(service: Service) -> bool:
    """Return True if a service is a table with values of several times."""
    return isinstance(service.source, TableSource) and service.source.time is not None


def _margin(service: Service) -> float:
    """Return the maximum delay until a request reaches the remote, which counts it then.

    That is the timeout at most; a twentieth of the shortest period has to be enough, so that little
    is wasted.
    """
    return min([service.timeout_seconds, *(limit.seconds / 20 for limit in service.limits)])


def open_feed(source: FeedSource, reader: RecordReader, now: Clock, random: Random) -> Feed:
    """Return a feed of a file, of an address, of a topic, or of another distribution."""
    if source.brokers is not None:
        return _kafka_feed(source, source.brokers, reader, now)
    if source.kind not in OWN_FEEDS:
        from replica.feeds.iterated import IteratedFeed

        messages = functools.partial(FEEDS[source.kind], dict(source.options))
        return IteratedFeed(source.kind, messages, reader, clock=now, random=random)
    if source.address is None:
        from replica.feeds.lines import LinesFeed

        return LinesFeed(source.path, reader, clock=now)
    from replica.feeds.http import HttpFeed

    # A feed's reply never ends: only the time for which it is read limits it.
    address = source.address
    client = HttpClient(
        name=f"the feed {address.shown}",
        connections=1,
        auth=address.auth,
        headers=address.headers,
        user_agent=address.user_agent,
        longest_reply=2**62,
        secrets=address.secrets,
    )
    return HttpFeed(source.address.url, reader, client=client, clock=now, random=random)


def _kafka_feed(source: FeedSource, brokers: Brokers, reader: RecordReader, now: Clock) -> Feed:
    try:
        from confluent_kafka import Consumer
    except ModuleNotFoundError:
        hint = 'pip install "acquatop[kafka]"'
        raise EnvironmentProblem(f"a feed of Kafka needs confluent-kafka\n  hint: {hint}") from None
    from connectors.kafka_client.library_log import LibraryLog
    from replica.feeds.kafka import KafkaFeed

    settings = brokers.client()
    return KafkaFeed(
        source.topic,
        reader,
        id_field=source.mapping.key.path,
        consumer=lambda more: Consumer({**settings, **more}, logger=LibraryLog()),
        clock=now,
    )


def _client(service: Service, access: Access) -> HttpClient | None:
    if not isinstance(service.source, SparqlSource | RestSource):
        return None
    address = service.source.address
    return HttpClient(
        name=name_of(service, address),
        secrets=address.secrets,
        connections=service.concurrency,
        auth=address.auth,
        headers=address.headers,
        user_agent=address.user_agent,
        longest_reply=address.longest_reply,
        used_up=access.used_up,
    )
