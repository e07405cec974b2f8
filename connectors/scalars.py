"""Values of a column whose uses or datatypes differ: texts that say what each was written as.

The first character of such a text is its kind, the rest the value's own text. Each distinct value
is written once, in a dictionary.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from connectors.coded import coded
from connectors.instants import milliseconds
from connectors.number_texts import finite_numbers, whole_numbers

SCALAR = pa.dictionary(pa.int32(), pa.large_string())
"""Type of such columns, which no other column has."""
TEXT, NUMBER, BOOLEAN, INSTANT, BARE = "tnbiu"
"""Kinds: a text, a number, a truth value, a time of a column's own type, and a text of a format
that knows nothing else, such as CSV."""


def scalars_of(column: pa.Array, kind: str | None = None) -> pa.Array:
    """Return a column, or a column of lists, as scalars, all of one kind, or of their type's.

    Values of types that no literal has become null.

    >>> scalars_of(pa.array([1.5, None])).to_pylist()
    ['n1.5', None]
    """
    if column.type == SCALAR:
        return column
    if is_list(column):
        return lists_of(column, scalars_of(column.flatten(), kind))
    if pa.types.is_null(column.type):
        return pa.nulls(len(column), SCALAR)
    each = coded(column)
    written, own = _written(each.dictionary)
    texts = pc.binary_join_element_wise(kind or own, written, "").cast(pa.large_string())
    return pa.DictionaryArray.from_arrays(each.indices, texts)


def is_list(column: pa.Array) -> bool:
    """Return True if the values of a column are lists."""
    return bool(pa.types.is_list(column.type) or pa.types.is_large_list(column.type))


def lists_of(lists: pa.Array, values: pa.Array) -> pa.ListArray:
    """Return lists with other values in the place of theirs, in their order."""
    lengths = pc.fill_null(pc.list_value_length(lists), 0)
    offsets = pa.concat_arrays(
        [pa.array([0], pa.int32()), pc.cumulative_sum(lengths.cast(pa.int32()))]
    )
    return pa.ListArray.from_arrays(offsets, values, mask=lists.is_null())


def of_kinds(scalars: pa.Array, kinds: str) -> pa.StringArray:
    """Return the texts of some kinds, null for the others; of distinct values, not of a column."""
    texts = scalars.cast(pa.string())
    wanted = pc.match_substring_regex(texts, f"^[{kinds}]")
    return pc.utf8_slice_codeunits(pc.if_else(wanted, texts, None), 1)


def said(scalars: pa.DictionaryArray) -> pa.DictionaryArray:
    """Return values as their own texts, without their kinds."""
    texts = pc.utf8_slice_codeunits(scalars.dictionary, 1)
    return pa.DictionaryArray.from_arrays(scalars.indices, texts)


def names_of(scalars: pa.DictionaryArray) -> pa.DictionaryArray:
    """Return values as parts of IRIs: texts and whole numbers, null for others."""
    each = scalars.dictionary
    numbers = pc.if_else(pc.is_valid(_whole(of_kinds(each, NUMBER))), of_kinds(each, NUMBER), None)
    texts = pc.coalesce(of_kinds(each, TEXT + BARE), numbers)
    return pa.DictionaryArray.from_arrays(scalars.indices, texts)


def _whole(texts: pa.StringArray) -> pa.StringArray:
    return pc.if_else(pc.match_substring_regex(texts, "^-?[0-9]+$"), texts, None)


def times_of(scalars: pa.DictionaryArray, written_as: str) -> pa.Array:
    """Return values as times of a form, in the type that the form is read from."""
    each = scalars.dictionary
    if written_as == "dateTime":
        found = of_kinds(each, TEXT + BARE + INSTANT)
    elif written_as == "seconds":
        found = finite_numbers(of_kinds(each, NUMBER + BARE))
    else:
        whole = whole_numbers(of_kinds(each, NUMBER + BARE))
        found = pc.coalesce(whole, milliseconds(of_kinds(each, INSTANT)))
    return found.take(scalars.indices)


def _written(values: pa.Array) -> tuple[pa.StringArray, str]:
    """Return distinct values as texts, and their kind."""
    type_ = values.type
    if pa.types.is_boolean(type_):
        return values.cast(pa.string()), BOOLEAN
    if pa.types.is_integer(type_) or pa.types.is_decimal(type_):
        return values.cast(pa.string()), NUMBER
    if pa.types.is_floating(type_):
        return pc.if_else(pc.is_finite(values), values, None).cast(pa.string()), NUMBER
    if pa.types.is_string(type_) or pa.types.is_large_string(type_):
        return values.cast(pa.string()), TEXT
    if pa.types.is_temporal(type_):
        return _instants(values), INSTANT
    if pa.types.is_string_view(type_):
        return values.cast(pa.string()), TEXT
    return pa.nulls(len(values), pa.string()), TEXT


def _instants(values: pa.Array) -> pa.StringArray:
    """Return instants, dates, times of day and durations as XSD writes them."""
    type_ = values.type
    if pa.types.is_duration(type_):
        return _durations(values)
    if pa.types.is_timestamp(type_) and type_.tz is not None:
        values = values.cast(pa.timestamp(type_.unit, "UTC"))
    texts = values.cast(pa.string())
    for pattern, then in ((" ", "T"), (r"(\.[0-9]*[1-9])0+(Z?)$", r"\1\2"), (r"\.0+(Z?)$", r"\1")):
        texts = pc.replace_substring_regex(texts, pattern, then)
    return texts


def _durations(values: pa.Array) -> pa.StringArray:
    per_second = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}[values.type.unit]
    digits = len(str(per_second)) - 1

    def written(count: int | None) -> str | None:
        if count is None:
            return None
        whole, rest = divmod(abs(count), per_second)
        fraction = f".{rest:0{digits}}".rstrip("0") if rest else ""
        return f"{'-' if count < 0 else ''}PT{whole}{fraction}S"

    return pa.array(map(written, values.cast(pa.int64()).to_pylist()), pa.string())
