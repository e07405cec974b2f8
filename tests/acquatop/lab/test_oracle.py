"""The oracle against a SPARQL engine that knows nothing of windows, replicas or top-k."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path

import pyoxigraph as ox
import pytest

from acquatop.lab.generate import KINDS, generate
from acquatop.lab.replay.oracle import Oracle
from acquatop.lab.replay.trace import Trace, open_trace
from tests.support.recordings import NS, REMOTE, STREAM, opened, query

SOCIAL = f"{NS}social#"
XSD = "http://www.w3.org/2001/XMLSchema#"

BY_USER = """
SELECT ?user (SUM(?count) AS ?total) {{ ?event <{of}> ?user ; <{count}> ?count }} GROUP BY ?user
"""
BY_MENTION = "?event <{of}> ?user ; <{count}> ?total"
# Clamped as norm() is, with the ranges of the generated query.
GENERATED = """
SELECT {result} (0.7e0 * ?m + 0.3e0 * ?g AS ?score) {{
  {{ {pattern} }}
  ?user <{gains}> ?gain
  BIND ((xsd:double(?total) - {low}) / ({high} - {low}) AS ?m0)
  BIND ((?gain - {worst}) / ({best} - {worst}) AS ?g0)
  BIND (IF(?m0 < 0, 0e0, IF(?m0 > 1, 1e0, ?m0)) AS ?m)
  BIND (IF(?g0 < 0, 0e0, IF(?g0 > 1, 1e0, ?g0)) AS ?g)
}} ORDER BY DESC(?score)
"""


def rows(path: Path) -> Iterator[tuple[int, str, str]]:
    with path.open(encoding="utf-8") as file:
        yield from (
            (int(time), subject, value) for time, subject, value in list(csv.reader(file))[1:]
        )


def solve(text: str, quads: list[ox.Quad]) -> list[tuple[str, float]]:
    store = ox.Store()
    store.extend(quads)
    found = store.query(f"PREFIX xsd: <{XSD}>\n{text}")
    assert isinstance(found, ox.QuerySolutions)
    return [(str(each[0]), float(each["score"].value)) for each in found]  # type: ignore[union-attr]


def any_order_of_equals(answer: list[tuple[str, float]]) -> list[tuple[float, str]]:
    return sorted((-round(merit, 9), name) for name, merit in answer)


def right_answers(trace: Trace) -> list[list[tuple[str, float]]]:
    return [list(zip(each.identities, each.merits.tolist(), strict=True)) for each in Oracle(trace)]


@pytest.mark.parametrize("kind", KINDS)
def test_generated_traces(kind: str, tmp_path: Path) -> None:
    made = generate(KINDS[kind], seed=3, users=60, windows=8)
    made.write(tmp_path)
    trace = open_trace(tmp_path, made.query)
    _, after = re.split(r"norm\(\?(?:mentionCount|reach), ", made.query, maxsplit=1)
    low, high = after.split(")", 1)[0].split(", ")
    worst, best = after.split("norm(?gain, ", 1)[1].split(")", 1)[0].split(", ")
    names = {"of": f"{SOCIAL}of", "count": f"{SOCIAL}count", "gains": f"{SOCIAL}gainsFollowers"}
    by_user = trace.bound.plan.aggregate is not None
    pattern = (BY_USER if by_user else BY_MENTION).format(**names)
    result = "?user" if by_user else "?event"
    names |= {"pattern": pattern, "result": result}
    text = GENERATED.format(**names, low=low, high=high, worst=worst, best=best)
    expected = []
    for window in trace.windows():
        opens, closes = trace.bound.windows.bounds(window)
        quads = []
        for number, (time, user, value) in enumerate(rows(tmp_path / "stream.csv"), 1):
            if opens < time <= closes:
                event = ox.NamedNode(f"{NS}mention/{number}")
                quads.append(ox.Quad(event, ox.NamedNode(names["of"]), ox.NamedNode(user)))
                quads.append(ox.Quad(event, ox.NamedNode(names["count"]), ox.Literal(int(value))))
        now = {user: value for time, user, value in rows(tmp_path / "remote.csv") if time <= closes}
        gains = ox.NamedNode(names["gains"])
        quads += [
            ox.Quad(ox.NamedNode(user), gains, ox.Literal(float(value)))
            for user, value in now.items()
        ]
        expected.append(solve(text, quads))
    assert len(expected) == 8
    for found, solved in zip(right_answers(trace), expected, strict=True):
        assert [merit for _, merit in found] == pytest.approx([score for _, score in solved])
        assert any_order_of_equals(found) == any_order_of_equals(solved)


def test_the_newest_arrival_of_a_subject_counts(tmp_path: Path) -> None:
    trace = opened(tmp_path)
    expected = []
    for window in trace.windows():
        opens, closes = trace.bound.windows.bounds(window)
        newest = {user: n for time, user, n in STREAM if opens < int(str(time)) <= closes}
        now = {user: n for time, user, n in REMOTE if int(str(time)) <= closes}
        quads = [
            ox.Quad(
                ox.NamedNode(f"{NS}user/{user}"),
                ox.NamedNode(NS + name),
                ox.Literal(int(str(value))),
            )
            for name, values in (("mentions", newest), ("followers", now))
            for user, value in values.items()
        ]
        text = (
            f"SELECT ?user (2 * ?m + ?f AS ?score) {{ ?user <{NS}mentions> ?m ; "
            f"<{NS}followers> ?f }}"
        )
        expected.append(sorted(solve(text, quads), key=lambda each: -each[1]))
    for found, solved in zip(right_answers(trace), expected, strict=True):
        assert [merit for _, merit in found] == [score for _, score in solved]
        assert sorted(found) == sorted(solved)


def test_equal_scores_are_ordered_by_age_and_then_by_text(tmp_path: Path) -> None:
    trace = opened(
        tmp_path,
        stream=[(1, "dan", 1), (2, "cyd", 1), (2, "bob", 1), (3, "ann", 0), (9, "eve", 9)],
        remote=[(0, user, 5) for user in ("ann", "bob", "cyd", "dan")],
        query=query(k=9),
    )
    (found,) = right_answers(trace)
    assert [user.removeprefix(f"<{NS}user/") for user, _ in found] == [
        "bob>",
        "cyd>",
        "dan>",
        "ann>",
    ]


def test_the_smallest_scores_may_be_wanted(tmp_path: Path) -> None:
    greatest = right_answers(opened(tmp_path / "greatest"))
    smallest = right_answers(opened(tmp_path / "smallest", query=query(direction="ASC")))
    assert [[(user, -merit) for user, merit in found[::-1]] for found in smallest] == greatest


def test_records_of_one_subject_make_solutions_together(tmp_path: Path) -> None:
    stream = [(1, "ann", 1), (2, "bob", 5), (4, "ann", 3), (8, "bob", 5), (9, "ann", 1)]
    asked = query().replace(":mentions ?mentions", ":mentions ?mentions, ?again")
    trace = opened(tmp_path, stream=stream, query=asked, arrivals="all")
    expected = []
    for window in trace.windows():
        opens, closes = trace.bound.windows.bounds(window)
        inside = [row for row in stream if opens < row[0] <= closes]
        now = {user: n for time, user, n in REMOTE if int(str(time)) <= closes}
        said = {
            "mentions": [(user, n) for _, user, n in inside],
            "followers": list(now.items()),
        }
        quads = [
            ox.Quad(
                ox.NamedNode(f"{NS}user/{user}"),
                ox.NamedNode(NS + name),
                ox.Literal(int(str(value))),
            )
            for name, rows in said.items()
            for user, value in rows
        ]
        text = (
            f"SELECT ?user (2 * ?m + ?f AS ?score) {{ ?user <{NS}mentions> ?m, ?again ; "
            f"<{NS}followers> ?f }}"
        )
        expected.append(sorted((score for _, score in solve(text, quads)), reverse=True))
    assert max(map(len, expected)) == 5
    assert [[merit for _, merit in each] for each in right_answers(trace)] == expected
