"""Kills of who receives, of the broker and of the network: no message is lost, and none is there
twice.

Messages are equal to many others, so that nothing but what MQTT says of them tells that one comes
again.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random

import pytest

from connectors.log.blocks import blocks_in, decode_head, read_block
from connectors.log.folder import LogFolder
from tests.support.markers import THOROUGH
from tests.support.mqtt.mosquitto import MOSQUITTO, PASSWD, Mosquitto
from tests.support.mqtt.proxy import Proxy, Way
from tests.support.mqtt.publisher import Publisher
from tests.support.waiting import until

pytestmark = pytest.mark.skipif(
    MOSQUITTO is None or PASSWD is None,
    reason="there is no mosquitto (a package of Debian's and Homebrew's)",
)
ROOT = Path(__file__).parents[3]
KINDS = 5
"""The number of distinct messages."""
AT_A_TIME = 150


class Plant:
    """A broker that keeps what it has, a network that fails, a receiver that is killed, and what
    was said.
    """

    def __init__(self, folder: Path, qos: int, version: str, *message_id: str) -> None:
        keeping = (
            f"persistence true\npersistence_location {folder}/\nautosave_interval "
            "0\nmax_queued_messages 0"
        )
        self.broker = Mosquitto(folder, settings=keeping, log="information")
        self.proxy = Proxy(self.broker.port)
        self.said: list[bytes] = []
        self._kept = folder / "mosquitto.db"
        self._log = folder / "log"
        self._qos = qos
        self._command = [str(self._log), f"mqtt://127.0.0.1:{self.proxy.port}", str(qos), version]
        self._command += message_id
        self._receiver: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the receiver, unless it runs."""
        if self._receiver is None or self._receiver.poll() is not None:
            command = [
                sys.executable,
                str(Path(__file__).parents[2] / "support" / "mqtt" / "child.py"),
                *self._command,
            ]
            environment = {**os.environ, "PYTHONPATH": str(ROOT)}
            self._receiver = subprocess.Popen(command, env=environment, cwd=ROOT)

    def kill(self) -> None:
        """Kill the receiver."""
        assert self._receiver is not None
        self._receiver.kill()
        self._receiver.wait()

    def say(self, *others: bytes) -> None:
        """Publish some messages; the broker has them on return."""
        new = list(others) or [b"%d" % (number % KINDS) for number in range(AT_A_TIME)]
        with closing(Publisher(self.broker.port)) as publisher:
            publisher.publish([("plant/press", each) for each in new], self._qos)
        self.said += new

    def go_back(self, copy: Path) -> None:
        """Kill the broker, and start it from an older copy of what it kept."""
        self.broker.kill()
        shutil.copy(copy, self._kept)
        self.broker.start()

    def crash_broker(self) -> None:
        """Let the broker write down what it has, and kill it: what it is told but has not written
        it must forget.
        """
        before = self._kept.stat().st_mtime_ns if self._kept.exists() else 0
        self.broker.save()
        until(lambda: self._kept.exists() and self._kept.stat().st_mtime_ns != before)
        self.broker.kill()

    def received(self) -> list[bytes]:
        """Return what the receiver's log holds just now."""
        found = []
        for first in LogFolder(self._log).segments():
            content = LogFolder(self._log).segment(first).read_bytes()
            head = decode_head(content)
            for block in blocks_in(content[head.length :], head.length):
                if block.records:
                    found += read_block(content, block, head.schema).column("value").to_pylist()
        return found

    def close(self) -> None:
        self.kill()
        self.proxy.close()
        self.broker.kill()


@contextmanager
def plant(folder: Path, qos: int, version: str, *message_id: str) -> Iterator[Plant]:
    """A plant whose receiver has subscribed; what it has received by then is what was said."""
    with closing(Plant(folder, qos, version, *message_id)) as opened:
        opened.start()
        until(lambda: (folder / "log" / "log.json").exists())

        def hears() -> bool:
            opened.say(b"?")
            return bool(opened.received())

        until(hears)
        opened.say(b"!")
        until(lambda: opened.received()[-1] == b"!")
        opened.said = opened.received()
        yield opened


@THOROUGH
@pytest.mark.parametrize(("qos", "version", "trials"), [(1, "5", 6), (1, "3.1.1", 4), (2, "5", 6)])
def test_every_message_is_received_once_whatever_is_killed(
    tmp_path: Path, qos: int, version: str, trials: int
) -> None:
    random = Random(f"{qos} {version}")
    with plant(tmp_path, qos, version) as world:
        # With QoS 2 a broker that was restarted may send messages again without marking them.
        kinds = ["cut", "kill", "stop", "crash"] if qos == 1 else ["cut", "kill"]
        for trial in range(trials):
            kind = kinds[trial % len(kinds)]
            if kind == "crash":
                world.kill()
                world.say()
                world.crash_broker()
            else:
                way = random.choice(list(Way))
                action = {"cut": world.proxy.cut, "kill": world.kill, "stop": world.broker.stop}[
                    kind
                ]
                world.proxy.at(
                    way, random.randrange(1, 2500 if way is Way.TO_CLIENT else 500), action
                )
                if kind == "stop":
                    # Who publishes has to have its answers before the broker goes.
                    world.kill()
                    world.say()
                    world.start()
                else:
                    world.say()
                assert world.proxy.happened.wait(60)
            world.proxy.cut()
            if kind in ("stop", "crash"):
                world.broker.start()
            world.start()
        world.say(b"end")
        until(lambda: world.received()[-1] == b"end")
        assert world.received() == world.said


@THOROUGH
@pytest.mark.parametrize(
    ("version", "message_id"),
    [("5", ()), ("5", ("payload",)), ("3.1.1", ("field:number",))],
)
def test_a_broker_that_goes_back_to_an_older_copy(
    tmp_path: Path, version: str, message_id: tuple[str, ...]
) -> None:
    """Its messages come again with other numbers, as new ones."""
    with plant(tmp_path, 1, version, *message_id) as world:
        heard = len(world.said)

        def say(numbers: range) -> None:
            world.say(*(b'{"number": %d}' % number for number in numbers))

        def hear(last: int) -> None:
            until(lambda: b'{"number": %d}' % last in world.received())

        say(range(10))
        hear(9)
        world.kill()
        say(range(10, 200))
        world.crash_broker()
        shutil.copy(tmp_path / "mosquitto.db", tmp_path / "copy.db")
        world.broker.start()
        world.start()
        hear(199)
        say(range(200, 220))
        hear(219)
        for is_killed in (False, True):
            if is_killed:
                world.kill()
            world.go_back(tmp_path / "copy.db")
            world.start()
            last = 300 + is_killed
            say(range(last, last + 1))
            hear(last)
        found = world.received()[heard:]
        said = [b'{"number": %d}' % number for number in (*range(220), 300, 301)]
        assert sorted(set(found)) == sorted(said)
        assert (len(found) == len(said)) is bool(message_id)
        assert (LogFolder(tmp_path / "log").repeated() >= 190) is bool(message_id)
