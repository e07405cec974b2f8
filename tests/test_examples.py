"""Requirements of the examples outside Python: brokers and servers."""

from __future__ import annotations

import json
import math
import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from paho.mqtt.client import Client, MQTTv5
from paho.mqtt.enums import CallbackAPIVersion

from acquatop.errors import EnvironmentProblem
from examples import server_process
from examples.mosquitto import PLACES, MosquittoBroker
from examples.oxigraph import OxigraphServer
from examples.server_process import free_ports, is_taken
from examples.taxis.__main__ import answers
from examples.taxis.__main__ import main as print_nearest
from examples.taxis.world import pings, stands

MOSQUITTO = shutil.which("mosquitto", path=PLACES)
needs_broker = pytest.mark.skipif(MOSQUITTO is None, reason="there is no mosquitto")


class Ticks:
    """A clock that does something when it is read for the nth time, and goes by steps."""

    def __init__(
        self, step: float = 0.0, at: int = 0, action: Callable[[], object] = lambda: None
    ) -> None:
        self.reads = 0
        self._step, self._at, self._action = step, at, action

    def __call__(self) -> float:
        self.reads += 1
        if self.reads == self._at:
            self._action()
        return self._step * self.reads


def pretend(folder: Path, script: str) -> str:
    """Return the place of a script that is found as the broker's program."""
    program = folder / "mosquitto"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return str(folder)


def connects(port: int) -> None:
    """Connect as a client does that tries but once."""
    client = Client(CallbackAPIVersion.VERSION2, protocol=MQTTv5)
    client.connect("127.0.0.1", port)
    client.disconnect()


def test_a_broker_that_is_missing_is_named_with_how_to_get_it() -> None:
    with (
        pytest.raises(EnvironmentProblem, match="apt-get install mosquitto"),
        MosquittoBroker(places=""),
    ):
        pass


@needs_broker
def test_a_broker_that_is_slow_to_open_its_port_is_waited_for(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    places = pretend(tmp_path, f'read -r _ < "{gate}"\nexec "{MOSQUITTO}" "$@"')
    ticks = Ticks(at=5, action=lambda: gate.write_text("go\n"))
    with MosquittoBroker(clock=ticks, places=places) as broker:
        assert ticks.reads >= 5
        connects(broker.port)
    assert not is_taken(broker.port)


def test_a_broker_that_ends_as_it_starts_is_said_with_its_last_words(tmp_path: Path) -> None:
    places = pretend(tmp_path, "echo Error: out of luck >&2\nexit 3")
    said = "the MQTT broker ended as it started, with exit code 3: Error: out of luck"
    with pytest.raises(EnvironmentProblem, match=said), MosquittoBroker(places=places):
        pass


def test_a_broker_that_never_answers_is_given_up(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    places = pretend(
        tmp_path,
        f'echo $$ > "{pid}.new"\nmv "{pid}.new" "{pid}"\nexec cat /dev/zero > /dev/null',
    )

    def has_begun() -> None:
        while not pid.exists():
            os.sched_yield()

    ticks = Ticks(step=10.0, at=2, action=has_begun)
    with (
        pytest.raises(
            EnvironmentProblem, match="did not answer within 30 seconds: it did not say why"
        ),
        MosquittoBroker(clock=ticks, places=places),
    ):
        pass
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


def taken_first(monkeypatch: pytest.MonkeyPatch, port: int) -> None:
    """Let the first choice of a free port fall on one that is not."""
    chosen = iter([port, *free_ports(server_process.ATTEMPTS)])
    monkeypatch.setattr(server_process, "free_port", lambda: next(chosen))


@needs_broker
def test_two_brokers_that_choose_the_same_port_are_two(monkeypatch: pytest.MonkeyPatch) -> None:
    with MosquittoBroker() as first:
        taken_first(monkeypatch, first.port)
        with MosquittoBroker() as second:
            assert second.port != first.port
            connects(second.port)


@pytest.mark.server
def test_two_servers_that_choose_the_same_port_are_two(monkeypatch: pytest.MonkeyPatch) -> None:
    with OxigraphServer() as first:
        taken_first(monkeypatch, first.port)
        with OxigraphServer() as second:
            assert second.port != first.port
            second.update("INSERT DATA { <urn:a> <urn:b> <urn:c> }")


def test_a_port_that_was_asked_for_and_is_taken_is_said() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(EnvironmentProblem, match=f"port {port} is taken"), OxigraphServer(port):
            pass


def test_ports_that_are_chosen_together_are_different() -> None:
    assert len(set(free_ports(50))) == 50


def test_each_stand_is_told_the_nearest_taxis(capsys: pytest.CaptureFixture[str]) -> None:
    count, taxis, seconds, seed = 30, 60, 60, 3
    asked = ["--stands", str(count), "--taxis", str(taxis), "--seconds", str(seconds)]
    print_nearest([*asked, "--seed", str(seed)])
    assert "stand-7: " in capsys.readouterr().out
    said = [json.loads(line) for line in pings(taxis, seconds, seed)]
    found = list(answers(count, taxis, seconds, seed))
    assert {answer.query for answer in found} == {stand.name for stand in stands(count, seed)}
    for stand in stands(count, seed):
        for answer in found:
            if answer.query == stand.name:
                inside = [each for each in said if answer.opens_ms < each["t"] <= answer.closes_ms]
                apart = [math.hypot(each["x"] - stand.x, each["y"] - stand.y) for each in inside]
                assert [row.score for row in answer.rows] == pytest.approx(sorted(apart)[:3])
                assert answer.status == "exact"
