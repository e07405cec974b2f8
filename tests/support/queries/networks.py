"""Random networks of queries that read each other's answers, and the right answers by brute force.

Each query is evaluated over its windows by a SPARQL engine; what it answers is put into a graph,
element by element, for those that read it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import pyoxigraph as ox
from hypothesis import strategies as st

from tests.support.worlds import NS

PREFIX = f"PREFIX : <{NS}>\n"
FIRST = {
    "most mentioned": """SELECT ?user (SUM(?m) AS ?n) {window}
        WHERE {{ WINDOW :w {{ ?e :user ?user ; :m ?m }} }}
        GROUP BY ?user ORDER BY DESC(?n) ?user LIMIT 2""",
    "events": """SELECT ?e ?user ?text {window}
        WHERE {{ WINDOW :w {{ ?e :user ?user OPTIONAL {{ ?e :text ?text }} }} }}""",
    "graph": """CONSTRUCT {{ ?user :has ?m ; :said ?text }} {window}
        WHERE {{ WINDOW :w {{ ?e :user ?user ; :m ?m OPTIONAL {{ ?e :text ?text }} }} }}""",
    "elements": """CONSTRUCT {{ [] :user ?user ; :n ?m }} {window}
        WHERE {{ WINDOW :w {{ ?e :user ?user ; :m ?m }} }}""",
}
SECOND = {
    "most mentioned": """SELECT ?user (COUNT(*) AS ?times) (MAX(?n) AS ?most) {window}
        WHERE {{ WINDOW :w {{ ?row :user ?user ; :n ?n }} }}
        GROUP BY ?user ORDER BY DESC(?times) ?user LIMIT 2""",
    "events": """SELECT ?user (COUNT(?text) AS ?times) {window}
        WHERE {{ WINDOW :w {{ ?row :e ?e ; :user ?user OPTIONAL {{ ?row :text ?text }} }} }}
        GROUP BY ?user""",
    "graph": """SELECT ?user ?m ?text {window}
        WHERE {{ WINDOW :w {{ ?user :has ?m OPTIONAL {{ ?user :said ?text }} }} }}""",
    "elements": """SELECT ?user ?n (2 * ?n AS ?score) {window}
        WHERE {{ WINDOW :w {{ ?e :user ?user ; :n ?n }} }} ORDER BY DESC(?score) ?user LIMIT 3""",
}
THIRD = """SELECT ?user (COUNT(*) AS ?again) {window}
    WHERE {{ WINDOW :w {{ ?row :user ?user }} }} GROUP BY ?user"""
OUTPUTS = ("RSTREAM", "ISTREAM", "DSTREAM")


@dataclass(frozen=True)
class Event:
    """Event of the recording."""

    t: int
    user: str
    m: int
    text: str | None


@dataclass(frozen=True)
class Network:
    """Three queries in a row, each over the answers of the one before, and the events."""

    kind: str
    output: str
    sizes: tuple[tuple[int, int], tuple[int, int], tuple[int, int]]
    events: tuple[Event, ...]
    batch_bytes: int

    def texts(self) -> list[str]:
        """Return the texts of the queries, in the order in which they read."""
        patterns = (FIRST[self.kind], SECOND[self.kind], THIRD)
        outputs = (self.output, "RSTREAM", "RSTREAM")
        names = (":events", ":a", ":b", ":c")
        return [
            f"{PREFIX}REGISTER {outputs[at]} {names[at + 1]} AS "
            + each.format(
                window=f"FROM NAMED WINDOW :w ON {names[at]} [RANGE {width}ms STEP {slide}ms]"
            )
            for at, (each, (width, slide)) in enumerate(zip(patterns, self.sizes, strict=True))
        ]

    def recording(self) -> str:
        """Return the events as lines of JSON."""
        said = (
            {"t": each.t, "id": at, "user": each.user, "m": each.m, "text": each.text}
            for at, each in enumerate(self.events)
        )
        return "".join(f"{json.dumps(each)}\n" for each in said)


_SIZES = st.tuples(st.integers(1, 9), st.integers(1, 6))
networks = st.builds(
    Network,
    kind=st.sampled_from(sorted(FIRST)),
    output=st.sampled_from(OUTPUTS),
    sizes=st.tuples(_SIZES, _SIZES, _SIZES),
    events=st.lists(
        st.builds(
            Event,
            st.integers(1, 25),
            st.sampled_from(["ann", "bob", "cid"]),
            st.integers(0, 3),
            st.sampled_from([None, "x", 'y "z"']),
        ),
        min_size=1,
        max_size=14,
    ).map(lambda events: tuple(sorted(events, key=lambda each: each.t))),
    batch_bytes=st.sampled_from([60, 200, 10_000]),
)


@dataclass(frozen=True)
class Right:
    """Right answer: the close of its window, and its results as a sorted list of texts."""

    closes_ms: int
    results: list[Any]


Elements = list[tuple[int, list[ox.Triple]]]
"""Elements of a stream: their times and triples."""


def right_answers(network: Network) -> list[list[Right]]:
    """Return the right answers of each query."""
    elements: Elements = [(each.t, _triples(at, each)) for at, each in enumerate(network.events)]
    reached, found = network.events[-1].t - 1, []
    outputs = (network.output, "RSTREAM", "RSTREAM")
    for text, (width, slide), output in zip(network.texts(), network.sizes, outputs, strict=True):
        right, elements = _answered(text, elements, width, slide, reached, output)
        found.append(right)
        reached = max([reached, *(each.closes_ms for each in right)])
    return found


def _answered(
    text: str, elements: Elements, width: int, slide: int, reached: int, output: str
) -> tuple[list[Right], Elements]:
    """Return the right answers over a stream's elements, and the elements that they are."""
    sparql = re.sub(r"REGISTER \w+ \S+ AS|FROM NAMED WINDOW .*?\]", "", text)
    sparql = sparql.replace("WINDOW :w", "GRAPH :w")
    right: list[Right] = []
    made: Elements = []
    before: list[Any] = []
    for closes in _closes([time for time, _ in elements], width, slide, reached):
        store = ox.Store()
        for time, triples in elements:
            if closes - width < time <= closes:
                store.extend(ox.Quad(*each, ox.NamedNode(f"{NS}w")) for each in triples)
        now = _results(store.query(sparql))
        shown = _difference(output, now, before)
        before = now
        right.append(Right(closes, shown))
        made += ((closes, each) for each in _elements(shown))
    return right, made


def _closes(times: Sequence[int], width: int, slide: int, reached: int) -> list[int]:
    """Return the closes of the windows that are answered, of those aligned to the epoch."""
    if not times:
        return []
    first = next(at for at in count(-width, 1) if (at - width) % slide == 0 and at >= times[0])
    closes = range(first, max(reached, times[-1]) + width + slide, slide)
    holding = [each for each in closes if any(each - width < time <= each for time in times)]
    # A window may be too narrow to hold anything, if its slide is larger.
    last = max([*holding, *(each for each in closes if each <= reached)], default=0)
    return [each for each in closes if each <= last]


def _results(found: Any) -> list[Any]:
    """Return rows as mappings of texts, and triples as tuples of texts, both sorted."""
    if isinstance(found, ox.QuerySolutions):
        names = [each.value for each in found.variables]
        rows = [{name: str(row[name]) for name in names if row[name] is not None} for row in found]
        return sorted(rows, key=lambda each: sorted(each.items()))
    blank: dict[str, str] = {}
    triples = [
        tuple(
            blank.setdefault(str(each), f"_:b{len(blank)}")
            if isinstance(each, ox.BlankNode)
            else str(each)
            for each in (triple.subject, triple.predicate, triple.object)
        )
        for triple in found
    ]
    return _by_subject(triples)


def _by_subject(triples: Sequence[tuple[str, ...]]) -> list[Any]:
    """Return what is said of each subject; that of a blank node without its name."""
    subjects: dict[str, list[tuple[str, str]]] = {}
    for subject, predicate, object_ in dict.fromkeys(triples):
        subjects.setdefault(subject, []).append((predicate, object_))
    groups = [
        ("" if subject.startswith("_:") else subject, sorted(said))
        for subject, said in subjects.items()
    ]
    return sorted(groups)


def _difference(output: str, now: list[Any], before: list[Any]) -> list[Any]:
    if output == "RSTREAM":
        return now
    these, those = (now, list(before)) if output == "ISTREAM" else (before, list(now))
    if these and isinstance(these[0], tuple):
        return _triple_difference(these, those)
    left = []
    for each in these:
        if each in those:
            those.remove(each)
        else:
            left.append(each)
    return left


def _triple_difference(these: list[Any], those: list[Any]) -> list[Any]:
    """Return the triples of a graph that another does not have, again by subject."""
    if any(not subject for subject, _ in these):
        # A solution has the same blank node each time; the nth of equal ones the same as before.
        left, others = [], list(those)
        for each in these:
            if each in others:
                others.remove(each)
            else:
                left.append(each)
        return left
    gone = {(subject, *pair) for subject, said in those for pair in said}
    kept = [
        (subject, [pair for pair in said if (subject, *pair) not in gone])
        for subject, said in these
    ]
    return [each for each in kept if each[1]]


def _elements(shown: Sequence[Any]) -> list[list[ox.Triple]]:
    found = []
    for each in shown:
        if isinstance(each, Mapping):
            row = ox.BlankNode()
            found.append(
                [
                    ox.Triple(row, ox.NamedNode(NS + name), _term(text))
                    for name, text in each.items()
                ]
            )
            continue
        name, said = each
        subject = ox.BlankNode() if not name else _term(name)
        found.append(
            [ox.Triple(subject, _term(predicate), _term(text)) for predicate, text in said]
        )
    return found


def _term(text: str) -> Any:
    (quad,) = ox.parse(f"<urn:s> <urn:p> {text} .", ox.RdfFormat.N_TRIPLES)
    return quad.object


def _triples(at: int, event: Event) -> list[ox.Triple]:
    subject = ox.NamedNode(f"{NS}event/{at}")
    said = [
        (f"{NS}user", ox.NamedNode(f"{NS}user/{event.user}")),
        (f"{NS}m", ox.Literal(event.m)),
    ]
    said += [] if event.text is None else [(f"{NS}text", ox.Literal(event.text))]
    return [ox.Triple(subject, ox.NamedNode(predicate), each) for predicate, each in said]


CATALOG = f"""
[prefixes]
"" = "{NS}"
[streams.":events"]
connector = "lines"
options = {{{{ path = "events.jsonl", maxBytesPerBatch = {{batch}} }}}}
[streams.":events".mapping]
subject = "{NS}event/{{{{id}}}}"
time = "t"
[streams.":events".mapping.properties]
":user" = {{{{ field = "user", datatype = "{NS}user/{{{{}}}}" }}}}
":m" = {{{{ field = "m", datatype = "xsd:integer" }}}}
":text" = {{{{ field = "text" }}}}
"""


def catalog_text(batch_bytes: int) -> str:
    """Return the catalog of the recording, read in batches of a size."""
    return CATALOG.format(batch=batch_bytes)
