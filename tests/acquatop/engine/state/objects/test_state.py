"""State in an object store: each call's data is found as a whole or not at all, whatever fails."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping

import pytest

from acquatop.engine.state.contract import Recovered
from acquatop.engine.state.objects.lease import Lease, LeaseTiming
from acquatop.engine.state.objects.state import ObjectState
from acquatop.errors import EnvironmentProblem, UserError
from connectors.object_store.contract import ObjectStore, StoreUnavailableError
from connectors.object_store.opening import open_objects
from connectors.object_store.patient import PatientObjects
from tests.support.s3.in_memory import Careless, InMemory, Lossy
from tests.support.s3.running import new_place

TEXTS = {"query top": "SELECT"}
LARGE = b"a large part" * 20
PLACE = "s3://bucket/state"


class Clock:
    """Clock that goes on only while somebody waits; renewals by threads never come."""

    def __init__(self) -> None:
        self.now = 0.0
        self.waits = 0

    def pause(self, seconds: float) -> None:
        self.now += seconds
        self.waits += 1

    @property
    def timing(self) -> LeaseTiming:
        return LeaseTiming(3600, clock=lambda: self.now, pause=self.pause)


@pytest.fixture(
    params=["memory", *(pytest.param(each, marks=pytest.mark.server) for each in ("s3", "az"))]
)
def objects(request: pytest.FixtureRequest) -> Iterator[ObjectStore]:
    if request.param == "memory":
        yield InMemory()
    else:
        request.getfixturevalue(request.param)
        yield open_objects(new_place(scheme=request.param).address)


def opened(
    objects: ObjectStore, clock: Clock | None = None, texts: Mapping[str, str] = TEXTS
) -> ObjectState:
    timing = (clock or Clock()).timing
    return ObjectState.open(objects, PLACE, texts, timing=timing, large=100)


def test_everything_that_was_saved_is_found(objects: ObjectStore) -> None:
    with opened(objects) as state:
        assert state.recover() is None
        state.save({"replica": LARGE, "position": b"1"})
        state.append({"position": b"2"})
    with opened(objects) as state:
        assert state.recover() == Recovered(
            {"replica": LARGE, "position": b"1"}, [{"position": b"2"}]
        )
        assert state.journal_length == 1
        state.append({"position": b"3"})
        state.append({"position": b"4", "more": b""})
    with opened(objects) as state:
        found = state.recover()
        assert found is not None
        assert found.journal == [
            {"position": b"2"},
            {"position": b"3"},
            {"position": b"4", "more": b""},
        ]
        for number in range(9):
            state.save({"replica": LARGE, "position": b"%d" % number})
    with opened(objects) as state:
        assert state.recover() == Recovered({"replica": LARGE, "position": b"8"}, [])
    # Beginnings of engines, two snapshots, two objects of the part that does not change.
    names = [name.partition("-")[0] for name in objects.names()]
    assert sorted(names) == ["lease.json", *["part"] * 2, *["record"] * 6]


def test_a_second_engine_is_refused_and_told_who_has_it(objects: ObjectStore) -> None:
    clock = Clock()
    with opened(objects, clock) as state:

        def renewed_meanwhile(seconds: float) -> None:
            clock.pause(3000)
            state.check_right()

        other = LeaseTiming(3600, clock=lambda: 0.0, pause=renewed_meanwhile)
        before = records(objects)
        with pytest.raises(EnvironmentProblem, match=r"is in use by process \d+ on .* \(since"):
            ObjectState.open(objects, PLACE, TEXTS, timing=other)
        assert records(objects) == before
        state.recover()
        state.save({"a": b"1"})
    idle = Clock()
    with opened(objects, idle) as state:
        assert state.recover() == Recovered({"a": b"1"}, [])
    assert (clock.waits, idle.waits) == (1, 0)


def records(objects: ObjectStore) -> list[str]:
    return [name for name in objects.names() if name.startswith(("record", "part"))]


def test_a_lease_that_nobody_renews_runs_out_and_its_engine_is_fenced(objects: ObjectStore) -> None:
    clock = Clock()
    stale = opened(objects, Clock())
    stale.recover()
    stale.save({"a": b"1"})
    with opened(objects, clock) as state:
        assert clock.now >= 3600
        assert state.recover() == Recovered({"a": b"1"}, [])
        state.append({"b": b"2"})
        before = records(objects)
        # By its own clock no time has gone by: it believes that it has the lease.
        with pytest.raises(EnvironmentProblem, match="has been taken over by process"):
            stale.append({"b": b"stale"})
        with pytest.raises(EnvironmentProblem, match="has been taken over by process"):
            stale.save({"b": b"stale"})
        assert records(objects) == before
        state.append({"b": b"3"})
    stale.close()
    with opened(objects) as state:
        found = state.recover()
        assert found is not None
        assert found.journal == [{"b": b"2"}, {"b": b"3"}]


def test_an_engine_that_was_stopped_asks_before_anything_else(objects: ObjectStore) -> None:
    clock = Clock()
    stale = opened(objects, clock)
    stale.check_right()
    opened(objects).close()
    stale.check_right()
    clock.now += 3600
    with pytest.raises(EnvironmentProblem, match="writes nothing more"):
        stale.check_right()


def test_an_engine_without_work_says_that_it_has_lost_its_state(
    caplog: pytest.LogCaptureFixture,
) -> None:
    objects = InMemory()
    timing = LeaseTiming(0.1)
    lease = Lease.take(objects, PLACE, timing)
    objects.remove(["lease.json"])
    Lease.take(objects, PLACE, timing)
    before = set(threading.enumerate())
    lease.start(objects, PLACE)
    for thread in set(threading.enumerate()) - before:
        thread.join()
    (said,) = [record.getMessage() for record in caplog.records]
    assert said.startswith(f"{PLACE} has been taken over by process")


def test_many_snapshots_later_a_stale_engine_is_still_fenced() -> None:
    objects = InMemory()
    stale = opened(objects)
    stale.recover()
    stale.save({"a": b"1"})
    with opened(objects) as state:
        state.recover()
        for number in range(20):
            state.save({"a": b"%d" % number})
        with pytest.raises(EnvironmentProblem, match="taken over"):
            stale.save({"a": b"stale"})


STEPS = (
    lambda state: state.save({"replica": LARGE, "at": b"1"}),
    lambda state: state.append({"at": b"2"}),
    lambda state: state.save({"replica": LARGE, "at": b"3"}),
    lambda state: state.append({"at": b"4"}),
    lambda state: state.declare({**TEXTS, "query new": "SELECT ?x"}),
    lambda state: state.save({"replica": LARGE, "at": b"5"}),
    lambda state: state.save({"replica": LARGE + b"!", "at": b"6"}),
    lambda state: state.append({"at": b"7"}),
)


def last_of(found: Recovered | None) -> int:
    if found is None:
        return 0
    newest = found.journal[-1] if found.journal else found.parts
    return int(newest["at"])


@pytest.mark.parametrize("effect", ["before", "after"])
def test_an_engine_that_ends_at_any_request_leaves_the_last_call_or_the_one_before(
    effect: str,
) -> None:
    """Its requests fail from there on: as if it had been killed."""
    ends = set()
    for stop in range(1, 60):
        objects, done = InMemory(), 0
        lossy = Lossy(objects, lambda count, stop=stop: effect if count >= stop else None)
        patient = PatientObjects(lossy, PLACE, patience=0.0, pause=lambda _: None)
        try:
            state = opened(patient)
            state.recover()
            for at, step in enumerate(STEPS, 1):
                step(state)
                done = at if at != 5 else done  # a manifest is no state
            ends.add("end")
        except (EnvironmentProblem, StoreUnavailableError):
            ends.add("failed")
        texts = {**TEXTS, "query new": "SELECT ?x"} if done > 5 else TEXTS
        with opened(objects, texts=texts) as again:
            found = again.recover()
            order = [0, 1, 2, 3, 4, 4, 5, 6, 7]
            assert last_of(found) in {order[done], order[min(done + 1, 8)], order[done] + 1}
            assert found is None or found.problem is None
            again.save({"replica": LARGE, "at": b"9"})
        with opened(objects, texts=texts) as again:
            assert last_of(again.recover()) == 9
    assert ends == {"end", "failed"}


@pytest.mark.parametrize("effect", ["before", "after"])
def test_a_request_that_fails_is_repeated_and_done_once(effect: str) -> None:
    """Every second request fails; replies that are lost are recognised by what was written."""
    objects, pauses = InMemory(), []
    patient = PatientObjects(
        Lossy(objects, lambda count: effect if count % 2 else None), PLACE, pause=pauses.append
    )
    with opened(patient) as state:
        state.recover()
        for step in STEPS:
            step(state)
    with opened(objects, texts={**TEXTS, "query new": "SELECT ?x"}) as state:
        found = state.recover()
        assert found is not None
        assert (found.parts["at"], found.journal) == (b"6", [{"at": b"7"}])
    assert len(pauses) > len(STEPS)


def test_it_says_that_it_waits_and_when_the_store_is_back(caplog: pytest.LogCaptureFixture) -> None:
    now = 0.0

    def pause(seconds: float) -> None:
        nonlocal now
        now += seconds

    lossy = Lossy(InMemory(), lambda count: "before" if now < 60 else None)
    patient = PatientObjects(lossy, PLACE, clock=lambda: now, pause=pause)
    assert patient.get("x") is None
    said = [record.getMessage() for record in caplog.records]
    assert 5 <= len(said) <= 8
    assert (
        said[0] == "waiting for the object store, for 0 s: memory: 503 Service Unavailable SlowDown"
    )
    assert said[-1].startswith(f"{PLACE} answers again, after 6")


def test_a_store_that_stays_away_is_given_up() -> None:
    now = 0.0

    def pause(seconds: float) -> None:
        nonlocal now
        now += seconds

    lossy = Lossy(InMemory(), lambda count: "before")
    patient = PatientObjects(lossy, PLACE, patience=300, clock=lambda: now, pause=pause)
    with pytest.raises(EnvironmentProblem, match="cannot open the state: memory: 503"):
        opened(patient)
    assert 300 <= now < 310


def test_a_damaged_snapshot_is_replaced_by_the_one_before() -> None:
    objects = InMemory()
    with opened(objects) as state:
        state.recover()
        state.save({"a": b"1"})
        state.append({"a": b"2"})
        state.save({"a": b"3"})
        state.append({"a": b"4"})
    damage(objects, "record-000000000004")
    for _ in range(2):
        with opened(objects) as state:
            found = state.recover()
            assert found is not None
            assert (found.parts, found.journal[0]) == ({"a": b"1"}, {"a": b"2"})
            assert "record-000000000004 is damaged" in str(found.problem) or found.problem is None
            state.append({"a": b"5"})
    assert [each["a"] for each in found.journal] == [b"2", b"5"]


@pytest.mark.parametrize("name", ["record-000000000003", "record-000000000001"])
def test_a_damaged_or_missing_entry_is_said_by_name(name: str) -> None:
    for break_ in (damage, lambda objects, name: objects.remove([name])):
        objects = InMemory()
        with opened(objects) as state:
            state.recover()
            state.save({"a": b"1"})
            state.append({"a": b"2"})
            state.append({"a": b"3"})
        break_(objects, name)
        with pytest.raises(EnvironmentProblem, match=f"{name} is (damaged|missing)"):
            opened(objects).recover()


def damage(objects: InMemory, name: str) -> None:
    content = objects.objects[name].content
    objects.put(name, content[:-1] + bytes([content[-1] ^ 1]) if name[-1] != "1" else b"\0")


def test_a_changed_text_is_refused_and_a_foreign_place_too() -> None:
    objects = InMemory()
    opened(objects).close()
    with pytest.raises(UserError, match="query top has changed since the state in s3://bucket"):
        opened(objects, texts={"query top": "ASK"})
    opened(objects).close()
    objects.put("holiday.jpg", b"")
    with pytest.raises(UserError, match=r"holds other objects \(holiday.jpg\)"):
        opened(objects)


def test_a_store_without_conditions_is_refused() -> None:
    with pytest.raises(EnvironmentProblem, match="ignores conditions of writes"):
        opened(Careless())
