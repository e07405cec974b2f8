"""Cases in ``fixtures/answers``: folders with a catalog, queries, what streams and remotes hold,
expected answers.
"""

from __future__ import annotations

import difflib
import itertools
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from acquatop.answer.answer import Answer
from acquatop.answer.sinks.json_line import json_line
from acquatop.app.cli.queries import NamedQuery, read_queries
from acquatop.catalog.catalog import Catalog
from acquatop.engine.engine import Engine

FOLDER = Path(__file__).parent.parent / "fixtures" / "answers"
CASES = sorted(file.parent.name for file in FOLDER.glob("*/catalog.toml"))
EXPECTED = "expected.ndjson"


@dataclass(frozen=True)
class Run:
    """A copy of a case, and the answers of each of its queries, in the order of their files."""

    folder: Path
    catalog: Catalog
    queries: Sequence[NamedQuery]
    answers: Mapping[str, Sequence[Answer]]

    @property
    def lines(self) -> list[str]:
        """The answers as lines of JSON, in the order of query and window."""
        every = itertools.chain.from_iterable(self.answers.values())
        return [json_line(answer.canonical()).decode().rstrip("\n") for answer in every]


def run_case(case: str, folder: Path, *, runtime: str, spark: SparkSession | None = None) -> Run:
    """Run the queries of a case together on a copy of it;
    no deadline passes, as the engine's clock stands still.
    """
    copy = folder / case
    shutil.copytree(FOLDER / case, copy)
    catalog = Catalog.load(copy / "catalog.toml")
    queries = read_queries([str(file) for file in sorted(copy.glob("*.rspql"))], catalog)
    with Engine(
        catalog, runtime=runtime, until_end=True, spark=spark, autostart=False, clock=lambda: 0.0
    ) as engine:
        running = [engine.register(each.text, name=each.name, file=each.file) for each in queries]
        engine.start()
        return Run(copy, catalog, queries, {query.name: list(query) for query in running})


def expected_lines(case: str) -> list[str]:
    """Return what a case is expected to say."""
    return (FOLDER / case / EXPECTED).read_text("utf-8").splitlines()


def expect(case: str, lines: Sequence[str]) -> None:
    """Write down what a case says as what it is expected to say."""
    (FOLDER / case / EXPECTED).write_text("".join(f"{line}\n" for line in lines), "utf-8")


def difference(case: str, expected: Sequence[str], found: Sequence[str]) -> str:
    """Return what is different, answer by answer: nothing if nothing is."""
    pairs = enumerate(itertools.zip_longest(expected, found), start=1)
    return "\n".join(
        _changed(f"{case}/{EXPECTED}, line {number}", *pair)
        for number, pair in pairs
        if pair[0] != pair[1]
    )


def _changed(place: str, expected: str | None, found: str | None) -> str:
    parts = difflib.ndiff(_spread(expected), _spread(found))
    return "\n".join(
        [f"{place} (- expected, + found):", *(f"  {part}" for part in parts if part[0] != "?")]
    )


def _spread(line: str | None) -> list[str]:
    """Return an answer in several lines: each of its fields, each result, each triple."""
    fields: dict[str, Any] = {} if line is None else json.loads(line)
    spread = []
    for name, value in fields.items():
        each = [value] if name not in ("results", "triples") else value
        spread += [f"{name}: {json.dumps(part, ensure_ascii=False)}" for part in each]
    return spread
