"""Reader of one table of a catalog: returns typed values and collects all problems."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, overload

from acquatop.errors import UserError
from connectors.object_store.address import StoreAddress, is_address
from replica.http.auth import Secret
from rspql.diagnostics import nearest
from rspql.durations import milliseconds

Keys = tuple[str, ...]
T = TypeVar("T")


_LONGEST_MS = 10 * 366 * 86_400_000


class CatalogError(UserError):
    """Error of a catalog that cannot be used; the message holds a line per problem."""


class Document:
    """Text of a catalog, the values of ``${NAME}`` in it, and the problems found so far."""

    def __init__(self, file: Path, text: str, variables: Mapping[str, str]) -> None:
        self.file = file
        self._lines = text.splitlines()
        self._variables = variables
        self._problems: list[str] = []
        self._unset: set[Keys] = set()
        """Paths of texts that lack a variable: what else is wrong with them follows from that."""

    def problem(self, path: Keys, message: str, hint: str | None = None) -> None:
        """Note a problem at a path of keys, unless its text lacks a variable."""
        if path not in self._unset:
            self._note(path, message, hint)

    def _note(self, path: Keys, message: str, hint: str | None = None) -> None:
        line = self._line_of(path)
        place = f"{self.file}:{line}" if line else str(self.file)
        where = f" in [{'.'.join(_written(key) for key in path)}]" if path else ""
        self._problems.append(f"{place}: {message}{where}" + (f"\n  hint: {hint}" if hint else ""))

    def raise_problems(self) -> None:
        """Raise :class:`CatalogError` if anything was noted."""
        if self._problems:
            raise CatalogError("\n".join(dict.fromkeys(self._problems)))

    def expand(self, path: Keys, text: str) -> str:
        """Return a text with each ``${NAME}`` replaced by its value."""

        def value(match: re.Match[str]) -> str:
            if match[1] not in self._variables:
                self._unset.add(path)
                self._note(path, f"the environment variable {match[1]} is not set")
            return self._variables.get(match[1], "")

        return re.sub(r"\$\{(\w+)\}", value, text)

    def _line_of(self, path: Keys) -> int | None:
        """Return the line of the longest written part of a path, by table headers and keys."""
        best: int | None = None
        best_length, table = 0, Keys()
        for number, line in enumerate(self._lines, start=1):
            header = line.strip().startswith("[")
            keys = _keys_of(line)
            if header and keys:
                table = keys
            full = table if header else (*table, *keys)
            if keys and full == path[: len(full)] and len(full) > best_length:
                best, best_length = number, len(full)
        return best


class Section:
    """Table of a catalog. Reading a wrong value notes the problem and returns a stand-in."""

    def __init__(self, document: Document, data: Mapping[str, Any], path: Keys) -> None:
        self._document = document
        self._data = data
        self._path = path

    def __iter__(self) -> Iterator[str]:
        """Iterate over the table's keys as written."""
        return iter(self._data)

    def problem(self, message: str, key: str | None = None, hint: str | None = None) -> None:
        """Note a problem with the table or with one of its keys."""
        self._document.problem(self._path if key is None else (*self._path, key), message, hint)

    def allow(self, *known: str) -> None:
        """Note every unknown key, with the nearest known one."""
        for key in self._data:
            if key not in known:
                near = nearest(key, known)
                hint = f'did you mean "{near}"?' if near else f"known are {', '.join(known)}"
                self.problem(f'unknown key "{key}"', key, hint)

    def need(self, key: str, message: str) -> None:
        """Note a problem with the table if it lacks a key."""
        if key not in self:
            self.problem(message)

    def section(self, key: str, *, required: bool = False) -> Section:
        """Return a table within this one; an empty one if there is none."""
        value = self._data.get(key)
        if value is None and required:
            self.problem(f'the table "{key}" is missing')
        if value is not None and not isinstance(value, dict):
            self.problem(f'"{key}" must be a table', key)
        return Section(self._document, value if isinstance(value, dict) else {}, (*self._path, key))

    def tables(self) -> Iterator[tuple[str, Section]]:
        """Iterate over the tables within this one, with their names."""
        for key in self._data:
            yield key, self.section(key)

    def __contains__(self, key: str) -> bool:
        return key in self._data

    def path(self, key: str, *, default: str | None = None) -> str:
        """Return a path; a relative one starts from the catalog's folder."""
        text = self.text(key, default=default)
        if "\0" in text:
            self.problem(f'"{key}" cannot be a path', key)
            return ""
        if is_address(text):
            hint = "mount it, and name the folder"
            self.problem(f'"{key}" is a file or a folder, and cannot be {text}', key, hint)
            return ""
        return str(self._document.file.parent.absolute() / text)

    def place(self, key: str, *, default: str) -> str:
        """Return a path, or an address in an object store."""
        text = self.text(key, default=default)
        if not is_address(text):
            return self.path(key, default=default)
        try:
            StoreAddress.parse(text)
        except ValueError as error:
            self.problem(f'"{key}" cannot be {text}: {error}', key)
        return text

    def text(self, key: str, *, default: str | None = None) -> str:
        """Return a text."""
        return self._expanded(key, self._typed(key, str, "a text", default, ""))

    def written(self, key: str) -> str:
        """Return a text as written: with the name of an environment variable, not its value."""
        return self._typed(key, str, "a text", "", "")

    def values_in(self, key: str) -> list[str]:
        """Return the values of the environment variables that a text names."""
        return [
            self._expanded(key, "${" + name + "}")
            for name in re.findall(r"\$\{(\w+)\}", self.written(key))
        ]

    def secret(self, key: str) -> Secret:
        """Return a text that only the environment may hold: it must be written ``${NAME}``."""
        if key in self and not re.fullmatch(r"\$\{\w+\}", self.written(key)):
            hint = f'write {key} = "${{NAME}}", where NAME is an environment variable that holds it'
            self.problem(f'"{key}" must not stand in the catalog itself', key, hint)
            return Secret("")
        return Secret(self.text(key))

    def texts(self, key: str) -> list[str]:
        """Return a list of texts; an empty one if there is none."""
        values = self._typed(key, list, "a list of texts", [], [])
        if not all(isinstance(each, str) for each in values):
            self.problem(f'"{key}" must be a list of texts', key)
            return []
        return [self._expanded(key, each) for each in values]

    def numbers(self, key: str) -> list[float]:
        """Return a list of numbers, or a single number as a list; it must not be empty."""
        value = self._data.get(key)
        values: list[Any] = value if isinstance(value, list) else [value]
        if not values or not all(
            isinstance(each, int | float) and not isinstance(each, bool) for each in values
        ):
            self.problem(f'"{key}" must be a number, or a list of numbers', key)
            return [0]
        return values

    @overload
    def whole(
        self, key: str, *, default: None, least: int | None = None, most: int | None = None
    ) -> int | None: ...
    @overload
    def whole(
        self, key: str, *, default: int = ..., least: int | None = None, most: int | None = None
    ) -> int: ...
    def whole(
        self, key: str, *, default: Any = ..., least: int | None = None, most: int | None = None
    ) -> int | None:
        """Return a whole number; a default of None makes it optional."""
        if default is None and key not in self._data:
            return None
        value: int = self._typed(key, int, "a whole number", None if default is ... else default, 0)
        if least is not None and value < least:
            self.problem(f'"{key}" must be at least {least}', key)
        if most is not None and value > most:
            self.problem(f'"{key}" must be at most {most}', key)
        return value

    def is_list(self, key: str) -> bool:
        """Return True if a value is a list."""
        return isinstance(self._data.get(key), list)

    def is_table(self, key: str) -> bool:
        """Return True if a key has a table for its value."""
        return isinstance(self._data.get(key), dict)

    def scalar(self, key: str) -> str:
        """Return a text, a number or a truth value as a text."""
        value = self.value(key)
        return str(value).lower() if isinstance(value, bool) else str(value)

    def value(self, key: str) -> str | int | float:
        """Return a text, a number or a truth value as it is."""
        value = self._data[key]
        return value if isinstance(value, bool | int | float) else self.text(key)

    def flag(self, key: str, *, default: bool) -> bool:
        """Return true or false."""
        return self._typed(key, bool, "true or false", default, default)

    def choice(self, key: str, known: Sequence[str], *, default: str | None = None) -> str:
        """Return one of the known texts."""
        value = self.text(key, default=default)
        if value not in known and (value or key in self):
            near = nearest(value, known)
            hint = f'did you mean "{near}"?' if near else f"known are {', '.join(known)}"
            self.problem(f'unknown {key} "{value}"', key, hint)
        return value

    def duration_ms(self, key: str, *, default: int, zero: bool = True) -> int:
        """Return a duration such as ``500ms`` or ``PT9M`` in milliseconds.

        Zero, as in ``0s``, is accepted only if ``zero`` is true.
        """
        if key not in self._data:
            return default
        written = self.text(key)
        if not isinstance(self._data[key], str):
            return default
        if zero and re.fullmatch(r"0+\s*[a-z]*", written):
            return 0
        try:
            duration = milliseconds(written)
        except ValueError as error:
            self.problem(str(error), key)
            return default
        if duration > _LONGEST_MS:
            self.problem(f'"{key}" must be ten years at most', key)
            return default
        return duration

    def _typed(self, key: str, type_: type[T], name: str, default: T | None, stand_in: T) -> T:
        if key not in self._data:
            if default is None:
                self.problem(f'"{key}" is missing')
            return stand_in if default is None else default
        value = self._data[key]
        if not isinstance(value, type_) or (isinstance(value, bool) and type_ is not bool):
            self.problem(f'"{key}" must be {name}', key)
            return stand_in
        return value

    def _expanded(self, key: str, text: str) -> str:
        return self._document.expand((*self._path, key), text)


def _keys_of(line: str) -> Keys:
    """Return the path of keys that a line of TOML opens or sets; empty for other lines."""
    written = line.strip()
    match = (
        written
        if written.startswith("[")
        else re.match(r"""((?:"[^"]*"|'[^']*'|[\w.-])+)\s*=""", written)
    )
    if not match:
        return ()
    statement = written if isinstance(match, str) else f"{match[1]} = 0"
    try:
        data: Any = tomllib.loads(statement)
    except tomllib.TOMLDecodeError:
        return ()
    keys: list[str] = []
    while isinstance(data, dict) and data:
        (key, data), *_ = data.items()
        keys.append(key)
    return tuple(keys)


def _written(key: str) -> str:
    return key if re.fullmatch(r"[\w-]+", key) else f'"{key}"'
