"""A Python function as a remote, for sources that no protocol covers."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from replica.remotes import MayAsk, RemoteError, always
from replica.remotes.records import RecordMapping, RecordReader, Star
from replica.store import Solution

Lookup = Callable[[list[str]], object]
"""Function from ids, as in the mapping's key, to their records.

It returns a mapping of ids to a record, a list of records, or None; or an iterable of records that
contain their ids; or None.
"""


def resolve(name: str) -> Lookup:
    """Return the function named ``module:function``; raises ValueError if there is none.

    >>> resolve("os.path:basename")("a/b")
    'b'
    >>> resolve("os.path:nothing")
    Traceback (most recent call last):
    ...
    ValueError: "os.path:nothing": the module os.path has no "nothing"
    """
    module_name, colon, path = name.partition(":")
    if not (module_name and colon and path):
        raise ValueError(f'"{name}" must be written as "module:function"')
    found: object = _module(module_name, name)
    for step in path.split("."):
        if not hasattr(found, step):
            raise ValueError(f'"{name}": the module {module_name} has no "{path}"')
        found = getattr(found, step)
    if not callable(found):
        raise ValueError(f'"{name}" is not a function')
    return found


def _module(module_name: str, name: str) -> object:
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise ValueError(f'"{name}": there is no module {error.name}') from error
    except Exception as error:
        raise ValueError(
            f'"{name}": the module cannot be imported: {type(error).__name__}: {error}'
        ) from error


class FunctionRemote:
    """Remote that calls a function, in the maintainer's threads: several calls may run at once.

    The function receives at most ``block_size`` ids. It should observe the timeout itself, as it
    cannot be interrupted; callers do not wait for longer. Its exceptions become
    :class:`RemoteError`. A record in a mapping of ids need not contain the id.

    >>> from replica.remotes.records import XSD, Field, KeyTemplate
    >>> mapping = RecordMapping(
    ...     KeyTemplate.parse("urn:user:{id}"), {"urn:followers": Field("", XSD + "integer")}
    ... )
    >>> remote = FunctionRemote(
    ...     lambda ids: {"a": 7}, mapping=mapping, star=Star("u", {"f": "urn:followers"})
    ... )
    >>> remote.fetch(["<urn:user:a>", "<urn:user:b>"], timeout=1)
    [{'u': '<urn:user:a>', 'f': '"7"^^<http://www.w3.org/2001/XMLSchema#integer>'}]
    """

    def __init__(
        self,
        function: Lookup,
        *,
        mapping: RecordMapping,
        star: Star,
        block_size: int = 100,
        name: str = "",
    ) -> None:
        self.block_size = block_size
        self.name = name or getattr(function, "__qualname__", repr(function))
        self._function = function
        self._reader = RecordReader(mapping, star)
        self.rejected = self._reader.rejected

    def fetch(self, keys: Sequence[str], timeout: float) -> list[Solution]:
        """Return the solutions for some keys, with one call; none if no key has an id."""
        ids = self._reader.ids(keys)
        if len(ids) > self.block_size:
            raise RemoteError(
                f"the function {self.name} takes {self.block_size} keys per call", too_large=True
            )
        if not ids:
            return []
        try:
            found = self._function(list(ids))
            return self._reader.solutions(self._records(found), ids.values())
        except RemoteError:
            raise
        except (Exception, SystemExit) as error:
            raise RemoteError(
                f"the function {self.name} failed: {type(error).__name__}: {error}"
            ) from error

    def load(self, timeout: float, may_ask: MayAsk = always) -> Iterator[list[Solution]]:
        """Yield nothing: a lookup cannot list its keys."""
        yield from ()

    def _records(self, found: object) -> Iterator[tuple[object, str | None]]:
        if isinstance(found, Mapping):
            for id_, value in found.items():
                owner = self._reader.key_of(id_)
                if owner is None:
                    self._reader.reject({"an id that does not fit into an IRI": 1})
                    continue
                for record in value if isinstance(value, list | tuple) else [value]:
                    if record is not None:
                        yield record, owner
        elif isinstance(found, Iterable) and not isinstance(found, str | bytes):
            for record in found:
                yield record, None
        elif found is not None:
            raise TypeError(f"it returned {type(found).__name__}, neither a mapping nor records")
