"""The W3C's tests of SPARQL 1.0 and 1.1 have the outcomes that ``fixtures/w3c.json`` lists.

Each is a continuous query over a window with one record, whose data are static graphs; it runs in
an engine as users have it. An improvement fails here, too. After a look at each change, write the
outcomes anew with ``UPDATE_FIXTURES=1 ./run test tests/acquatop/query/test_w3c.py``; ``counts`` and
``deviations`` are written by hand, and the documentation's table after them.

The tests come from pip's package index, once, and are skipped if it cannot be reached.
"""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from tests.support.markers import THOROUGH
from tests.support.w3c.archive import UnreachableError, suites
from tests.support.w3c.manifests import Case, cases
from tests.support.w3c.runs import outcomes

ROOT = Path(__file__).parents[3]
FIXTURE = ROOT / "tests" / "fixtures" / "w3c.json"
LISTED: dict[str, Any] = json.loads(FIXTURE.read_text("utf-8"))
TESTS: dict[str, dict[str, str]] = LISTED["tests"]
DEVIATIONS: list[dict[str, Any]] = LISTED["deviations"]
MAPPED = [
    group
    for group, tests in TESTS.items()
    if any(not outcome.startswith("not mapped: ") for outcome in tests.values())
]


@pytest.fixture(scope="module")
def groups() -> dict[str, list[Case]]:
    """Return all tests by their folders; skip if they are not there and cannot be fetched."""
    try:
        folder = suites()
    except UnreachableError as error:
        pytest.skip(f"the W3C's tests are not there: {error}")
    found: dict[str, list[Case]] = defaultdict(list)
    for case in cases(folder):
        found[case.group].append(case)
    return found


@THOROUGH
@pytest.mark.parametrize("group", MAPPED)
def test_the_outcomes_are_those_listed(
    group: str, groups: dict[str, list[Case]], tmp_path: Path
) -> None:
    found = outcomes(groups[group], tmp_path)
    if os.environ.get("UPDATE_FIXTURES"):
        TESTS[group] = found
        FIXTURE.write_text(json.dumps(LISTED, indent=1, ensure_ascii=False) + "\n", "utf-8")
    assert found == TESTS[group]


@THOROUGH
def test_every_test_is_listed_once(groups: dict[str, list[Case]]) -> None:
    assert {group: sorted(each.name for each in found) for group, found in groups.items()} == {
        group: sorted(tests) for group, tests in TESTS.items()
    }


@THOROUGH
def test_what_is_not_mapped_is_so_for_the_reason_listed(
    groups: dict[str, list[Case]], tmp_path: Path
) -> None:
    for group in TESTS.keys() - set(MAPPED):
        assert outcomes(groups[group], tmp_path) == TESTS[group], group


def kind_of(outcome: str) -> str:
    return outcome.partition(":")[0]


def test_the_counts_are_those_listed() -> None:
    found = Counter(kind_of(each) for tests in TESTS.values() for each in tests.values())
    assert found == LISTED["counts"]


def test_every_deviation_has_one_reason() -> None:
    deviating = sorted(
        f"{group}/{name}"
        for group, tests in TESTS.items()
        for name, outcome in tests.items()
        if kind_of(outcome) in ("differs", "refused")
    )
    assert sorted(name for each in DEVIATIONS for name in each["tests"]) == deviating


def test_the_documentation_names_every_deviation() -> None:
    page = (ROOT / "docs" / "language.md").read_text("utf-8")
    counts = LISTED["counts"]
    mapped = sum(counts.values()) - counts["not mapped"]
    assert f"{counts['passes']} of the {mapped}" in " ".join(page.split())
    for each in DEVIATIONS:
        names = ", ".join(f"`{name.partition('/')[2]}`" for name in each["tests"])
        assert f"| {each['what']} | {names} | {each['said']} |" in page
