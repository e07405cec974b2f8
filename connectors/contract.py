"""Interface of every format's decoder: rows of a source in, records in columns out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import pyarrow as pa

from connectors.mapping import Property


class RecordDecoder(Protocol):
    """Decoder from a source's rows to RDF: a record has one subject, a time and some properties.

    A decoder is small and can be pickled: it is made where a query is registered, and works in the
    executors.
    """

    @property
    def properties(self) -> Mapping[str, Property]:
        """The properties that records may have, by the predicates' IRIs."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of decoded batches.

        They are the time, the subject (an N-Triples IRI), one per predicate, the fault and the row.
        """

    def column(self, predicate: str) -> str:
        """Return the name of the column that holds a predicate's objects."""

    def records(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the records in a batch of a source's rows, in the rows' order.

        An unusable row becomes a row of nulls with the reason in the column ``bad``. Rows that
        belong to one record must be in one batch; the column ``row`` has the index of a record's
        first row.
        """
