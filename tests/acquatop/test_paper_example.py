"""The worked example of the AcquaTop paper (Figures 1, 3, 6 and 7): window of 9, slide of 3, start at 1."""

from __future__ import annotations

from acquatop.topk.candidate import Candidate
from acquatop.topk.super_mtkn import SuperMTKN
from acquatop.windows import Windows

WINDOWS = Windows(width_ms=9, slide_ms=3, t0_ms=1)
# (user, time, score) as far as the figures can be read: order and windows are as in the text.
ARRIVALS = [("A", 3, 5.0), ("B", 4, 6.0), ("C", 5, 6.5), ("D", 6, 2.0), ("E", 8, 7.0), ("F", 9, 4.0)]


def arrive(held: SuperMTKN, user: str, time: int, score: float) -> None:
    held.insert([Candidate(user, user, time, score, WINDOWS.first(time), WINDOWS.last(time))])


def names(held: SuperMTKN, window: int) -> str:
    return "".join(each.identity for each in held.top(window))


def test_the_example_of_the_paper() -> None:
    held = SuperMTKN(k=3, n=0)
    for user, time, score in ARRIVALS:
        arrive(held, user, time, score)
    assert names(held, 0) == "ECB"
    assert {each.identity for each in held} >= {"E", "C", "B", "F"}  # F is needed for later windows
    held.close_before(1)
    assert held.find("B") is None  # B arrived at 4, so window (4, 13] does not hold it
    arrive(held, "A", 11, 3.0)
    arrive(held, "G", 12, 9.0)
    assert names(held, 1) == "GEC"
    assert names(held, 2) == "GEF"
    held.rescore([(next(each for each in held if each.identity == "E"), 10.0)])
    assert names(held, 1) == "EGC"
    assert names(held, 3) == "GA"  # window (10, 19] holds neither E nor C
    held._check()
