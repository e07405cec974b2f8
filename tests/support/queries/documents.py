"""Random documents of several subjects, blank nodes among them, and queries over them."""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyoxigraph as ox

from acquatop.catalog.catalog import Catalog
from tests.support.queries.record_patterns import SPAN, TEXTS, USERS, World, triples_of
from tests.support.worlds import NS, XSD

CATALOG = """
[prefixes]
"" = "http://example.org/"
[streams."http://example.org/stream"]
connector = "files"
start_ms = 0
options = {{ path = "documents", maxFilesPerBatch = 5 }}
{arrivals}
[streams."http://example.org/stream".mapping]
format = "rdf"
syntax = "{syntax}"
time = ":at"
[streams."http://example.org/stream".mapping.properties]
":by" = {{ datatype = "iri" }}
":to" = {{ datatype = "iri" }}
":link" = {{ datatype = "iri" }}
":n" = {{ datatype = "xsd:integer" }}
":m" = {{ datatype = "xsd:integer" }}
":text" = {{ datatype = "xsd:string" }}
"rdf:type" = {{ datatype = "iri" }}
"""
SYNTAXES = {
    "turtle": ox.RdfFormat.TURTLE,
    "nquads": ox.RdfFormat.N_QUADS,
    "jsonld": ox.RdfFormat.JSON_LD,
}


@dataclass(frozen=True)
class Documents(World):
    """Documents by chance: each has some subjects, most of which only it describes."""

    syntax: str = "turtle"

    def catalog(self) -> Catalog:
        return Catalog.parse(self.catalog_text(), file=Path("catalog.toml"), variables={})

    def catalog_text(self, more: str = "") -> str:
        """Return the catalog with more lines on the stream."""
        arrivals = "" if self.arrivals == "all" else f'arrivals = "{self.arrivals}"'
        return CATALOG.format(arrivals=arrivals + more, syntax=self.syntax)

    @cached_property
    def records(self) -> list[dict[str, Any]]:
        """Documents in no order of time."""
        chance = random.Random(self.seed)
        return [
            {"t": chance.randint(1, SPAN), "id": at, "subjects": list(self._subjects(chance, at))}
            for at in range(self.events)
        ]

    def _subjects(self, chance: random.Random, document: int) -> list[dict[str, Any]]:
        names = [_name(chance, document, at, self.subjects) for at in range(chance.randint(1, 4))]
        fields = {
            "by": lambda: chance.choice(USERS),
            "to": lambda: chance.choice(USERS),
            "node": lambda: chance.choice(names),
            "n": lambda: chance.randint(-2, 5),
            "m": lambda: chance.randint(-2, 5),
            "text": lambda: chance.choice(TEXTS),
            "kind": lambda: chance.choice(["Post", "Reply"]),
        }
        return [
            {
                "name": name,
                **{key: make() for key, make in fields.items() if chance.random() < self.richness},
            }
            for name in dict.fromkeys(names)
        ]

    def line(self, record: dict[str, Any]) -> str:
        time = ox.Literal(str(record["t"]), datatype=ox.NamedNode(XSD + "integer"))
        document = ox.NamedNode(f"{NS}document/{record['id']}")
        triples = [ox.Triple(document, ox.NamedNode(NS + "at"), time), *self.triples(record)]
        return ox.serialize(triples, format=SYNTAXES[self.syntax]).decode()

    def triples(self, record: dict[str, Any]) -> list[ox.Triple]:
        """Return what a document says, written by hand."""
        return [
            triple
            for each in record["subjects"]
            for triple in [
                *triples_of(_node(each["name"]), each),
                *(
                    [ox.Triple(_node(each["name"]), ox.NamedNode(NS + "link"), _node(each["node"]))]
                    if "node" in each
                    else []
                ),
            ]
        ]


def _name(chance: random.Random, document: int, at: int, subjects: int) -> str:
    """Return a name: a blank node, one of this document, or one that others may describe."""
    kind = chance.random()
    if kind < 0.5:
        return f"_:d{document}b{at}"
    return f"e/d{document}n{at}" if kind < 0.8 else f"e/{chance.randint(1, subjects)}"


def _node(name: str) -> ox.NamedNode | ox.BlankNode:
    return ox.BlankNode(name[2:]) if name.startswith("_:") else ox.NamedNode(NS + name)
