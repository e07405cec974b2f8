"""Several parts of a query at one service: its budget holds for all, however slow the remote."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace

from hypothesis import event, given, settings
from hypothesis import strategies as st

from acquatop.query.sparql.evaluation import SparqlEvaluation
from replica.access import CONCURRENCY, Access
from replica.budget import Budget
from replica.maintainer import Maintainer
from replica.spending.account import Account
from replica.spending.quota import Quota
from replica.store import Solution, SolutionStore
from replica.workers import Work, Workers
from tests.support.fed import Fed
from tests.support.windowed import GraphRemote, Record, batch, bound
from tests.support.worlds import NS

A = NS + "a"
TWO = """SELECT ?s ?f ?n FROM NAMED WINDOW :w ON :a [RANGE 9ms STEP 3ms]
         WHERE { WINDOW :w { ?s :p ?p }
                 SERVICE :people { ?s :friend ?f } SERVICE :people { ?s :name ?n } }"""
WHOLE = TWO.replace("?s :name ?n", "?x :name ?n")


class Held(Workers):
    """Workers that do their work when told to."""

    def __init__(self) -> None:
        super().__init__(CONCURRENCY)
        self.pending: list[Work] = []

    def start(self, work: Work) -> None:
        self.pending.append(work)

    def answer(self, at: int) -> None:
        self.pending.pop(at % len(self.pending))()
        self.release()


class Slow:
    """A query whose remotes answer when told to; time passes when someone looks at the clock."""

    def __init__(self, text: str, budget: Budget, block_size: int) -> None:
        self.bound = bound(text, start="start_ms = 0")
        self.now = 0.0
        self.workers = Held()
        access = Access(block_size=block_size, workers=self.workers)
        account = Account(budget, quota=Quota(), clock=self.clock)
        self.remotes = [
            replace_block(GraphRemote(each.part), block_size) for each in self.bound.remotes
        ]
        keepers = [
            Maintainer(
                SolutionStore(each.part.key, each.part.variables),
                remote,
                account,
                access=access,
                clock=self.clock,
            )
            for each, remote in zip(self.bound.remotes, self.remotes, strict=True)
        ]
        self.query = Fed(SparqlEvaluation(self.bound, keepers, clock=self.clock), self.bound)

    def clock(self) -> float:
        self.now += 10.0
        return self.now


def replace_block(remote: GraphRemote, block_size: int) -> GraphRemote:
    return replace(remote, block_size=block_size)


@settings(max_examples=200)
@given(
    st.sampled_from([TWO, WHOLE]),
    st.builds(Budget, st.integers(0, 9), st.integers(0, 4), st.just(1.0)),
    st.integers(1, 4),
    st.lists(
        st.tuples(st.sets(st.sampled_from("klmnop")), st.lists(st.integers(0, 9), max_size=4)),
        max_size=8,
    ),
)
def test_no_evaluation_spends_more_than_the_budget_that_its_parts_share(
    text: str, budget: Budget, block_size: int, steps: list[tuple[set[str], list[int]]]
) -> None:
    slow = Slow(text, budget, block_size)
    for at, (subjects, answered) in enumerate(steps):
        before = len(slow.workers.pending)
        slow.query.add(
            A,
            batch(slow.bound, A, [Record(9 + 3 * at, subject, 1) for subject in sorted(subjects)]),
        )
        (answer,) = slow.query.advance(A, 9 + 3 * at)
        sent = len(slow.workers.pending) - before
        assert sent == answer.spending.requests <= budget.requests
        assert answer.spending.items <= budget.items
        assert len(slow.workers.pending) <= CONCURRENCY
        event(f"{sent} sent, {before} under way")
        for which in answered:
            if slow.workers.pending:
                slow.workers.answer(which)


def test_a_remote_that_hangs_keeps_no_other_from_being_asked_and_heard() -> None:
    opened = threading.Event()

    class Hanging(GraphRemote):
        def fetch(self, keys: Sequence[str], timeout: float) -> list[Solution]:
            opened.wait(30)
            return []

    two = bound(TWO, start="start_ms = 0")
    first, second = (each.part for each in two.remotes)
    remotes = [Hanging(first), GraphRemote(second, block_size=1)]
    keepers = [
        Maintainer(
            SolutionStore(part.key, part.variables),
            remote,
            Budget(99, 99, 0.2),
            access=Access(concurrency=2),
        )
        for part, remote in zip((first, second), remotes, strict=True)
    ]
    query = Fed(SparqlEvaluation(two, keepers), two)
    for at in range(2):  # whoever has the first turn
        names = [f"{name}{at}" for name in "klmnop"]
        query.add(A, batch(two, A, [Record(9 + 3 * at, name, 1) for name in names]))
        (answer,) = query.advance(A, 9 + 3 * at)
        assert (keepers[1].store.rows([f"<{NS}{name}>" for name in names]) >= 0).all()
        assert "no answer within the deadline" in (answer.failure or "")
    opened.set()
