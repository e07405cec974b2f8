"""Step of one slot: the answers that are due, and those of the queries that read them."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator

from acquatop.answer.answer import Answer
from acquatop.answer.unanswered import Unanswered
from acquatop.engine.alignment import AlignedStream
from acquatop.engine.evaluation_slot import EvaluationSlot, isolate_failures
from acquatop.engine.step import Made
from acquatop.query.contract import Tick


def due_answers(
    slot: EvaluationSlot, mine: AlignedStream, due_at: float, wait: float, *, durable: bool
) -> Generator[Made, None, int]:
    """Yield what is due after a change of a stream's watermark; return the number of answers.

    All slots of the stream together may ``wait`` so long for remotes.
    """
    count = 0
    # Who reads the answers must get them in their order, be there several streams.
    with slot.lock:
        told: dict[str, float] = {}
        with isolate_failures(slot, durable=durable):
            for stream, watermark_ms in slot.streams.steps(mine):
                longest = slot.longest_wait(mine.iri, wait)
                stream.announce(watermark_ms)
                told[stream.iri] = watermark_ms
                due = slot.evaluation.advance(Tick(stream.iri, watermark_ms, due_at, longest))
                count += yield from handed_on(slot, due, due_at, wait)
        count += yield from _behind(slot, told, due_at, wait)
    return count


def last_answers(
    slot: EvaluationSlot, stream: str, due_at: float, *, durable: bool, closes: bool
) -> Iterator[Made]:
    """Yield what is due at the end of a stream, if it ``closes`` windows, also of its readers."""
    with slot.lock:
        with isolate_failures(slot, durable=durable):
            slot.forget_wait(stream)
            if closes:
                yield from handed_on(slot, slot.evaluation.finish(stream), due_at, math.inf)
        if closes:
            yield from _behind(slot, {stream: math.inf}, due_at, math.inf)
        for each in slot.answers_streams:
            yield from each.end(stream, due_at, closes=closes)


def handed_on(
    slot: EvaluationSlot, due: Iterator[Answer | Unanswered], due_at: float, wait: float
) -> Generator[Made, None, int]:
    """Yield answers as long as anybody reads them, as each may ask a remote; return how many."""
    count = 0
    while slot.has_readers and (made := next(due, None)) is not None:
        count += 1
        judged = slot.judged(made)
        yield judged
        for each in slot.answers_streams:
            each.note(judged)
            if each.is_full:
                count += yield from each.hand_on(due_at, wait)
    return count


def _behind(
    slot: EvaluationSlot, told: dict[str, float], due_at: float, wait: float
) -> Generator[Made, None, int]:
    """Yield the answers of queries that read those of a slot, up to the time that it has reached.

    Return their number.
    """
    count = 0
    for each in slot.answers_streams if slot.error is None else ():
        each.reach(told)
        count += yield from each.hand_on(due_at, wait)
    return count
