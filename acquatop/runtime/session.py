"""Sessions of Spark: the one that is there, left as it is, or one of an engine's own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from acquatop.catalog.spark_settings import SparkSettings
from acquatop.errors import EnvironmentProblem, UserError
from acquatop.runtime.executors import say_if_unreachable
from acquatop.runtime.failures import essence, with_hint
from acquatop.runtime.java import Java, explain_missing, find_java, java_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SUBMITTED = "PYSPARK_GATEWAY_PORT"
"""Variable with the address of a Java that has started this Python, as ``spark-submit`` does."""

_FILE_MANAGER = "org.apache.spark.sql.execution.streaming.{}FileSystemBasedCheckpointFileManager"
"""A class of Spark's, which has another package from 4.1 on."""
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_WITHOUT_PAGES = {
    "spark.ui.enabled": "false",
    "spark.ui.retainedJobs": "20",
    "spark.ui.retainedStages": "20",
    "spark.ui.retainedTasks": "1000",
    "spark.sql.ui.retainedExecutions": "20",
    "spark.sql.streaming.ui.retainedProgressUpdates": "1",
    "spark.sql.streaming.ui.retainedQueries": "1",
    "spark.sql.streaming.numRecentProgressUpdates": "2",
}
"""Settings without Spark's pages: else it keeps for them what it knows of a thousand batches."""
_HOT = {
    "InvocationThreshold": 50_000,
    "MinInvocationThreshold": 6_000,
    "CompileThreshold": 150_000,
    "BackEdgeThreshold": 400_000,
}
"""Numbers from which on Java's second compiler takes a method on: ten times as large as usual.

In the first minutes it would take more CPU time than all else in this Java, which plans and passes
on what Python has computed. Loops over rows, as of Spark's own sources, are hot at once anyway.
"""
_OUT_OF_MEMORY = 3
"""The exit code of a Java that ends itself because its memory is full."""
_LONGEST_END = 10


class Session:
    """A session that is there already. It is used as it is, and stays as it is."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark

    @property
    def is_on_cluster(self) -> bool:
        """True if the executors are on other machines."""
        return not str(self.spark.sparkContext.master).startswith("local")

    def fate(self) -> str | None:
        """Return what has become of the session's Java if it has ended, None if it answers."""
        try:
            self.spark.sparkContext._jvm.java.lang.System.nanoTime()  # type: ignore[union-attr]
        except Exception:
            return "Spark's Java has ended"
        return None

    def close(self) -> None:
        """Do nothing: others go on with it."""


class SubmittedSession(Session):
    """A session made in a Java that others have started, with their settings.

    It ends alone: that Java is theirs.
    """

    def close(self) -> None:
        """Stop the session."""
        with suppress(Exception):  # its Java may be gone already
            self.spark.stop()


class OwnSession(Session):
    """A session in a Java of its own, which ends with it."""

    def __init__(self, settings: SparkSettings) -> None:
        java = find_java()
        if java is None:
            raise EnvironmentProblem(explain_missing())
        properties = settings.properties()
        self._home = java_home(java, knows_spark=not _is_installed_for(properties))
        try:
            super().__init__(_started(java, self._home.name, properties))
        except BaseException:
            _end_java()
            self._home.cleanup()
            raise
        _hush(self.spark)
        if not properties.get("spark.master", "").startswith("local-cluster"):
            # Nothing is launched by it any more; where executors are launched on this machine, they
            # are.
            self._home.cleanup()

    def fate(self) -> str | None:
        """Return what has become of the Java if it has ended."""
        said = super().fate()
        code = _exit_code() if said is not None else None
        if code == _OUT_OF_MEMORY:
            said = "Spark's Java has run out of memory"
        elif code is not None:
            said = (
                f"Spark's Java has ended ({f'signal {-code}' if code < 0 else f'exit code {code}'})"
            )
        return said

    def close(self) -> None:
        """Stop the session and its Java, and wait until that has gone.

        Nothing of ours stays behind.
        """
        with suppress(Exception):  # the Java may be gone already
            self.spark.stop()
        _end_java()
        self._home.cleanup()


def open_session(
    given: SparkSession | SparkSettings | None, usual: SparkSettings | None = None
) -> Session:
    """Return the given session, the running one, or a new one, in the Java there or in its own.

    Settings are for the last, with the ``usual`` ones for what they leave open. Raises
    :class:`~acquatop.errors.UserError` if settings are given for others.
    """
    settings = given if isinstance(given, SparkSettings) else SparkSettings()
    _refuse_connect(None if isinstance(given, SparkSettings) else given)
    running = _running() if given is None or isinstance(given, SparkSettings) else given
    is_there = running is not None or _is_java_there()
    if is_there and settings:
        hint = "say it where Spark is started (spark-submit --master … --conf …), and not here"
        raise UserError(
            f"Spark runs already, with a master and settings that stay as they are\n  hint: {hint}"
        )
    if running is not None:
        return Session(running)
    if is_there:
        from pyspark.sql import SparkSession

        return SubmittedSession(SparkSession.builder.getOrCreate())
    return OwnSession(settings.over(usual or SparkSettings()))


def _refuse_connect(given: SparkSession | None) -> None:
    """Raise :class:`~acquatop.errors.UserError` for Spark Connect, given or of the surroundings."""
    from pyspark.sql.utils import is_remote

    is_connect = type(given).__module__.startswith("pyspark.sql.connect")
    if is_connect or (given is None and (is_remote() or "SPARK_REMOTE" in os.environ)):
        hint = (
            "use a classic session: spark-submit, or SparkSession.builder.master(…), no .remote(…)"
        )
        raise UserError(
            f"Spark Connect has no driver of Spark's in this process, as is needed\n  hint: {hint}"
        )


def _running() -> SparkSession | None:
    """Return the session that runs in this process, whichever thread has begun it."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    if SparkContext._active_spark_context is None:
        return None
    # Without settings of ours none of a session's are changed.
    return SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()


def _is_java_there() -> bool:
    """Say that others have started a Java for this process."""
    from pyspark import SparkContext

    return SparkContext._gateway is not None or _SUBMITTED in os.environ


def _is_installed_for(properties: Mapping[str, str]) -> bool:
    """Return True if all Pythons of a session find PySpark among the packages of this one."""
    import pyspark

    master = properties.get("spark.master", "local[*]")
    packages = {sysconfig.get_path(name) for name in ("purelib", "platlib")}
    return (
        (master == "local" or master.startswith("local["))
        and "SPARK_HOME" not in os.environ
        and "spark.pyspark.python" not in properties
        and str(Path(pyspark.__path__[0]).parent) in packages
    )


def _started(java: Java, home: str, properties: Mapping[str, str]) -> SparkSession:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = properties.get("spark.pyspark.python", sys.executable)
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    before = os.environ.get("JAVA_HOME")
    os.environ["JAVA_HOME"] = home
    try:
        with resources.as_file(resources.files("acquatop.runtime") / "log4j2.properties") as log4j:
            builder = SparkSession.builder
            for key, value in own_properties(log4j.absolute().as_uri(), properties).items():
                builder = builder.config(key, value)
            say_if_unreachable(properties.get("spark.master", "local"))
            return builder.getOrCreate()
    except Exception as error:
        said = f"Spark did not start on Java {java.version} ({java.command})"
        said += f": {essence(str(error))[0]}"
        is_local = properties.get("spark.master", "local").startswith("local")
        raise EnvironmentProblem(with_hint(said, on_cluster=not is_local)) from error
    finally:
        # Only launches need it; what runs in this process keeps its own surroundings.
        os.environ.pop("JAVA_HOME") if before is None else os.environ.update(JAVA_HOME=before)


def own_properties(log4j: str, given: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of a session of an engine's own: those given, else the engine's."""
    master = given.get("spark.master", "local[*]")
    here = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
    return {
        "spark.app.name": "acquatop",
        "spark.master": master,
        # Executors elsewhere have to find the driver.
        **(here if master.startswith("local") else {}),
        **({} if given.get("spark.ui.enabled", "false") == "true" else _WITHOUT_PAGES),
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "1000000",
        "spark.sql.streaming.checkpointFileManagerClass": _file_manager(),
        "spark.sql.warehouse.dir": tempfile.gettempdir() + "/acquatop-warehouse",
        **given,
        _JAVA_OPTIONS: _java_options(log4j, given.get(_JAVA_OPTIONS, "")),
    }


def _file_manager() -> str:
    from pyspark import __version__

    return _FILE_MANAGER.format("" if __version__.startswith("4.0.") else "checkpointing.")


def _java_options(log4j: str, given: str) -> str:
    """Return the options of the driver's Java: ours, with those given after them.

    A Java that is out of memory goes on without the thread that has asked for more, and whoever
    waits for that thread's work waits for ever. So it ends.
    """
    collector = "" if re.search(r"-XX:\+Use\w*GC\b", given) else "-XX:+UseSerialGC "
    compiler = " ".join(f"-XX:Tier4{name}={value}" for name, value in _HOT.items())
    # It says so on the standard output, unless that is told to be for answers.
    ending = "-XX:+ExitOnOutOfMemoryError -XX:+DisplayVMOutputToStderr"
    return f"-Dlog4j2.configurationFile={log4j} {collector}{compiler} {ending} {given}".strip()


def _hush(spark: SparkSession) -> None:
    """Let a server of PySpark's in this process say nothing when the Java that talks to it ends.

    Others say that.
    """
    server = getattr(spark.sparkContext, "_accumulatorServer", None)
    if server is not None:
        server.handle_error = lambda *_: None


def _exit_code() -> int | None:
    """Return the exit code of this process's Java, None if it runs on."""
    from pyspark import SparkContext

    process = getattr(SparkContext._gateway, "proc", None)
    with suppress(subprocess.TimeoutExpired):
        return None if process is None else process.wait(timeout=_LONGEST_END)
    return None


def _end_java() -> None:
    """End the Java that was started for this process, and wait until it has gone."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    if gateway is None:
        return
    with suppress(Exception):
        gateway.shutdown()
    process = gateway.proc
    process.stdin.close()
    try:
        process.wait(timeout=_LONGEST_END)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    # PySpark would go on using the JVM that it knows; a session after this one needs a new one.
    SparkContext._gateway = SparkContext._jvm = None
