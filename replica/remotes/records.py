"""Solutions from records, such as JSON objects: a star pattern is matched as if they were RDF."""

from __future__ import annotations

import itertools
import math
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from replica.remotes.values import XSD, IriTemplate, TermMaker, parsed, term_maker
from replica.store import Solution

KeyTemplate = IriTemplate
"""IRI template of a record: the name in braces is the path of the record's id."""

MOST_SOLUTIONS = 10_000
"""Most solutions of one record: lists multiply, and the remote chooses their lengths."""
NOT_ASKED_FOR = "not asked for"


@dataclass(frozen=True)
class Field:
    """Path of a predicate's objects in a record, and their datatype.

    A path's steps are separated by dots: ``public_metrics.followers_count``; a number is an index
    of a list. A list on the way, or at the end, stands for each of its elements. An empty path is
    the record itself. The datatype is one of XSD's as a full IRI, or ``iri``, or an IRI template
    with the value in braces, or a language such as ``@en``.
    """

    path: str
    datatype: str = XSD + "string"


@dataclass(frozen=True)
class MappedPattern:
    """Pattern whose solutions are records: its key's variable, and the fields of the others."""

    key: str
    variables: Mapping[str, Field]


@dataclass(frozen=True)
class RecordMapping:
    """Mapping from records to RDF: the subject, and the field of each predicate's objects.

    ``patterns`` are those of which a record is a solution as a whole, by their text. ``written`` is
    for records of text only, such as rows of CSV files: numbers and booleans are then parsed from
    text.
    """

    key: KeyTemplate
    properties: Mapping[str, Field]
    written: bool = False
    patterns: Mapping[str, MappedPattern] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for each in self.fields:
            term_maker(each.datatype)

    @property
    def fields(self) -> Sequence[Field]:
        """Fields of the properties and of the patterns."""
        several = (each.variables.values() for each in self.patterns.values())
        return [*self.properties.values(), *itertools.chain.from_iterable(several)]

    def as_written(self) -> RecordMapping:
        """Return the same mapping for records of text only."""
        return replace(self, written=True)


@dataclass(frozen=True)
class Star:
    """Star pattern to match: one subject, and predicates with variables or constants as objects.

    ``key`` is the subject's variable. ``columns`` maps each variable to its predicate's IRI.
    ``constants`` maps a predicate's IRI to the term that must be among its objects. Variables of
    ``fields`` are unbound if a record lacks them, but not all of them.
    """

    key: str
    columns: Mapping[str, str]
    constants: Mapping[str, str] = field(default_factory=dict)
    fields: Mapping[str, Field] = field(default_factory=dict)


@dataclass(frozen=True)
class Reading:
    """Result of reading a record: its key, its solutions, and the reason if there are none.

    A record with ``is_bad`` says nothing about its key. Without it, a record without solutions
    lacks a property.
    """

    key: str | None
    solutions: Sequence[Solution]
    fault: str | None = None
    is_bad: bool = False


@dataclass(frozen=True)
class _Column:
    path: str
    datatype: str
    make: TermMaker
    written: bool

    @classmethod
    def of(cls, about: Field, *, written: bool) -> _Column:
        """Return the column of a field."""
        return cls(about.path, about.datatype, term_maker(about.datatype), written)

    def is_in(self, record: object) -> bool:
        """Return True if a record has a value."""
        return next(values_at(record, self.path), None) is not None

    def terms(self, record: object) -> list[str]:
        """Return a record's distinct terms; raises :class:`_UnfitError` if it has none."""
        values = list(values_at(record, self.path))
        if not values:
            raise _UnfitError(f'no "{self.path}"')
        made = (self.make(parsed(each, self.datatype) if self.written else each) for each in values)
        terms = list(dict.fromkeys(term for term in made if term is not None))
        if not terms:
            raise _UnfitError(
                f'"{self.path}" is not {self.datatype.replace(XSD, "xsd:")}', is_bad=True
            )
        return terms


class _UnfitError(Exception):
    def __init__(self, reason: str, *, is_bad: bool = False) -> None:
        super().__init__(reason)
        self.is_bad = is_bad


class RecordReader:
    """Reader that matches a star pattern; counts records without a solution in ``rejected``.

    A record that lacks a property, or has it with another type, has no solution, just as a SPARQL
    server would not match it. A property with a list of values gives a solution for each; solutions
    are distinct. Each record is matched by itself. Raises ValueError if the mapping lacks a
    predicate of the pattern.

    >>> followers = {"http://example.org/followers": Field("metrics.followers", XSD + "integer")}
    >>> mapping = RecordMapping(KeyTemplate.parse("http://example.org/user/{id}"), followers)
    >>> reader = RecordReader(mapping, Star("user", {"f": "http://example.org/followers"}))
    >>> reader.read({"id": "42", "metrics": {"followers": 7}}).solutions
    [{'user': '<http://example.org/user/42>', 'f': '"7"^^<http://www.w3.org/2001/XMLSchema#integer>'}]
    >>> (
    ...     reader.solutions([({"id": 1}, None)], asked={"<http://example.org/user/1>"}),
    ...     dict(reader.rejected),
    ... )
    ([], {'no "metrics.followers"': 1})
    """

    def __init__(self, mapping: RecordMapping, star: Star) -> None:
        self.rejected: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._template = mapping.key
        self._key = star.key
        self._columns = {
            name: _column(mapping, predicate) for name, predicate in star.columns.items()
        }
        self._constants = [
            (_column(mapping, predicate), term) for predicate, term in star.constants.items()
        ]
        self._fields = {
            name: _Column.of(about, written=mapping.written) for name, about in star.fields.items()
        }

    def ids(self, keys: Iterable[str]) -> dict[str, str]:
        """Return the key of each id; keys that belong to no record are left out."""
        pairs = ((self._template.value(key), key) for key in keys)
        return {id_: key for id_, key in pairs if id_ is not None}

    def key_of(self, id_: object) -> str | None:
        """Return the key of an id, None if no record could have it."""
        return self._template.term(id_)

    def solutions(
        self, records: Iterable[tuple[object, str | None]], asked: Iterable[str] | None
    ) -> list[Solution]:
        """Return the distinct solutions of some records, each given with its key if known.

        Solutions for keys outside ``asked`` are left out; None allows all keys.
        """
        wanted = None if asked is None else set(asked)
        found: dict[tuple[str, ...], Solution] = {}
        rejected: Counter[str] = Counter()
        for record, owner in records:
            reading = self.read(record, owner)
            if wanted is not None and reading.key is not None and reading.key not in wanted:
                rejected[NOT_ASKED_FOR] += 1
                continue
            if reading.fault is not None:
                rejected[reading.fault] += 1
            found.update((tuple(solution.values()), solution) for solution in reading.solutions)
        self.reject(rejected)
        return list(found.values())

    def read(self, record: object, owner: str | None = None) -> Reading:
        """Return a record's content; ``owner`` is the key of a record without id, if known.

        Counts nothing.
        """
        if owner is None and not isinstance(record, dict):
            return Reading(None, (), "not an object", is_bad=True)
        key: str | None = None
        try:
            key = self._key_in(record, owner)
            return Reading(key, self._solutions(record, key))
        except _UnfitError as unfit:
            return Reading(key, (), str(unfit), unfit.is_bad)

    def reject(self, reasons: Mapping[str, int]) -> None:
        """Count records that gave no solution."""
        with self._lock:
            self.rejected.update(reasons)

    def _key_in(self, record: object, owner: str | None) -> str:
        values = list(values_at(record, self._template.path))
        if not values and owner is not None:
            return owner
        if len(values) != 1:
            raise _UnfitError(f'no "{self._template.path}"', is_bad=True)
        key = self._template.term(values[0])
        if key is None:
            raise _UnfitError(f'"{self._template.path}" does not fit into an IRI', is_bad=True)
        if owner is not None and key != owner:
            raise _UnfitError(NOT_ASKED_FOR, is_bad=True)
        return key

    def _solutions(self, record: object, key: str) -> list[Solution]:
        for column, wanted in self._constants:
            if wanted not in column.terms(record):
                raise _UnfitError(f'"{column.path}" is another')
        columns = dict(self._columns)
        columns.update((name, each) for name, each in self._fields.items() if each.is_in(record))
        if self._fields and not columns:
            raise _UnfitError("no value of a pattern")
        found = {name: column.terms(record) for name, column in columns.items()}
        if key not in found.get(self._key, [key]):
            raise _UnfitError(f'"{self._columns[self._key].path}" is another')
        terms = {self._key: [key]} | found | {self._key: [key]}
        if math.prod(map(len, terms.values())) > MOST_SOLUTIONS:
            raise _UnfitError("too many solutions", is_bad=True)
        return [dict(zip(terms, each, strict=True)) for each in itertools.product(*terms.values())]


def values_at(value: object, path: str) -> Iterator[object]:
    """Yield the values at a path of a record, each element of lists; nothing for null or no value.

    >>> (
    ...     list(values_at({"a": [{"b": 1}, {"b": [2, 3]}, {"b": None}]}, "a.b")),
    ...     list(values_at({"a": [5, 6]}, "a.1")),
    ... )
    ([1, 2, 3], [6])
    >>> list(values_at({"a.b": 1}, "a.b"))  # the columns of tables may have dots in their names
    [1]
    """
    if isinstance(value, dict):
        yield from _values_in(value, path)
    elif isinstance(value, list):
        yield from _values_among(value, path)
    elif not path and value is not None:
        yield value


def _values_in(record: Mapping[str, object], path: str) -> Iterator[object]:
    if not path:
        yield record
    elif path in record:
        yield from values_at(record[path], "")
    else:
        first, _, rest = path.partition(".")
        if rest and first in record:
            yield from values_at(record[first], rest)


def _values_among(values: Sequence[object], path: str) -> Iterator[object]:
    first, _, rest = path.partition(".")
    if first.isdecimal() and first.isascii():
        if len(first) < 10 and int(first) < len(values):
            yield from values_at(values[int(first)], rest)
        return
    for each in values:
        # A list in a list is no value, and deep nesting must not cause deep recursion.
        yield from values_at(each, path) if not isinstance(each, list) else (each,)


def _column(mapping: RecordMapping, predicate: str) -> _Column:
    if predicate not in mapping.properties:
        raise ValueError(f"the mapping has no property <{predicate}>")
    return _Column.of(mapping.properties[predicate], written=mapping.written)
