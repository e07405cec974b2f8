"""Folders for the keys that executors keep for evaluations."""

from __future__ import annotations

import hashlib
from pathlib import Path
from tempfile import TemporaryDirectory

from acquatop.engine.persistence import EngineState
from connectors.object_store.address import StoreAddress


class KeysFolders:
    """Folders where the state is, or in a temporary one without it."""

    def __init__(self, state: EngineState | None) -> None:
        self._state = state
        self._scratch: TemporaryDirectory[str] | None = None

    def folder(self, key: str) -> Path | StoreAddress:
        """Return the folder for an evaluation's key, or its address in an object store."""
        if self._state is not None:
            return self._state.keys_folder(key)
        self._scratch = self._scratch or TemporaryDirectory(
            prefix="acquatop-", ignore_cleanup_errors=True
        )
        return Path(self._scratch.name) / hashlib.sha256(key.encode()).hexdigest()[:16]

    def close(self) -> None:
        """Remove the temporary folder."""
        if self._scratch is not None:
            self._scratch.cleanup()
            self._scratch = None
