"""Media types of answers, and content negotiation."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from acquatop.answer.answer import Answer

JSON = "application/json"


@dataclass(frozen=True)
class Format:
    """Media type with the query forms that it supports, and the function that encodes an answer."""

    media_type: str
    forms: tuple[str, ...]
    encode: Callable[[Answer], bytes]

    @property
    def content_type(self) -> str:
        """The value of the Content-Type header."""
        return (
            f"{self.media_type}; charset=utf-8"
            if self.media_type.startswith("text/")
            else self.media_type
        )


def _lazily(name: str) -> Callable[[Answer], bytes]:
    """Return the encoder of a kind of sink; its module is loaded at the first answer."""

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
"""All formats but the complete answer, which is JSON and available for any query."""


TABLES = ("text/csv", "text/tab-separated-values")
"""Formats that a spreadsheet opens."""


class _Wanted(NamedTuple):
    kind: str
    subtype: str
    quality: float

    def fits(self, media_type: str) -> int:
        """Return the precision of the match with a media type: 0 for none, 3 for the exact name."""
        kind, _, subtype = media_type.partition("/")
        if (self.kind, self.subtype) == (kind, subtype):
            return 3
        return 2 * (self.kind == kind and self.subtype == "*") or int(
            (self.kind, self.subtype) == ("*", "*")
        )


_RANGE = re.compile(r"\s*([\w!#$&^.+*-]+)/([\w!#$&^.+*-]+)\s*(?:;(.*))?", re.DOTALL)
_QUALITY = re.compile(r"(?:^|;)\s*q\s*=\s*([01](?:\.[0-9]{0,3})?)\s*(?:;|$)", re.IGNORECASE)


def chosen(accept: str | None, offered: Sequence[str]) -> str | None:
    """Return the media type that an ``Accept`` header prefers, or None if it accepts none.

    Among several of the same quality, return the first offered. Malformed parts of the header are
    ignored. Without a header anything is accepted.

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
    return _Wanted(
        found[1].lower(), found[2].lower(), min(1.0, float(quality[1])) if quality else 1.0
    )


def _quality(media_type: str, wanted: Sequence[_Wanted]) -> float:
    closest = max(wanted, key=lambda each: each.fits(media_type), default=None)
    return closest.quality if closest is not None and closest.fits(media_type) else 0.0
