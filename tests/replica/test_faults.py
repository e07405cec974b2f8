"""A query at work while its remote fails, in every way there is: all answers come, and none says
more than is known.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

from acquatop.answer.answer import Answer, Status
from acquatop.catalog.catalog import Catalog
from acquatop.plan.bind import bind_query
from acquatop.plan.bound import BoundQuery
from acquatop.refresh.open_replicas import Replicas
from examples.oxigraph import OxigraphServer
from tests.support.faults.counts import Counts
from tests.support.faults.fault import Fault, Harm, Healthy
from tests.support.faults.proxy import FaultProxy
from tests.support.faults.registry import FAULTS
from tests.support.single_query import ContinuousQuery
from tests.support.worlds import catalog_text

NS = "http://example.org/"
STREAM = NS + "stream"
USERS = [f"{NS}user/{name}" for name in "abcdefgh"]
ITEMS, REQUESTS, BLOCK = 6, 2, 4
GLANCE = 0.02
"""Seconds that an evaluation waits for a remote that hangs."""
QUERY = """
PREFIX : <http://example.org/>
SELECT ?user ?mentions ?followers (2 * ?mentions + ?followers AS ?score)
FROM NAMED WINDOW :w ON :stream [RANGE 20ms STEP 10ms]
WHERE { WINDOW :w { ?user :mentions ?mentions } SERVICE :people { ?user :followers ?followers } }
ORDER BY DESC(?score) LIMIT 3
"""


class Clock:
    """The time of a clock that never stands still, and that may be put forward."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self.ahead


@dataclass
class Trial:
    """A query over a stream on which eight users are mentioned all the time, with a remote behind a
    proxy.
    """

    query: ContinuousQuery
    bound: BoundQuery
    proxy: FaultProxy
    server: OxigraphServer
    clock: Clock
    answers: list[Answer]
    windows: Iterator[int]

    def evaluate(self, wait: float = 3600.0) -> Answer:
        """Return the answer of the next window."""
        closes = 10 * next(self.windows)
        lines = [
            f'{{"t": {closes}, "user": "{user[-1]}", "mentions": {at}}}'
            for at, user in enumerate(USERS)
        ]
        batch = pa.array([line.encode() for line in lines], pa.binary())
        self.query.add(
            STREAM, self.bound.stream.mapping.records(pa.record_batch([batch], ["value"]))
        )
        (answer,) = self.query.advance(STREAM, closes, longest_wait=wait)
        self.answers.append(answer)
        return answer

    def spent(self) -> tuple[int, int]:
        """Return how many requests and keys the answers say were spent."""
        return (
            sum(answer.spending.requests for answer in self.answers),
            sum(answer.spending.items for answer in self.answers),
        )


def followed(server: OxigraphServer, more: int) -> dict[str, str]:
    """Give every user a number of followers at the server, ``more`` than at first; return them."""
    values = {user: str(10 * at + more) for at, user in enumerate(USERS)}
    rows = " . ".join(f"<{user}> <{NS}followers> {value}" for user, value in values.items())
    server.update(f"CLEAR ALL ; INSERT DATA {{ {rows} }}")
    return values


def shown(answer: Answer) -> dict[str, str]:
    return {str(row.bindings["user"]): str(row.bindings["followers"]) for row in answer.rows}


@pytest.fixture
def proxy(server: OxigraphServer) -> Iterator[FaultProxy]:
    with FaultProxy("127.0.0.1", server.port) as proxy:
        yield proxy


def trial(proxy: FaultProxy, server: OxigraphServer, *, load: bool) -> Iterator[Trial]:
    clock = Clock()
    service = (
        f"load = {str(load).lower()}\nblock_size = {BLOCK}\ntimeout = "
        '"1500ms"\nmax_reply_bytes = 1000000'
    )
    catalog = catalog_text(
        endpoint=proxy.url,
        service=service,
        policy="AT-LRU",
        n=5,
        items=ITEMS,
        requests=REQUESTS,
        deadline="1h",
    )
    bound = bind_query(QUERY, Catalog.parse(catalog, file=Path("catalog.toml"), variables={}))
    assert isinstance(bound, BoundQuery)
    replicas = Replicas(clock=clock)
    query = ContinuousQuery(bound, replicas.open(bound), clock=clock)
    proxy.take()
    yield Trial(query, bound, proxy, server, clock, [], itertools.count(2))
    replicas.close()


@pytest.fixture
def warm(proxy: FaultProxy, server: OxigraphServer) -> Iterator[Trial]:
    """A query whose replica holds all that the remote has."""
    followed(server, 0)
    yield from trial(proxy, server, load=True)


CURABLE = [name for name, made in FAULTS.items() if made().scheme == "http"]


@pytest.mark.parametrize("name", CURABLE)
def test_a_remote_that_fails_makes_no_answer_late_or_wrong(warm: Trial, name: str) -> None:
    before, fault = followed(warm.server, 0), FAULTS[name]()
    assert shown(warm.evaluate()).items() <= before.items()
    warm.proxy.fault = fault
    after = followed(warm.server, 5)
    suffer(warm, fault)
    for answer in warm.answers[1:]:
        check_honesty(answer, before, after, fault)
    recover(warm, after)
    if fault.harm is Harm.ALL and name not in ANSWERED_LATE:
        assert any(answer.failure for answer in warm.answers), "what went wrong is said"
    check_spending(warm)


ANSWERED_LATE = ("connecting hangs",)
"""Requests that wait for a connection are answered once there is one: nothing has failed."""


def check_honesty(
    answer: Answer, before: dict[str, str], after: dict[str, str], fault: Fault
) -> None:
    """Check that what an answer shows was true once, and that what it says of that is true now."""
    fresh = {str(row.bindings["user"]) for row in answer.rows if row.refreshed}
    assert fresh == shown(answer).keys() & {str(key) for key in answer.refreshed}
    if answer.status is Status.EXACT:
        assert fresh == shown(answer).keys()
    if fault.harm is Harm.SOME:
        return
    assert len(answer.rows) == 3
    for user, value in shown(answer).items():
        assert value == after[user] if user in fresh else value in (before[user], after[user])
    if fault.harm is Harm.ALL and not answer.refreshed:
        assert shown(answer).items() <= before.items(), "the last good values are kept"
        assert answer.status is not Status.EXACT


def suffer(trial: Trial, fault: Fault) -> None:
    """Evaluate some windows while a fault is in force, until those who wait in vain have been sent
    away.
    """
    for _ in range(4):
        trial.evaluate(GLANCE if fault.hangs else 3600.0)
        trial.clock.ahead += 2.0  # so that more than the first failures are met
    if fault.hangs:
        trial.proxy.drop()


def recover(trial: Trial, right: dict[str, str]) -> None:
    """Evaluate windows without a fault until the replica holds what the remote has.

    Many end at once, as the keys have been asked for by requests that are still under way.
    """
    trial.proxy.fault = Healthy()
    for _ in range(20_000):
        trial.clock.ahead += 3600.0
        answer = trial.evaluate(1.0)
        if (
            shown(answer).items() <= right.items()
            and len(answer.rows) == 3
            and answer.failure is None
        ):
            return
    raise AssertionError(
        f"the replica is stale: {shown(trial.answers[-1])}, {trial.answers[-1].failure}"
    )


def check_spending(trial: Trial) -> None:
    """Compare what was spent with the budget, and with what the proxy has seen."""
    counts, (requests, keys) = trial.proxy.counts(), trial.spent()
    for answer in trial.answers:
        assert answer.spending.requests <= REQUESTS
        assert answer.spending.items <= ITEMS
    assert counts.requests <= requests
    assert counts.keys <= keys
    assert max((len(seen.keys) for seen in counts.seen), default=0) <= BLOCK
    assert counts.redirected == 0


@pytest.mark.parametrize("name", [name for name in FAULTS if name not in CURABLE])
def test_a_remote_that_never_was_well_is_an_answer_too(
    proxy: FaultProxy, server: OxigraphServer, name: str
) -> None:
    followed(server, 0)
    fault = FAULTS[name]()
    proxy.fault = fault
    for cold in trial(proxy, server, load=False):
        suffer(cold, fault)
        for _ in range(200):
            if cold.evaluate(GLANCE).failure:
                break
        assert cold.answers[-1].failure
        assert all(
            not answer.rows and answer.status is Status.APPROXIMATE for answer in cold.answers
        )
        check_spending(cold)


def test_the_redirect_is_named_and_not_followed(warm: Trial) -> None:
    warm.proxy.fault = FAULTS["redirect"]()
    answer = warm.evaluate()
    assert answer.failure is not None
    assert "http://127.0.0.1" in answer.failure
    counts: Counts = warm.proxy.counts()
    assert (counts.requests > 0, counts.redirected) == (True, 0)
