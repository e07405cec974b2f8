"""One small world for all shapes of ``fixtures/shapes``: streams, documents, remotes and a graph.

The three catalogs become one, so that one engine answers every shape.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any

import pyoxigraph as ox

from tests.support.shapes import FOLDER, QueryShape, shapes

NS = "http://example.org/"
POSTS, DOCUMENTS, STEP_MS = 84, 24, 20_000
_USERS = ("ann", "bob", "cat", "dan", "eve", "fay")
_TEXTS = ("rain", "no rain today", "Rhine in sun", "snow", "rayon")
_CITIES = ("Como", "Bari", "como", "Pisa")
_NAMED = {"documents.toml": (":posts", ":documents"), "many.toml": (":people", ":crowd")}
"""Names of a catalog that have another one in the catalog of this world."""
_XSD = "http://www.w3.org/2001/XMLSchema#"
_TYPED = {"day": "date", "price": "decimal"}
"""Datatypes of what records have as texts."""
_IRIS = {"by": "", "about": "topic/"}
"""Places of IRIs, by the property that has them."""
Record = Mapping[str, Any]


def queries() -> dict[str, str]:
    """Return the texts of all queries, in the names of this world, by names for files."""
    return {f"shape-{at:02}": _renamed(shape) for at, shape in enumerate(shapes())}


def _renamed(shape: QueryShape) -> str:
    old, new = _NAMED.get(shape.catalog, ("", ""))
    text = shape.text()
    text = re.sub(rf"(ON|SERVICE) {old}\b", rf"\1 {new}", text) if old else text
    return f"PREFIX : <{NS}>\n{text}"


@dataclass(frozen=True)
class ShapeWorld:
    """World that a seed fills, and the budget of a refresh. Values of the remotes never change."""

    seed: int = 3
    items: int = 100

    @cached_property
    def posts(self) -> Sequence[Record]:
        """Records of posts, some of them about the same post, in the order of their times."""
        chance = Random(self.seed)
        return [
            {
                "id": chance.randrange(25),
                "t": 60_000 + at * STEP_MS,
                "by": chance.choice(_USERS),
                "about": chance.randrange(5),
                "mentions": chance.randrange(15),
                "length": chance.randrange(40),
                "text": chance.choice(_TEXTS),
                "city": chance.choice(_CITIES),
                "day": f"2026-0{1 + at % 9}-{10 + 7 * at % 18}Z",
                "price": f"{37 * at % 100}.{at % 7}5",
            }
            for at in range(POSTS)
        ]

    @cached_property
    def likes(self) -> Sequence[Record]:
        """Records of a second stream about the same posts."""
        chance = Random(self.seed + 1)
        return [
            {
                "id": chance.randrange(25),
                "t": 70_000 + at * 2 * STEP_MS,
                "likes": chance.randrange(30),
            }
            for at in range(POSTS // 2)
        ]

    @cached_property
    def documents(self) -> Sequence[tuple[int, str]]:
        """RDF documents with their times: observations with results, some of them shared."""
        chance = Random(self.seed + 2)
        return [
            (t := 60_000 + at * 3 * STEP_MS, _document(at, t, chance)) for at in range(DOCUMENTS)
        ]

    @cached_property
    def remote(self) -> str:
        """Triples of all services, as Turtle."""
        chance = Random(self.seed + 3)
        people = [f":{name}" for name in _USERS[1:]] + [f":post\\/{at}" for at in range(22)]
        lines = [f"@prefix : <{NS}> ."]
        for at, one in enumerate(people):
            lines += [
                f"{one} :followers {chance.randrange(60)} ; :weight {chance.randrange(9)} ;",
                f'  :name "{chance.choice("ABCX")}{at}" ; :city "{chance.choice(_CITIES)}" ;',
                f"  :expert :topic\\/{at % 5} , :topic\\/{at % 3} ; :likes :topic\\/{at % 4} .",
            ]
            if at % 4 == 0:
                lines.append(f"{one} :followers {chance.randrange(60)} .")
        lines += [f":topic\\/{at} :heat {chance.randrange(20)} ." for at in range(4)]
        return "\n".join(lines) + "\n"

    @property
    def update(self) -> str:
        """Return the update that fills an empty SPARQL server."""
        prefix, _, triples = self.remote.partition("\n")
        return f"{prefix.removeprefix('@').removesuffix('.')} INSERT DATA {{ {triples} }}"

    @property
    def graph(self) -> str:
        """Triples of the static graph, as Turtle."""
        friends = [
            f":post\\/{at} :friend :{('ann', 'bob')[at % 4 // 2]} ." for at in range(0, 25, 2)
        ]
        return (
            "\n".join([f"@prefix : <{NS}> . :ann :weight 3 . :bob :friend :ann .", *friends]) + "\n"
        )

    def write(self, folder: Path, endpoint: str) -> Path:
        """Write the streams, the graph and the catalog; return the catalog's path."""
        for name, records in (("posts", self.posts), ("likes", self.likes)):
            lines = (json.dumps(_line(each)) + "\n" for each in records)
            (folder / name).write_text("".join(lines), "utf-8")
        (folder / "documents").mkdir()
        for at, (_, text) in enumerate(self.documents):
            (folder / "documents" / f"{at:03}.ttl").write_text(text, "utf-8")
        (folder / "friends.ttl").write_text(self.graph, "utf-8")
        path = folder / "catalog.toml"
        path.write_text("\n".join(_catalog(endpoint, self.items)), "utf-8")
        return path

    def store(self, windows: Sequence[tuple[str, str, int, int]]) -> ox.Store:
        """Return the graphs of windows, by name, stream, opening and close, beside all others."""
        store = ox.Store()
        for name, stream, opens, closes in windows:
            for quad in self._inside(stream, opens, closes):
                store.add(ox.Quad(*quad.triple, ox.NamedNode(NS + name)))
        for service in ("people", "topics", "crowd"):
            for quad in ox.parse(self.remote, format=ox.RdfFormat.TURTLE):
                store.add(ox.Quad(*quad.triple, ox.NamedNode(NS + service)))
        for place in (ox.DefaultGraph(), ox.NamedNode(f"{NS}friends")):
            store.load(self.graph.encode(), format=ox.RdfFormat.TURTLE, to_graph=place)
        return store

    def _inside(self, stream: str, opens: int, closes: int) -> Iterator[ox.Quad]:
        if stream == "documents":
            for t, text in self.documents:
                if opens < t <= closes:
                    yield from ox.parse(text, format=ox.RdfFormat.TURTLE)
            return
        for record in self.posts if stream == "posts" else self.likes:
            if opens < record["t"] <= closes:
                yield from _quads(record)


def _line(record: Record) -> Record:
    """Return a record in the names of the catalog's fields."""
    fields = {"by": "user", "about": "topic"}
    return {fields.get(name, name): value for name, value in record.items()}


def _quads(record: Record) -> Iterator[ox.Quad]:
    subject = ox.NamedNode(f"{NS}post/{record['id']}")
    for name, value in record.items():
        if name == "id" or (name == "t" and "likes" in record):
            continue
        name = "at" if name == "t" else name
        said: ox.NamedNode | ox.Literal = ox.Literal(value)
        if name in _TYPED:
            said = ox.Literal(value, datatype=ox.NamedNode(f"{_XSD}{_TYPED[name]}"))
        if name in _IRIS:
            said = ox.NamedNode(f"{NS}{_IRIS[name]}{value}")
        yield ox.Quad(subject, ox.NamedNode(NS + name), said)


def _document(at: int, t: int, chance: Random) -> str:
    result = f":r{at}" if at % 3 else f"_:r{at}"
    lines = [
        f"@prefix : <{NS}> .",
        f":o{at} :at {t} ; :result {result} .",
        f"{result} :value {chance.randrange(50)} .",
    ]
    if at % 2:
        lines.append(f'{result} :unit "{chance.choice(["m", "km"])}" .')
    if at % 5 == 4:
        lines.append(f":x{at} :broader :o{at - chance.randrange(2)} .")
    if at % 4 == 3:
        lines.append(f"{result} :broader :s{at} . :s{at} :value {chance.randrange(50)} .")
    return "\n".join(lines) + "\n"


def _catalog(endpoint: str, items: int) -> Iterator[str]:
    """Yield the parts of the catalog: those of the shapes, with this world's names and places."""
    yield f'[prefixes]\n"" = "{NS}"\n'
    for name in ("catalog.toml", "documents.toml", "many.toml"):
        text = (FOLDER / name).read_text("utf-8")
        text = text.replace("http://127.0.0.1:9/query", endpoint)
        text = text.replace("items = 100", f'items = {items}, deadline = "60s"')
        if name == "many.toml":
            section = re.search(r'\[services\.":people"\].*?(?=\n\[)', text, re.DOTALL)
            assert section is not None
            text = section[0]
        if name in _NAMED:
            old, new = _NAMED[name]
            text = text.replace(f'"{old}"', f'"{new}"')
        text = re.sub(r"\[prefixes\]\n.*\n", "", text)
        text = text.replace("connector =", 'small_batches = "executors"\nconnector =')
        text = text.replace('path = "posts"', 'path = "posts", maxBytesPerBatch = 2000')
        text = text.replace('path = "likes"', 'path = "likes", maxBytesPerBatch = 600')
        text = text.replace('path = "documents"', 'path = "documents", maxFilesPerBatch = 9')
        yield text
