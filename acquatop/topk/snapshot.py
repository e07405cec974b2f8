"""Snapshots of structures: the codec of :mod:`replica.snapshot`, and rows as tables of a state."""

from __future__ import annotations

from collections.abc import Mapping

from acquatop.topk.contract import AnyArray, Rows
from replica.snapshot import (
    SnapshotError,
    State,
    pack,
    pack_parts,
    pack_table,
    random_settings,
    reading,
    set_random,
    unpack,
    unpack_parts,
    unpack_table,
)

__all__ = [
    "SnapshotError",
    "State",
    "pack",
    "pack_parts",
    "pack_table",
    "random_settings",
    "reading",
    "rows_of",
    "set_random",
    "table_of",
    "unpack",
    "unpack_parts",
    "unpack_table",
]


def table_of(rows: Rows) -> dict[str, AnyArray]:
    """Return rows as named columns."""
    parts = {f"part{at}": part for at, part in enumerate(rows.parts)}
    carried = {f"carried{at}": column for at, column in enumerate(rows.carried)}
    return {
        "times": rows.times,
        "identities": rows.identities,
        "keys": rows.keys,
        **parts,
        **carried,
    }


def rows_of(columns: Mapping[str, AnyArray]) -> Rows:
    """Return the rows that were written as named columns."""
    parts = tuple(columns[name] for name in columns if name.startswith("part"))
    carried = tuple(columns[name] for name in columns if name.startswith("carried"))
    return Rows(columns["times"], columns["identities"], columns["keys"], parts, carried)
