"""Folders for keys: with the state, with nothing, and not where executors cannot see them."""

from __future__ import annotations

from pathlib import Path

import pytest

from acquatop.engine.keys_folders import KeysFolders
from acquatop.engine.observer import Silent
from acquatop.engine.persistence import EngineState
from acquatop.engine.state.place import state_place


@pytest.mark.parametrize(
    ("place", "may_be_shared"), [(None, True), ("state", True), ("s3://bucket/state", False)]
)
def test_executors_see_folders_but_no_object_store(
    tmp_path: Path, place: str | None, may_be_shared: bool
) -> None:
    state = None
    if place is not None:
        state = EngineState(state_place(place if ":" in place else tmp_path / place), Silent())
    folders = KeysFolders(state)
    assert folders.may_be_shared is may_be_shared
    folders.close()
