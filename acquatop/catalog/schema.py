"""JSON Schema of catalogs, made by the very code that reads and checks them.

That code reads a stand-in for a catalog's tables, which notes what it asks for: keys, their types,
the names that it knows, and what it requires. It is run once for each name that a key may have, as
other keys may depend on that.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from acquatop.catalog.catalog import read_catalog
from acquatop.catalog.section import Section
from acquatop.errors import UserError
from acquatop.plugins import RANKERS
from replica.http.auth import Secret

_ANY = "urn:any:name"
"""Name that stands for all those that a catalog's author makes up."""
_VARIABLE = r"\$\{\w+\}"
_SCALAR = {"type": ["string", "number", "boolean"]}
_TEXT = {"type": "string"}

Path = tuple[str, ...]
Schema = dict[str, Any]
Assignment = Mapping[Path, str]
"""Names chosen for some keys of one reading."""


def catalog_schema() -> Schema:
    """Return the schema of the catalogs that this installation reads, with its extensions."""
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Catalog of AcquaTop",
        **_schema(_readings(), ()),
    }


@dataclass
class _Node:
    """Questions about one key: the types of its value, and its own keys if it is a table."""

    types: dict[str, Schema] = field(default_factory=dict)
    keys: dict[str, _Node] = field(default_factory=dict)
    required: set[str] = field(default_factory=set)
    tested: set[str] = field(default_factory=set)
    """Keys of which it was asked whether they are there: what is read of them then may lack."""
    choices: dict[str, tuple[Sequence[str], str | None]] = field(default_factory=dict)
    """The names that keys may have, and which one a missing key has."""
    is_table: bool = False

    def key(self, name: str) -> _Node:
        """Return the node of a key."""
        return self.keys.setdefault(name, _Node())

    def takes(self, schema: Schema) -> None:
        """Note a type."""
        self.types[json.dumps(schema, sort_keys=True)] = schema


class _Asked(Section):
    """Table that has all keys, or none, and notes for what it is asked."""

    def __init__(self, node: _Node, path: Path, assignment: Assignment, is_full: bool) -> None:
        node.is_table = True
        self._node = node
        self._path = path
        self._assignment = assignment
        self._is_full = is_full

    def __iter__(self) -> Iterator[str]:
        yield _ANY

    def __contains__(self, key: str) -> bool:
        self._node.tested.add(key)
        return self._is_full

    def problem(self, message: str, key: str | None = None, hint: str | None = None) -> None:
        """Do nothing: that values are odd is no wonder."""

    def allow(self, *known: str) -> None:
        """Note keys."""
        for key in known:
            self._node.key(key)

    def need(self, key: str, message: str) -> None:
        """Note a key that must be there."""
        self._node.required.add(key)

    def section(self, key: str, *, required: bool = False) -> Section:
        """Return another table of this kind."""
        if required:
            self._requires(key)
        return _Asked(self._node.key(key), (*self._path, key), self._assignment, self._is_full)

    def tables(self) -> Iterator[tuple[str, Section]]:
        """Iterate over one table."""
        yield _ANY, self.section(_ANY)

    def path(self, key: str, *, default: str | None = None) -> str:
        """Note a text."""
        return self.text(key, default=default)

    def place(self, key: str, *, default: str) -> str:
        """Note a text."""
        return self.text(key, default=default)

    def text(self, key: str, *, default: str | None = None) -> str:
        """Note a text."""
        self._takes(key, _TEXT, default is None)
        return default or ""

    def written(self, key: str) -> str:
        """Note a text."""
        self._takes(key, _TEXT, required=False)
        return ""

    def values_in(self, key: str) -> list[str]:
        """Return nothing."""
        return []

    def secret(self, key: str) -> Secret:
        """Note the name of an environment variable."""
        self._takes(key, {"type": "string", "pattern": f"^{_VARIABLE}$"}, required=True)
        return Secret("")

    def texts(self, key: str) -> list[str]:
        """Note a list of texts."""
        self._takes(key, {"type": "array", "items": _TEXT}, required=False)
        return []

    def numbers(self, key: str) -> list[float]:
        """Note a number, or a list of such."""
        self._takes(key, {"type": "number"}, required=True)
        self._takes(key, {"type": "array", "items": {"type": "number"}, "minItems": 1})
        return [0]

    def whole(self, key: str, **limits: Any) -> Any:
        """Note a whole number."""
        names = {"least": "minimum", "most": "maximum"}
        bounds = {
            names[name]: limit
            for name, limit in limits.items()
            if name in names and limit is not None
        }
        self._takes(key, {"type": "integer", **bounds}, "default" not in limits)
        return limits.get("default", 0)

    def is_list(self, key: str) -> bool:
        """Say that it is one in a full table."""
        return self._is_full

    def is_table(self, key: str) -> bool:
        """Return False."""
        return False

    def value(self, key: str) -> str | int | float:
        """Note a single value."""
        self._takes(key, _SCALAR)
        return ""

    def flag(self, key: str, *, default: bool) -> bool:
        """Note a truth value."""
        self._takes(key, {"type": "boolean"})
        return default

    def choice(self, key: str, known: Sequence[str], *, default: str | None = None) -> str:
        """Note some names; return the one that is assigned, or the default."""
        names = [{"enum": list(known)}, {"type": "string", "pattern": _VARIABLE}]
        self._takes(key, {"anyOf": names}, default is None)
        self._node.choices[key] = known, default
        return self._assignment.get((*self._path, key), default or known[0])

    def duration_ms(self, key: str, *, default: int, zero: bool = True) -> int:
        """Note a text."""
        self._takes(key, _TEXT)
        return default

    def _takes(self, key: str, schema: Schema, required: bool = False) -> None:
        self._node.key(key).takes(schema)
        if required:
            self._requires(key)

    def _requires(self, key: str) -> None:
        if not (self._is_full and key in self._node.tested):
            self._node.required.add(key)


_Reading = tuple[Assignment, _Node]


def _readings() -> list[_Reading]:
    """Return what was asked with each name that a key may have, of full and of empty tables."""
    found: list[_Reading] = []
    waiting: list[Assignment] = [{}]
    seen: set[Path] = set()
    for assignment in waiting:
        for is_full in (True, False):
            node = _Node()
            try:
                read_catalog(_Asked(node, (), assignment, is_full), RANKERS)
            except UserError:
                continue  # an extension that cannot be loaded
            found.append((assignment, node))
            known = dict(_choices(node, ()))
            new = known.keys() - seen
            waiting += [{**assignment, path: name} for path in sorted(new) for name in known[path]]
            seen |= new
    return found


def _choices(node: _Node, path: Path) -> Iterator[tuple[Path, Sequence[str]]]:
    for key, (known, _) in node.choices.items():
        yield (*path, key), known
    for key, each in node.keys.items():
        yield from _choices(each, (*path, key))


def _schema(readings: Sequence[_Reading], path: Path) -> Schema:
    """Return the schema of a value that some readings have asked for."""
    types = {name: each for _, node in readings for name, each in node.types.items()}
    found = [types[name] for name in sorted(types)]
    if any(node.is_table for _, node in readings):
        tables = [each for each in readings if each[1].is_table]
        found.append(_table(tables, path))
    return found[0] if len(found) == 1 else {"anyOf": found} if found else {}


def _table(readings: Sequence[_Reading], path: Path) -> Schema:
    whole = _plain_table(readings, path)
    defaults: dict[str, set[str | None]] = {}
    for _, node in readings:
        for key, (_, default) in node.choices.items():
            defaults.setdefault(key, set()).add(default)
    conditions = [
        condition
        for key, (default, *others) in sorted((key, [*each]) for key, each in defaults.items())
        for condition in _conditions(readings, path, key, None if others else default, whole)
    ]
    return {**whole, "allOf": conditions} if conditions else whole


def _plain_table(readings: Sequence[_Reading], path: Path) -> Schema:
    keys = sorted({key for _, node in readings for key in node.keys})
    properties = {key: _schema(_of_key(readings, key), (*path, key)) for key in keys}
    required = set.intersection(*(node.required for _, node in readings))
    more = properties.pop(_ANY, False)
    table: Schema = {"type": "object", "properties": properties, "additionalProperties": more}
    required.discard(_ANY)
    return {**table, "required": sorted(required)} if required else table


def _of_key(readings: Sequence[_Reading], key: str) -> list[_Reading]:
    return [(names, node.keys[key]) for names, node in readings if key in node.keys]


def _conditions(
    readings: Sequence[_Reading], path: Path, key: str, default: str | None, whole: Schema
) -> Iterator[Schema]:
    """Yield what holds besides if a key has a certain name: that which its names differ in."""
    place = (*path, key)
    chosen = [names for names, _ in readings if place in names]
    if not chosen:
        return
    # A key may be known only where others have certain names.
    around = {each: name for each, name in chosen[0].items() if each != place}
    beside = {each[-1]: name for each, name in around.items() if each[:-1] == path}
    if len(beside) < len(around) and default is not None:
        return
    tables = {
        name: _plain_table([each for each in readings if each[0] == names], path)
        for name, names in ((names[place], names) for names in chosen)
        if names == {**around, place: name}
    }
    for name, its in tables.items():
        if then := _differences(its, tables.values(), whole, key):
            test: Schema = {
                "properties": {
                    each: {"const": said} for each, said in {**beside, key: name}.items()
                }
            }
            must = sorted({*beside, *({key} if name != default else ())})
            yield {"if": {**test, "required": must} if must else test, "then": then}


def _differences(its: Schema, tables: Collection[Schema], whole: Schema, key: str) -> Schema:
    """Return the part of a table's schema that not all of some tables have.

    What depends on names within a key is said there.
    """
    found: dict[str, Any] = {}
    is_open = any(each["additionalProperties"] for each in tables)
    for name, schema in whole["properties"].items():
        its_own = its["properties"].get(name, False)
        differs = any(each["properties"].get(name, False) != its_own for each in tables)
        if name == key or not differs or (is_open and its_own is False):
            continue
        if its_own is False or (its_own and "allOf" not in schema):
            found[name] = its_own
    common = set.intersection(*(set(each.get("required", ())) for each in tables))
    required = sorted(set(its.get("required", ())) - common)
    return {
        **({"properties": found} if found else {}),
        **({"required": required} if required else {}),
    }
