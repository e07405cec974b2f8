"""Explanations of keys in answers of every shape of query, judged by all data."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from acquatop import Engine
from acquatop.answer.answer import Answer, Status
from acquatop.answer.sinks.callback import CallbackSink
from acquatop.answer.why import Why
from examples.oxigraph import OxigraphServer
from tests.support.queries.shape_oracle import everything
from tests.support.queries.shape_world import NS, ShapeWorld, queries

pytestmark = [pytest.mark.slow, pytest.mark.server]

ASKED = (2, 5)
"""Answers of each query that are asked."""


def keys(world: ShapeWorld, answer: Answer) -> Iterator[str]:
    """Yield a key that is shown, two that may not be, and one that nobody knows."""
    shown = [term.n3() for row in answer.rows for term in row.bindings.values()]
    yield from [each for each in shown if each.startswith("<")][:1]
    yield f"{NS}post/{world.posts[-1]['id']}"
    yield f"<{NS}{world.posts[-1]['by']}>"
    yield "nobody"


def false_statements(world: ShapeWorld, text: str, answer: Answer, why: Why) -> Iterator[str]:
    """Yield what an explanation says that all data do not."""
    key = f"<{why.key.strip('<>')}>" if "/" in why.key else why.key
    shown = [row for row in answer.rows if key in [term.n3() for term in row.bindings.values()]]
    if shown and why.verdict != "in":
        yield "it is shown"
    ranks = {each.rank for each in why.standings if each.rank is not None}
    if shown and not {row.rank for row in shown} & ranks:
        yield f"it is at {shown}, not at {ranks}"
    if why.key == "nobody" and why.verdict != "not found":
        yield "nobody is there"
    if answer.form != "select" or answer.status is Status.APPROXIMATE or "change:" in text:
        return
    rows = everything(world, text, answer)
    if why.verdict == "not found" and why.is_whole and any(key in _texts(row) for row in rows):
        yield "it is in the window"
    for each in why.standings:
        if each.fails or each.score is None or each.rank is not None:
            continue
        known = [row for row in rows if key in _texts(row)]
        scores = [_number(row[name]) for row in known for name in row]
        if known and not any(math.isclose(each.score, score, rel_tol=1e-9) for score in scores):
            yield f"its score is none of {scores}"


def _texts(row: dict[str, Any]) -> set[str]:
    return {str(term) for term in row.values()}


def _number(term: Any) -> float:
    try:
        return float(term.value)
    except ValueError:
        return math.nan


@pytest.mark.parametrize("items", [100, 2])
def test_every_shape_explains_its_answers(tmp_path: Path, items: int) -> None:
    world = ShapeWorld(items=items)
    texts, wrong, said = queries(), list[str](), Counter[str]()
    count: Counter[str] = Counter()

    def take(answer: Answer) -> None:
        count[answer.query] += 1
        if count[answer.query] not in ASKED:
            return
        text = texts[answer.query]
        for key in dict.fromkeys(keys(world, answer)):
            why = answer.why(key)
            said[why.verdict] += 1
            said["fails"] += any(each.fails for each in why.standings)
            said["one more"] += why.one_more is not None
            assert str(why)
            assert why.to_json()["key"] == key
            wrong.extend(
                f"{text}: {key}: {each}: {why}"
                for each in false_statements(world, text, answer, why)
            )

    with OxigraphServer() as server:
        server.update(world.update)
        catalog = world.write(tmp_path, server.query_url)
        with Engine.from_catalog(
            catalog, runtime="local", until_end=True, autostart=False
        ) as engine:
            for name, text in texts.items():
                engine.register(text, name=name, sinks=[CallbackSink(take)])
            engine.start()
            for _ in engine.answers():
                pass
    assert wrong == []
    assert min(said[each] for each in ("in", "out", "not found", "fails")) > 0, said
    assert items == 100 or said["one more"], said
