"""A standalone Spark cluster: a master and workers, each a process of its own on loopback."""

from __future__ import annotations

import os
import queue
import re
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyspark

from acquatop.runtime.java import find_java, java_home
from tests.support import quick_java

SPARK_HOME = Path(pyspark.__file__).parent
QUICK = f"-XX:+UseSerialGC {quick_java.options()}"
"""Options of a Java that lives for seconds."""
_CLASS = "org.apache.spark.deploy"
_WAIT = 240


@dataclass
class Daemon:
    """A master or a worker, and what it says."""

    command: Sequence[str]
    surroundings: Mapping[str, str]
    said: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._lines: queue.Queue[str] = queue.Queue()
        self.process = subprocess.Popen(
            self.command,
            env=self.surroundings,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self._lines.put(line)

    def wait_for(self, pattern: str) -> re.Match[str]:
        """Return the match of the next line that has it."""
        while True:
            try:
                line = self._lines.get(timeout=_WAIT)
            except queue.Empty:
                raise AssertionError("".join(self.said)[-3000:]) from None
            self.said.append(line)
            if match := re.search(pattern, line):
                return match

    def kill(self) -> None:
        """Kill it, with no chance to say farewell."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def end(self) -> None:
        """End it, with its executors."""
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait()


class Standalone:
    """A master, and as many workers of one core as are wanted."""

    def __init__(
        self,
        folder: Path,
        java: str,
        *,
        host: str = "127.0.0.1",
        inside: Sequence[str] = (),
        more: Mapping[str, str] | None = None,
    ) -> None:
        self._folder = folder
        self._surroundings = {
            **{key: value for key, value in os.environ.items() if key != "PYTHONPATH"},
            "SPARK_HOME": str(SPARK_HOME),
            "JAVA_HOME": java,
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": f"{QUICK} -Dspark.master.rest.enabled=false",
            **(more or {}),
        }
        self.workers: list[Daemon] = []
        self.master = self._start("master.Master", host, inside, "--port", "0")
        self.url = self.master.wait_for(r"Starting Spark master at (spark://\S+)")[1]
        self.master.wait_for("I have been elected leader")

    def want(
        self, count: int = 2, *, hosts: Mapping[str, Sequence[str]] | None = None
    ) -> Sequence[Daemon]:
        """Return so many workers, of which those that are missing are started."""
        self.workers = [each for each in self.workers if each.process.poll() is None]
        started = [
            self._worker(host, inside)
            for host, inside in (hosts or {"127.0.0.1": ()}).items()
            for _ in range(count - len(self.workers))
        ]
        for worker in started:
            worker.wait_for("Successfully registered with master")
        self.workers += started
        return self.workers

    def _worker(self, host: str, inside: Sequence[str]) -> Daemon:
        place = self._folder / f"worker-{host}-{len(list(self._folder.iterdir()))}"
        place.mkdir()
        room = ["-c", "1", "-m", "900m", "-d", str(place)]
        return self._start("worker.Worker", host, inside, *room, self.url)

    def _start(self, name: str, host: str, inside: Sequence[str], *arguments: str) -> Daemon:
        launcher = [*inside, str(SPARK_HOME / "bin" / "spark-class"), f"{_CLASS}.{name}"]
        place = ["--host", host, "--webui-port", "0"]
        return Daemon(
            [*launcher, *place, *arguments], {**self._surroundings, "SPARK_LOCAL_IP": host}
        )

    def files(self, pattern: str) -> set[Path]:
        """Return the files that executors' folders hold, of all applications so far."""
        return set(self._folder.glob(f"worker-*/app-*/*/{pattern}"))

    def end(self) -> None:
        """End all of it."""
        for daemon in [*self.workers, self.master]:
            daemon.end()


@contextmanager
def standalone(folder: Path) -> Iterator[Standalone]:
    """Yield a master without workers, and end whatever is there in the end."""
    java = find_java()
    assert java is not None
    with ExitStack() as made:
        cluster = Standalone(folder, made.enter_context(java_home(java)))
        made.callback(cluster.end)
        yield cluster
