"""Quality that answers are to have at least, in place of a number of items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from acquatop.catalog.section import Section

METRICS = ("precision", "ndcg")
ITEMS = 1_000
"""Items of an evaluation with a target, unless the catalog says another number."""


@dataclass(frozen=True)
class QualityTarget:
    """Expected quality to reach with as few items as possible: a metric, and its least value."""

    metric: str
    least: float


def read_target(section: Section) -> QualityTarget | None:
    """Return the target of a ``refresh``, such as ``{ precision = 0.9 }``; None without one."""
    if "target" not in section:
        return None
    table = section.section("target")
    table.allow(*METRICS)
    given = [metric for metric in METRICS if metric in table]
    if len(given) != 1:
        section.problem(f'"target" has one of {" and ".join(METRICS)}', "target")
        return None
    (metric,) = given
    least = table.value(metric)
    if isinstance(least, bool | str) or not 0 < least <= 1:
        table.problem(f'"{metric}" must be a number above 0, and at most 1', metric)
        return None
    return QualityTarget(metric, float(least))
