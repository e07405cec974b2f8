"""Windows of several slots that share a budget: closed in the order of time, those due together."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from typing import NamedTuple

from acquatop.engine.alignment import AlignedStream
from acquatop.engine.evaluation_slot import EvaluationSlot, isolate_failures
from acquatop.engine.slot_step import handed_on
from acquatop.engine.step import Made
from acquatop.query.contract import BudgetSharer, Tick
from acquatop.query.schedule.cursor import may_jump


class _Sharing(NamedTuple):
    """Slot that shares a budget, and the time up to which its windows are due."""

    slot: EvaluationSlot
    evaluation: BudgetSharer
    until_ms: float

    @property
    def next_ms(self) -> int | None:
        """Close of the next window that is due; None if none is.

        Windows that may be too many to be answered one by one are left to the slot.
        """
        if not self.slot.has_readers or self.slot.error is not None:
            return None
        closes_ms = self.evaluation.due_by(self.until_ms)
        if closes_ms is None:
            return None
        slide_ms = int(self.evaluation.slide_ms)
        return None if may_jump(self.until_ms - closes_ms, slide_ms) else closes_ms


def due_together(
    slots: Iterable[EvaluationSlot],
    mine: AlignedStream,
    due_at: float,
    wait: float,
    *,
    durable: bool,
) -> Generator[Made, None, int]:
    """Yield what is due at a stream's watermark of slots that share a budget; return the number.

    What is due later, and what is not shared, is left to each slot.
    """
    reached_ms = mine.watermark_ms
    if reached_ms is None:
        return 0
    until = {slot: float(reached_ms) for slot in slots}
    return (yield from _close(until, mine.iri, due_at, wait, durable=durable))


def last_together(
    slots: Iterable[EvaluationSlot], stream: str, due_at: float, wait: float, *, durable: bool
) -> Generator[Made, None, int]:
    """Yield what is left at the end of a stream of slots that share a budget."""
    until = {
        slot: slot.evaluation.last_due_ms(stream)
        for slot in slots
        if isinstance(slot.evaluation, BudgetSharer)
    }
    return (yield from _close(until, stream, due_at, wait, durable=durable))


def _close(
    until: Mapping[EvaluationSlot, float],
    stream: str,
    due_at: float,
    wait: float,
    *,
    durable: bool,
) -> Generator[Made, None, int]:
    sharing = [
        _Sharing(slot, slot.evaluation, until_ms)
        for slot, until_ms in until.items()
        if isinstance(slot.evaluation, BudgetSharer)
        and len(slot.evaluation.lanes)
        and len(slot.streams) < 2
    ]
    count = 0
    while len(sharing) > 1:
        closes = [(each, each.next_ms) for each in sharing]
        known = [closes_ms for _, closes_ms in closes if closes_ms is not None]
        if not known:
            break
        now_ms = min(known)
        due = [each for each, closes_ms in closes if closes_ms == now_ms]
        for each in due:
            each.evaluation.expect()
        for each in due:
            with isolate_failures(each.slot, durable=durable):
                each.evaluation.offer(now_ms)
        for each in due:
            if each.slot.error is not None:
                continue
            with isolate_failures(each.slot, durable=durable):
                longest = each.slot.longest_wait(stream, wait)
                tick = Tick(stream, now_ms, due_at, longest)
                answers = each.slot.evaluation.advance(tick)
                count += yield from handed_on(each.slot, answers, due_at, wait)
    return count
