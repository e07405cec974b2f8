"""Meaning of aggregates, computed by brute force."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from rspql.plan import AggregateColumn, Aggregation

Number = int | float


Solution = Mapping[str, Any]


Rows = dict[Any, tuple[tuple[Any, str], ...]]
"""For each key its columns, each a value and its datatype."""


def meant(aggregate: Aggregation, solutions: Iterable[Solution]) -> Rows:
    """Return what a plan says of a window's solutions, one for each record that matches."""
    distinct = {tuple(each[name] for name in aggregate.identity): each for each in solutions}
    groups: dict[Any, list[Solution]] = {}
    for each in distinct.values():
        groups.setdefault(each[aggregate.key], []).append(each)
    return {
        key: tuple(_value(column, group) for column in aggregate.columns)
        for key, group in groups.items()
    }


def _value(column: AggregateColumn, group: list[Solution]) -> tuple[Any, str]:
    if column.of is None:
        return len(group), "integer"
    values: list[Number] = [each[column.of] for each in group]
    whole = all(isinstance(each, int) for each in values)
    datatype = "integer" if whole else "double"
    match column.function:
        case "min":
            return min(values), datatype
        case "max":
            return max(values), datatype
        case "sum":
            return (sum(values) if whole else math.fsum(values)), datatype
        case _ if whole:
            cut = abs(sum(values)) * 10**18 // len(values)
            return Decimal(int(math.copysign(1, sum(values))) * int(cut)).scaleb(-18), "decimal"
        case _:
            return math.fsum(values) / len(values), "double"
