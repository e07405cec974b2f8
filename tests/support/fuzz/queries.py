"""Queries of a trial, and what plain Python says of their answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from random import Random
from typing import Any

from acquatop.answer.answer import Answer, Status, term_json
from tests.support.fuzz.encoding import Sent
from tests.support.fuzz.items import PROPERTIES
from tests.support.fuzz.values import NS, Value, is_faithful

WIDTH, SLIDE = 10_000, 5_000
Problems = Iterable[str]
Used = Mapping[int, Sent]
"""Items that have been used, by their numbers."""


@dataclass(frozen=True)
class Query:
    """Query, the form of its answers, and the check of one of them; ``most`` is its LIMIT."""

    name: str
    text: str
    check: Callable[[Answer, Used], Problems]
    form: str = "select"


def all_items() -> Query:
    """Return the query that shows each item once."""
    pattern = "{ ?e :k ?k } }"
    return Query("all", _query("?e ?k", pattern, SLIDE), _no_check)


def of_field(field: str) -> Query:
    """Return the query for all values of a field."""
    pattern = f"{{ ?e :k ?k ; :{field} ?v }} }}"

    def check(answer: Answer, used: Used) -> Problems:
        shown = {_number(row.bindings["k"]): row.bindings["v"] for row in answer.rows}
        expected = {each.item.number: each for each in _within(answer, used) if _said(each, field)}
        if set(shown) != set(expected) or len(answer.rows) != len(shown):
            yield f"values of {sorted(shown)}, expected {sorted(expected)}"
        for number in set(shown) & set(expected):
            yield from _faithful(shown[number], expected[number], field)

    return Query(f"of {field}", _query("?k ?v", pattern, SLIDE), check)


def top(field: str, *, descending: bool) -> Query:
    """Return an incremental top-k query over a field of numbers."""
    order = f"ORDER BY {'DESC' if descending else 'ASC'}(?score) LIMIT 3"
    pattern = f"{{ ?e :k ?k ; :{field} ?v }} }} {order}"

    def check(answer: Answer, used: Used) -> Problems:
        scores = [
            2 * float(value.text) for each in _within(answer, used) if (value := _said(each, field))
        ]
        expected = sorted(scores, reverse=descending)[:3]
        shown = [float(str(row.bindings["score"])) for row in answer.rows]
        if shown != expected:
            yield f"scores {shown}, expected {expected}; {answer.status}, {answer.counts}"
        for row in answer.rows:
            yield from _faithful(row.bindings["v"], used[_number(row.bindings["k"])], field)

    return Query(
        f"top {field} {descending}", _query("?k ?v (2 * ?v AS ?score)", pattern, WIDTH), check
    )


def sums(field: str) -> Query:
    """Return an aggregate query over a field of numbers, by a field of texts."""
    pattern = f"{{ ?e :{field} ?v ; :p2 ?s }} }} GROUP BY ?s ORDER BY DESC(?sum) LIMIT 3"

    def check(answer: Answer, used: Used) -> Problems:
        groups: dict[str, Fraction] = {}
        sizes: dict[str, Fraction] = {}
        for each in _within(answer, used):
            if (value := _said(each, field)) and (key := _said(each, "p2")):
                exact = Fraction(value.text) if field == "p0" else Fraction(float(value.text))
                groups[key.text] = groups.get(key.text, Fraction(0)) + exact
                sizes[key.text] = sizes.get(key.text, Fraction(0)) + abs(exact)
        # An integer sum that goes beyond 64 bits on its way is an error: its group may be missing.
        # One near that is not computed in doubles, which the answer says.
        may_fail = field == "p0" and any(
            each >= 2**63 or (each >= 2**51 and answer.status is Status.APPROXIMATE)
            for each in sizes.values()
        )
        expected = sorted(map(_double, groups.values()), reverse=True)[:3]
        bound = [row for row in answer.rows if "sum" in row.bindings]
        shown = [float(str(row.bindings["sum"])) for row in bound]
        if shown != expected and not may_fail:
            yield f"sums {shown}, expected {expected}; {answer.status}, {answer.counts}"
        for row in bound:
            key = str(row.bindings["s"])
            if float(str(row.bindings["sum"])) != _double(groups.get(key, Fraction(-1))):
                yield f"the sum of {key!r} is {row.bindings['sum']}, not {groups.get(key)}"

    return Query(f"sums {field}", _query("?s (SUM(?v) AS ?sum)", pattern, WIDTH), check)


def last_three() -> Query:
    """Return a query over a window that counts elements."""
    text = (
        f"PREFIX : <{NS}> SELECT ?k ?v FROM NAMED WINDOW :w ON :s [ELEMENTS 3 STEP 1] "
        "WHERE { WINDOW :w { ?e :k ?k ; :p0 ?v } } ORDER BY DESC(?v) LIMIT 2"
    )

    def check(answer: Answer, used: Used) -> Problems:
        values = [int(str(row.bindings["v"])) for row in answer.rows]
        if list(map(float, values)) != sorted(map(float, values), reverse=True):
            yield f"{values} are not in order"
        for row in answer.rows:
            yield from _faithful(row.bindings["v"], used[_number(row.bindings["k"])], "p0")

    return Query("last three", text, check)


def built() -> Query:
    """Return a query that makes triples of texts."""
    text = f"PREFIX : <{NS}> CONSTRUCT {{ ?e :p2 ?v }} {_over(SLIDE)} {{ ?e :p2 ?v }} }}"

    def check(answer: Answer, used: Used) -> Problems:
        expected = sum(1 for each in _within(answer, used) if _said(each, "p2"))
        if len(answer.triples) != expected:
            yield f"{len(answer.triples)} triples, expected {expected}"

    return Query("built", text, check, "construct")


def asked() -> Query:
    """Return a query that asks if there is anything."""
    text = f"PREFIX : <{NS}> ASK {_over(SLIDE)} {{ ?e :k ?k }} }}"

    def check(answer: Answer, used: Used) -> Problems:
        if answer.boolean is not any(True for _ in _within(answer, used)):
            yield f"{answer.boolean} is wrong"

    return Query("asked", text, check, "ask")


def some(random: Random, fields: Iterable[str]) -> list[Query]:
    """Return the query for all items, and some others."""
    others = [
        *(of_field(field) for field in fields),
        *(top("p0", descending=True), top("p1", descending=True), top("p1", descending=False)),
        *(top("p0", descending=False), sums("p0"), sums("p1"), last_three(), built(), asked()),
    ]
    return [all_items(), *random.sample(others, 3)]


def _query(shown: str, pattern: str, width: int) -> str:
    return f"PREFIX : <{NS}> SELECT {shown} {_over(width)} {pattern}"


def _over(width: int) -> str:
    return f"FROM NAMED WINDOW :w ON :s [RANGE {width}ms STEP {SLIDE}ms] WHERE {{ WINDOW :w"


def _no_check(answer: Answer, used: Used) -> Problems:
    return ()


def _within(answer: Answer, used: Used) -> Iterable[Sent]:
    for each in used.values():
        ms = each.item.time.ms
        if ms is not None and answer.opens_ms < ms <= answer.closes_ms:
            yield each


def _said(sent: Sent, field: str) -> Value | None:
    return sent.item.values.get(field)


def _number(term: Any) -> int:
    return int(str(term))


def _faithful(term: Any, sent: Sent, field: str) -> Problems:
    value = _said(sent, field)
    if value is None or not is_faithful(value, PROPERTIES[field], term_json(term)):
        number = sent.item.number
        yield f"{field} of item {number} was {value!r:.200}, and is shown as {term!r:.200}"


def _double(exact: Fraction) -> float:
    try:
        return float(exact)
    except OverflowError:
        return float("inf") if exact > 0 else float("-inf")
