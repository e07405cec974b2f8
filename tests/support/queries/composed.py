"""Queries of many shapes at once, composed by chance, and their judgement by a SPARQL engine."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyoxigraph as ox

from acquatop.answer.answer import Answer, Status, term_json
from replica.store import Solution
from tests.support.queries.remote_shapes import Shape, World, same_text
from tests.support.worlds import XSD

Row = Mapping[str, tuple[str, str]]
"""Terms by name: each a text that is the same for equal numbers, and its datatype."""
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
Said = Callable[[str, str], list[Solution]]

FIELDS = (
    ("?e :city ?city", (), ("?city",)),
    ("?e :lang ?lang", (), ("?lang",)),
    ("?e :x ?x", ("?x",), ()),
    ("?e :d ?d", ("?d",), ()),
)
"""Patterns of a record, with the numbers and the other terms that each binds."""
TWISTS = (
    ("FILTER(?m > 2)", (), ()),
    ('FILTER(REGEX(STR(?user), "[0-3]$"))', (), ()),
    ('FILTER NOT EXISTS { ?e :lang "en" }', (), ()),
    ("MINUS { ?e :city :c1 }", (), ()),
    ("OPTIONAL { ?e :city ?place }", (), ("?place",)),
    ('OPTIONAL { ?e :lang ?tongue FILTER(?tongue != "de") }', (), ("?tongue",)),
    ("BIND(2 * ?m AS ?twice)", ("?twice",), ()),
    ("{ ?e :x ?v } UNION { ?e :m ?v }", ("?v",), ()),
    ("VALUES ?user { :user\\/u0 :user\\/u1 :user\\/u2 :user\\/u4 }", (), ()),
    (". ?e :m|:x ?w", ("?w",), ()),
)
BESIDE = (
    ("SERVICE :a { ?user :f ?f }", ("?f",), ()),
    ("SERVICE :a { ?user :f ?f } FILTER(?f > ?m)", ("?f",), ()),
    ("SERVICE :a { ?user :f ?f FILTER(?f < 15) }", ("?f",), ()),
    ("SERVICE :b { ?user :name ?name }", ("STRLEN(?name)",), ("?name",)),
    (
        'SERVICE :b { ?user :name ?name } FILTER(CONTAINS(LCASE(?name), "n"))',
        (),
        ("?name", "UCASE(?name)"),
    ),
    ("OPTIONAL { SERVICE :b { ?user :tool ?tool } }", ("IF(BOUND(?tool), 3, 1)",), ("?tool",)),
    ("SERVICE :a { ?user :f ?p ; :city ?city }", ("?p",), ()),
    ("SERVICE :a { ?user :tool ?t } SERVICE :b { ?t :f ?g }", ("?g",), ("?t",)),
    ("MINUS { SERVICE :b { ?user :open true } }", (), ()),
    ("OPTIONAL { SERVICE :b { ?user :f ?o } }", ("COALESCE(?o, 4)",), ("?o",)),
    (
        "{ SERVICE :a { ?user :f ?u } } UNION { SERVICE :b { ?user :f ?u } }",
        ("?u",),
        (),
    ),
    ("SERVICE :b { ?city :f ?c }", ("?c",), ()),
    ("SERVICE :a { ?user :since ?since }", ("YEAR(?since)",), ("?since",)),
    ("GRAPH :static { ?user :f ?s }", ("?s",), ()),
    ("OPTIONAL { GRAPH :static { ?user :name ?label } }", (), ("?label",)),
    ("FILTER NOT EXISTS { GRAPH :static { ?user :open true } }", (), ()),
    (
        "{ SELECT ?user (COUNT(*) AS ?z) { GRAPH :static { ?user :f ?zf } } GROUP BY ?user }",
        ("?z",),
        (),
    ),
    (
        "OPTIONAL { { SELECT ?user (MAX(?yf) AS ?y) { GRAPH :static { ?user :f ?yf } } "
        "GROUP BY ?user } }",
        ("COALESCE(?y, 2)",),
        ("?y",),
    ),
)
"""Patterns beside the WINDOW; those that name ``?city`` need it of the stream."""
AGGREGATES = ("COUNT(*)", "SUM(?m)", "MAX(?m)", "MIN(?m)", "AVG(?m)", "COUNT(DISTINCT ?m)")
OF_TERMS = ("MAX(STR(?user))", "MIN(STR(?e))", "COUNT(DISTINCT ?user)")
CONDITIONS = (
    "COUNT(*) > 1",
    'MIN(STR(?e)) < "http://example.org/e4"',
    "MAX(?m) > 3",
    "SUM(?m) < 20 && MIN(?m) >= 0",
)


@dataclass(frozen=True)
class Composed:
    """Query in pieces: the text for the engine, and one for all results in plain SPARQL."""

    form: str
    columns: str
    where: str
    group: str
    keys: tuple[str, ...]
    k: int
    offset: int
    per: str
    ties: bool

    @property
    def text(self) -> str:
        """The query, with a place for its window."""
        graphs = "FROM NAMED :static " if ":static" in self.where else ""
        heads = {
            "select": f"SELECT {self.columns}",
            "distinct": f"SELECT DISTINCT {self.columns}",
            "construct": "CONSTRUCT { ?user :had ?m }",
            "ask": "ASK",
        }
        per = f"PER {self.per} " if self.per else ""
        return (
            f"{heads[self.form]} FROM NAMED WINDOW :w ON :stream [RANGE $w] {graphs}"
            f"WHERE {{ {self.where} }} {self.group} ORDER BY {' '.join(self.keys)} "
            f"LIMIT {self.k} {per}{'WITH TIES ' * self.ties}OFFSET {self.offset}"
        )

    @property
    def names(self) -> list[str]:
        """Columns that rows are ordered by in the plain text."""
        if self._has_own_keys:
            return [f"key_{at}" for at in range(len(self.keys))]
        return [re.findall(r"\w+", key)[-1] for key in self.keys]

    @property
    def _has_own_keys(self) -> bool:
        return self.form != "distinct" and not self.group

    def plain(self, text: str) -> str:
        """Return a text of this query with all its results, and their keys in columns."""
        head, where = text.split("WHERE", 1)
        where = where.rpartition(" LIMIT ")[0]
        head = re.sub(
            r"(SELECT|CONSTRUCT|ASK).*?(?=FROM|$)", lambda found: self._selected, head, flags=re.S
        )
        return f"{head} WHERE{where}"

    @property
    def _selected(self) -> str:
        further = (
            f"({_expression(key)} AS ?key_{at})"
            for at, key in enumerate(self.keys)
            if self._has_own_keys
        )
        shown = {"construct": "?user ?m", "ask": "?e"}.get(self.form, self.columns)
        distinct = "DISTINCT " if self.form == "distinct" else ""
        return f"SELECT {distinct}{shown} {' '.join(further)} "

    def cut(self, rows: Sequence[Row]) -> list[Row]:
        """Return those of all rows, in order, that are within the limit of their group."""
        kept: list[Row] = []
        seen: Counter[object] = Counter()
        better: dict[object, tuple[list[str | None], int]] = {}
        for row in rows:
            group, keys = row.get(self.per.removeprefix("?")), self.keys_of(row)
            count, seen[group] = seen[group], seen[group] + 1
            # Rows that tie stand together.
            if group not in better or better[group][0] != keys:
                better[group] = keys, count
            first = better[group][1] if self.ties else count
            if self.offset <= count and first < self.offset + self.k:
                kept.append(row)
        return kept

    def keys_of(self, row: Row) -> list[str | None]:
        """Return what a row is ordered by: numbers of any datatype tie."""
        return [row[name][0] if name in row else None for name in self.names]


def _expression(key: str) -> str:
    found = re.fullmatch(r"(?:ASC|DESC)\((.*)\)", key)
    return found[1] if found else key


def composed(seed: int) -> Composed:
    """Return the query of a seed."""
    return _Composer(random.Random(seed)).query()


@dataclass
class _Composer:
    chance: random.Random
    numbers: list[str] = field(default_factory=lambda: ["?m"])
    terms: list[str] = field(default_factory=lambda: ["?user"])
    beside: str = ""

    def query(self) -> Composed:
        """Return a query of what chance takes of everything."""
        chance = self.chance
        stream = " . ".join(["?e :user ?user ; :m ?m", *self._some(FIELDS, [0, 1, 1, 2, 3])])
        twists = " ".join(self._some(TWISTS, [0, 1, 1, 2, 3]))
        window = f"WINDOW :w {{ {stream} {twists} }}"
        kind = chance.choice(["rows", "rows", "rows", "groups", "groups joined", "join's groups"])
        if kind == "groups joined":
            self.numbers, self.terms = ["?n", "?sum"], ["?user"]
            groups = f"SELECT ?user (COUNT(*) AS ?n) (SUM(?m) AS ?sum) WHERE {{ {window} }}"
            window = f"{{ {groups} GROUP BY ?user {self._having()} }}"
        known = window if kind != "groups joined" else ""
        possible = [each for each in BESIDE if "?city" not in each[0] or "?city" in known]
        self.beside = " ".join(self._some(possible, [0, 1, 1, 2, 3], disjoint=True))
        where = f"{window} {self.beside}"
        if kind in ("groups", "join's groups"):
            return self._grouped(where)
        return self._rows(where)

    def _some(
        self,
        parts: Sequence[tuple[str, Sequence[str], Sequence[str]]],
        counts: Sequence[int],
        *,
        disjoint: bool = False,
    ) -> list[str]:
        """Return some parts' patterns, and note what they bind."""
        taken: list[str] = []
        for pattern, numbers, terms in self.chance.sample(parts, self.chance.choice(counts)):
            new = set(re.findall(r"\?\w+", pattern)) - {"?user", "?city", "?m", "?e"}
            if disjoint and new & set(re.findall(r"\?\w+", " ".join(taken))):
                continue
            taken.append(pattern)
            self.numbers += numbers
            self.terms += terms
        return taken

    def _having(self) -> str:
        return f"HAVING({self.chance.choice(CONDITIONS)})" if self.chance.random() < 0.4 else ""

    def _score(self) -> str:
        chance = self.chance
        some = chance.sample(self.numbers, min(len(self.numbers), chance.choice([1, 2, 2, 3])))
        written = [f"{chance.choice(['', '', '2 * ', '0.5 * '])}{each}" for each in some]
        return chance.choice([" + ", " - ", " + ", " * "]).join(written)

    def _directed(self, key: str) -> str:
        return f"{self.chance.choice(['DESC', 'ASC', 'DESC'])}({key})"

    def _rows(self, where: str) -> Composed:
        chance = self.chance
        form = chance.choice(["select"] * 6 + ["distinct"] * 2 + ["construct", "ask"])
        if "?m" not in self.numbers and form in ("construct", "ask"):
            form = "select"
        names = [each for each in [*self.terms, *self.numbers] if each.startswith("?")]
        shown = list(dict.fromkeys(chance.sample(names, min(len(names), chance.choice([1, 2, 3])))))
        computed = chance.choice(
            ["", "", "(UCASE(STR(?user)) AS ?upper)", f"(CONCAT(STR({names[0]}), '!') AS ?said)"]
        )
        score = self._score()
        columns = f"{' '.join(shown)} ({score} AS ?score) {computed}"
        first = "?score" if form in ("select", "distinct") else score
        if chance.random() < 0.25 and shown and form in ("select", "distinct"):
            first = shown[0]
        further = shown if form == "distinct" else [*shown, *self.terms]
        if form in ("construct", "ask"):
            further = self.terms
        more = chance.sample(further, min(len(further), chance.choice([0, 0, 1, 2])))
        keys = [self._directed(each) for each in dict.fromkeys((first, *more))]
        if first == "?score" and form == "select":
            keys[0] = keys[0].replace("?score", score) if chance.random() < 0.5 else keys[0]
        can_cut = form in ("select", "distinct")
        return Composed(
            form,
            columns,
            where,
            "",
            tuple(keys),
            k=chance.randint(1, 5),
            offset=chance.choice([0, 0, 0, 1, 2]) if can_cut else 0,
            per=chance.choice(shown) if can_cut and shown and chance.random() < 0.2 else "",
            ties=can_cut and chance.random() < 0.2,
        )

    def _grouped(self, where: str) -> Composed:
        chance = self.chance
        by = [each for each in self.terms if each.startswith("?")]
        by = chance.sample(by, min(len(by), chance.choice([1, 1, 2])))
        functions = [chance.choice(AGGREGATES), chance.choice([*AGGREGATES, *OF_TERMS])]
        if "SERVICE" in self.beside or ":static" in self.beside:
            functions = [each.replace("DISTINCT ", "") for each in functions]
        columns = f"{' '.join(by)} ({functions[0]} AS ?a) ({functions[1]} AS ?b)"
        more = chance.sample([*by, "?b"], chance.choice([0, 1]))
        return Composed(
            "select",
            columns,
            where,
            f"GROUP BY {' '.join(by)} {self._having()}",
            tuple(self._directed(each) for each in ("?a", *more)),
            k=chance.randint(1, 4),
            offset=chance.choice([0, 0, 1]),
            per=chance.choice(by) if chance.random() < 0.1 else "",
            ties=chance.random() < 0.2,
        )


class ComposedWorld(World):
    """World of a composed query, both by a seed."""

    def __init__(self, seed: int) -> None:
        self.query = composed(seed)
        chance = random.Random(seed + 1)
        self.is_generous = chance.random() < 0.5
        self.restarts = random.Random(seed) if chance.random() < 0.3 else None
        super().__init__(
            Shape(
                seed,
                self.query.text,
                events=chance.choice([0, 20, 40, 60]),
                width=chance.randint(2, 16),
                slide=chance.randint(1, 8),
                n=1000 if self.is_generous else chance.choice([3, 1000]),
                items=1000 if self.is_generous else chance.choice([0, 1, 3]),
                changes=chance.choice([0, 0.3, 2]),
                failures=0 if self.is_generous else chance.choice([0, 0.3]),
                arrivals=chance.choice(["distinct", "latest", "all"]),
                counts=chance.random() < 0.15,
                load=chance.random() < 0.3,
                policy=chance.choice(["", "", "AT-TSM", "WSJ-WBM"]),
            )
        )

    def problems(self) -> Iterator[str]:
        """Yield what is wrong with the answers, close by close."""
        for answer in self.answers(self.restarts):
            if found := self.problem(answer):
                yield f"{found}: {self.text}"
            elif self.is_generous and self.is_incremental and answer.status is not Status.EXACT:
                yield f"{answer.status} at {answer.closes_ms}, {answer.reason}: {self.text}"

    def problem(self, answer: Answer) -> str:
        """Return what is wrong with an answer, by the words that it says of itself."""
        if answer.status is Status.APPROXIMATE:
            return ""
        found = self._problem(answer, self.known) if self.is_incremental else ""
        if answer.status is Status.EXACT:
            found = found or self._problem(answer, self.true)
        return found and f"{answer.status} at {answer.closes_ms}: {found}"

    def _problem(self, answer: Answer, said: Said) -> str:
        query = self.query
        found = self._solutions(answer, said, query.plain(self.text))
        names = [each.value for each in found.variables]
        rows: list[Row] = [
            {name: _said(each[name]) for name in names if each[name] is not None} for each in found
        ]
        rows = [row for row in rows if not self._is_no_result(row)]
        right = query.cut(rows)
        if answer.form == "ask":
            return "" if answer.boolean == bool(rows) else f"{answer.boolean}, not {rows}"
        if answer.form == "construct":
            return self._problem_of_triples(answer, rows)
        shown = [
            {name: _plain(term_json(term)) for name, term in row.bindings.items()}
            for row in answer.rows
        ]
        said_in_short = f"{shown}, not {right}"
        if len(shown) != len(right):
            return f"{len(shown)} rows, not {len(right)}: {said_in_short}"
        if Counter(map(_frozen, shown)) - Counter(map(_frozen, rows)):
            return f"rows that there are not: {said_in_short}"
        possible: dict[object, list[object]] = {}
        for row in rows:
            possible.setdefault(_frozen(row), []).append(query.keys_of(row))
        for place, wanted in zip(shown, right, strict=True):
            if query.keys_of(wanted) not in possible[_frozen(place)]:
                return f"not in order: {said_in_short}"
        per = query.per.removeprefix("?")
        if Counter(row.get(per) for row in shown) != Counter(row.get(per) for row in right):
            return f"other groups: {said_in_short}" if per else ""
        return ""

    def _is_no_result(self, row: Row) -> bool:
        """Return True if a row has no score; a variable alone may be unbound."""
        key = _expression(self.query.keys[0])
        is_score = key == "?score" or not key.startswith("?") or " " in key
        lacks = row.get(self.query.names[0], ("nan", ""))[0] == "nan"
        return lacks and (is_score or bool(self.query.group))

    def _problem_of_triples(self, answer: Answer, rows: Sequence[Row]) -> str:
        possible = {(row["user"][0], row["m"][0]) for row in rows}
        said = {tuple(each.split(" ")[::2]) for each in answer.triples}
        found = {(subject.strip("<>"), repr(float(said.split('"')[1]))) for subject, said in said}
        if not found <= possible or bool(found) != bool(possible):
            return f"{found}, not of {possible}"
        return ""


def _said(term: Any) -> tuple[str, str]:
    if isinstance(term, ox.Literal):
        return same_text(term.value, term.datatype.value, term.language), term.datatype.value
    return str(term.value), ""


def _plain(said: Mapping[str, Any]) -> tuple[str, str]:
    language, datatype = said.get("xml:lang"), said.get("datatype")
    if said["type"] == "uri":
        return said["value"], ""
    kind = f"{RDF}langString" if language else datatype or f"{XSD}string"
    return same_text(said["value"], datatype, language), kind


def _frozen(row: Row) -> frozenset[tuple[str, tuple[str, str]]]:
    return frozenset((name, each) for name, each in row.items() if not name.startswith("key_"))
