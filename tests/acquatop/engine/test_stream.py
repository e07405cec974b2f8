"""Steps of a stream's state machine, without a driver: answers, failures, and the end."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from acquatop.answer.answer import Answer
from acquatop.catalog.catalog import Catalog
from acquatop.engine.evaluation_slot import EvaluationSlot
from acquatop.engine.handle import AnswerSignal, RegisteredQuery
from acquatop.engine.step import SlotFailure
from acquatop.engine.stream import StreamOperator
from acquatop.engine.stream_settings import StreamSettings
from acquatop.ingest.reduce.records import Records
from acquatop.query.contract import Tick
from acquatop.runtime import Batch
from tests.support.empty_answer import NOTHING

CATALOG = "".join(
    f"""
    [streams."urn:{name}"]
    connector = "lines"
    arrivals = "distinct"
    [streams."urn:{name}".options]
    path = "{name}"
    [streams."urn:{name}".mapping]
    subject = "urn:s:{{s}}"
    time = "t"
    properties = {{ "urn:p" = {{ field = "p", datatype = "xsd:integer" }} }}
    """
    for name in ("a", "b")
)


class Scripted:
    """Evaluation with three answers per tick; it fails if it is told to."""

    names: Sequence[str] = ("q",)
    slide_ms = 1.0

    def __init__(self) -> None:
        self.made = 0
        self.fails = False

    def reducers(self, stream: str) -> Sequence[Records]:
        return [Records()]

    def windows(self, stream: str) -> Sequence[Any]:
        return ()

    def add(self, stream: str, parts: object, names: object) -> None:
        if self.fails:
            raise ValueError("no luck")

    def join(self, bound: object, after: object) -> None:
        raise AssertionError("nobody may join")

    def advance(self, tick: Tick) -> Iterator[Answer]:
        for at in range(3):
            self.made += 1
            yield replace(NOTHING, closes_ms=at)


@pytest.fixture
def slot() -> EvaluationSlot:
    slot = EvaluationSlot("k", Scripted())  # type: ignore[arg-type]
    slot.add(RegisteredQuery("q", ["urn:a", "urn:b"], live=False, news=AnswerSignal()))
    return slot


def stream_of(slot: EvaluationSlot, name: str) -> StreamOperator:
    stream = Catalog.parse(CATALOG, file=Path("catalog.toml"), variables={}).streams[f"urn:{name}"]
    operator = StreamOperator(stream, StreamSettings(lambda: 0.0, live=False))
    operator.attach_resumed(slot)
    return operator


def batch_for(operator: StreamOperator) -> Batch:
    lines = pa.record_batch([pa.array([b'{"t": 5, "s": "x", "p": 1}'], pa.binary())], ["value"])
    operator.begin_batch()
    return Batch({"batch": 0}, [list(operator.job()([lines]))])


def test_answers_are_made_one_by_one(slot: EvaluationSlot) -> None:
    operator, evaluation = stream_of(slot, "a"), slot.evaluation
    assert isinstance(evaluation, Scripted)
    step = operator.take(batch_for(operator), 0.0)
    assert isinstance(next(step), Answer)
    assert evaluation.made == 1
    for query in slot.queries:
        query.finish(None)
    assert list(step) == []
    assert evaluation.made == 1


def test_a_step_that_is_left_lets_other_streams_use_the_slot(slot: EvaluationSlot) -> None:
    operator = stream_of(slot, "a")
    step = operator.take(batch_for(operator), 0.0)
    next(step)
    step.close()
    other = threading.Thread(target=slot.await_turn)
    other.start()
    other.join()


def test_streams_that_share_a_slot_report_its_failure_once(slot: EvaluationSlot) -> None:
    first, second = stream_of(slot, "a"), stream_of(slot, "b")
    batches = batch_for(first), batch_for(second)
    slot.evaluation.fails = True  # type: ignore[attr-defined]
    failure = next(first.take(batches[0], 0.0))
    assert isinstance(failure, SlotFailure)
    assert str(failure.error) == "no luck"
    slot.evaluation.fails = False  # type: ignore[attr-defined]
    made = list(second.take(batches[1], 0.0))
    assert [each for each in made if isinstance(each, SlotFailure)] == []


def test_nobody_joins_a_stream_from_its_end_on(slot: EvaluationSlot) -> None:
    operator = stream_of(slot, "a")
    operator.end()
    assert operator.time.has_ended
    assert not operator.join(slot, None)  # type: ignore[arg-type]
    operator.apply_joins_and_leaves()
