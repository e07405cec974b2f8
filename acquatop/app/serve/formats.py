"""In which forms an answer can be had, and which of them somebody wants."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from acquatop.answer.answer import Answer

JSON = "application/json"


@dataclass(frozen=True)
class Format:
    """A media type, the forms of queries whose answers it can hold, and how to write one."""

    media_type: str
    forms: tuple[str, ...]
    encode: Callable[[Answer], bytes]

    @property
    def content_type(self) -> str:
        """The header's value."""
        return f"{self.media_type}; charset=utf-8" if self.media_type.startswith("text/") else self.media_type


def _lazily(name: str) -> Callable[[Answer], bytes]:
    """Return the writer of a kind of sink; it is loaded when the first answer is written so."""

    def encode(answer: Answer) -> bytes:
        from importlib import import_module

        written: bytes = import_module(f"acquatop.answer.sinks.{name}").encode(answer)
        return written

    return encode


_ROWS, _GRAPH = ("select",), ("construct", "describe")

FORMATS = (
    Format("application/sparql-results+json", ("select", "ask"), _lazily("results_json")),
    Format("text/csv", _ROWS, _lazily("results_csv")),
    Format("text/tab-separated-values", _ROWS, _lazily("results_tsv")),
    Format("text/turtle", _GRAPH, _lazily("turtle")),
    Format("application/n-triples", _GRAPH, _lazily("ntriples")),
)
"""All but the answer as a whole, which is JSON and can be had of any query."""


class _Wanted(NamedTuple):
    kind: str
    subtype: str
    quality: float

    def fits(self, media_type: str) -> int:
        """Say how well this fits: 0 not at all, 3 by name."""
        kind, _, subtype = media_type.partition("/")
        if (self.kind, self.subtype) == (kind, subtype):
            return 3
        return 2 * (self.kind == kind and self.subtype == "*") or int((self.kind, self.subtype) == ("*", "*"))


_RANGE = re.compile(r"\s*([\w!#$&^.+*-]+)/([\w!#$&^.+*-]+)\s*(?:;(.*))?", re.DOTALL)
_QUALITY = re.compile(r"(?:^|;)\s*q\s*=\s*([01](?:\.[0-9]{0,3})?)\s*(?:;|$)", re.IGNORECASE)


def chosen(accept: str | None, offered: Sequence[str]) -> str | None:
    """Return the media type that an ``Accept`` header likes best, the first offered of several; None if it has none.

    What of the header cannot be understood is passed over; without one anything will do.

    >>> offered = ["application/json", "text/csv"]
    >>> chosen(None, offered), chosen("text/*, */*;q=0.1", offered), chosen("text/html", offered)
    ('application/json', 'text/csv', None)
    >>> chosen("application/json;q=0, */*", offered)
    'text/csv'
    """
    if accept is None or not accept.strip():
        return offered[0]
    wanted = [each for part in accept.split(",") if (each := _wanted(part)) is not None]
    best = max(offered, key=lambda each: _quality(each, wanted))
    return best if _quality(best, wanted) > 0 else None


def _wanted(part: str) -> _Wanted | None:
    found = _RANGE.fullmatch(part)
    if found is None:
        return None
    quality = _QUALITY.search(found[3] or "")
    return _Wanted(found[1].lower(), found[2].lower(), min(1.0, float(quality[1])) if quality else 1.0)


def _quality(media_type: str, wanted: Sequence[_Wanted]) -> float:
    closest = max(wanted, key=lambda each: each.fits(media_type), default=None)
    return closest.quality if closest is not None and closest.fits(media_type) else 0.0
