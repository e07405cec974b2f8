"""Modules of other people that have the names of AcquaTop's packages."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import programs

ROOT = Path(__file__).parents[2]
PARTS = ("rspql", "replica", "connectors")
QUERY = """
from pathlib import Path
from acquatop import Engine

Path("mentions.ndjson").write_text('{"t": 1000, "user": "ann", "n": 3}\\n')
Path("catalog.toml").write_text('''
[streams."http://example.org/s"]
connector = "lines"
options = { path = "mentions.ndjson" }
[streams."http://example.org/s".mapping]
subject = "http://example.org/{user}"
time = "t"
properties = { "http://example.org/n" = { field = "n", datatype = "xsd:integer" } }
''')
TEXT = '''
PREFIX : <http://example.org/>
SELECT ?user ?n FROM NAMED WINDOW :w ON :s [RANGE 3s]
WHERE { WINDOW :w { ?user :n ?n } } ORDER BY DESC(?n) LIMIT 1
'''
with Engine.from_catalog("catalog.toml", runtime=RUNTIME, until_end=True) as engine:
    print([str(row.bindings["user"]) for answer in engine.register(TEXT) for row in answer.rows])
"""


def run(script: Path, *, path: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run a script in its folder, with packages found on a path."""
    environment = {**os.environ, "PYTHONPATH": str(path)}
    return programs.run([sys.executable, script.name], cwd=script.parent, env=environment)


def script_in(folder: Path, text: str) -> Path:
    script = folder / "script.py"
    script.write_text(text)
    return script


def put_beside(folder: Path, name: str, kind: str) -> Path:
    """Write a module of somebody else's, as a file or a folder, and return where it begins."""
    place = folder / (f"{name}.py" if kind == "file" else f"{name}/__init__.py")
    place.parent.mkdir(exist_ok=True)
    place.write_text("THEIRS = True\n")
    return place


@pytest.mark.parametrize("kind", ["file", "folder"])
@pytest.mark.parametrize("name", PARTS)
def test_ours_is_found_past_another_module_which_is_told(
    tmp_path: Path, name: str, kind: str
) -> None:
    theirs = put_beside(tmp_path, name, kind)
    said = run(script_in(tmp_path, f"import acquatop, {name}\nprint({name}.__file__)"))
    assert said.returncode == 0, said.stderr
    assert Path(said.stdout.strip()) == ROOT / name / "__init__.py"
    assert f"RuntimeWarning: {theirs} has the name of a package of AcquaTop" in said.stderr


@pytest.mark.parametrize("name", PARTS)
def test_another_module_that_was_imported_first_is_named_with_a_remedy(
    tmp_path: Path, name: str
) -> None:
    theirs = put_beside(tmp_path, name, "file")
    said = run(script_in(tmp_path, f"import {name}, acquatop"))
    assert said.returncode == 1
    assert f"ImportError: {theirs} was imported as {name}" in said.stderr
    assert "hint: rename it" in said.stderr


def installed(place: Path, damaged: str) -> Path:
    """Return a folder with the packages, as an installation has them, all but one."""
    place.mkdir()
    for name in ("acquatop", *PARTS):
        if name != damaged:
            (place / name).symlink_to(ROOT / name)
    return place


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("left", ["nothing", "other files", "theirs"])
def test_a_part_that_another_distribution_has_taken_is_named(
    tmp_path: Path, name: str, left: str
) -> None:
    place = installed(tmp_path / "site", name)
    if left != "nothing":
        (place / name).mkdir()
        first = "__init__.py" if left == "theirs" else "rest.py"
        (place / name / first).write_text("THEIRS = True\n")
    said = run(script_in(tmp_path, "import acquatop"), path=place)
    assert said.returncode == 1
    assert f"ImportError: {place / name} is not the package {name} that AcquaTop" in said.stderr
    assert "hint: install AcquaTop again" in said.stderr


def test_all_parts_of_a_whole_installation_are_found_without_a_word(tmp_path: Path) -> None:
    place = installed(tmp_path / "site", "none")
    said = run(script_in(tmp_path, "import acquatop, rspql, connectors, replica"), path=place)
    assert (said.returncode, said.stderr) == (0, "")


@pytest.mark.parametrize("runtime", ["local", pytest.param("spark", marks=pytest.mark.slow)])
def test_a_query_runs_beside_a_folder_of_such_a_name(tmp_path: Path, runtime: str) -> None:
    for name in PARTS:
        put_beside(tmp_path, name, "folder")
    text = QUERY.replace("RUNTIME", repr(runtime))
    said = run(script_in(tmp_path, text))
    assert said.returncode == 0, said.stderr
    assert said.stdout.strip() == "['http://example.org/ann']"


def test_packages_in_a_zip_are_found(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    for name in ("acquatop", *PARTS):
        shutil.copytree(
            ROOT / name, whole / name, ignore=shutil.ignore_patterns("__pycache__", "*.svg")
        )
    archive = shutil.make_archive(str(tmp_path / "sent"), "zip", whole)
    put_beside(tmp_path, "connectors", "folder")
    said = run(
        script_in(tmp_path, "import acquatop, connectors; print(connectors.__file__)"),
        path=Path(archive),
    )
    assert said.stdout.strip() == f"{archive}/connectors/__init__.py", said.stderr
