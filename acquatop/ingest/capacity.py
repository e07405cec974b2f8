"""Rows whose integers are too large for their scores to have all digits."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from acquatop.ingest.scoring import BoolArray
from acquatop.topk.contract import FloatArray
from rspql.ast import XSD
from rspql.plan import Score


def beyond(score: Score, capacity: float, parts: Sequence[FloatArray]) -> BoolArray | None:
    """Return a mask of the rows with an integer beyond a capacity; None if there are none."""
    if math.isinf(capacity):
        return None
    masks = [
        np.abs(part) > capacity
        for name, part in zip(score.stream_variables, parts, strict=True)
        if score.datatypes.get(name) == XSD + "integer"
    ]
    if not any(mask.any() for mask in masks):
        return None
    found: BoolArray = np.logical_or.reduce(masks)
    return found
