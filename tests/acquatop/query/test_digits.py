"""Answers whose scores have many digits: right to the last, or not called exact."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from acquatop.answer.answer import Answer, Status
from acquatop.catalog.catalog import Catalog
from acquatop.engine.engine import Engine
from acquatop.query.exactness import REASON

CATALOG = """
[prefixes]
"" = "http://example.org/"
[streams.":s"]
connector = "lines"
options = {{ path = "events.ndjson" }}
arrivals = "{arrivals}"
[streams.":s".mapping]
subject = "http://example.org/{{id}}"
time = "t"
[streams.":s".mapping.properties]
":a" = {{ field = "a", datatype = "xsd:integer" }}
":b" = {{ field = "b", datatype = "xsd:integer" }}
"""
ARRIVALS = ("latest", "distinct")


def answers(
    folder: Path,
    arrivals: str,
    score: str,
    rows: Sequence[tuple[int, int]],
    *,
    where: str = "",
    key: str = "?e",
) -> list[Answer]:
    """Return the answers to the best two by a score, of events one second apart."""
    lines = [
        json.dumps({"id": f"e{at}", "t": 1000 * at, "a": a, "b": b})
        for at, (a, b) in enumerate(rows, start=1)
    ]
    (folder / "events.ndjson").write_text("".join(f"{line}\n" for line in lines), "utf-8")
    (folder / "catalog.toml").write_text(CATALOG.format(arrivals=arrivals), "utf-8")
    query = (
        f"SELECT {key} ({score} AS ?score) FROM NAMED WINDOW :w ON :s [RANGE 10s] WHERE "
        f"{{ WINDOW :w {{ ?e :a ?a ; :b ?b {where} }} }} "
        f"{'' if key == '?e' else f'GROUP BY {key}'} ORDER BY DESC(?score) LIMIT 2"
    )
    catalog = Catalog.load(folder / "catalog.toml")
    with Engine(
        catalog, runtime="local", until_end=True, autostart=False, clock=lambda: 0.0
    ) as engine:
        handle = engine.register(query)
        engine.start()
        return list(handle)


def shown(answer: Answer, key: str = "e") -> list[tuple[str, str]]:
    return [
        (str(row.bindings[key]).rpartition("/")[2], str(row.bindings["score"]))
        for row in answer.rows
    ]


@pytest.mark.parametrize("arrivals", ARRIVALS)
def test_equal_decimals_tie_and_the_newer_is_first(tmp_path: Path, arrivals: str) -> None:
    # In doubles 0.1 * 3 is more than 0.3 * 1.
    (answer,) = answers(tmp_path, arrivals, "?a * 0.1 + ?b * 0.3", [(3, 0), (0, 1), (1, 0)])
    assert shown(answer) == [("e2", "0.3"), ("e1", "0.3")]
    assert answer.status is Status.EXACT


@pytest.mark.parametrize("arrivals", ARRIVALS)
def test_a_filter_on_decimals_is_decided_exactly(tmp_path: Path, arrivals: str) -> None:
    where = "FILTER(?a * 0.1 = 0.3)"
    (answer,) = answers(tmp_path, arrivals, "?a + ?b", [(3, 0), (2, 1)], where=where)
    assert shown(answer) == [("e1", "3")]


@pytest.mark.parametrize("arrivals", ARRIVALS)
@pytest.mark.parametrize(("size", "exact"), [(2**50, True), (2**53, False)])
def test_large_integers_are_right_or_not_called_exact(
    tmp_path: Path, arrivals: str, size: int, exact: bool
) -> None:
    (answer,) = answers(tmp_path, arrivals, "?a", [(size, 0), (size + 1, 0), (size - 1, 0)])
    assert (answer.status is Status.EXACT) is exact
    if exact:
        assert shown(answer) == [("e2", str(size + 1)), ("e1", str(size))]
    else:
        assert answer.reason == REASON


def test_a_quotient_has_eighteen_digits(tmp_path: Path) -> None:
    (answer,) = answers(tmp_path, "distinct", "?a / 3", [(2, 0)])
    assert shown(answer) == [("e1", "0.666666666666666666")]


@pytest.mark.parametrize("arrivals", ARRIVALS)
def test_a_filter_compares_large_integers_to_the_last_digit(tmp_path: Path, arrivals: str) -> None:
    large = 2**60
    where = f"FILTER(?a > {large} && ?a - {large} < 3)"
    rows = [(large + each, each) for each in range(-2, 6)]
    (answer,) = answers(tmp_path, arrivals, "?b", rows, where=where)
    assert shown(answer) == [("e5", "2"), ("e4", "1")]


@pytest.mark.parametrize("arrivals", ARRIVALS)
def test_averages_that_are_equal_tie(tmp_path: Path, arrivals: str) -> None:
    # In doubles 0.1 * 3 + 0.3 is more than 0.3 * 2. The newer key is first.
    rows = [(3, 1), (0, 2), (0, 2)]
    score = "0.1 * AVG(?a) + 0.3 * COUNT(?a)"
    (answer,) = answers(tmp_path, arrivals, score, rows, key="?b")
    assert shown(answer, "b") == [("2", "0.6"), ("1", "0.6")]
    assert answer.status is Status.EXACT


@pytest.mark.parametrize("arrivals", ARRIVALS)
@pytest.mark.parametrize("score", ["SUM(?a)", "AVG(?a)"])
def test_aggregates_of_large_integers_are_not_called_exact(
    tmp_path: Path, arrivals: str, score: str
) -> None:
    rows = [(2**53, 1), (1, 1), (2**53, 2), (2, 2)]
    (answer,) = answers(tmp_path, arrivals, score, rows, key="?b")
    assert answer.reason == REASON
