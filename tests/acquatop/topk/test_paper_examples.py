"""The worked example of the AcquaTop paper (Figures 1, 3, 6 and 7): windows of 9 that slide by 3,
from 1 on.
"""

from __future__ import annotations

from typing import Any

import pytest

from acquatop.topk.contract import Certainty, Rows
from acquatop.topk.papers.mintopk.super_mtkn import SuperMTKN
from acquatop.windows import Windows
from tests.support.topk_streams import STRUCTURES, Arrival, Joined, column, rows_of

WINDOWS = Windows(width_ms=9, slide_ms=3, t0_ms=1)
# (user, time, score) as far as the figures can be read: order and windows are as in the text.
UNTIL_9 = [("A", 3, 5.0), ("B", 4, 6.0), ("C", 5, 6.5), ("D", 6, 2.0), ("E", 8, 7.0), ("F", 9, 4.0)]


def arrive(held: Any, user: str, time: int, score: float) -> None:
    held.add(WINDOWS.first(time), WINDOWS.last(time), rows_of([Arrival(time, user, user, score)]))
    held._check()


def names(rows: Rows) -> str:
    return "".join(rows.identities.tolist())


def members(held: SuperMTKN, *windows: int) -> list[str]:
    """Return the K-list and the N-list of windows, with a bar between the two."""
    return ["|".join(map(names, held.lists(window))) for window in windows]


def at_9(held: Any) -> Any:
    for user, time, score in UNTIL_9:
        arrive(held, user, time, score)
    return held


def test_the_predicted_lists_at_9_10_11_and_12() -> None:
    held = at_9(SuperMTKN(k=3, n=0, scoring=Joined()))
    assert members(held, 0, 1, 2) == ["ECB|", "ECF|", "EF|"]  # Figure 6(a)
    assert names(held.top(0).rows) == "ECB"
    assert names(held.held()) == "ECBF"  # the list: A and D are in no window's top 3

    held.close_before(1)  # at 10
    assert names(held.held()) == "ECF"  # Figure 6(b): B expires
    arrive(held, "A", 11, 3.0)
    assert members(held, 1, 2, 3) == ["ECF|", "EFA|", "A|"]  # 6(c): the marks of A are 2 and 3
    arrive(held, "G", 12, 9.0)
    # 6(d). The text says that the starting marks of C and F grow. Those who leave are F (of W1) and
    # A (of W2).
    assert members(held, 1, 2, 3) == ["GEC|", "GEF|", "GA|"]
    assert names(held.top(1).rows) == "GEC"
    assert names(held.held()) == "GECFA"  # Figure 3


@pytest.mark.parametrize("name", STRUCTURES)
def test_the_answers(name: str) -> None:
    """Without user E's change; A comes again when what came of A before has been let go."""
    held = at_9(STRUCTURES[name].build(3, 0, Joined()))
    assert names(held.top(0).rows) == "ECB"
    held.close_before(1)
    arrive(held, "A", 11, 3.0)
    arrive(held, "G", 12, 9.0)
    for window, best in enumerate(["GEC", "GEF", "GA"], start=1):
        top = held.top(window)
        assert (names(top.rows), top.certainty) == (best, Certainty.EXACT)
        held.close_before(window + 1)
    assert len(held) == 0


@pytest.mark.parametrize("name", [name for name in STRUCTURES if STRUCTURES[name].changes])
def test_the_answers_with_user_e_at_10(name: str) -> None:
    """Figure 1(c), with k=1 and n=2."""
    scoring = Joined()
    held = at_9(STRUCTURES[name].build(1, 2, scoring))
    assert names(held.top(0).rows) == "E"
    held.close_before(1)
    arrive(held, "A", 11, 3.0)
    arrive(held, "G", 12, 9.0)
    scoring.values["E"] = 3.0
    assert len(held.change(column(["E"]))) == 0
    for window, best in enumerate("EEG", start=1):
        top = held.top(window)
        assert names(top.rows) == best
        assert top.merits.tolist() == [10.0 if best == "E" else 9.0]
        held.close_before(window + 1)


def test_the_lists_with_user_e_at_10() -> None:
    """Figure 7: with k=1 and n=2, G is in the N-list of W1 and W2, and in the K-list of W3."""
    scoring = Joined()
    held = at_9(SuperMTKN(k=1, n=2, scoring=scoring))
    held.close_before(1)
    arrive(held, "A", 11, 3.0)
    arrive(held, "G", 12, 9.0)
    assert members(held, 1, 2, 3) == ["G|EC", "G|EF", "G|A"]
    scoring.values["E"] = 3.0
    held.change(column(["E"]))
    assert members(held, 1, 2, 3) == ["E|GC", "E|GF", "G|A"]
    held.top(1)
    assert names(held.held()) == "EGCFA"


def test_k_and_n_lists_of_section_4_2() -> None:
    """With k=2 and n=1 the list of W1 has G and E in its K-list, and C in its N-list."""
    held = at_9(SuperMTKN(k=2, n=1, scoring=Joined()))
    held.close_before(1)
    arrive(held, "A", 11, 3.0)
    arrive(held, "G", 12, 9.0)
    assert members(held, 1) == ["GE|C"]
