"""Records that match a pattern, and the columns of their solutions, made on demand."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acquatop.ingest.composite_keys import joined_keys, with_gaps
from acquatop.ingest.gaps import marks_of, without_gaps
from acquatop.ingest.identity_hash import Hashes, IdentityHash
from acquatop.ingest.scoring import BoolArray
from acquatop.ingest.stream_filter import numbers_of
from acquatop.ingest.unscored import objects
from acquatop.topk.contract import AnyArray, FloatArray, IntArray
from connectors.coded import distinct, plain
from connectors.mapping import TIME
from connectors.subjects import subjects_of

if TYPE_CHECKING:
    from acquatop.ingest.match import Matcher

T = TypeVar("T")


class Found:
    """Records that match; if only the latest arrival counts, also the others, marked ``gone``.

    Columns are made on first use and kept, because several queries may need them.
    """

    def __init__(self, matcher: Matcher, records: pa.RecordBatch, gone: BoolArray) -> None:
        self.gone = gone
        self._matcher = matcher
        self._records = records
        self._made: dict[Hashable, Any] = {}

    def made(self, name: Hashable, make: Callable[[], T]) -> T:
        """Return the value cached under a name; make it the first time."""
        if name not in self._made:
            self._made[name] = make()
        made: T = self._made[name]
        return made

    def __len__(self) -> int:
        return len(self._records)

    @cached_property
    def times(self) -> IntArray:
        """Event time of each record."""
        return np.asarray(self._records.column(TIME).to_numpy(), dtype=np.int64)

    @cached_property
    def subjects(self) -> pa.StringArray:
        """Subject of each record."""
        return plain(subjects_of(self._records))

    @property
    def identities(self) -> pa.StringArray:
        """Text by which each solution is known: its subject, or all its terms."""
        if self._matcher.identified_by_subject:
            return self.subjects
        terms = (pc.fill_null(self.terms(name), "") for name in self._matcher.identity())
        return pc.binary_join_element_wise(*terms, " ")

    def identities_at(self, at: IntArray) -> AnyArray:
        """Return the identities at some positions; only these are made."""
        return objects(self.take(at).identities.to_pylist())

    @property
    def columns(self) -> pa.RecordBatch:
        """Records' columns from which the solutions are made."""
        return self._records.select(list(self._matcher.columns))

    @cached_property
    def keys(self) -> pa.DictionaryArray:
        """Join or grouping key of each record, as terms: each distinct term is made once."""
        names = self._matcher.keys
        if not names and self._matcher.aggregates:
            return pa.array([""] * len(self), pa.string()).dictionary_encode()
        if not names:
            return distinct(subjects_of(self._records))
        columns = [self._coded_terms(name) for name in names]
        return with_gaps(columns[0]) if len(columns) == 1 else joined_keys(columns)

    @property
    def key_terms(self) -> pa.Array:
        """Join or grouping key of each record."""
        names = self._matcher.keys
        if len(names) > 1 or not names:
            return plain(self.keys)
        return pc.fill_null(self.terms(names[0]).cast(pa.string()), "")

    def key_hashes(self, hashes: IdentityHash) -> Hashes:
        """Return the hash of each text in the keys' dictionary."""
        return self.made(("hashes", hashes.seed), lambda: hashes.of(self.keys.dictionary))

    def take(self, at: IntArray) -> Found:
        """Return the records at some positions."""
        return Found(self._matcher, self._records.take(pa.array(at)), self.gone[at])

    def terms(self, variable: str) -> pa.Array:
        """Return the values of a variable as terms; null or ``""`` if it is unbound."""
        derived = self._matcher.derived.get(variable)
        if derived is None:
            return self._matcher.terms(variable, self._records)
        return self.made(
            ("terms", variable), lambda: derived.terms(len(self), self._values, self.terms)
        )

    def _coded_terms(self, variable: str) -> pa.DictionaryArray:
        if variable in self._matcher.derived:
            return distinct(self.terms(variable))
        return self._matcher.coded_terms(variable, self._records)

    def _values(self, variable: str) -> pa.Array:
        return self._matcher.values(variable, self._records)

    def numbers(self, variable: str) -> FloatArray:
        """Return the values of a variable as numbers; NaN if a value is not a number."""
        return self.made(("numbers", variable), lambda: self._numbers(variable))

    def addends(self, variable: str) -> AnyArray:
        """Return the values of a variable that aggregates add up: integers with all their digits.

        Doubles are as :meth:`numbers` returns them. A missing integer is zero: a record without one
        does not match, or what marks its gaps says so (:mod:`acquatop.ingest.gaps`).
        """
        return self.made(("addends", variable), lambda: self._addends(variable))

    def _addends(self, variable: str) -> AnyArray:
        of = self._matcher.gaps.get(variable)
        if of is not None:
            return marks_of(self._bound(of))
        values = self._bound(variable)
        if pa.types.is_integer(values.type):
            known = pc.fill_null(values, 0) if values.null_count else values
            return np.asarray(known.to_numpy(), dtype=np.int64)
        if variable in self._matcher.gaps.values():
            return without_gaps(values)
        return self.numbers(variable)

    def _bound(self, variable: str) -> pa.Array:
        """Return the numbers of a variable, or its terms if these need not be numbers."""
        derived = self._matcher.derived.get(variable)
        if derived is not None and derived.kind is not None:
            return self.made(
                ("derived", variable), lambda: derived.numbers(len(self), self._values, self.terms)
            )
        if self._matcher.number_kind(variable) is not None:
            return self._values(variable)
        terms = plain(self.terms(variable))
        return pc.if_else(pc.equal(terms, ""), None, terms)

    def _numbers(self, variable: str) -> FloatArray:
        derived = self._matcher.derived.get(variable)
        if derived is not None:
            numbers = derived.numbers(len(self), self._values, self.terms)
            return np.asarray(numbers.to_numpy(zero_copy_only=False), dtype=np.float64)
        if self._matcher.is_subject(variable):
            return np.full(len(self), np.nan)
        numbers = numbers_of(self._matcher.values(variable, self._records))
        return np.asarray(numbers.to_numpy(zero_copy_only=False), dtype=np.float64)
