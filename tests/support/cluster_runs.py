"""Settings and helpers for runs on a standalone cluster."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support.scale_out import ROOT
from tests.support.standalone import QUICK, SPARK_HOME, Standalone

QUICKLY = {
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": QUICK,
    "spark.driver.memory": "512m",
    "spark.driver.extraJavaOptions": QUICK,
}
ALL = {"spark.scheduler.minRegisteredResourcesRatio": "1"}
"""Work begins when all executors are there."""
ONE = {"spark.cores.max": "1"}
"""One executor, as a worker has one core."""
HERE = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
CODE = {"spark.executorEnv.PYTHONPATH": str(ROOT)}


def surroundings() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def confs(*several: dict[str, str]) -> list[str]:
    """Return the properties as options; later ones replace earlier ones."""
    all_of_them = {key: value for conf in several for key, value in conf.items()}
    return [f"--conf={key}={value}" for key, value in all_of_them.items()]


def on(cluster: Standalone, *several: dict[str, str]) -> list[str]:
    """Return the options of a run there."""
    return ["--master", cluster.url, *confs(QUICKLY, HERE, *several)]


def spark_table(master: str | None, *several: dict[str, str]) -> str:
    """Return a catalog's table of Spark with the properties; later ones replace earlier ones."""
    all_of_them = {key: value for conf in several for key, value in conf.items()}
    lines = "".join(f'"{key}" = "{value}"\n' for key, value in all_of_them.items())
    named = "" if master is None else f'master = "{master}"\n'
    return f"\n[spark]\n{named}[spark.conf]\n{lines}"


def answers_in(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def python_without_us(place: Path) -> Path:
    """Make a Python with the packages of this one, except those of AcquaTop."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True)
    name_others_packages(place)
    return place / "bin" / "python"


def name_others_packages(environment: Path) -> None:
    """Let an environment find the packages of this one, except those of AcquaTop."""
    (packages,) = environment.glob("lib/python*/site-packages")
    # What this names is searched, but what it names in turn is not.
    (packages / "others.pth").write_text(f"{SPARK_HOME.parent}\n")
