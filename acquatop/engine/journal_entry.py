"""Journal entry of a batch: enough to process the batch again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from acquatop.engine.evaluation_slot import EvaluationSlot
from acquatop.engine.reducer_slices import ReducerSlice
from acquatop.ingest.reduce.contract import Part
from acquatop.runtime import Batch
from acquatop.topk.snapshot import pack_parts, unpack_parts


def pack_entry(
    stream: str,
    batch: Batch,
    slices: Iterable[ReducerSlice],
    watermark_ms: int | None,
    side_outputs: Mapping[str, Any],
) -> dict[str, bytes]:
    """Return the entry of a batch, with the watermark before it and the side outputs after it."""
    said = {
        "stream": stream,
        "position": batch.position,
        "units": [[each.slot.key, each.start, each.stop, each.names] for each in slices],
        "partitions": len(batch.partitions),
        "watermark_ms": watermark_ms,
        **side_outputs,
    }
    parts = {f"partition {at}": _packed(each) for at, each in enumerate(batch.partitions)}
    return {"batch": json.dumps(said).encode(), **parts}


@dataclass(frozen=True)
class JournalEntry:
    """Batch of a journal, with the watermark before it; ``state`` has the side outputs' lengths."""

    batch: Batch
    watermark_ms: int | None
    state: Mapping[str, Any]

    @classmethod
    def unpack(cls, entry: Mapping[str, bytes]) -> JournalEntry:
        """Return the content of a packed entry."""
        said = json.loads(entry["batch"])
        partitions = [_unpacked(entry[f"partition {at}"]) for at in range(said["partitions"])]
        return cls(Batch(said["position"], partitions), said.get("watermark_ms"), said)

    def slices(self, slots: Mapping[str, EvaluationSlot]) -> Iterator[ReducerSlice]:
        """Yield the slices of those slots that are still there."""
        for key, start, stop, names in self.state["units"]:
            if key in slots:
                yield ReducerSlice(slots[key], start, stop, tuple(names))


def _packed(partition: Sequence[Part]) -> bytes:
    return pack_parts({str(at): part.to_bytes() for at, part in enumerate(partition)})


def _unpacked(data: bytes) -> list[Part]:
    parts = unpack_parts(data)
    return [Part.from_bytes(parts[str(at)]) for at in range(len(parts))]
