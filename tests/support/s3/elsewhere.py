"""Lives whose state and answers are in a store, each at a machine of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from connectors.object_store.opening import open_objects
from tests.support.crash import child
from tests.support.crash.life import Life, content
from tests.support.crash.trial import LivesOn, Trial
from tests.support.crash.world import People, queries, write_world
from tests.support.disks import quick_folder
from tests.support.faults.proxy import FaultProxy
from tests.support.s3.faults import Flaky, Strike, proxied
from tests.support.s3.running import held, new_place, pointing_to

_SOME = ("top", "sums", "friends", "most", "shared most", "last", "pairs")


@dataclass
class World:
    """A trial whose lives are kept in the bucket, and the proxy that they go through."""

    trial: Trial
    proxy: FaultProxy
    port: int

    def start(self, life: Life) -> subprocess.Popen[str]:
        """Start a process with nothing on its disk."""
        return child.start(life, place=Path(tempfile.mkdtemp(dir=life.catalog.parent)))

    def killed_at(self, part: str, nth: int, *, first: bool) -> LivesOn:
        """Kill a process at a request, which is done first or never."""

        def live(life: Life) -> bool:
            process: list[subprocess.Popen[str]] = []
            strike = Strike(part, nth, lambda: process[0].kill(), first=first)
            self.proxy.fault = strike
            process.append(self.start(life))
            try:
                return child.end_of(process[0], [], [])
            finally:
                self.proxy.drop()
                strike.release()

        return live

    def to_its_end(self, life: Life) -> bool:
        """Let a process come to its end."""
        self.proxy.fault = Flaky(Random(1), 0.0)
        return child.end_of(self.start(life), [], [])

    def wakes_up_too_late(self, part: str, nth: int, under_way: Set[str]) -> None:
        """Stop a process at a request, which comes after another has done all; it writes nothing.

        ``under_way`` are the sinks that it may have been writing to.
        """
        life = self.trial.life
        process: list[subprocess.Popen[str]] = []
        strike = Strike(part, nth, lambda: process[0].send_signal(signal.SIGSTOP), first=False)
        self.proxy.fault = strike
        process.append(self.start(life))
        try:
            os.waitid(os.P_PID, process[0].pid, os.WSTOPPED | os.WNOWAIT)
            with pointing_to(self.port):
                assert not child.end_of(self.start(life), [], [])
                records, answers = held(life.state.address), content(life.out)
                open_objects(life.out.address).remove(held(life.out.address))
            strike.release()
            process[0].send_signal(signal.SIGCONT)
            _, said = process[0].communicate()
        finally:
            process[0].kill()
        assert process[0].returncode == 1
        assert "has been taken over by process" in said
        assert answers == self.trial.whole
        assert held(life.state.address) == records
        # The sink that was being written to may end its requests, and no other begins.
        assert {name.partition("/")[0] for name in held(life.out.address)} <= under_way


@contextmanager
def elsewhere(scheme: str, port: int, names: Sequence[str] = _SOME) -> Iterator[World]:
    """Make a world whose lives are kept by the server at a port, and live its first life here."""
    with People() as people, quick_folder() as folder, proxied(port) as proxy:
        catalog = write_world(folder, people.url, events=90)
        trial = Trial(Life(catalog, folder / "state", folder / "out", queries(*names)), people)
        trial.uninterrupted()
        trial.life = replace(
            trial.life, state=new_place(scheme=scheme), out=new_place(scheme=scheme)
        )
        yield World(trial, proxy, port)
