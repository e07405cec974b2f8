"""Solutions of the real server that are changed on their way."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from tests.support.faults.connection import Connection
from tests.support.faults.fault import Fault, Harm
from tests.support.faults.keys import key_variable
from tests.support.faults.message import Message

Binding = dict[str, Any]
Rework = Callable[[list[Binding], str], Iterable[Binding]]
"""Function that changes a server's solutions, given the variable of the key."""


@dataclass
class Reworked(Fault):
    """The server's solutions, changed on their way."""

    rework: Rework
    harm: Harm = Harm.SOME

    async def answer(self, connection: Connection, request: Message) -> None:
        """Change the solutions in the answer, if it has any."""
        found = await connection.upstream.ask(request)
        key = key_variable(request)
        if key is not None and found.status == 200:
            document = json.loads(found.body)
            bindings = document["results"]["bindings"]
            document["results"]["bindings"] = list(self.rework(bindings, key))
            found = replace(found, body=json.dumps(document).encode())
        await connection.send(found.to_bytes())


def text_for_numbers(bindings: list[Binding], key: str) -> Iterator[Binding]:
    """Yield the solutions with plain text in place of every value."""
    for row in bindings:
        yield {
            name: term if name == key else {"type": "literal", "value": "many"}
            for name, term in row.items()
        }


def huge_numbers(bindings: list[Binding], key: str) -> Iterator[Binding]:
    """Yield the solutions with numbers that no machine can hold in place of every value."""
    for row in bindings:
        yield {
            name: term if name == key else {**term, "value": "9" * 50_000}
            for name, term in row.items()
        }


def blank_keys(bindings: list[Binding], key: str) -> Iterator[Binding]:
    """Yield the solutions with a blank node in place of every key."""
    for number, row in enumerate(bindings):
        yield {**row, key: {"type": "bnode", "value": f"b{number}"}}


def bad_iris(bindings: list[Binding], key: str) -> Iterator[Binding]:
    """Yield the solutions with keys that want to break out of a query."""
    for number, row in enumerate(bindings):
        yield {
            **row,
            key: {"type": "uri", "value": f"http://example.org/{number}> }} ; DROP ALL #"},
        }


def twice(bindings: list[Binding], key: str) -> Iterator[Binding]:
    """Yield every solution twice."""
    for row in bindings:
        yield from (row, row)


def every_other(bindings: list[Binding], key: str) -> Iterator[Binding]:
    """Yield the solutions for half of the keys."""
    yield from bindings[::2]


def without_values(bindings: list[Binding], key: str) -> Iterator[Binding]:
    """Yield the solutions with nothing bound but the key."""
    for row in bindings:
        yield {key: row[key]}


def uninvited(bindings: list[Binding], key: str) -> Iterator[Binding]:
    """Yield the solutions, and some for keys that nobody has asked for."""
    yield from bindings
    for number, row in enumerate(bindings):
        yield {**row, key: {"type": "uri", "value": f"http://example.org/user/uninvited{number}"}}
