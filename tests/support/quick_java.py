"""Settings with which the Java of a Spark that tests start is ready in two thirds of its work.

    python -m tests.support.quick_java    makes the archive of classes, unless it is there

The archive has the classes that Spark loads, as Java keeps them in memory. A Java that cannot use
it, as of another version, does without and says nothing.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

_ARCHIVE = Path(sys.prefix, "spark-classes.jsa")
_MADE_BY = Path(sys.prefix, "spark-classes.txt")
_NO_FOLDER = Path(sys.prefix, "spark-conf")
"""Folder of Spark's settings, which is on the class path: an archive allows none with files."""

_SHORT_LIVED = "-XX:TieredStopAtLevel=1"
"""Option of a Java that lives for seconds: optimised code would cost more than it saves."""
_SILENT = "-Xlog:cds=off -Xlog:cds+dynamic=off"

CATALOG = """[prefixes]
"" = "http://example.org/"
[streams.":s"]
connector = "lines"
options = { path = "events" }
[streams.":s".mapping]
subject = "http://example.org/user/{user}"
time = "t"
properties = { ":n" = { field = "n", datatype = "xsd:integer" } }
"""
QUERY = """PREFIX : <http://example.org/> SELECT ?s ?n FROM NAMED WINDOW :w ON :s [RANGE 4ms]
WHERE { WINDOW :w { ?s :n ?n } } ORDER BY DESC(?n) LIMIT 2"""


def options() -> str:
    """Return the options of a Java of Spark's."""
    used = f"'-XX:SharedArchiveFile={_ARCHIVE}' {_SILENT}" if _ARCHIVE.exists() else ""
    return f"{_SHORT_LIVED} {used}".rstrip()


def surroundings() -> dict[str, str]:
    """Return the variables for programs that start Spark."""
    return {
        "SPARK_CONF_DIR": str(_NO_FOLDER),
        "SPARK_LAUNCHER_OPTS": f"{_SHORT_LIVED} -XX:+UseSerialGC",
        "SPARK_SUBMIT_OPTS": options(),
    }


def make() -> None:
    """Make the archive if it is not there, or of another Java or PySpark."""
    import pyspark

    from acquatop.runtime.java import find_java

    maker = f"{find_java()} {pyspark.__version__}"
    if _ARCHIVE.exists() and _MADE_BY.exists() and _MADE_BY.read_text() == maker:
        return
    _ARCHIVE.unlink(missing_ok=True)
    new = f"'-XX:ArchiveClassesAtExit={_ARCHIVE}' {_SHORT_LIVED} {_SILENT}"
    os.environ.update(surroundings(), SPARK_SUBMIT_OPTS=new)
    with tempfile.TemporaryDirectory() as folder:
        _work(Path(folder))
    _MADE_BY.write_text(maker)


def _work(folder: Path) -> None:
    """Let Spark load what it needs for a query, and end by itself."""
    from acquatop import Engine
    from acquatop.runtime.spark import SparkRuntime

    (folder / "catalog.toml").write_text(CATALOG)
    (folder / "events").write_text("".join(f'{{"user": "u", "t": {t}, "n": 1}}\n' for t in (1, 9)))
    runtime = SparkRuntime()
    with Engine.from_catalog(
        folder / "catalog.toml", spark=runtime.spark, until_end=True, autostart=False
    ) as engine:
        query = engine.register(QUERY)
        engine.start()
        assert list(query)
    its_java = ["pgrep", "-P", str(os.getpid()), "java"]
    java = int(subprocess.run(its_java, capture_output=True, check=True).stdout)
    os.kill(java, signal.SIGTERM)
    os.waitpid(java, 0)
    runtime.close()


if __name__ == "__main__":
    make()
