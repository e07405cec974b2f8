"""A PostgreSQL server of the tests' own, on loopback, by Debian's programs."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from examples.server_process import ServerProcess

PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin")) if os.name == "posix" else []
_READY = "database system is ready to accept connections"
_QUICK = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "autovacuum=off")


def find_program(name: str) -> str | None:
    """Return a program of the newest PostgreSQL; None if there is none."""
    return shutil.which(name, path=os.pathsep.join(map(str, reversed(PROGRAMS))))


@contextmanager
def postgres() -> Iterator[str]:
    """Run a server with an empty database, and give what ``connect`` needs to know."""
    with tempfile.TemporaryDirectory(prefix="acquatop-postgres-") as folder:
        data = Path(folder, "data")
        if os.geteuid() == 0:
            os.chown(folder, *_owner())
        options = ["--auth=trust", "--username=test", "--encoding=UTF8", "--locale=C", "--no-sync"]
        _run([_program("initdb"), "-D", str(data), *options])

        def command(port: int) -> list[str]:
            settings = [each for name in _QUICK for each in ("-c", name)]
            place = ["-h", "127.0.0.1", "-p", str(port), "-k", folder]
            return _as_owner([_program("postgres"), "-D", str(data), *place, *settings])

        server = ServerProcess("PostgreSQL", command, lambda process: _READY in process.said)
        server.start()
        try:
            yield f"host=127.0.0.1 port={server.port} user=test dbname=postgres"
        finally:
            # It ends at once, whoever is connected.
            os.kill(int((data / "postmaster.pid").read_text().split()[0]), signal.SIGQUIT)
            server.stop()


def _program(name: str) -> str:
    found = find_program(name)
    assert found is not None, "there is no PostgreSQL"
    return found


def _owner() -> tuple[int, int]:
    """Return the user that the package has made: PostgreSQL refuses to run as root."""
    entry = pwd.getpwnam("postgres")
    return entry.pw_uid, entry.pw_gid


def _as_owner(command: Sequence[str]) -> list[str]:
    if os.geteuid() != 0:
        return list(command)
    user, group = _owner()
    setpriv = ["setpriv", f"--reuid={user}", f"--regid={group}", "--clear-groups", "--"]
    return [*setpriv, *command]


def _run(command: Sequence[str]) -> None:
    subprocess.run(_as_owner(command), check=True, capture_output=True, timeout=120)
