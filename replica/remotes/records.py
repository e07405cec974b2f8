"""From a record, such as a JSON object, to solutions: what a star pattern would find if the record were RDF."""

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
"""The IRI of a record: the name in its braces is the path of the record's id."""

MOST_SOLUTIONS = 10_000
"""How many solutions one record may have: lists multiply, and a remote chooses how long they are."""
NOT_ASKED_FOR = "not asked for"


@dataclass(frozen=True)
class Field:
    """Where a record holds a predicate's objects, and their datatype.

    A path's steps are separated by dots: ``public_metrics.followers_count``; a number is a place in a list. A list
    on the way, or at the end, stands for each of its elements. An empty path is the record itself. The datatype is
    ``xsd:integer``, ``double``, ``decimal``, ``string``, ``boolean`` or ``dateTime`` as a whole IRI, or ``iri``, or a
    template of IRIs, in which the value takes the place of the braces.
    """

    path: str
    datatype: str = XSD + "string"


@dataclass(frozen=True)
class RecordMapping:
    """How a record becomes RDF: its subject, and for each predicate's IRI the field that holds the objects.

    ``written`` is for records of nothing but text, as those of CSV files: numbers and truth values are then
    read from what writes them.
    """

    key: KeyTemplate
    properties: Mapping[str, Field]
    written: bool = False

    def __post_init__(self) -> None:
        for each in self.properties.values():
            term_maker(each.datatype)

    def as_written(self) -> RecordMapping:
        """Return the same mapping for records of nothing but text."""
        return replace(self, written=True)


@dataclass(frozen=True)
class Star:
    """The pattern that is asked for: one subject, and predicates whose objects are variables or constants.

    ``key`` is the subject's variable; ``columns`` has a predicate's IRI for each variable; ``constants`` has for a
    predicate's IRI the term that must be among its objects.
    """

    key: str
    columns: Mapping[str, str]
    constants: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Reading:
    """What a record says: its key, its solutions, and why there are none of either.

    A record that ``is_bad`` says nothing of its key; one that is not has no solutions as it lacks something.
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

    def terms(self, record: object) -> list[str]:
        """Return a record's distinct terms; :class:`_UnfitError` if it has none."""
        values = list(values_at(record, self.path))
        if not values:
            raise _UnfitError(f'no "{self.path}"')
        made = (self.make(parsed(each, self.datatype) if self.written else each) for each in values)
        terms = list(dict.fromkeys(term for term in made if term is not None))
        if not terms:
            raise _UnfitError(f'"{self.path}" is not {self.datatype.replace(XSD, "xsd:")}', is_bad=True)
        return terms


class _UnfitError(Exception):
    def __init__(self, reason: str, *, is_bad: bool = False) -> None:
        super().__init__(reason)
        self.is_bad = is_bad


class RecordReader:
    """Reads what a star pattern asks of records; counts in ``rejected`` why records gave no solution.

    A record that lacks a property, or has one of another type, gives none, as a SPARQL server would not match it
    either. A property with a list of values gives a solution for each; solutions are distinct. Each record is
    matched by itself. ValueError if the pattern has a predicate that the mapping lacks.

    >>> followers = {"http://example.org/followers": Field("metrics.followers", XSD + "integer")}
    >>> mapping = RecordMapping(KeyTemplate.parse("http://example.org/user/{id}"), followers)
    >>> reader = RecordReader(mapping, Star("user", {"f": "http://example.org/followers"}))
    >>> reader.read({"id": "42", "metrics": {"followers": 7}}).solutions
    [{'user': '<http://example.org/user/42>', 'f': '"7"^^<http://www.w3.org/2001/XMLSchema#integer>'}]
    >>> reader.solutions([({"id": 1}, None)], asked={"<http://example.org/user/1>"}), dict(reader.rejected)
    ([], {'no "metrics.followers"': 1})
    """

    def __init__(self, mapping: RecordMapping, star: Star) -> None:
        self.rejected: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._template = mapping.key
        self._key = star.key
        self._columns = {name: _column(mapping, predicate) for name, predicate in star.columns.items()}
        self._constants = [(_column(mapping, predicate), term) for predicate, term in star.constants.items()]

    def ids(self, keys: Iterable[str]) -> dict[str, str]:
        """Return which key each id stands for; keys that are no record's are left out."""
        pairs = ((self._template.value(key), key) for key in keys)
        return {id_: key for id_, key in pairs if id_ is not None}

    def key_of(self, id_: object) -> str | None:
        """Return the key of an id, None where no record could have it."""
        return self._template.term(id_)

    def id_in(self, record: object) -> str | None:
        """Return the id that a record has, in the one spelling that :meth:`ids` gives; None for a record without."""
        found = list(values_at(record, self._template.path))
        key = self._template.term(found[0]) if len(found) == 1 else None
        return None if key is None else self._template.value(key)

    def solutions(self, records: Iterable[tuple[object, str | None]], asked: Iterable[str] | None) -> list[Solution]:
        """Return the distinct solutions of some records, each with the key it is known to be of, if it is.

        Those of other keys than were asked for are left out; None asks for all.
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
        """Return what a record says; one without an id is of its ``owner``, if that is known. Counts nothing."""
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
        found = {name: column.terms(record) for name, column in self._columns.items()}
        if key not in found.get(self._key, [key]):
            raise _UnfitError(f'"{self._columns[self._key].path}" is another')
        terms = {self._key: [key]} | found | {self._key: [key]}
        if math.prod(map(len, terms.values())) > MOST_SOLUTIONS:
            raise _UnfitError("too many solutions", is_bad=True)
        return [dict(zip(terms, each, strict=True)) for each in itertools.product(*terms.values())]


def values_at(value: object, path: str) -> Iterator[object]:
    """Yield what a record holds at a path, each element of lists; nothing where there is nothing, or null.

    >>> list(values_at({"a": [{"b": 1}, {"b": [2, 3]}, {"b": None}]}, "a.b")), list(values_at({"a": [5, 6]}, "a.1"))
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
        # A list in a list is no value, and what nests without end must not be followed without end.
        yield from values_at(each, path) if not isinstance(each, list) else (each,)


def _column(mapping: RecordMapping, predicate: str) -> _Column:
    if predicate not in mapping.properties:
        raise ValueError(f"the mapping has no property <{predicate}>")
    found = mapping.properties[predicate]
    return _Column(found.path, found.datatype, term_maker(found.datatype), mapping.written)
