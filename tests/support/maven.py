"""Fetching of the tests' Java servers, once, into the environment.

    python -m tests.support.maven    fetches them, or says that their registry is out of reach

Spark's own fetcher of packages does it, as ``locks/NAME.xml`` says; ``locks/NAME.sha256`` has the
sums.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

from acquatop.runtime.java import find_java

_LOCKS = Path(__file__).parents[2] / "locks"
_LOCK = ".lock"


def spark_jars() -> Path:
    """Return the folder of PySpark's own packages."""
    found = find_spec("pyspark")
    assert found is not None
    return Path(str(found.origin)).with_name("jars")


class MavenPackages:
    """Packages of a server, in a folder of the environment or in that of an environment variable.

    The server may need some of PySpark's own packages besides.
    """

    def __init__(self, name: str, shared: tuple[str, ...] = ()) -> None:
        self.name = name
        self.folder = Path(
            os.environ.get(f"ACQUATOP_{name.upper()}_SERVER") or Path(sys.prefix, name)
        )
        self._shared = shared
        self._sums = _LOCKS / f"{name}.sha256"

    @property
    def class_path(self) -> str:
        """The class path with the packages, and those of PySpark."""
        return f"{self.folder}/*:{spark_jars()}/*"

    def lacking(self) -> list[str]:
        """Return the files that the server needs, and that are not here."""
        needed = (self.folder / _LOCK, *(spark_jars() / each for each in self._shared))
        return [str(path) for path in needed if not path.exists()]

    def fetch(self) -> None:
        """Fetch what is not here in the locked version; raise an error for a wrong sum."""
        sums, fetched = self._sums.read_text(), self.folder / _LOCK
        if fetched.exists() and fetched.read_text() == sums:
            return
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        java, (fetcher,) = find_java(), spark_jars().glob("ivy-*.jar")
        assert java is not None
        cache = self.folder / "cache"
        options = ["-warn", "-ivy", _LOCKS / f"{self.name}.xml", "-cache", cache]
        retrieved = ["-retrieve", f"{self.folder}/[artifact].[ext]"]
        quick = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
        command = [java.command, *quick, "-jar", fetcher, *options, *retrieved]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if done.returncode:
            print(done.stdout, done.stderr, file=sys.stderr)
            left_out = f"the tests on {self.name} are left out: its registry is out of reach"
            print(left_out, file=sys.stderr)
            return
        shutil.rmtree(cache)
        for expected, name in map(str.split, sums.splitlines()):
            if hashlib.sha256((self.folder / name).read_bytes()).hexdigest() != expected:
                raise SystemExit(f"{name} is not what {self._sums.name} names")
        fetched.write_text(sums)


HDFS = MavenPackages("hdfs", ("hadoop-client-api-3.5.0.jar",))
KAFKA = MavenPackages("kafka")
FUSEKI = MavenPackages("fuseki")


if __name__ == "__main__":
    with ThreadPoolExecutor() as pool:
        for done in [pool.submit(each.fetch) for each in (HDFS, KAFKA, FUSEKI)]:
            done.result()
