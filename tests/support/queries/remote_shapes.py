"""Random streams joined with remotes of any shape, and the right answers by a SPARQL engine.

The remotes are RDF graphs. An answer is judged by Oxigraph: the query's own text, in which a WINDOW
is a named graph with the window's events, and a SERVICE is a VALUES block of all solutions of its
pattern, either those that the remote has or those that the replica knows.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyoxigraph as ox

from acquatop.answer.answer import Answer, Status, term_json
from acquatop.catalog.catalog import Catalog
from acquatop.catalog.services import Service
from acquatop.ingest.reduce.job import reduced
from acquatop.plan.bind import bind_query
from acquatop.plan.bound import BoundCounted, BoundQuery
from acquatop.plan.remote_query import RemoteQuery
from acquatop.query.contract import Evaluation, Tick
from acquatop.query.kinds import Resources, open_evaluation
from acquatop.query.sparql.engine import LocalEngine
from acquatop.refresh.join_refresh import JoinedReplicas
from acquatop.refresh.lanes import Lanes
from acquatop.refresh.open_replicas import Replicas
from replica.key_tuples import SEPARATOR, key_text, terms_in
from replica.rankers import DEFAULT_RANKERS
from replica.remotes import RemoteError
from replica.store import Solution
from tests.support.worlds import NS, STREAM, XSD

SPAN = 40
PREFIX = f"PREFIX : <{NS}> PREFIX xsd: <{XSD}>\n"
SERVICE = re.compile(r"SERVICE :(\w+) \{((?:[^{}]|\{[^{}]*\})*)\}")

CATALOG = """
[prefixes]
"" = "http://example.org/"
[streams.":stream"]
connector = "lines"
options = {{ path = "events" }}
arrivals = "{arrivals}"
{start}
[streams.":stream".mapping]
subject = "http://example.org/{{id}}"
time = "t"
[streams.":stream".mapping.properties]
":user" = {{ field = "user", datatype = "http://example.org/user/{{}}" }}
":city" = {{ field = "city", datatype = "iri" }}
":lang" = {{ field = "lang" }}
":m" = {{ field = "m", datatype = "xsd:integer" }}
":x" = {{ field = "x", datatype = "xsd:double" }}
":d" = {{ field = "d", datatype = "xsd:decimal" }}
"""
SERVICE_ENTRY = """
[services.":{name}"]
endpoint = "http://127.0.0.1:9/query"
load = {load}
{more}
[services.":{name}".refresh]
items = {items}
n = {n}
{policy}
{refill}
"""


@dataclass(frozen=True)
class Event:
    """Event of the stream: a subject of its own, or one that comes again."""

    t: int
    id: str
    user: str
    city: str
    lang: str
    m: int

    @property
    def decimal(self) -> str:
        """Decimal that no double holds."""
        return f"{self.m - 4}.{7 * self.t % 100:02d}"

    def line(self) -> bytes:
        record = {**vars(self), "city": NS + self.city, "x": self.m / 4, "d": self.decimal}
        return json.dumps(record).encode()

    def quads(self, graph: ox.NamedNode) -> Iterator[ox.Quad]:
        subject = ox.NamedNode(NS + self.id)
        for name, value in (
            ("user", ox.NamedNode(f"{NS}user/{self.user}")),
            ("city", ox.NamedNode(NS + self.city)),
            ("lang", ox.Literal(self.lang)),
            ("m", ox.Literal(self.m)),
            ("x", ox.Literal(self.m / 4)),
            ("d", ox.Literal(self.decimal, datatype=ox.NamedNode(XSD + "decimal"))),
        ):
            yield ox.Quad(subject, ox.NamedNode(NS + name), value, graph)


class GraphRemote:
    """Remote whose data are an RDF graph that the test changes; it can be told to fail."""

    def __init__(self, graph: ox.Store, question: RemoteQuery, world: World) -> None:
        self.block_size = 3
        self._graph = graph
        self._question = question
        self._world = world

    def fetch(self, keys: Sequence[str], timeout: float) -> list[Solution]:
        if self._world.failing:
            raise RemoteError("the graph is out of order")
        assert self._question.key is not None
        names = terms_in(self._question.key)
        rows = " ".join(f"({' '.join(terms_in(key))})" for key in keys)
        return self._select(f"VALUES ({' '.join(f'?{name}' for name in names)}) {{ {rows} }}")

    def load(self, timeout: float, may_ask: object = None) -> Iterator[list[Solution]]:
        yield self._select("")

    def _select(self, values: str) -> list[Solution]:
        found = select(self._graph, self._question.text, values)
        names = terms_in(self._question.key or "")
        if len(names) < 2:
            return found
        return [{**each, key_text(names): key_text(each[name] for name in names)} for each in found]


def select(graph: ox.Store, pattern: str, values: str = "") -> list[Solution]:
    """Return a pattern's solutions over a graph."""
    found = graph.query(f"{PREFIX}SELECT * {{ {values} {{ {pattern} }} }}")
    assert isinstance(found, ox.QuerySolutions)
    names = [each.value for each in found.variables]
    return [{name: str(each[name]) for name in names if each[name] is not None} for each in found]


@dataclass(frozen=True)
class Shape:
    """One query on one kind of stream; the seed fills it with events and changes."""

    seed: int
    query: str
    events: int = 60
    width: int = 12
    slide: int = 4
    k: int = 3
    items: int = 1000
    changes: float = 0.3
    failures: float = 0.0
    arrivals: str = "distinct"
    load: bool = False
    policy: str = ""
    refill: bool = False
    descending: bool = True
    more: str = ""
    users: int = 6
    n: int = 3
    graph: str = "static.nt"
    counts: bool = False


@dataclass
class OpenedReplicas(Replicas):
    """Replicas that remember what was opened last."""

    opened: Any = None

    def open(self, bound: BoundQuery, *, load: bool = True, lanes: Lanes | None = None) -> Any:
        """Return the maintainer of a top-k query's replica."""
        self.opened = super().open(bound, load=load, lanes=lanes)
        return self.opened


class World:
    """A stream and remotes that chance has made, and a query at work on them."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.chance = random.Random(shape.seed)
        self.failing = False
        self.names = list(
            dict.fromkeys(
                SERVICE.findall(shape.query)[at][0]
                for at in range(len(SERVICE.findall(shape.query)))
            )
        )
        self.graphs = {name: ox.Store() for name in self.names}
        self._folder = TemporaryDirectory()
        events = [self._event(at) for at in range(shape.events)]
        # Of one subject's events at one time the greater terms count: here there is one.
        self.events = list({(each.id, each.t): each for each in events}.values())
        for name in self.names:
            for subject in self.subjects():
                self._renew(name, subject)
        window, query = f"{shape.width}ms STEP {shape.slide}ms", shape.query
        if shape.counts:
            window, query = window.replace("ms", ""), query.replace("RANGE $w", "ELEMENTS $w")
        self.text = PREFIX + query.replace("$w", window).replace("$k", str(shape.k)).replace(
            "$d", "DESC" if shape.descending else "ASC"
        )
        self.bound = bind_query(self.text, self._catalog())
        self.now = 0.0
        self.static = ox.Store()
        self.write_graph()
        self.evaluation = self._opened(load=True)
        self.evaluation.join(self.bound, {})

    def _opened(self, *, load: bool) -> Evaluation:
        replicas = OpenedReplicas(open_remote=self._remote, now=lambda: self.now, clock=lambda: 0.0)
        self._replicas = replicas
        resources = Resources(
            replicas,
            lambda: 0.0,
            DEFAULT_RANKERS,
            lambda task, some: [],
            lambda key: Path(),
            durable=False,
            # Without limits: no busy machine's clock decides if there is an answer.
            open_sparql=lambda content, functions, limits: LocalEngine(content, functions),
        )
        return open_evaluation(self.bound, "key", resources, load=load, shared=False)

    def restart(self) -> None:
        """Go on with a new evaluation, from a snapshot of the present one."""
        snapshot = self.evaluation.snapshot()
        self.evaluation.close()
        self.evaluation = self._opened(load=False)
        self.evaluation.resume(snapshot)
        assert self.evaluation.resume_query(self.bound)

    @property
    def is_incremental(self) -> bool:
        bound = self.bound
        return isinstance(bound.query if isinstance(bound, BoundCounted) else bound, BoundQuery)

    @property
    def keeper(self) -> Any:
        """Replica, or replicas, that the evaluation joins its stream with."""
        return self._replicas.opened

    def _catalog(self) -> Catalog:
        shape = self.shape
        text = CATALOG.format(arrivals=shape.arrivals, start="start_ms = 0")
        text += f"""[graphs.":static"]\npath = "{self._folder.name}/{shape.graph}"\n"""
        for name in self.names:
            text += SERVICE_ENTRY.format(
                name=name,
                items=shape.items,
                n=shape.n,
                load=str(shape.load).lower(),
                policy=f'policy = "{shape.policy}"' if shape.policy else "",
                refill="refill = true" if shape.refill else "",
                more=shape.more,
            )
        return Catalog.parse(text, file=Path("c.toml"), variables={})

    def _remote(
        self, service: Service, question: RemoteQuery, client: Any, now: Any, uses_one: bool
    ) -> GraphRemote:
        return GraphRemote(self.graphs[service.iri.removeprefix(NS)], question, self)

    # Data -----------------------------------------------------------------------------------------

    def _event(self, at: int) -> Event:
        chance = self.chance
        ident = f"e{at}" if self.shape.arrivals == "distinct" else f"e{chance.randint(0, 8)}"
        return Event(
            chance.randint(1, SPAN),
            ident,
            f"u{chance.randint(0, self.shape.users - 1)}",
            f"c{chance.randint(0, 2)}",
            chance.choice(["de", "en"]),
            chance.randint(0, 9),
        )

    def subjects(self) -> list[str]:
        users = [f"user/u{at}" for at in range(self.shape.users - 1)]
        return [*users, *(f"t{at}" for at in range(4)), *(f"c{at}" for at in range(3))]

    def _renew(self, name: str, subject: str) -> None:
        """Give a subject other properties in a graph: any number of each, of several types."""
        graph, chance = self.graphs[name], self.chance
        node = ox.NamedNode(NS + subject)
        for quad in list(graph.quads_for_pattern(node, None, None, None)):
            graph.remove(quad)
        if chance.random() < 0.15:
            return
        for _ in range(chance.choice([1, 1, 2, 3])):
            graph.add(_quad(node, "f", ox.Literal(chance.randint(0, 20))))
        for _ in range(chance.choice([0, 1, 2])):
            graph.add(_quad(node, "tool", ox.NamedNode(f"{NS}t{chance.randint(0, 4)}")))
        for _ in range(chance.choice([0, 1, 1])):
            graph.add(_quad(node, "city", ox.NamedNode(f"{NS}c{chance.randint(0, 2)}")))
        graph.add(_quad(node, "name", self._name()))
        day = f"2024-0{chance.randint(1, 9)}-11T00:00:00Z"
        graph.add(_quad(node, "since", ox.Literal(day, datatype=ox.NamedNode(XSD + "dateTime"))))
        graph.add(_quad(node, "open", ox.Literal(chance.random() < 0.5)))

    def _name(self) -> ox.Literal:
        text = self.chance.choice(["Ann", "ben", "Carl", "de", "en"])
        return ox.Literal(text, language=self.chance.choice([None, "de", "en"]))

    def write_graph(self) -> None:
        """Make the static graph anew, from chance."""
        self.graphs["static"] = self.static = ox.Store()
        for subject in self.subjects():
            self._renew("static", subject)
        del self.graphs["static"]
        path = Path(self._folder.name) / self.shape.graph
        self.static.dump(path, ox.RdfFormat.N_TRIPLES, from_graph=ox.DefaultGraph())

    def change(self) -> None:
        """Change some of what the remotes have."""
        for name in self.names:
            for subject in self.subjects():
                if self.chance.random() < self.shape.changes / 4:
                    self._renew(name, subject)
        self.failing = self.chance.random() < self.shape.failures

    # Answers --------------------------------------------------------------------------------------

    def answers(self, restarts: random.Random | None = None) -> Iterator[Answer]:
        """Yield the answers, time going on step by step; ``restarts`` draws when to restart."""
        waiting = sorted(self.events, key=lambda each: each.t)
        for watermark in range(0, SPAN + self.shape.width, 2):
            due = [each for each in waiting if each.t <= watermark]
            waiting = waiting[len(due) :]
            self.chance.shuffle(due)
            if due:
                self._add(due)
            self.change()
            self.now += 1.0
            if restarts is not None and restarts.random() < 0.3:
                self.restart()
            for answer in self.evaluation.advance(Tick(STREAM, watermark, 0.0)):
                assert isinstance(answer, Answer)
                yield answer
        self.evaluation.close()

    def _add(self, events: Sequence[Event]) -> None:
        stream = self.bound.streams[0]
        records = stream.mapping.records(
            pa.record_batch([pa.array([each.line() for each in events], pa.binary())], ["value"])
        )
        parts = list(reduced(records, self.evaluation.reducers(STREAM)))
        self.evaluation.add(STREAM, parts, self.evaluation.names)

    # Judgement ------------------------------------------------------------------------------------

    def judge(self, answer: Answer) -> None:
        """Check an answer by the words that it says of itself."""
        if answer.status is Status.APPROXIMATE:
            return
        self.compare(answer, self.known)
        if answer.status is Status.EXACT:
            self.compare(answer, self.true)

    def true(self, name: str, pattern: str) -> list[Solution]:
        """Return what the remote has."""
        return select(self.graphs[name], pattern)

    def known(self, name: str, pattern: str) -> list[Solution]:
        """Return what the replica knows."""
        found: list[Solution] = []
        for store in self.stores(name, pattern):
            for key in store.keys(store.all_rows()):
                found += (
                    {name: term for name, term in each.items() if SEPARATOR not in name}
                    for each in store.solutions(key)
                )
        return found

    def stores(self, name: str, pattern: str) -> list[Any]:
        """Return the store with the solutions of a pattern."""
        keeper = self.keeper
        if not isinstance(keeper, JoinedReplicas):
            return [keeper.store]
        names = set(re.findall(r"\?(\w+)", pattern))
        return [
            maintainer.store
            for each, maintainer in zip(keeper.join.services, keeper.maintainers, strict=True)
            if each.iri.value == NS + name and set(each.variables) == names
        ]

    def compare(self, answer: Answer, said: Callable[[str, str], list[Solution]]) -> None:
        """Check that an answer has the best results over the solutions that remotes are said to
        have.
        """
        right = self.right(answer, said)
        shown = [_shown(row.bindings) for row in answer.rows]
        best = self.best(right)
        scores = [row.score for row in answer.rows]
        assert scores == [score for score, _ in best], (self.text, shown, right)
        found = zip(scores, map(self.group, shown), strict=True)
        assert Counter(found) == Counter(best), (self.text, shown, right)
        left = Counter(row for _, row in right)
        left.subtract(shown)
        assert not any(count < 0 for count in left.values()), (self.text, shown, right)

    def group(self, row: tuple[tuple[str, str], ...]) -> str | None:
        """Return what the LIMIT groups a row by."""
        per = re.search(r"PER \?(\w+)", self.text)
        return dict(row).get(per[1]) if per else None

    def best(
        self, right: Sequence[tuple[float, tuple[tuple[str, str], ...]]]
    ) -> list[tuple[float, str | None]]:
        """Return the scores and groups of the results within the limit, best first."""
        groups: dict[str | None, list[float]] = {}
        for score, row in right:
            groups.setdefault(self.group(row), []).append(score)
        best: list[tuple[float, str | None]] = []
        for group, scores in groups.items():
            scores.sort(reverse=self.shape.descending)
            count = self.shape.k
            if self.text.endswith("WITH TIES") and len(scores) > count:
                count = max(at for at, each in enumerate(scores, 1) if each == scores[count - 1])
            best += [(score, group) for score in scores[:count]]
        return sorted(best, key=lambda each: each[0], reverse=self.shape.descending)

    def right(
        self, answer: Answer, said: Callable[[str, str], list[Solution]]
    ) -> list[tuple[float, tuple[tuple[str, str], ...]]]:
        """Return all results of a window with their scores, by a SPARQL engine."""
        text = re.sub(r"ORDER BY .*", "", self.text, flags=re.DOTALL)
        found = self._solutions(answer, said, text.replace("norm(?f, 0, 20)", "(?f / 20)"))
        names = [each.value for each in found.variables]
        rows = []
        for each in found:
            score = each["score"]
            if score is None:
                continue
            number = float(score.value)
            shown = {name: _value(each[name]) for name in names if each[name] is not None}
            rows.append((number, tuple(sorted(shown.items()))))
        return rows

    def judge_order(self, answer: Answer) -> None:
        """Check that an answer has the first terms of ``?key`` over what it says to know."""
        if answer.status is Status.APPROXIMATE:
            return
        said = self.true if answer.status is Status.EXACT else self.known
        solutions = self._solutions(answer, said, self.text)
        expected = [_value(each["key"]) if each["key"] else None for each in solutions]
        shown = [dict(_shown(row.bindings)).get("key") for row in answer.rows]
        assert shown == expected, self.text

    def _solutions(
        self, answer: Answer, said: Callable[[str, str], list[Solution]], text: str
    ) -> ox.QuerySolutions:
        """Return what a SPARQL engine finds over a window and what remotes are said to have."""
        store, window = ox.Store(), ox.NamedNode(NS + "w")
        for event in self.inside(answer):
            store.extend(event.quads(window))
        text = SERVICE.sub(lambda found: _values(said(found[1], found[2])), text)
        window_clause = "FROM NAMED :w" if "FROM :static" in text or "D :static" in text else ""
        text = re.sub(r"FROM NAMED WINDOW :w ON :stream \[[^]]*\]", window_clause, text)
        graph = ox.NamedNode(NS + "static")
        store.extend(ox.Quad(*each.triple, graph) for each in self.static)
        found = store.query(text.replace("WINDOW :w", "GRAPH :w"))
        assert isinstance(found, ox.QuerySolutions)
        return found

    def _between(self, answer: Answer) -> list[Event]:
        return [each for each in self.events if answer.opens_ms < each.t <= answer.closes_ms]

    def _last(self, window: int) -> list[Event]:
        """Return the elements that a window has counted."""
        ordered = sorted(self.events, key=lambda each: (each.t, f"{each.id}>"))
        last = (window + 1) * self.shape.slide
        return ordered[max(0, last - self.shape.width) : last]

    def inside(self, answer: Answer) -> list[Event]:
        inside = self._last(answer.window) if self.shape.counts else self._between(answer)
        if self.shape.arrivals != "latest":
            return inside
        newest: dict[str, Event] = {}
        for event in sorted(inside, key=lambda each: each.t):
            newest[event.id] = event
        return list(newest.values())


def _quad(node: ox.NamedNode, name: str, value: Any) -> ox.Quad:
    return ox.Quad(node, ox.NamedNode(NS + name), value, ox.DefaultGraph())


def _values(solutions: Sequence[Mapping[str, str]]) -> str:
    names = sorted({name for each in solutions for name in each})
    if not solutions:
        return "FILTER(false)"
    rows = " ".join(
        "(" + " ".join(each.get(name, "UNDEF") for name in names) + ")" for each in solutions
    )
    return f"VALUES ({' '.join('?' + name for name in names)}) {{ {rows} }}"


def _shown(bindings: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    shown = {}
    for name, term in bindings.items():
        said = term_json(term)
        shown[name] = same_text(said["value"], said.get("datatype"), said.get("xml:lang"))
    return tuple(sorted(shown.items()))


def _value(term: Any) -> str:
    if isinstance(term, ox.Literal):
        return same_text(term.value, term.datatype.value, term.language)
    return str(term.value)


def same_text(value: str, datatype: str | None, language: str | None) -> str:
    """Return a text that is the same for equal values of numbers."""
    if datatype is not None and datatype.startswith(XSD):
        try:
            return repr(float(value))
        except ValueError:
            return value
    return f"{value}@{language}" if language else value
