"""Parser of JSON lines whose fields differ in kind: those of the same kinds are parsed together."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from connectors.fields import path_of
from connectors.scalars import SCALAR

EXACT = pa.decimal256(76, 38)
"""Type in which numbers of JSON keep the digits that they are written with."""
_TOO_LONG = r"[0-9]{37}|[0-9][eE][+-]?[0-9]"
"""Numbers that could silently overflow in that type."""
_MOST_GROUPS = 64
_KINDS = (r'"', r"-?[0-9]+\s*[,}\]]", r"-?[0-9]", "[tf]")
"""Beginnings of texts, whole numbers, other numbers and truth values."""


class Varying(NamedTuple):
    """A field of several kinds: the type of each kind, and whether it may be a list of them."""

    types: tuple[pa.DataType, pa.DataType, pa.DataType, pa.DataType]
    lists: bool


def exact_numbers(text: pa.StringArray) -> bool:
    """Return True if all numbers in some lines can be read with their digits."""
    return not pc.any(pc.match_substring_regex(text, _TOO_LONG), min_count=0).as_py()


def varying_of(type_: pa.DataType, *, is_name: bool, lists: bool, is_exact: bool) -> Varying | None:
    """Return how a field varies; None if it does not."""
    if type_ == SCALAR:
        types = (pa.string(), pa.int64(), EXACT if is_exact else pa.float64(), pa.bool_())
        return Varying(types, lists)
    if is_name:
        return Varying((pa.string(), pa.int64(), pa.string(), pa.string()), lists)
    return Varying((type_,) * 4, lists) if lists else None


def groups_of(
    text: pa.StringArray, varying: Mapping[str, Varying]
) -> Sequence[tuple[npt.NDArray[np.int64], Mapping[str, pa.DataType]]] | None:
    """Return the lines by the kinds of their fields, with the types that these are parsed in.

    It looks at the text behind a field's name, which may deceive: then a group cannot be parsed.
    Returns None if there are too many kinds.
    """
    codes = np.zeros(len(text), np.int64)
    for name in varying:
        codes = codes * (2 * len(_KINDS) + 1) + _codes(text, path_of(name)[-1])
        _, codes = np.unique(codes, return_inverse=True)
    first = np.unique(codes, return_index=True)[1]
    if len(first) > _MOST_GROUPS:
        return None
    kinds = {name: _codes(text.take(pa.array(first)), path_of(name)[-1]) for name in varying}
    return [
        (
            np.flatnonzero(codes == group),
            {name: _type(each, int(kinds[name][group])) for name, each in varying.items()},
        )
        for group in range(len(first))
    ]


def _codes(text: pa.StringArray, name: str) -> npt.NDArray[np.int64]:
    """Return the kind of a field in each line: 0 for none, negative kinds plus 4 for lists."""
    found = np.zeros(len(text), np.int64)
    label = rf'"{re.escape(name)}"\s*:\s*'
    for number, begin in reversed(list(enumerate(_KINDS, 1))):
        for shift, opening in ((0, ""), (len(_KINDS), r"\[\s*")):
            is_so = pc.match_substring_regex(text, label + opening + begin)
            found[is_so.to_numpy(zero_copy_only=False)] = number + shift
    return found


def _type(varying: Varying, code: int) -> pa.DataType:
    is_list, kind = code > len(_KINDS), (code - 1) % len(_KINDS) if code else 0
    type_ = varying.types[kind]
    return pa.list_(type_) if is_list and varying.lists else type_
