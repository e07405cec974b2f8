"""Columns of texts as dictionaries, so that each distinct text is checked and written only once.

Finding the distinct texts costs about as much as it saves, so it is done only where texts repeat. A
column whose texts hardly repeat becomes a dictionary of all its texts, in their order: a dictionary
may therefore hold a text twice.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

CODED = pa.dictionary(pa.int32(), pa.string())
"""Type of coded texts."""

SAMPLE = 4096
"""Number of values that tell whether a longer column repeats its values."""
_MOST_DISTINCT = 0.9
"""Largest share of distinct values in the sample of a column that repeats its values."""


def coded(values: pa.Array) -> pa.DictionaryArray:
    """Return a column as a dictionary, of its distinct values if they repeat.

    >>> coded(pa.array(["a", "b", "a"])).dictionary.to_pylist()
    ['a', 'b']
    """
    if pa.types.is_dictionary(values.type):
        return compact(values)
    return values.dictionary_encode() if _repeats(values) else uncoded(values)


def uncoded(values: pa.Array) -> pa.DictionaryArray:
    """Return a column as a dictionary of all its values. No value is looked at.

    >>> column = uncoded(pa.array(["a", None, "a"]))
    >>> column.to_pylist(), column.dictionary.to_pylist()
    (['a', None, 'a'], ['a', 'a'])
    """
    if pa.types.is_dictionary(values.type):
        return compact(values)
    if not values.null_count:
        at = pa.array(np.arange(len(values), dtype=np.int32))
        return pa.DictionaryArray.from_arrays(at, values)
    valid = values.is_valid().to_numpy(zero_copy_only=False)
    at = pa.array((np.cumsum(valid) - 1).astype(np.int32), mask=~valid)
    return pa.DictionaryArray.from_arrays(at, values.drop_null())


def compact(column: pa.DictionaryArray) -> pa.DictionaryArray:
    """Return a column whose dictionary has not more values than the column, and none unused then.

    A part of a file's rows comes with the dictionary of all of them.

    >>> column = compact(pa.array(["a", "b", "c", "c"]).dictionary_encode().slice(2))
    >>> column.to_pylist(), column.dictionary.to_pylist()
    (['c', 'c'], ['c'])
    """
    known = len(column.dictionary)
    if known <= len(column):
        return column
    indices = column.indices
    is_used = np.zeros(known, np.bool_)
    is_used[indices.drop_null().to_numpy()] = True
    places = pa.array((np.cumsum(is_used) - 1).astype(np.int32))
    used = column.dictionary.take(pa.array(np.flatnonzero(is_used)))
    return pa.DictionaryArray.from_arrays(places.take(indices), used)


def distinct(column: pa.Array) -> pa.DictionaryArray:
    """Return a column, coded or not, with each distinct value once in its dictionary.

    >>> distinct(uncoded(pa.array(["a", "a"]))).dictionary.to_pylist()
    ['a']
    """
    if pa.types.is_dictionary(column.type) and len(column.dictionary) < len(column):
        return column  # its values have been found to repeat
    return plain(column).dictionary_encode()


def plain(column: pa.Array) -> pa.Array:
    """Return a column's values without a dictionary."""
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _repeats(values: pa.Array) -> bool:
    if len(values) <= SAMPLE:
        return True
    sample = values.take(pa.array(np.linspace(0, len(values) - 1, SAMPLE).astype(np.int64)))
    return len(sample.dictionary_encode().dictionary) <= _MOST_DISTINCT * SAMPLE
