"""Lives of an engine over the minimal world, whose streams grow while it runs and while it is down.

A life is killed at a point, or comes to its end; the next one goes on from the state directory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from acquatop import Engine
from acquatop.answer.answer import Answer
from acquatop.answer.sinks import open_sink
from acquatop.answer.sinks.json_line import json_line
from acquatop.catalog.catalog import Catalog
from tests.support.minimal_oracle import closes as closing
from tests.support.minimal_worlds import STREAMS, Query, lines

PARTS = (7_000, 12_500, 16_000)
"""Times of the first stream's last records in each part: all before them is answered then."""


def grow(folder: Path, until_ms: int) -> None:
    """Bring the streams' files to a time."""
    for name in STREAMS:
        with (folder / name).open("r+b") as file:
            file.write(lines(name, until_ms))
            file.truncate()


@dataclass
class Kept:
    """Sink in memory: a repeated answer must be equal to the one before."""

    answers: dict[tuple[str, int, int], Answer] = field(default_factory=dict)
    changed: list[str] = field(default_factory=list)
    """Words about answers that were repeated with other content."""

    def write(self, answers: Sequence[Answer]) -> None:
        for answer in answers:
            before = self.answers.setdefault(
                (answer.query, answer.closes_ms, answer.window), answer
            )
            if before.canonical() != answer.canonical():
                self.changed.append(f"{answer.query}, {answer.closes_ms}: changed")

    def close(self) -> None:
        pass

    def of(self, query: str) -> list[Answer]:
        """Return a query's answers in the order of their windows."""
        return [answer for (name, _, _), answer in sorted(self.answers.items()) if name == query]


@dataclass
class Lives:
    """Lives over one folder with a catalog, a state directory, and files of answers.

    The clock stands still, so that no deadline passes.
    """

    folder: Path
    queries: Sequence[Query]
    kept: Kept = field(default_factory=Kept)

    def grow(self, until_ms: int) -> None:
        """Bring the streams' files to a time."""
        grow(self.folder, until_ms)

    def live(self, until_ms: int | None = None) -> None:
        """Live until the answers of a part are written, or (None) until the streams' end."""
        if until_ms is not None and not self._missing(until_ms):
            return
        sink = open_sink(f"canonical:{self.folder}/answers")
        engine = Engine(
            Catalog.load(self.folder / "catalog.toml", variables={}),
            runtime="local",
            until_end=until_ms is None,
            state=self.folder / "state",
            clock=lambda: 0.0,
        )
        with engine:
            for query in self.queries:
                engine.register(query.text, name=query.name, sinks=[sink, self.kept])
            engine.start()
            for _ in engine.answers():
                if until_ms is not None and not self._missing(until_ms):
                    break

    def _missing(self, until_ms: int) -> bool:
        """Return True if a query lacks its last answer of a part."""
        known = {(query, closes) for query, closes, _ in self.kept.answers}
        return any(
            (query.name, closes) not in known
            for query in self.queries
            for closes in closing(query.text, until_ms)[-1:]
        )

    def differences(self) -> list[str]:
        """Return the queries whose files are not the answers, each once and in order."""
        found = {
            query.name: self.folder / "answers" / f"{query.name}.ndjson" for query in self.queries
        }
        return [
            name
            for name, file in found.items()
            if file.read_bytes()
            != b"".join(json_line(answer.canonical()) for answer in self.kept.of(name))
        ]
