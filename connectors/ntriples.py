"""Decoder of N-Triples and N-Quads: neighbouring statements about one subject form a record."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from connectors.coded import coded
from connectors.instants import is_time
from connectors.line_groups import TOGETHER
from connectors.literals import objects_of, times_in, times_of
from connectors.mapping import (
    IRI,
    XSD_DOUBLE,
    Property,
    RecordColumns,
    Template,
    TermProperty,
)
from connectors.statements import Statements, parse

Numbers = npt.NDArray[np.int64]
_XSD = "http://www.w3.org/2001/XMLSchema#"


@dataclass(frozen=True)
class NTriplesMapping(RecordColumns):
    """Mapping from statements of N-Triples or N-Quads to records, with the source of their time.

    A record is a run of neighbouring statements about one subject, written in the same way in each;
    an empty line ends it, too. ``time`` is the predicate whose object is the record's time, as an
    xsd:dateTime(Stamp) or an integer number of milliseconds since the epoch. Or it is a template of
    the graphs' names, which contain the time; then a record's statements are also in one graph.

    A line that is not a statement makes its record bad. So does an object that does not have the
    property's datatype, and a second time. A second object of a property is a fault as well, unless
    ``several`` is set: then it has a row of its own, with the same time and subject.
    """

    time: str | Template
    properties: Mapping[str, Property] = field(default_factory=dict)
    several: bool = False

    @property
    def together(self) -> str:
        """The lines that belong together, as a value of a line source's option ``together``."""
        return "subject" if isinstance(self.time, str) else "subject and graph"

    def records(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the records in a batch of lines, in the column ``value``.

        All lines of a record must be in the batch.
        """
        with_graphs = isinstance(self.time, Template)
        statements = parse(batch.column("value"), TOGETHER[self.together], with_graphs=with_graphs)
        return records_of(self, statements)


class StatementMapping(Protocol):
    """Mapping from statements to records, with the source of their time."""

    @property
    def time(self) -> str | Template:
        """The predicate of the time, or the template of the graphs' names that contain it."""

    @property
    def properties(self) -> Mapping[str, Property]:
        """The properties taken from the statements, by their predicates."""

    @property
    def several(self) -> bool:
        """True if each further object of a property has a row of its own."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of decoded batches."""


def records_of(
    mapping: StatementMapping, statements: Statements, times: pa.Int64Array | None = None
) -> pa.RecordBatch:
    """Return the records of groups of statements; ``times`` are the groups' times, if known."""
    if not len(statements.subject):
        return pa.RecordBatch.from_pylist([], schema=mapping.schema)
    return _Assembly(mapping, statements, times).rows()


class _Assembly:
    """Assembler of the records of one batch, column by column."""

    def __init__(
        self, mapping: StatementMapping, statements: Statements, times: pa.Int64Array | None
    ) -> None:
        self._mapping = mapping
        self._statements = statements
        self._known_times = times
        self._group = statements.group
        self._count = int(self._group[-1]) + 1
        self._reasons: list[str] = []
        self._fault: Numbers = np.full(self._count, -1, np.int64)
        for reason in pc.unique(statements.fault.drop_null()).to_pylist():
            said = pc.fill_null(pc.equal(statements.fault, reason), False)
            self._note(self._group[np.flatnonzero(said.to_numpy(zero_copy_only=False))], reason)
        time = [mapping.time] if isinstance(mapping.time, str) else []
        self._predicates = list(dict.fromkeys((*mapping.properties, *time)))
        names = pa.array([f"<{each}>" for each in self._predicates], pa.string())
        self._codes = pc.fill_null(pc.index_in(statements.predicate, names), -1).to_numpy(
            zero_copy_only=False
        )

    def rows(self) -> pa.RecordBatch:
        """Return the records, one row each, and one more for each further object that is kept."""
        subjects, times = self._subjects(), self._times()
        objects = [self._objects(predicate) for predicate in self._mapping.properties]
        good = self._fault < 0
        sizes = np.ones(self._count, np.int64)
        for each in objects:
            np.maximum.at(sizes, each.record, each.number + 1)
        sizes[~good] = 1
        record = np.repeat(np.arange(self._count), sizes)
        first = np.cumsum(sizes) - sizes
        hidden = ~good[record]
        columns = [each.take(pa.array(record, mask=hidden)) for each in (times, subjects)]
        columns += [each.column(first, good, len(record)) for each in objects]
        reasons = pa.array(self._reasons, pa.string())
        bad = reasons.take(pa.array(self._fault[record], mask=~hidden))
        schema = self._mapping.schema
        columns += [bad, pa.array(self._rows()[record], pa.int32())]
        columns = [_as(column, field.type) for column, field in zip(columns, schema, strict=True)]
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    def _rows(self) -> Numbers:
        """Return the row of each record's first line."""
        first = np.diff(self._group, prepend=-1) > 0
        rows: Numbers = self._statements.row[first]
        return rows

    def _note(self, records: Numbers, reason: str) -> None:
        """Note a fault for records; the first fault of a record counts."""
        new = records[self._fault[records] < 0]
        if len(new):
            self._fault[new] = len(self._reasons)
            self._reasons.append(reason)

    def _subjects(self) -> pa.StringArray:
        subjects = self._of_each(self._statements.subject)
        is_blank = pc.fill_null(pc.starts_with(subjects, "_:"), False)
        self._note(
            np.flatnonzero(is_blank.to_numpy(zero_copy_only=False)), "the subject is a blank node"
        )
        return subjects

    def _of_each(self, column: pa.StringArray) -> pa.StringArray:
        """Return a column's value in each record's first valid statement."""
        good = np.flatnonzero(pc.is_null(self._statements.fault).to_numpy(zero_copy_only=False))
        of = self._group[good]
        is_first = np.concatenate([[True], of[1:] != of[:-1]])[: len(of)]
        places = np.full(self._count, -1, np.int64)
        places[of[is_first]] = good[is_first]
        return column.take(pa.array(places, mask=places < 0))

    def _times(self) -> pa.Int64Array:
        time = self._mapping.time
        if self._known_times is not None:
            place, times = "its document", self._known_times
        elif isinstance(time, Template):
            place, times = (
                "the graph's name",
                _times_in_graphs(self._of_each(self._statements.graph), time),
            )
        else:
            place, said = f"the object of <{time}>", self._said(time, times_of)
            self._note(said.record[_is_null(said.values)], f"{place} is not a time")
            self._note(
                said.record[said.number > 0],
                f"more than one time in <{time}>: an empty line ends a record",
            )
            place = f"<{time}>"
            times = said.column(
                np.arange(self._count), np.ones(self._count, bool) & (self._fault < 0), self._count
            )
        out = pc.invert(pc.fill_null(is_time(times), True)).to_numpy(zero_copy_only=False)
        self._note(np.flatnonzero(out), f"the time in {place} is not in the years 1 to 9999")
        self._note(np.flatnonzero(_is_null(times)), f"no time in {place}")
        return times

    def _objects(self, predicate: str) -> _Said:
        about = self._mapping.properties[predicate]
        said = self._said(predicate, lambda terms: objects_of(terms, about))
        self._note(
            said.record[_is_null(said.values)],
            f"the object of <{predicate}> is not {_words(about)}",
        )
        if not self._mapping.several:
            self._note(said.record[said.number > 0], f"more than one object of <{predicate}>")
        return said

    def _said(self, predicate: str, read: Callable[[pa.StringArray], pa.Array]) -> _Said:
        """Return the distinct values of the statements with a predicate, per record."""
        places = np.flatnonzero(self._codes == self._predicates.index(predicate))
        record = self._group[places]
        values = read(self._statements.object.take(pa.array(places)))
        again = record[1:][record[1:] == record[:-1]]
        if not len(again):
            return _Said(record, np.zeros(len(record), np.int64), values)
        kept = np.delete(
            np.arange(len(record)),
            _repeated(record, values, np.flatnonzero(np.isin(record, again))),
        )
        record = record[kept]
        return _Said(
            record,
            np.arange(len(kept)) - np.searchsorted(record, record),
            values.take(pa.array(kept)),
        )


def _repeated(record: Numbers, values: pa.Array, places: Numbers) -> Numbers:
    """Return those of the given places whose value its record has had before."""
    codes = pc.fill_null(values.take(pa.array(places)).dictionary_encode().indices, -1).to_numpy(
        zero_copy_only=False
    )
    _, first = np.unique(record[places] * (len(codes) + 1) + codes + 1, return_index=True)
    return np.delete(places, first)


@dataclass(frozen=True)
class _Said:
    """The objects of one predicate.

    Each has its record, in ascending order, and its number within the record.
    """

    record: Numbers
    number: Numbers
    values: pa.Array

    def column(self, first: Numbers, good: npt.NDArray[np.bool_], length: int) -> pa.Array:
        """Return the objects as a column of a length, for good records, from their first row on."""
        places = np.full(length, -1, np.int64)
        kept = np.flatnonzero(good[self.record])
        places[first[self.record[kept]] + self.number[kept]] = kept
        return self.values.take(pa.array(places, mask=places < 0))


def _times_in_graphs(graphs: pa.StringArray, template: Template) -> pa.Int64Array:
    before, after = f"<{template.prefix}", f"{template.suffix}>"
    fit = pc.and_(pc.starts_with(graphs, before), pc.ends_with(graphs, after))
    texts = pc.utf8_slice_codeunits(pc.if_else(fit, graphs, None), len(before), -len(after))
    return times_in(texts)


def _is_null(values: pa.Array) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = pc.is_null(values).to_numpy(zero_copy_only=False)
    return found


def _words(about: Property) -> str:
    if isinstance(about, TermProperty):
        return about.objects.words
    return _NAMES.get(about.datatype, about.datatype.replace(_XSD, "xsd:"))


_NAMES = {
    _XSD + "integer": "a whole number",
    XSD_DOUBLE: "a number",
    _XSD + "string": "a string",
    IRI: "an IRI",
}


def _as(column: pa.Array, type_: pa.DataType) -> pa.Array:
    """Return a column, coded if that is the requested type."""
    return coded(column) if pa.types.is_dictionary(type_) else column
