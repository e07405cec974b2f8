"""Queries whose names have been found in a catalog: streams, services, graphs and windows."""

from acquatop.plan.bound.counted import BoundCounted
from acquatop.plan.bound.query import BoundQuery
from acquatop.plan.bound.table import BoundTable
from acquatop.plan.bound.windowed import BoundRemote, BoundWindow, BoundWindowed

Bound = BoundQuery | BoundWindowed | BoundCounted

__all__ = [
    "Bound",
    "BoundCounted",
    "BoundQuery",
    "BoundRemote",
    "BoundTable",
    "BoundWindow",
    "BoundWindowed",
]
