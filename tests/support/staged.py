"""HTTP service at a real address with an engine that the test controls."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rdflib import Literal, URIRef

from acquatop.answer.answer import Answer, Counts, Row, Status
from acquatop.answer.estimate import Estimate
from acquatop.answer.window_lists import Listed, WindowLists
from acquatop.app.serve.access import Role, Tokens
from acquatop.app.serve.client import Client
from acquatop.app.serve.http_metrics import Meters
from acquatop.app.serve.limits import Limits
from acquatop.app.serve.registrations import Registrations
from acquatop.app.serve.server import Server
from acquatop.app.serve.service import QueryService
from acquatop.app.watch.address import ListenAddress
from acquatop.app.watch.prometheus import Metrics
from acquatop.catalog.catalog import Catalog
from acquatop.engine.handle import AnswerSignal, RegisteredQuery
from acquatop.engine.observer import AnswerSeen, BatchSeen, Observer, QueryState, Several
from acquatop.engine.waiting.kinds import Waiting
from replica.budget import Budget, Spending
from tests.support.empty_answer import NOTHING
from tests.support.worlds import NS, STREAM, catalog_text, query_text

ANYWHERE = ListenAddress("127.0.0.1", 0)
QUERY = query_text()
LIMIT = 120.0
"""Seconds that a test waits at most for an event, on a busy machine."""


class StagedEngine:
    """Engine stub that takes queries, and gives the answers that the test hands it."""

    def __init__(self, observer: Observer) -> None:
        self.catalog = self.known = Catalog.parse(
            catalog_text(), file=Path("catalog.toml"), variables={}
        )
        self.observer = observer
        self.running: dict[str, RegisteredQuery] = {}
        self.refuses: Exception | None = None
        self.waits: dict[str, Waiting] = {}

    def register(
        self, text: str, *, name: str, file: str, sinks: Sequence[Any], backlog: int, weight: float
    ) -> RegisteredQuery:
        if self.refuses is not None:
            raise self.refuses
        query = RegisteredQuery(
            name,
            (STREAM,),
            live=True,
            news=AnswerSignal(),
            sinks=sinks,
            backlog=backlog,
            leave=self._left,
        )
        self.running[name] = query
        return query

    def _left(self, query: RegisteredQuery) -> None:
        del self.running[query.name]

    def readers(self, name: str) -> Sequence[str]:
        return ()

    def lists(self, name: str) -> Sequence[WindowLists]:
        best = Listed(1_000, 2.0, {"user": "<http://example.org/user/ann>"})
        return [WindowLists(0, 0, 9_000, (best,), ())] if name in self.running else ()

    def waiting(self) -> dict[str, Waiting]:
        return self.waits

    def give(self, answer: Answer) -> None:
        query = self.running[answer.query]
        self.observer.answer(AnswerSeen(answer=answer))
        for sink in query.sinks:
            sink.write([answer])
        query.put(answer)

    def bring(self, items: int, **bad: int) -> None:
        """Let items come on the stream, some of them bad for reasons without spaces."""
        reasons = {reason.replace("_", " "): count for reason, count in bad.items()}
        self.observer.batch(BatchSeen(stream=STREAM, events=items, bad=reasons))

    def fail(self, name: str, error: Exception) -> None:
        self.running[name].finish(error)
        self.observer.query(name, QueryState.FAILED)

    def start(self) -> None:
        """Do nothing."""

    def stop(self) -> None:
        """Do nothing."""


@dataclass
class Stage:
    """A service, its engine, and its address."""

    service: QueryService
    engine: StagedEngine
    url: str
    meters: Meters
    client: Client = field(init=False)

    def __post_init__(self) -> None:
        self.client = Client(self.url, timeout=LIMIT)

    def give(self, query: str, closes_ms: int, *users: str, **changes: Any) -> None:
        self.engine.give(replace(ranking(query, closes_ms, *(users or ("ann", "bob"))), **changes))


@contextmanager
def staged(
    limits: Limits | None = None,
    *,
    token: str | None = None,
    tokens: Mapping[str, Role] | None = None,
    hosts: Sequence[str] = (),
    registrations: Registrations | None = None,
    address: ListenAddress = ANYWHERE,
) -> Iterator[Stage]:
    metrics = Metrics(process=False)
    engines: list[StagedEngine] = []

    def make_engine(ending: Observer) -> Any:
        engines.append(StagedEngine(Several([metrics, ending])))
        return engines[-1]

    limits = limits or Limits()
    if limits.change_seconds == Limits.change_seconds:
        # No test depends on how busy the machine is.
        limits = replace(limits, change_seconds=LIMIT)
    service = QueryService(make_engine, registrations=registrations, limits=limits)
    meters = Meters(metrics.registry)
    known = tokens or ({} if token is None else {token: Role.ADMIN})
    with Server(service, meters, address, tokens=Tokens(known), hosts=hosts) as server:
        service.start()
        stage = Stage(service, engines[0], server.url, meters)
        try:
            yield stage
        finally:
            stage.client.close()
            service.stop()


def ranking(query: str, closes_ms: int, *users: str) -> Answer:
    """Return an answer of users, the first the best."""
    rows = tuple(
        Row(
            rank,
            {
                "user": URIRef(f"{NS}user/{user}"),
                "mentions": Literal(40 - 3 * rank),
                "followers": Literal(90_000 - 7_000 * rank),
                "score": Literal(1 / rank),
            },
            1 / rank,
            rank % 3 != 0,
            0.0 if rank % 3 != 0 else 4.2,
        )
        for rank, user in enumerate(users, start=1)
    )
    return replace(
        NOTHING,
        query=query,
        window=closes_ms // 1000,
        opens_ms=closes_ms - 1000,
        closes_ms=closes_ms,
        rows=rows,
        variables=("user", "mentions", "followers", "score"),
        status=Status.CERTIFIED,
        expected=Estimate(0.83, 0.93),
        spending=Spending(items=6, requests=1, seconds=0.004),
        budget=Budget(8, 1, 0.3),
        counts=Counts(events=120),
        latency_seconds=0.012 + 0.004 * (closes_ms % 7000) / 1000,
        score_variable="score",
    )


def wait_for(condition: Any) -> None:
    """Wait until something is so; a test that would wait for ever fails."""
    pause, waited = threading.Event(), 0.0
    while not condition():
        pause.wait(0.01)
        waited += 0.01
        assert waited < LIMIT, "what was waited for has not come"
