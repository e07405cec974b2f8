"""Answers read back from their JSON, for the oracle of the minimal world."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rdflib import BNode, Literal, URIRef
from rdflib.term import Identifier

from acquatop.answer.answer import Answer, Row, Status
from acquatop.instants import instant_ms
from tests.support.empty_answer import NOTHING


def from_json(document: Mapping[str, Any]) -> Answer:
    """Return an answer with what its JSON says about its window, results and status."""
    window = document["window"]
    return replace(
        NOTHING,
        query=document["query"],
        window=window["index"],
        opens_ms=instant_ms(window["opens"]),
        closes_ms=instant_ms(window["closes"]),
        rows=tuple(
            Row(
                each["rank"],
                {name: _term(said) for name, said in each["bindings"].items()},
                each["score"],
                each["refreshed"],
                each["age_seconds"],
            )
            for each in document["results"]
        ),
        status=Status(document["status"]),
        reason=document["reason"],
        failure=document["failure"],
        form=document["form"],
        boolean=document.get("boolean"),
        triples=tuple(document.get("triples", ())),
    )


def _term(said: Mapping[str, str]) -> Identifier:
    if said["type"] == "uri":
        return URIRef(said["value"])
    if said["type"] == "bnode":
        return BNode(said["value"])
    datatype = said.get("datatype")
    return Literal(
        said["value"],
        lang=said.get("xml:lang"),
        datatype=None if datatype is None else URIRef(datatype),
    )
