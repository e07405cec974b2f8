"""Fetching of the tests' HDFS, once, into the environment.

    python -m tests.support.hdfs.packages    fetches it, or says that its registry is out of reach

Spark's own fetcher of packages does it, as ``locks/hdfs.xml`` says.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from acquatop.runtime.java import find_java

VERSION = "3.5.0"
PACKAGES = Path(os.environ.get("ACQUATOP_HDFS_SERVER") or Path(sys.prefix, "hdfs"))
"""Folder of the server's packages."""

_LOCKS = Path(__file__).parents[3] / "locks"
_SUMS = _LOCKS / "hdfs.sha256"
_FETCHED = PACKAGES / ".lock"


def client() -> Path:
    """Return the folder of PySpark's own packages, with whose Hadoop the server's must agree."""
    found = find_spec("pyspark")
    assert found is not None
    return Path(str(found.origin)).with_name("jars")


def lacking() -> list[str]:
    """Return the files that the server needs, and that are not here."""
    needed = (_FETCHED, client() / f"hadoop-client-api-{VERSION}.jar")
    return [str(path) for path in needed if not path.exists()]


def fetch() -> None:
    """Fetch what is not here in the locked version; a wrong sum ends the program."""
    sums = _SUMS.read_text()
    if _FETCHED.exists() and _FETCHED.read_text() == sums:
        return
    shutil.rmtree(PACKAGES, ignore_errors=True)
    PACKAGES.mkdir()
    java, (fetcher,) = find_java(), client().glob("ivy-*.jar")
    assert java is not None
    options = ["-warn", "-ivy", _LOCKS / "hdfs.xml", "-cache", PACKAGES / "cache"]
    retrieved = ["-retrieve", f"{PACKAGES}/[artifact].[ext]"]
    command = [java.command, "-jar", fetcher, *options, *retrieved]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        print(done.stdout, done.stderr, file=sys.stderr)
        print("the tests on HDFS are left out: its registry is out of reach", file=sys.stderr)
        return
    shutil.rmtree(PACKAGES / "cache")
    for expected, name in map(str.split, sums.splitlines()):
        if hashlib.sha256((PACKAGES / name).read_bytes()).hexdigest() != expected:
            sys.exit(f"{name} is not what locks/hdfs.sha256 names")
    _FETCHED.write_text(sums)


if __name__ == "__main__":
    fetch()
