"""Table of shapes in docs/language.md: the road that each takes, as the planner says.

Write it anew with ``UPDATE_FIXTURES=1 ./run test tests/acquatop/plan/test_shapes.py``.
"""

from __future__ import annotations

import os
from pathlib import Path

from tests.support.shapes import PARTS, shapes, table

PAGE = Path(__file__).parent.parent.parent.parent / "docs" / "language.md"
BEGIN, END = "<!-- shapes: tests/fixtures/shapes -->\n", "<!-- /shapes -->\n"


def test_the_page_says_which_road_each_shape_takes() -> None:
    before, rest = PAGE.read_text("utf-8").split(BEGIN)
    inside, after = rest.split(END)
    if os.environ.get("UPDATE_FIXTURES"):
        inside = f"\n{table()}\n"
        PAGE.write_text(f"{before}{BEGIN}{inside}{END}{after}", "utf-8")
    assert inside.strip() == table().strip()


def test_every_shape_has_a_name_of_its_own_and_a_known_part() -> None:
    names = [(each.part, each.name) for each in shapes()]
    assert len(set(names)) == len(names)
    assert {part for part, _ in names} <= PARTS.keys()
