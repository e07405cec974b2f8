"""Ledger in an object store: nothing that was spent is forgotten, and one process alone spends."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from acquatop.refresh.ledger_object import NAME, LedgerObject
from connectors.object_store.contract import ObjectStore
from connectors.object_store.opening import open_objects
from replica.clocks import MachineClock
from replica.spending.ledger import LedgerError, Mark
from replica.spending.ledger_elsewhere import LedgerElsewhere
from replica.spending.spent import Spent
from tests.support.s3.in_memory import InMemory, Lossy
from tests.support.s3.running import new_place

PLACE = "s3://bucket/spending"


@pytest.fixture(
    params=["memory", *(pytest.param(each, marks=pytest.mark.server) for each in ("s3", "az"))]
)
def objects(request: pytest.FixtureRequest) -> Iterator[ObjectStore]:
    if request.param == "memory":
        yield InMemory()
    else:
        request.getfixturevalue(request.param)
        yield open_objects(new_place(scheme=request.param).address)


def opened(objects: ObjectStore, boot: str = "this") -> LedgerElsewhere:
    machine = MachineClock(boot, lambda: 5.0)
    return LedgerElsewhere(
        LedgerObject(objects, objects, PLACE), PLACE, machine=machine, wall=lambda: 100.0
    )


def spend(ledger: LedgerElsewhere, at: float) -> None:
    with ledger.transaction():
        ledger.log_of("users").add(Spent(at, 10, 1))
        ledger.set_mark("users", "q", Mark(int(at), 10, 1, 10, 3))


def test_another_machine_finds_all_that_was_spent(objects: ObjectStore) -> None:
    ledger = opened(objects)
    assert ledger.now() == 100.0
    spend(ledger, 101.0)
    spend(ledger, 102.0)
    other = opened(objects, boot="another")
    # Its clock may be behind: time does not go back.
    assert other.now() == 102.0
    assert other.log_of("users").rows() == [Spent(101.0, 10, 1), Spent(102.0, 10, 1)]
    assert other.mark("users", "q") == Mark(102, 10, 1, 10, 3)


def test_an_engine_of_before_spends_nothing_more(objects: ObjectStore) -> None:
    stale = opened(objects)
    spend(stale, 101.0)
    other = opened(objects)
    with pytest.raises(LedgerError, match="another process uses the ledger"):
        spend(stale, 102.0)
    assert len(stale.log_of("users").rows()) == 1
    spend(other, 103.0)
    assert [row.at for row in opened(objects).log_of("users").rows()] == [101.0, 103.0]


@pytest.mark.parametrize("effect", ["before", "after"])
def test_a_writing_that_fails_spends_nothing_and_the_next_one_may(effect: str) -> None:
    objects, fails = InMemory(), False
    ledger = opened(Lossy(objects, lambda count: effect if fails else None))
    spend(ledger, 101.0)
    for at in (102.0, 103.0):
        fails = True
        with pytest.raises(LedgerError, match="nothing is spent"):
            spend(ledger, at)
        fails = False
    spend(ledger, 104.0)
    assert [row.at for row in ledger.log_of("users").rows()] == [101.0, 104.0]
    assert [row.at for row in opened(objects).log_of("users").rows()] == [101.0, 104.0]


def test_reading_asks_nobody() -> None:
    lossy = Lossy(InMemory(), lambda count: None)
    ledger = opened(lossy)
    spend(ledger, 101.0)
    before = lossy.count
    ledger.log_of("users").rows()
    with ledger.transaction(to_write=False):
        ledger.mark("users", "q")
    assert lossy.count == before
    spend(ledger, 102.0)
    assert lossy.count == before + 1


def test_what_is_no_ledger_is_refused() -> None:
    objects = InMemory()
    ledger = opened(objects)
    spend(ledger, 101.0)
    content = objects.objects[NAME].content
    for broken in (b"", content[:-1], content[:300] + b"x" + content[301:]):
        objects.put(NAME, broken)
        with pytest.raises(LedgerError, match="is damaged, or no ledger"):
            opened(objects)
