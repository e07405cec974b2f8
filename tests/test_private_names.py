"""Tests use what users may use: private names of the code are not read, set or replaced."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tests.support.private_names import private_names

TESTS = Path(__file__).parent
STILL_THERE = {
    "acquatop/query": 25,
    "acquatop/runtime": 8,
    "support/crash": 4,  # kills inside steps that only the code knows
    "support": 3,  # Spark has no other way to its Java
    ".": 2,  # argparse has no other way to its options
}
"""Uses by folder. A number only goes down: change the test, then the number here."""


def folder_of(file: Path) -> str:
    """Return the folder of the list that holds a file: the innermost one."""
    place = file.relative_to(TESTS)
    return next(str(each) for each in place.parents if str(each) in STILL_THERE)


def test_no_more_private_names_are_used_than_there_were() -> None:
    used: Counter[str] = Counter()
    places = []
    for file in sorted(TESTS.rglob("*.py")):
        for line, name in private_names(file.read_text("utf-8")):
            used[folder_of(file)] += 1
            places.append(f"{file.relative_to(TESTS)}:{line}: {name}")
    assert used == STILL_THERE, "\n".join(places)
