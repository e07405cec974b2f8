"""Stream of rows in columns, with a limit on how far ahead of the clock they may be."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from acquatop.catalog.catalog import Catalog

QUERY = """
SELECT ?s FROM NAMED WINDOW <urn:w> ON <urn:s> [RANGE 1d STEP 1d]
WHERE { WINDOW <urn:w> { ?s <urn:p> ?p } }
"""
NOW = 1_700_000_000.0
"""Time of day, in seconds."""


def catalog_of(folder: Path) -> Catalog:
    """Return a catalog with the stream; a record may be a minute ahead."""
    text = f"""
        [streams."urn:s"]
        connector = "parquet"
        arrivals = "distinct"
        ahead = "1m"
        options = {{ path = "{folder}/rows" }}
        [streams."urn:s".mapping]
        subject = "urn:e:{{id}}"
        time = "t"
        properties = {{ "urn:p" = {{ field = "p", datatype = "xsd:integer" }} }}
    """
    return Catalog.parse(text, file=folder / "catalog.toml", variables={})


def columns(times_ms: Sequence[int]) -> pa.RecordBatch:
    """Return rows with some times."""
    times = pa.array(times_ms, pa.int64())
    subjects = [f"e{at}" for at in range(len(times_ms))]
    return pa.record_batch({"t": times, "id": subjects, "p": times})
