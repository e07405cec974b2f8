"""The installation without Spark: what runs, and what is said of what does not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from acquatop import Engine
from acquatop.app.cli import main
from acquatop.catalog.catalog import Catalog
from acquatop.errors import EnvironmentProblem
from tests.support.serving import ROOT

_HIDING = """
import runpy, sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("pyspark", "py4j", "pandas"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Hidden())
runpy.run_path(sys.argv[1], run_name="__main__")
"""


def test_queries_run_in_process_without_spark_and_pandas(tmp_path: Path) -> None:
    program = ROOT / "tests/support/newcomer/api.py"
    done = subprocess.run(
        [sys.executable, "-c", _HIDING, str(program)],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "the Python API answers\n"), done.stderr


def test_spark_that_is_not_installed_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("acquatop.runtime.find_spec", lambda name: None)
    with pytest.raises(EnvironmentProblem, match="Spark is not installed"):
        Engine(Catalog.parse("", file=Path("catalog.toml"), variables={}))
    assert main(["run", "any.rspql", "--catalog", "any.toml"]) == 1
    assert "use --runtime local" in capsys.readouterr().err
