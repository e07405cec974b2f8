"""Keys as columns of hashes in ascending order: their buckets, and the union of several columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from acquatop.ingest.identity_hash import Hashes
from acquatop.ingest.scoring import BoolArray
from acquatop.topk.contract import IntArray

Heads = npt.NDArray[np.uint64]

_HALF = np.uint64(32)


def unsigned(heads: IntArray) -> Heads:
    """Return heads in the form in which they are compared."""
    return heads.view(np.uint64)


def buckets_of(heads: IntArray, count: int) -> IntArray:
    """Return the bucket of each key: a range of heads each, so ascending heads stay together.

    >>> buckets_of(np.array([0, 2**62, -1]), 4).tolist()
    [0, 1, 3]
    """
    return ((unsigned(heads) >> _HALF) * np.uint64(count) >> _HALF).astype(np.int64)


@dataclass(frozen=True)
class Union:
    """Distinct keys of several columns, ascending.

    ``codes`` has for each column the code of each of its keys: the position in ``hashes``.
    ``firsts`` has for each distinct key its first position in the columns, one after the other.
    """

    hashes: Hashes
    codes: Sequence[IntArray]
    firsts: IntArray

    def __len__(self) -> int:
        return len(self.firsts)


def union(columns: Sequence[Hashes]) -> Union:
    """Return the union of some columns with ascending heads, each key once per column.

    O(n log m) for m columns with n keys together: sorted runs are merged.

    >>> both = union([(np.array([1, 5]), np.array([7, 7])), (np.array([5]), np.array([7]))])
    >>> both.hashes[0].tolist(), [codes.tolist() for codes in both.codes], both.firsts.tolist()
    ([1, 5], [[0, 1], [1]], [0, 1])
    """
    heads, tails = (np.concatenate([each[at] for each in columns]) for at in (0, 1))
    order = np.argsort(unsigned(heads), kind="stable")
    changes = _changes(heads[order])
    tail_changes = _changes(tails[order])
    if (tail_changes & ~changes).any():
        # Two keys have the same head by chance.
        order = np.lexsort((tails, unsigned(heads)))
        changes = _changes(heads[order]) | _changes(tails[order])
    codes = np.empty(len(order), dtype=np.int64)
    codes[order] = np.cumsum(changes) - 1
    firsts = order[changes]
    ends = np.cumsum([len(each[0]) for each in columns])[:-1]
    return Union((heads[firsts], tails[firsts]), np.split(codes, ends), firsts)


def _changes(column: IntArray) -> BoolArray:
    """Return a mask of the rows that differ from the row before."""
    changes = np.ones(len(column), dtype=np.bool_)
    np.not_equal(column[1:], column[:-1], out=changes[1:])
    return changes
