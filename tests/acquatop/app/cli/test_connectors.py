"""``acquatop connectors``."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

from acquatop.app.cli import main
from connectors.registry import CONNECTORS


def test_every_connector_is_listed_with_its_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["connectors"]) == 0
    shown = capsys.readouterr().out
    for connector in CONNECTORS.values():
        assert f"{connector.name}: {connector.summary}\n" in shown
        for name, option in connector.options.items():
            assert re.search(rf"^  {name} +{re.escape(option.meaning)} \(", shown, re.MULTILINE)


def test_a_connector_can_be_asked_about_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["connectors", "parquet", "--json"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    said = json.loads(line)
    assert (said["name"], said["formats"]) == ("parquet", ["columns"])
    assert [each["name"] for each in said["options"]] == list(CONNECTORS["parquet"].options)


def test_a_name_that_no_connector_has_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["connectors", "parket"]) == 2
    assert (
        'there is no connector "parket"\n  hint: did you mean "parquet"?' in capsys.readouterr().err
    )


def test_listing_them_loads_none() -> None:
    heavy = ["pyspark", "pandas", "pyarrow"]
    code = (
        f"import sys, acquatop.app.cli as c; c.main(['connectors']); print([n for n in {heavy} "
        f"if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
