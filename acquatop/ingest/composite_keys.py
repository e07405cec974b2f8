"""Keys of several terms, as one text: what several columns say together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from connectors.coded import distinct, plain
from replica.key_tuples import SEPARATOR, terms_in


def joined_keys(columns: Sequence[pa.Array]) -> pa.DictionaryArray:
    """Return the keys that columns of terms make row by row; each distinct one is made once.

    A term that a row lacks is empty.

    >>> joined_keys([pa.array(['"a"', '"a"']), pa.array(["<urn:b>"] * 2)]).dictionary.to_pylist()
    ['"a"\\n<urn:b>']
    >>> joined_keys([pa.array([None, '"a"']), pa.array(["<urn:b>"] * 2)]).to_pylist()
    ['\\n<urn:b>', '"a"\\n<urn:b>']
    """
    each = [distinct(column) for column in columns]
    codes = np.zeros(len(columns[0]), dtype=np.int64)
    for column in each:
        # The codes so far are made dense again, so that their product stays small.
        _, codes = np.unique(codes, return_inverse=True)
        count = len(column.dictionary)
        codes = codes * (count + 1) + pc.fill_null(column.indices, count).to_numpy()
    _, firsts, indices = np.unique(codes, return_index=True, return_inverse=True)
    terms = [column.take(pa.array(firsts)).cast(pa.string()) for column in each]
    return pa.DictionaryArray.from_arrays(
        pa.array(indices.astype(np.int32)),
        pc.binary_join_element_wise(*(pc.fill_null(term, "") for term in terms), SEPARATOR),
    )


def with_gaps(keys: pa.DictionaryArray) -> pa.DictionaryArray:
    """Return keys with an empty one for each row that lacks its term.

    >>> with_gaps(pa.array(['"a"', None]).dictionary_encode()).to_pylist()
    ['"a"', '']
    """
    if not keys.null_count:
        return keys
    return pc.fill_null(plain(keys).cast(pa.string()), "").dictionary_encode()


def terms_of_key(names: Sequence[str], key: str) -> Mapping[str, str]:
    r"""Return the terms of a key, by variable.

    >>> terms_of_key(["x", "y"], '"a"\n<urn:b>')
    {'x': '"a"', 'y': '<urn:b>'}
    """
    return dict(zip(names, terms_in(key) if names else (), strict=True))


def column_of_keys(names: Sequence[str], keys: pa.Array, name: str) -> pa.Array:
    r"""Return the terms of one variable of many keys.

    >>> column_of_keys(["x", "y"], pa.array(['"a"\n<urn:b>']), "y").to_pylist()
    ['<urn:b>']
    """
    if len(names) == 1:
        return keys
    parts = pc.split_pattern(keys, SEPARATOR, max_splits=len(names) - 1)
    return pc.list_element(parts, names.index(name))
