"""Lossless JSON form of answers, for storage."""

from __future__ import annotations

import dataclasses
import enum
import functools
import math
import types
import typing
from collections.abc import Mapping
from typing import Any

from rdflib import BNode, Literal, URIRef
from rdflib.term import Identifier

from acquatop.answer.answer import Answer


def answer_to_document(answer: Answer) -> dict[str, Any]:
    """Return an answer as strict JSON: every field by name, numbers that JSON lacks as text.

    The form for people and programs is :meth:`~acquatop.answer.answer.Answer.to_json`, which omits
    and rounds.
    """
    document: dict[str, Any] = _written(answer)
    return document


def answer_from_document(document: Mapping[str, Any]) -> Answer:
    """Return the answer of a document; missing fields, as of an older version, have their defaults.

    Raises ValueError if the document is no answer's.
    """
    try:
        answer: Answer = _read_fields(Answer, document)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"this is not an answer's document: {error}") from error
    return answer


def _written(value: Any) -> Any:
    match value:
        case Identifier():
            return _written_term(value)
        case enum.Enum():
            return value.value
        case float():
            return float(value) if math.isfinite(value) else str(float(value))
        case tuple() | list():
            return [_written(each) for each in value]
        case Mapping():
            return {name: _written(each) for name, each in value.items()}
        case None | bool() | int() | str():
            return value
        case _ if dataclasses.is_dataclass(value):
            return {
                field.name: _written(getattr(value, field.name))
                for field in dataclasses.fields(value)
                if field.metadata.get("is_stored", True)
            }
        case _:
            raise TypeError(
                f"an answer holds a {type(value).__name__}, which has no form to be stored in"
            )


def _written_term(term: Identifier) -> dict[str, str]:
    match term:
        case Literal():
            document = {"literal": str(term)}
            if term.language is not None:
                document["language"] = term.language
            elif term.datatype is not None:
                document["datatype"] = str(term.datatype)
            return document
        case URIRef():
            return {"uri": str(term)}
        case BNode():
            return {"blank": str(term)}
        case _:
            raise TypeError(f"an answer holds a {type(term).__name__}, which is no RDF term")


def _read(kind: Any, value: Any) -> Any:
    """Return a value converted to the type that a field is declared to have."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        (inner,) = (each for each in arguments if each is not types.NoneType)
        return None if value is None else _read(inner, value)
    if origin is tuple:
        return tuple(_read(arguments[0], each) for each in value)
    if origin is Mapping:
        return {name: _read(arguments[1], each) for name, each in value.items()}
    if kind is Identifier:
        return _read_term(value)
    if dataclasses.is_dataclass(kind):
        return _read_fields(kind, value)
    if issubclass(kind, enum.Enum):
        return kind(value)
    return float(value) if isinstance(value, str) and kind is float else value


def _read_fields(kind: Any, document: Mapping[str, Any]) -> Any:
    hints = _hints(kind)
    return kind(**{name: _read(hints[name], value) for name, value in document.items()})


def _read_term(document: Mapping[str, str]) -> Identifier:
    if "uri" in document:
        return URIRef(document["uri"])
    if "blank" in document:
        return BNode(document["blank"])
    datatype = document.get("datatype")
    return Literal(
        document["literal"],
        lang=document.get("language"),
        datatype=None if datatype is None else URIRef(datatype),
        normalize=False,
    )


@functools.cache
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)
