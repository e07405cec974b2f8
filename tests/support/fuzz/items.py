"""Items of a trial: what is sent of each, and what must become of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from tests.support.fuzz.times import Moment, ascending, moment
from tests.support.fuzz.values import IN_TEMPLATE, XSD, Value, value_of

_NUMBERS_AND_TEXTS = (XSD + "integer", XSD + "double", XSD + "string")
_OTHERS = ("decimal", "boolean", "dateTime", "date", "time", "duration", "byte", "float")
PROPERTIES: Mapping[str, str] = {
    **{f"p{at}": each for at, each in enumerate((*_NUMBERS_AND_TEXTS, "iri"))},
    **{f"q{at}": XSD + each for at, each in enumerate(_OTHERS)},
    "part": IN_TEMPLATE,
}
"""Fields of items with their datatypes: of each kind that a mapping admits, and a template."""


@dataclass(frozen=True)
class Item:
    """One item: its number, its time and its values by field; or bytes that may be anything."""

    number: int
    time: Moment
    values: Mapping[str, Value | None]
    raw: bytes | None = None

    @property
    def verdict(self) -> bool | None:
        """True if the item must be used, False if it must be bad, None if either is right."""
        if self.raw is not None:
            return None
        if self.time.ms is None:
            return False
        verdicts = [value.verdict for value in self.values.values() if value is not None]
        if False in verdicts:
            return False
        return None if None in verdicts else True


_RAW = (
    *(
        b"\xff\xfe",
        b"{",
        b"}",
        b"[]",
        b"null",
        b"1",
        b'""',
        b"{}",
        b"\x00",
        b"\xef\xbb\xbf",
        b",,,",
    ),
    *(
        b"<urn:a>",
        b"<urn:a> <urn:b>",
        b'"unclosed',
        b"# no",
        b"@prefix",
        b"[" * 50_000,
        b"\xed\xa0\x80",
    ),
    *(
        b"a" * 200_000,
        b"{}{}",
        b'{"data": 1}',
        b'{"data": {}}',
        b'{"data": {"id": 1e5}}',
        b"\x1f\x8b\x08",
    ),
)


def items_of(
    random: Random, count: int, clusters: Sequence[int], time_as: str, *, wild: bool
) -> list[Item]:
    """Return items; their times ascend unless they are ``wild``."""
    times = ascending(count, clusters, random)
    if wild:
        random.shuffle(times)
    odd = random.choice((0.02, 0.1, 0.4))
    return [_item(at, ms, time_as, random, odd) for at, ms in enumerate(times)]


def _item(number: int, ms: int, time_as: str, random: Random, odd: float) -> Item:
    if random.random() < odd / 2:
        raw = random.choice((*_RAW, random.randbytes(random.randrange(1, 40)).replace(b"\n", b"")))
        return Item(number, Moment(None, None), {}, raw if raw.strip() else b"?")
    when = moment(ms, time_as, random)
    values = {name: _value(datatype, random, odd) for name, datatype in PROPERTIES.items()}
    return Item(number, when, values)


def _value(datatype: str, random: Random, odd: float) -> Value | None:
    """Return a value; the most are such that the item can be used."""
    value = value_of(datatype, random)
    while value is not None and value.verdict is not True and random.random() > odd:
        value = value_of(datatype, random)
    return value
