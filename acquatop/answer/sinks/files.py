"""Folders of whole files, on a disk or in an object store."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Protocol

from acquatop.answer.sinks.durable import make_folder, write_files
from acquatop.errors import EnvironmentProblem
from connectors.object_store.address import StoreAddress
from connectors.object_store.contract import ObjectStore, StoreError
from connectors.object_store.opening import open_objects
from connectors.object_store.patient import PatientObjects

FilePlace = Path | StoreAddress
"""Place of a folder of files."""

_AT_ONCE = 8


class WholeFiles(Protocol):
    """Folder of files, each of which appears as a whole."""

    def write(self, files: Mapping[str, bytes]) -> None:
        """Write files by name, in place of those that exist; they are durable on return."""
        ...


class LocalFiles:
    """Folder on a disk; one sync per file and one per folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made: set[Path] = set()
        self._make(folder)

    def write(self, files: Mapping[str, bytes]) -> None:
        """Write files by name, in place of those that exist; they are durable on return."""
        paths = {self._folder / name: content for name, content in files.items()}
        for path in paths:
            self._make(path.parent)
        write_files(paths)

    def _make(self, folder: Path) -> None:
        if folder not in self._made:
            make_folder(folder)
            self._made.add(folder)


class ObjectFiles:
    """Prefix in an object store; one request per file, some at once."""

    def __init__(self, objects: ObjectStore, place: object) -> None:
        self._objects = objects
        self._place = place

    def write(self, files: Mapping[str, bytes]) -> None:
        """Write files by name, in place of those that exist; they are durable on return."""
        try:
            with ThreadPoolExecutor(min(_AT_ONCE, len(files) or 1)) as writers:
                list(writers.map(self._objects.put, files, files.values()))
        except StoreError as error:
            raise EnvironmentProblem(
                f"cannot write answers: {error}\n"
                "  hint: see that the bucket exists, and that the keys in the environment may "
                "write there; answers that were not written are given again at the next start"
            ) from error


def open_files(place: FilePlace) -> WholeFiles:
    """Return the folder at a place; raises :class:`EnvironmentProblem` if it cannot be used."""
    if isinstance(place, Path):
        return LocalFiles(place)
    try:
        return ObjectFiles(PatientObjects(open_objects(place), str(place)), place)
    except StoreError as error:
        raise EnvironmentProblem(str(error)) from error
