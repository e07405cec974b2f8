"""The service with its state in an object store: it goes on at another machine."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from acquatop.app.serve.registrations import QueryRegistration
from acquatop.app.serve.registrations_in_store import NAME, InStore
from acquatop.errors import EnvironmentProblem
from connectors.object_store.patient import PatientObjects
from tests.support.markers import THOROUGH
from tests.support.s3.in_memory import InMemory, Lossy
from tests.support.s3.running import new_place
from tests.support.serving import QUERY, World, serving
from tests.support.staged import LIMIT, wait_for

PLACE = "s3://bucket/service/queries"


def registration(at: int) -> QueryRegistration:
    return QueryRegistration(f"q{at}", f"ü {at}", QUERY, at)


def test_who_was_replaced_changes_nothing_any_more() -> None:
    objects = InMemory()
    first, second = InStore(objects, PLACE), InStore(objects, PLACE)
    assert first.read() == []
    first.claim()
    for at in (2, 1, 3):
        first.write(registration(at))
    first.remove("q2")
    first.remove("q2")
    assert second.read() == [registration(1), registration(3)]
    # The first has the state still: who was refused it has only read.
    first.write(registration(4))
    with pytest.raises(EnvironmentProblem, match="another service has changed those at"):
        second.claim()
    assert second.read() == [registration(at) for at in (1, 3, 4)]
    second.claim()
    for change in (lambda: first.write(registration(5)), lambda: first.remove("q1")):
        with pytest.raises(EnvironmentProblem, match="it has this state now"):
            change()
    assert InStore(objects, PLACE).read() == [registration(at) for at in (1, 3, 4)]
    objects.put(NAME, b"[]")
    with pytest.raises(EnvironmentProblem, match="these are not registered queries"):
        second.read()


def test_a_write_whose_reply_was_lost_is_done_once() -> None:
    objects = InMemory()
    lossy = Lossy(objects, lambda number: (None, "after", "before")[number % 3])
    kept = InStore(PatientObjects(lossy, PLACE, pause=lambda seconds: None), PLACE)
    assert kept.read() == []
    kept.claim()
    for at in range(5):
        kept.write(registration(at))
    kept.remove("q3")
    assert InStore(objects, PLACE).read() == [registration(at) for at in (0, 1, 2, 4)]


@THOROUGH
@pytest.mark.usefixtures("s3")
def test_a_service_goes_on_elsewhere_and_a_stale_one_ends(tmp_path: Path) -> None:
    world, state = World(tmp_path), f"{new_place()}?lease=4s"
    (tmp_path / "first.rspql").write_text(QUERY)
    with serving(tmp_path, "--state", state, "first.rspql", keeps=False) as (child, client):
        assert client.register(QUERY, name="second")["id"] == "second"
        client.pause("second")
        refused = pytest.raises(AssertionError, match="is in use by process")
        with refused, serving(tmp_path, "--state", state, keeps=False):
            pass
        # That one has only read what is registered.
        client.register(QUERY, name="third")
        world.events(30)
        next(client.stream("first"))
        child.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, child.pid, os.WSTOPPED | os.WNOWAIT)
        with serving(tmp_path, "--state", state, keeps=False) as (_, other):
            assert [(each["id"], each["state"]) for each in other.queries()] == [
                ("first", "running"),
                ("second", "paused"),
                ("third", "running"),
            ]
            child.send_signal(signal.SIGCONT)
            world.events(30)
            assert child.wait(LIMIT) == 1
            assert child.stderr is not None
            assert "has been taken over by process" in child.stderr.read()
            wait_for(
                lambda: (
                    [each["window"]["closes"] for each in other.answers("first")][-1:]
                    > ["1970-01-01T00:00:00.050Z"]
                )
            )
            times = [each["window"]["closes"] for each in other.answers("third")]
            assert times == sorted(set(times))
