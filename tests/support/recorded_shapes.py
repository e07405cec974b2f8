"""Shapes of queries that ask remotes, over small random recordings, and their right answers.

The right answers come from a SPARQL engine that knows nothing of windows or replicas: a WINDOW and
a SERVICE are named graphs that hold what each has at a close.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyoxigraph as ox

from tests.support.shapes import FOLDER, QueryShape, shapes
from tests.support.worlds import NS

MINUTE = 60_000
MINUTES = 36
PREFIX = f"PREFIX : <{NS}>\n"
Record = dict[str, Any]

PEOPLE = """remote = "table"
path = "people.jsonl"
time = "t"
solutions = "many"
refresh = { items = 100, deadline = "60s" }
[services.":people".mapping]
key = "http://example.org/user/{user}"
[services.":people".mapping.properties]
":followers" = { field = "followers", datatype = "xsd:integer" }
":name" = { field = "name" }
":city" = { field = "city" }
":likes" = { field = "likes", datatype = "http://example.org/topic/{}" }
":expert" = { field = "likes", datatype = "http://example.org/topic/{}" }
":weight" = { field = "weight", datatype = "xsd:integer" }
"""
TOPICS = """remote = "table"
path = "topics.jsonl"
time = "t"
solutions = "many"
refresh = { items = 100, deadline = "60s" }
[services.":topics".mapping]
key = "http://example.org/topic/{topic}"
[services.":topics".mapping.properties]
":heat" = { field = "heat", datatype = "xsd:integer" }
"""
FRIENDS = f"""@prefix : <{NS}> .
<{NS}user/u1> :friend :ann . <{NS}user/u3> :friend :ann . :ann :weight 2 ."""
IRIS = {"by": "user/{}", "about": "topic/{}", "likes": "topic/{}", "expert": "topic/{}"}


def asking() -> list[QueryShape]:
    """Return the shapes that ask a remote."""
    return [each for each in shapes() if "SERVICE" in each.text()]


class RecordedShape:
    """Stream and remotes that chance has made, in a folder, with a query of some shape."""

    def __init__(self, folder: Path, shape: QueryShape, seed: int) -> None:
        chance = random.Random(seed)
        self.query = PREFIX + shape.text()
        self.posts = list(_posts(chance))
        if re.search(r"WINDOW :\w \{ \?user", self.query):
            self.posts = [{**each, "id": f"user/{each['user']}"} for each in self.posts]
        self.people = list(_people(chance))
        self.topics = list(_topics(chance))
        text = (FOLDER / shape.catalog).read_text("utf-8")
        for name, table in (("people", PEOPLE), ("topics", TOPICS)):
            text = re.sub(rf'(?s)(\[services\.":{name}"\]\n).*?(?=\n\[|$)', rf"\1{table}", text)
        text = text.replace("http://example.org/post/{id}", "http://example.org/{id}")
        text = re.sub(r'(":by" = .*datatype = )"[^"]*"', rf'\1"{NS}user/{{}}"', text)
        text = text.replace('path = "posts"', 'path = "posts.ndjson"')
        text = text.replace('path = "likes"', 'path = "likes.ndjson"')
        (folder / "catalog.toml").write_text(text, "utf-8")
        (folder / "query.rspql").write_text(self.query, "utf-8")
        (folder / "friends.ttl").write_text(FRIENDS, "utf-8")
        for name, rows in (
            ("posts.ndjson", self.posts),
            ("likes.ndjson", self.posts),
            ("people.jsonl", self.people),
            ("topics.jsonl", self.topics),
        ):
            (folder / name).write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")

    def right(self, closes_ms: int) -> list[dict[str, object]]:
        """Return the rows of a close in the query's order, without any limit.

        A row without a score is none. Windows that count elements close at a position.
        """
        found = self._content(closes_ms).query(self._text())
        assert isinstance(found, ox.QuerySolutions)
        names = [each.value for each in found.variables]
        rows = [
            {name: _value(row[name]) for name in names if row[name] is not None} for row in found
        ]
        scores = {"score", "growth"} & set(names)
        return [row for row in rows if scores <= row.keys()]

    def _content(self, closes_ms: int) -> ox.Store:
        store = ox.Store()
        widths = {"w": 9, "v": 18 if "RANGE 18m" in self.query else 9}
        counts = re.search(r"ELEMENTS (\d+)", self.query)
        if counts:
            inside = self.posts[max(0, closes_ms - int(counts[1])) : closes_ms]
            widths, closes_ms = {}, inside[-1]["t"]
            for post in inside:
                _fill(store, "w", post["id"], _renamed(post))
        for window, width in widths.items():
            for post in self.posts:
                if closes_ms - width * MINUTE < post["t"] <= closes_ms:
                    _fill(store, window, post["id"], _renamed(post))
        for name, rows, key in (("people", self.people, "user"), ("topics", self.topics, "topic")):
            for row in {row[key]: row for row in rows if row["t"] <= closes_ms}.values():
                said = {**row, "expert": row["likes"]} if "likes" in row else row
                _fill(store, name, f"{key}/{row[key]}", said)
        before_ms = closes_ms - 6 * MINUTE
        if before_ms >= self.posts[0]["t"]:
            people = {row["user"]: row for row in self.people if row["t"] <= before_ms}
            for row in people.values():
                _fill(store, "before", f"user/{row['user']}", {"followers": row["followers"]})
        store.load(FRIENDS.encode(), ox.RdfFormat.TURTLE)
        return store

    def _text(self) -> str:
        """Return the query over named graphs."""
        text = re.sub(r"FROM NAMED WINDOW :\w ON :\w+ \[[^]]*\]|FROM :friends", "", self.query)
        text = re.sub(r"\b(WINDOW|SERVICE) :", "GRAPH :", text)
        text = re.sub(r"CONSTRUCT \{ (\?\w+) \S+ (\?\w+) \}", r"SELECT \1 \2", text)
        differences = {"difference": r"(\1 - ?before)", "growth": r"((\1 - ?before) / ?before)"}
        for name, written in differences.items():
            text = re.sub(rf"change:{name}\(([^,]*),[^)]*\)", written, text)
        if "?before" in text:
            before = "OPTIONAL { GRAPH :before { ?user :followers ?before } } } ORDER"
            text = re.sub(r"\}\s+ORDER", before, text)
        return re.sub(r"LIMIT .*", "", text)


def _posts(chance: random.Random) -> Iterator[Record]:
    for at in range(MINUTES * 3):
        yield {
            "t": at * MINUTE // 3 + chance.randint(1, 9),
            "id": f"post/p{at}",
            "user": f"u{chance.randint(0, 4)}",
            "topic": f"t{chance.randint(0, 2)}",
            "mentions": chance.randint(0, 9),
            "length": chance.randint(1, 5),
            "text": chance.choice(["rain", "sun"]),
            "city": chance.choice(["Como", "Rome"]),
            "likes": chance.randint(0, 9),
        }


def _people(chance: random.Random) -> Iterator[Record]:
    for at in range(-1, MINUTES, 2):
        for user in range(4):
            if at < 0 or chance.random() < 0.2:
                yield {
                    "t": at * MINUTE,
                    "user": f"u{user}",
                    "followers": chance.randint(0, 20),
                    "name": chance.choice(["Ann", "Ada", "Bob"]),
                    "city": chance.choice(["Como", "Rome"]),
                    "likes": sorted(chance.sample(["t0", "t1", "t2"], chance.randint(1, 2))),
                    "weight": chance.randint(0, 5),
                }


def _topics(chance: random.Random) -> Iterator[Record]:
    for at in range(-1, MINUTES, 2):
        for topic in range(3):
            if at < 0 or chance.random() < 0.2:
                yield {"t": at * MINUTE, "topic": f"t{topic}", "heat": chance.randint(0, 9)}


def _renamed(post: Record) -> Record:
    said = {name: post[name] for name in ("mentions", "length", "text", "city")}
    said["at"] = post["t"]
    return {**said, "by": post["user"], "about": post["topic"], "likes": post["likes"]}


def _fill(store: ox.Store, graph: str, subject: str, said: Record) -> None:
    for name, values in said.items():
        for value in values if isinstance(values, list) else [values]:
            is_iri = name in IRIS and isinstance(value, str)
            term = ox.NamedNode(NS + IRIS[name].format(value)) if is_iri else ox.Literal(value)
            store.add(
                ox.Quad(
                    ox.NamedNode(NS + subject),
                    ox.NamedNode(NS + name),
                    term,
                    ox.NamedNode(NS + graph),
                )
            )


def _value(term: Any) -> object:
    if isinstance(term, ox.Literal) and term.datatype.value.rpartition("#")[2] in NUMBERS:
        return float(f"{float(term.value):.12g}")
    return str(term)


NUMBERS: Sequence[str] = ("integer", "decimal", "double")
