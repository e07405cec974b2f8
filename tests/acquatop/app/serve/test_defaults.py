"""The service as a program with nothing set that has a default, killed and started again.

Two exceptions: ``--runtime local``, as tests of the command line run on Spark, and ``--listen 0``,
as another service may have the default port.
"""

from __future__ import annotations

import signal
from collections import defaultdict
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from acquatop.answer.answer import Answer
from acquatop.app.serve.client import Client
from examples.oxigraph import OxigraphServer
from tests.support.markers import THOROUGH
from tests.support.minimal_answers import from_json
from tests.support.minimal_lives import PARTS, grow
from tests.support.minimal_oracle import closes as expected
from tests.support.minimal_oracle import problems
from tests.support.minimal_worlds import CORE, Query, catalog_of, file_streams, queries, remotes
from tests.support.serving import serving
from tests.support.waiting import until

pytestmark = [pytest.mark.server, THOROUGH]


@dataclass
class Read:
    """Answers read over HTTP, by the ids of queries."""

    texts: dict[str, str] = field(default_factory=dict)
    answers: defaultdict[str, dict[tuple[int, int], Answer]] = field(
        default_factory=lambda: defaultdict(dict)
    )

    def is_complete(self, client: Client, until_ms: int) -> bool:
        """Read, and return True if each query has its last answer until a time."""
        late = [
            (id, closes)
            for id, text in self.texts.items()
            if (closes := expected(text, until_ms)[-1:]) and not self._has(id, *closes)
        ]
        for id, _ in late:
            for answer in map(judged, map(from_json, client.answers(id))):
                self.answers[id][answer.closes_ms, answer.window] = answer
        return all(self._has(id, *closes) for id, closes in late)

    def _has(self, id: str, close_ms: int) -> bool:
        return any(closes == close_ms for closes, _ in self.answers[id])


def judged(answer: Answer) -> Answer:
    """Return an answer without the failure that a busy machine may cause: its status tells."""
    in_time = answer.failure is None or "within the deadline" not in answer.failure
    return answer if in_time else replace(answer, failure=None)


def asked() -> list[Query]:
    joined = [query for query in queries("service") if query.name in CORE]
    alone = [query for query in queries("stream") if query.name in CORE]
    return joined + [Query(f"stream_{query.name}", query.text) for query in alone]


def test_queries_of_all_shapes_over_http(tmp_path: Path, server: OxigraphServer) -> None:
    with remotes(tmp_path, server) as people:
        catalog = catalog_of(file_streams(tmp_path), people.table("sparql"))
    (tmp_path / "catalog.toml").write_text(catalog, "utf-8")
    grow(tmp_path, 0)
    read = Read()
    with serving(tmp_path) as (child, client):
        for query in asked():
            read.texts[client.register(query.text, query.name)["id"]] = query.text
        grow(tmp_path, PARTS[0])
        until(lambda: read.is_complete(client, PARTS[0]))
        child.send_signal(signal.SIGKILL)
        child.wait()
    with serving(tmp_path) as (child, client):
        assert {each["id"] for each in client.queries()} == set(read.texts)
        for part in PARTS[1:]:
            grow(tmp_path, part)
            until(lambda part=part: read.is_complete(client, part))
        for id in read.texts:
            client.remove(id)
        assert client.queries() == []
        child.send_signal(signal.SIGTERM)
        assert child.wait() == 0
    said = [
        f"{id}, {problem}"
        for id, text in read.texts.items()
        for problem in problems(text, list(read.answers[id].values()), PARTS[-1])
    ]
    assert said == []
