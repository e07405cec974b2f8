"""Random streams of records of several properties, and what SPARQL says of their windows."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyoxigraph as ox

from acquatop.answer.answer import Answer, Status
from acquatop.catalog.catalog import Catalog
from acquatop.plan.bind import bind_query
from acquatop.plan.bound import Bound, BoundQuery
from acquatop.query.contract import Evaluation
from acquatop.query.evaluation import TopKEvaluation
from acquatop.refresh.constant_join import ConstantJoin
from tests.support.fed import Fed
from tests.support.worlds import NS, STREAM, XSD

SPAN = 24
USERS = ("ann", "bob", "cat")
TEXTS = ("spark of joy", "Sparks", "rain", "über", 'a "quoted" \\ word', "")
LINKS = ("http://example.org/user/ann", *(f"http://example.org/e/{at}" for at in (1, 2, 3)))
CATALOG = """
[prefixes]
"" = "http://example.org/"
[streams."http://example.org/stream"]
connector = "lines"
start_ms = 0
{arrivals}
[streams."http://example.org/stream".options]
path = "events"
[streams."http://example.org/stream".mapping]
subject = "http://example.org/e/{{id}}"
time = "t"
[streams."http://example.org/stream".mapping.properties]
":by" = {{ field = "by", datatype = "http://example.org/user/{{}}" }}
":to" = {{ field = "to", datatype = "http://example.org/user/{{}}" }}
":link" = {{ field = "link", datatype = "iri" }}
":n" = {{ field = "n", datatype = "xsd:integer" }}
":m" = {{ field = "m", datatype = "xsd:integer" }}
":d" = {{ field = "d", datatype = "xsd:double" }}
":text" = {{ field = "text", datatype = "xsd:string" }}
"rdf:type" = {{ field = "kind", datatype = "http://example.org/{{}}" }}
"""
TEXT = """PREFIX : <http://example.org/>
SELECT {selected} ({score} AS ?score)
FROM NAMED WINDOW :w ON :stream [RANGE {width}ms STEP {slide}ms]
WHERE {{ WINDOW :w {{ {pattern} }} {outside} }}
ORDER BY DESC(?score) LIMIT {k}"""
RDF_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"


@dataclass(frozen=True)
class World:
    """Records by chance, and a query over windows of them."""

    seed: int
    pattern: str
    score: str
    outside: str = ""
    shown: str = ""
    arrivals: str = "all"
    events: int = 30
    subjects: int = 12
    richness: float = 0.6
    width: int = 9
    slide: int = 3
    k: int = 3

    @property
    def selected(self) -> str:
        """Variables to select: all that the pattern names without _, or others."""
        names = dict.fromkeys(re.findall(r"\?[^\W_]\w*", self.pattern + self.outside))
        return self.shown or " ".join(names)

    @property
    def text(self) -> str:
        return TEXT.format(
            selected=self.selected,
            score=self.score,
            width=self.width,
            slide=self.slide,
            pattern=self.pattern,
            outside=self.outside,
            k=self.k,
        )

    def catalog(self) -> Catalog:
        arrivals = "" if self.arrivals == "all" else f'arrivals = "{self.arrivals}"'
        text = CATALOG.format(arrivals=arrivals)
        return Catalog.parse(text, file=Path("catalog.toml"), variables={})

    def bind(self) -> Bound:
        return bind_query(self.text, self.catalog())

    @cached_property
    def records(self) -> list[dict[str, Any]]:
        """Records in no order of time; with arrivals that are distinct, each of its own subject."""
        chance = random.Random(self.seed)
        fields = {
            "by": lambda: chance.choice(USERS),
            "to": lambda: chance.choice(USERS),
            "link": lambda: chance.choice(LINKS),
            "n": lambda: chance.randint(-2, 5),
            "m": lambda: chance.randint(-2, 5),
            "d": lambda: chance.choice([0.5, 1.0, 2.25, -0.0, 1e300]),
            "text": lambda: chance.choice(TEXTS),
            "kind": lambda: chance.choice(["Post", "Reply"]),
        }

        def has_one() -> bool:
            return chance.random() < self.richness

        records = [
            {
                "t": chance.randint(1, SPAN),
                "id": str(chance.randint(1, self.subjects)),
                **{name: make() for name, make in fields.items() if has_one()},
            }
            for _ in range(self.events)
        ]
        if self.arrivals == "all":
            return records
        if self.arrivals == "distinct":
            return [{**each, "id": str(number)} for number, each in enumerate(records)]
        # Which of two records of one subject and time is the later is not this test's matter.
        return list({(each["id"], each["t"]): each for each in records}.values())

    def decoded(self, bound: Bound, records: Sequence[dict[str, Any]]) -> pa.RecordBatch:
        """Return records as the decoder hands them on."""
        (stream,) = bound.streams
        lines = [self.line(each).encode() for each in records]
        return stream.mapping.records(pa.record_batch([pa.array(lines, pa.binary())], ["value"]))

    def line(self, record: dict[str, Any]) -> str:
        """Return a record as its source has it."""
        return json.dumps(record)

    def triples(self, record: dict[str, Any]) -> list[ox.Triple]:
        """Return what a record says, written by hand."""
        return triples_of(ox.NamedNode(f"{NS}e/{record['id']}"), record)


@dataclass
class Run:
    """A query at work on a world: batches cut by chance, and restarts from snapshots."""

    world: World
    bound: Bound
    restarts: bool = False
    late: float = 0.0
    lost: list[dict[str, Any]] = field(default_factory=list)

    def answers(self, seed: int) -> Iterator[Answer]:
        chance = random.Random(seed)
        waiting = self.world.records
        query = self._fed()
        closed = 0
        for watermark in range(1, SPAN + 2 * self.world.width):
            due = [each for each in waiting if each["t"] <= watermark or chance.random() < 0.05]
            if watermark < SPAN:
                due = [each for each in due if chance.random() >= self.late]
            waiting = [each for each in waiting if each not in due]
            chance.shuffle(due)
            cut = chance.randint(0, len(due))
            for part in (due[:cut], due[cut:]):
                query.add(STREAM, self.world.decoded(self.bound, part))
            for answer in query.advance(STREAM, watermark):
                closed = answer.closes_ms
                yield answer
            self.lost += [each for each in waiting if each["t"] <= closed]
            if self.restarts and chance.random() < 0.3:
                snapshot = query.evaluation.snapshot()
                query = self._fed(snapshot)

    def _fed(self, snapshot: bytes | None = None) -> Fed:
        evaluation = self._open()
        if snapshot is None:
            evaluation.join(self.bound, {})
        else:
            evaluation.resume(snapshot)
            assert evaluation.resume_query(self.bound)
        return Fed(evaluation, self.bound)

    def _open(self) -> Evaluation:
        assert isinstance(self.bound, BoundQuery)
        join = self.bound.plan.join
        constants = None if join is None else ConstantJoin(join, self.bound.graphs)
        return TopKEvaluation(self.bound, constants)


# By brute force -----------------------------------------------------------------------------------


def triples_of(subject: ox.NamedNode | ox.BlankNode, record: dict[str, Any]) -> list[ox.Triple]:
    """Return what a record says of a subject."""
    made = {
        "by": lambda value: ox.NamedNode(f"{NS}user/{value}"),
        "to": lambda value: ox.NamedNode(f"{NS}user/{value}"),
        "link": ox.NamedNode,
        "n": lambda value: ox.Literal(str(value), datatype=ox.NamedNode(XSD + "integer")),
        "m": lambda value: ox.Literal(str(value), datatype=ox.NamedNode(XSD + "integer")),
        "d": lambda value: ox.Literal(str(value), datatype=ox.NamedNode(XSD + "double")),
        "text": ox.Literal,
        "kind": lambda value: ox.NamedNode(NS + value),
    }
    return [
        ox.Triple(
            subject, ox.NamedNode(RDF_TYPE if name == "kind" else NS + name), made[name](value)
        )
        for name, value in record.items()
        if name in made
    ]


def solutions(world: World, opens_ms: int, closes_ms: int) -> list[dict[str, str]]:
    """Return all solutions of a window with a score, the best first, as SPARQL has them."""
    inside = [each for each in world.records if opens_ms < each["t"] <= closes_ms]
    if world.arrivals == "latest":
        inside = list({each["id"]: each for each in sorted(inside, key=lambda e: e["t"])}.values())
    store = ox.Store()
    store.extend(
        ox.Quad(*triple, ox.DefaultGraph()) for each in inside for triple in world.triples(each)
    )
    rows: Any = store.query(
        f"""PREFIX : <{NS}> PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#>
        PREFIX xsd: <{XSD}>
        SELECT {world.selected} ({world.score} AS ?score)
        WHERE {{ {world.pattern} {world.outside} }} ORDER BY DESC(?score)"""
    )
    names = [variable.value for variable in rows.variables]
    found = [{name: str(row[name]) for name in names if row[name] is not None} for row in rows]
    return [row for row in found if "score" in row and '"NaN"' not in row["score"]]


def is_right(world: World, answer: Answer) -> bool:
    """Return True if an answer has the best solutions; of equal scores any will do."""
    every = [_written(row) for row in solutions(world, answer.opens_ms, answer.closes_ms)]
    shown = [
        _written({name: term.n3() for name, term in row.bindings.items()}) for row in answer.rows
    ]
    best = [_number(row) for row in every[: world.k]]
    return list(map(_number, shown)) == best and _counted(shown) <= _counted(every)


def _number(row: dict[str, object]) -> object:
    """Return a row's score: numbers of any datatype tie."""
    score = row["score"]
    return score[0] if isinstance(score, tuple) else score


def _counted(rows: list[dict[str, object]]) -> Counter[frozenset[tuple[str, object]]]:
    return Counter(frozenset(row.items()) for row in rows)


def _written(row: dict[str, str]) -> dict[str, object]:
    """Return terms in one way of writing them: numbers by their value."""
    return {name: _value(term) for name, term in row.items()}


def _value(term: str) -> object:
    if term.startswith(("_:", "<urn:acquatop:blank:")):
        return "a blank node"
    for datatype in ("integer", "double", "decimal"):
        if term.endswith(f"XMLSchema#{datatype}>"):
            return float(term.split('"')[1]), datatype
    return term.removesuffix(f"^^<{XSD}string>")


def assert_right(world: World, bound: Bound, seed: int, *, restarts: bool = False) -> int:
    """Run a world and judge every answer; return how many rows there were."""
    run, rows = Run(world, bound, restarts), 0
    for answer in run.answers(seed):
        assert answer.status is Status.EXACT
        assert is_right(world, answer), (
            world.text,
            answer.closes_ms,
            [dict(row.bindings) for row in answer.rows],
            solutions(world, answer.opens_ms, answer.closes_ms)[: world.k],
        )
        rows += len(answer.rows)
    return rows
