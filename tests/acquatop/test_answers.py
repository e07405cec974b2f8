"""Small worlds as folders in ``fixtures/answers``, and the answers in them, on every runtime.

Write the expected answers anew with
``UPDATE_FIXTURES=1 ./run test tests/acquatop/test_answers.py -k local``, then read them.
``fixtures/answers/README.md`` says how to add a case.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.answer_cases import (
    CASES,
    FOLDER,
    Run,
    difference,
    expect,
    expected_lines,
    run_case,
)
from tests.support.answer_oracle import contradictions


def check(case: str, run: Run) -> None:
    assert run.lines, f"{case} has no answers"
    if found := difference(case, expected_lines(case), run.lines):
        pytest.fail(found, pytrace=False)


@pytest.mark.parametrize("case", CASES)
def test_local(case: str, tmp_path: Path) -> None:
    run = run_case(case, tmp_path, runtime="local")
    if os.environ.get("UPDATE_FIXTURES"):
        expect(case, run.lines)
    check(case, run)
    assert contradictions(run) == []


@pytest.mark.usefixtures("executors")
@pytest.mark.parametrize("case", CASES)
def test_spark(case: str, tmp_path: Path, spark: SparkSession) -> None:
    check(case, run_case(case, tmp_path, runtime="spark", spark=spark))


def test_brute_force_contradicts_what_is_wrong(tmp_path: Path) -> None:
    run = run_case("topk_ties", tmp_path, runtime="local")
    (answers,) = run.answers.values()
    doubled = replace(answers[0], rows=answers[0].rows[:1] * 2)
    swapped = replace(answers[1], rows=answers[1].rows[::-1])
    shorter = replace(answers[2], rows=answers[2].rows[:-1])
    assert (
        len(
            contradictions(replace(run, answers={"query": [doubled, swapped, shorter, answers[3]]}))
        )
        == 3
    )


def test_each_case_says_what_it_shows() -> None:
    assert len(CASES) >= 25
    for case in CASES:
        queries = sorted((FOLDER / case).glob("*.rspql"))
        assert queries
        assert all(query.read_text("utf-8").startswith("# ") for query in queries)


def test_a_difference_names_the_case_and_shows_what_is_missing() -> None:
    (case, *_) = CASES
    lines = expected_lines(case)
    assert difference(case, lines, lines) == ""
    said = difference(case, lines, lines[1:])
    assert said.startswith(f"{case}/expected.ndjson, line 1")
    assert "\n  - window: " in said
