"""Relation-to-stream operators: from successive answers to a stream of all, new or gone results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from dataclasses import replace
from typing import TypeVar

from acquatop.answer.answer import Answer, Row
from acquatop.answer.codec import answer_from_document, answer_to_document
from acquatop.topk.snapshot import SnapshotError, State, pack, reading, unpack

T = TypeVar("T")

OUTPUTS = ("RSTREAM", "ISTREAM", "DSTREAM")
_KIND, _VERSION = "relation to stream", 1


class RelationToStream:
    """Relation-to-stream operator: RSTREAM gives whole answers, ISTREAM new, DSTREAM gone results.

    Results are compared with the previous answer, as multisets, rows by their bindings alone: a row
    that has only changed its rank is not new. Rows keep the rank and the score of the answer that
    they are from; for DSTREAM that is the previous one. An ASK is a relation with one element or
    none: ISTREAM is true when it has become true, DSTREAM when it has ceased to be true. An answer
    comes at every close, even if nothing in it is new; its status is that of the present answer.
    """

    def __init__(self, output: str) -> None:
        if output not in OUTPUTS:
            raise ValueError(f"{output} is none of {', '.join(OUTPUTS)}")
        self._output = output
        self._before: Answer | None = None

    def __call__(self, answer: Answer) -> Answer:
        """Return the answer to emit; call it with every answer, in order."""
        before, self._before = self._before, answer
        if self._output == "RSTREAM":
            return answer
        if self._output == "ISTREAM":
            return _difference(answer, answer, before)
        return _difference(answer, before, answer)

    def snapshot(self) -> bytes:
        """Return the whole state: the previous answer, if the next one is compared with it."""
        before = (
            None
            if self._before is None or self._output == "RSTREAM"
            else answer_to_document(self._before)
        )
        return pack(_KIND, _VERSION, State({"output": self._output, "before": before}, {}))

    def resume(self, snapshot: bytes) -> None:
        """Restore a snapshot; raises ``SnapshotError`` for any other bytes."""
        settings = unpack(_KIND, _VERSION, snapshot).settings
        with reading():
            if settings["output"] != self._output:
                raise SnapshotError(
                    f"this is a snapshot of an {settings['output']}, not of an {self._output}"
                )
            before = settings["before"]
            self._before = None if before is None else answer_from_document(before)


def _difference(answer: Answer, these: Answer | None, those: Answer | None) -> Answer:
    """Return an answer with the results that ``these`` have and ``those`` do not have."""
    return replace(
        answer,
        rows=_without(these.rows if these else (), those.rows if those else (), _identity),
        triples=_without(these.triples if these else (), those.triples if those else (), str),
        boolean=None if answer.boolean is None else _holds(these) and not _holds(those),
    )


def _without(
    these: Iterable[T], those: Iterable[T], identity: Callable[[T], Hashable]
) -> tuple[T, ...]:
    """Return the items of one multiset beyond those of another, in order; of equal items the last.

    >>> _without("abcab", "ba", str)
    ('c', 'a', 'b')
    """
    left = Counter(map(identity, those))
    beyond = []
    for item in these:
        left[identity(item)] -= 1
        if left[identity(item)] < 0:
            beyond.append(item)
    return tuple(beyond)


def _identity(row: Row) -> Hashable:
    return frozenset(row.bindings.items())


def _holds(answer: Answer | None) -> bool:
    return bool(answer and answer.boolean)
