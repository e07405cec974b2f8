"""A real Kafka broker on loopback: one node that is its own controller, open and with passwords."""

from __future__ import annotations

import signal
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from acquatop.runtime.java import find_java
from examples.server_process import ATTEMPTS, free_ports, is_taken
from tests.support.maven import KAFKA
from tests.support.waiting import PATIENCE, until

USER, PASSWORD = "ann", "xyzzy-plugh"
_READY = "Kafka Server started"
_IDENTITY = """version=1
node.id=1
directory.id=AcquaTopTestDirectory0
cluster.id=AcquaTopTestCluster00A
"""
_SETTINGS = """process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAIN://127.0.0.1:{port},GUARDED://127.0.0.1:{guarded},CONTROL://127.0.0.1:{controller}
advertised.listeners=PLAIN://127.0.0.1:{port},GUARDED://127.0.0.1:{guarded}
controller.listener.names=CONTROL
inter.broker.listener.name=PLAIN
listener.security.protocol.map=PLAIN:PLAINTEXT,GUARDED:SASL_PLAINTEXT,CONTROL:PLAINTEXT
sasl.enabled.mechanisms=PLAIN
listener.name.guarded.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule\
 required user_{user}="{password}";
log.dirs={data}
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
group.initial.rebalance.delay.ms=0
broker.session.timeout.ms=1000
broker.heartbeat.interval.ms=200
auto.create.topics.enable=false
log.cleaner.dedupe.buffer.size=4194304
log.cleaner.threads=1
num.network.threads=1
num.io.threads=2
background.threads=1
"""
_LOGGING = """rootLogger.level=INFO
rootLogger.appenderRef.console.ref=console
appender.console.type=Console
appender.console.name=console
appender.console.layout.type=PatternLayout
appender.console.layout.pattern=%p %c %m%n
"""


class KafkaBroker:
    """Broker that can be killed and started again on the same ports, with the same topics."""

    def __init__(self) -> None:
        self._place = tempfile.TemporaryDirectory(prefix="acquatop-kafka-")
        self._folder = Path(self._place.name)
        self._process: subprocess.Popen[bytes] | None = None
        self._topics = 0
        self.port = self.guarded_port = 0

    def __enter__(self) -> Self:
        data = self._folder / "data"
        data.mkdir()
        (data / "meta.properties").write_text(_IDENTITY)
        (self._folder / "log4j2.properties").write_text(_LOGGING)
        for _ in range(ATTEMPTS):
            ports = self.port, self.guarded_port, controller = free_ports(3)
            settings = _SETTINGS.format(
                port=self.port,
                guarded=self.guarded_port,
                controller=controller,
                data=data,
                user=USER,
                password=PASSWORD,
            )
            (self._folder / "server.properties").write_text(settings)
            if self._comes_up():
                return self
            if not any(map(is_taken, ports)):
                break
        raise AssertionError(self._log.read_text()[-3000:])

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.kill()
        self._place.cleanup()

    @property
    def url(self) -> str:
        return f"kafka://127.0.0.1:{self.port}"

    @property
    def settings(self) -> dict[str, str]:
        """The settings of a client of the tests' own."""
        return {"bootstrap.servers": f"127.0.0.1:{self.port}"}

    def topic(self, partitions: int = 1, **config: str) -> str:
        """Make a topic of its own for a test, and return its name."""
        self._topics += 1
        name = f"topic-{self._topics}"
        settings = {key.replace("_", "."): value for key, value in config.items()}
        client = AdminClient(self.settings)
        client.create_topics([NewTopic(name, partitions, config=settings)])[name].result()
        return name

    def remove(self, topic: str, before: int) -> None:
        """Remove the messages of a topic's first partition before an offset."""
        client = AdminClient(self.settings)
        for done in client.delete_records([TopicPartition(topic, 0, before)]).values():
            done.result()

    def shown(self, group: str, topic: str) -> int:
        """Return the offset of a group in a topic's first partition."""
        consumer = Consumer({**self.settings, "group.id": group})
        (found,) = consumer.committed([TopicPartition(topic, 0)], timeout=PATIENCE)
        consumer.close()
        return int(found.offset)

    def kill(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None

    def start(self) -> None:
        """Start it again where it was killed."""
        assert self._comes_up(), self._log.read_text()[-3000:]

    @property
    def _log(self) -> Path:
        return self._folder / "log"

    def _comes_up(self) -> bool:
        java = find_java()
        assert java is not None
        command = [
            java.command,
            *("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m"),
            f"-Dlog4j2.configurationFile={self._folder}/log4j2.properties",
            *("-cp", KAFKA.class_path, "kafka.Kafka", f"{self._folder}/server.properties"),
        ]
        with self._log.open("wb") as log:
            self._process = process = subprocess.Popen(
                command, cwd=self._folder, stdout=log, stderr=subprocess.STDOUT
            )
        until(lambda: process.poll() is not None or _READY in self._log.read_text())
        return process.poll() is None
