"""State of what a replica was told of some keys."""

from __future__ import annotations

from dataclasses import dataclass

from acquatop.ingest.scoring import BoolArray
from acquatop.topk.contract import FloatArray


@dataclass(frozen=True)
class Told:
    """Values that a replica has of some keys: known ones, those that the remote had, and ages."""

    known: BoolArray
    present: BoolArray
    ages: FloatArray
    fetched: BoolArray
