"""Streams of a catalog whose rows come from DataFrames of the program instead."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from acquatop.catalog.catalog import Catalog, Stream
from acquatop.catalog.remotes import expanded
from acquatop.errors import UserError
from connectors.columns import ColumnsMapping
from connectors.registry import SPARK

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def with_frames(catalog: Catalog, frames: Mapping[str, DataFrame]) -> Catalog:
    """Return a catalog in which the rows of some streams come from DataFrames.

    ``frames`` are by the streams' IRIs, whole or with a prefix of the catalog. The streams keep
    their mappings and all other settings.
    """
    found = {}
    for name, frame in frames.items():
        iri = expanded(name, catalog.prefixes)
        if iri not in catalog.streams:
            known = ", ".join(f"<{each}>" for each in catalog.streams) or "none"
            raise UserError(
                f"there is no stream <{iri}> for a DataFrame\n  hint: the catalog has {known}"
            )
        found[iri] = _of_frame(catalog.streams[iri], frame)
    return replace(catalog, streams={**catalog.streams, **found})


def _of_frame(stream: Stream, frame: DataFrame) -> Stream:
    if stream.connector == SPARK.name:
        return replace(stream, frame=frame)
    if not isinstance(stream.mapping, ColumnsMapping):
        hint = 'set connector = "spark", or map it with format = "columns"'
        raise UserError(
            f"<{stream.iri}> cannot be a DataFrame: its connector is "
            f'"{stream.connector}"\n  hint: {hint}'
        )
    return replace(stream, connector=SPARK.name, options={}, frame=frame)
