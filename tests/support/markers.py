"""Markers that tests get by what they use, so that nobody has to remember them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

import pytest

THOROUGH = pytest.mark.slow
"""Mark of a test that works for long, but starts no Spark: any worker may run it."""

MARKER_OF_FIXTURE = {
    "spark": "spark",
    **dict.fromkeys(("_server", "_s3", "_az", "_hdfs", "_kafka", "_fuseki"), "server"),
}
MARKER_OF_PROGRAM = {"spark-submit": "spark", "oxigraph": "server"}


def mark_by_fixtures(item: pytest.Item) -> None:
    """Mark a test that uses Spark's session or a server."""
    for name in getattr(item, "fixturenames", ()):
        if name in MARKER_OF_FIXTURE:
            item.add_marker(MARKER_OF_FIXTURE[name])


def missing_marker(item: pytest.Item, command: Sequence[object]) -> str | None:
    """Return the marker that a test needs to start a program, if it is without it."""
    program = PurePath(str(command[0])).name if command else ""
    marker = MARKER_OF_PROGRAM.get(program)
    return None if marker is None or item.get_closest_marker(marker) else marker


class ProgramGuard:
    """Plugin that lets no test start Spark or a SPARQL server without the marker for it.

    It sees what the process of the tests starts itself, by Python's audit events.
    """

    def __init__(self) -> None:
        self._running: pytest.Item | None = None
        sys.addaudithook(self._audit)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        """Remember the test that runs."""
        self._running = item
        try:
            return (yield)
        finally:
            self._running = None

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event != "subprocess.Popen" or self._running is None:
            return
        command = arguments[1]
        words = [command] if isinstance(command, str | bytes) else list(command)
        if marker := missing_marker(self._running, words):
            raise AssertionError(f"{self._running.nodeid} starts {words[0]}: mark it {marker}")
