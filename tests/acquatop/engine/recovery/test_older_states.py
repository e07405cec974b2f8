"""State directories of earlier versions are read.

``fixtures/states`` has one of each, written by that version.
"""

from __future__ import annotations

import json
import shutil
import tarfile
from pathlib import Path
from typing import Any

import pytest

from acquatop import Engine

FOLDER = Path(__file__).parents[3] / "fixtures" / "states"
VERSIONS = sorted(each.name for each in FOLDER.iterdir())
PREFIX = "PREFIX : <http://example.org/> "
LAST_CLOSE_MS = 46_000
"""The close of a window that only the events after the state bring to its end."""


def answers(folder: Path, *, state: Path | None, until_end: bool) -> dict[tuple[str, int], Any]:
    """Return the results of each query and window; of a live run those until the last window."""
    found: dict[tuple[str, int], Any] = {}
    queries = json.loads((folder / "queries.json").read_text("utf-8"))
    engine = Engine.from_catalog(
        "catalog.toml", runtime="local", until_end=until_end, state=state, autostart=False
    )
    with engine:
        for name, text in queries.items():
            engine.register(PREFIX + text, name=name)
        engine.start()
        closed: set[str] = set()
        for answer in engine.answers():
            document = answer.canonical()
            found[answer.query, answer.window] = document["results"], document.get("triples")
            if answer.closes_ms >= LAST_CLOSE_MS:
                closed.add(answer.query)
            if not until_end and closed == set(queries):
                break
    return found


@pytest.mark.parametrize("version", VERSIONS)
def test_a_state_of_an_earlier_version_is_continued(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / version
    shutil.copytree(FOLDER / version, folder)
    with tarfile.open(folder / "state.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    manifest = folder / "state" / "manifest.json"
    document = json.loads(manifest.read_text("utf-8").replace("FOLDER/", f"{folder}/"))
    document.pop("checksum", None)  # that of the folder where it was written
    manifest.write_text(json.dumps(document), "utf-8")
    monkeypatch.chdir(folder)
    right = answers(folder, state=None, until_end=True)
    continued = answers(folder, state=folder / "state", until_end=False)
    assert len(continued) > 50
    assert {key: right[key] for key in continued} == continued
    # What was answered before is not answered again, but for the last answers.
    assert len(continued) < len(right)
