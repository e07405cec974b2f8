"""Identities of solutions: texts that tell them apart."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def identities_of(terms: Sequence[pa.Array]) -> pa.Array:
    """Return a text for each solution: its terms, and which of equal ones it is."""
    texts = pc.binary_join_element_wise(*terms, " ") if len(terms) > 1 else terms[0]
    codes = np.asarray(texts.dictionary_encode().indices.to_numpy(), dtype=np.int64)
    order = np.argsort(codes, kind="stable")
    starts = np.searchsorted(codes[order], codes[order])
    number = np.empty_like(codes)
    number[order] = np.arange(len(codes)) - starts
    if not number.any():
        return texts
    # The first of equal ones has the same identity whether others are found beside it or not.
    numbered = pc.binary_join_element_wise(texts, pa.array(number).cast(pa.string()), " ")
    return pc.if_else(pa.array(number > 0), numbered, texts)
