"""Explanations of keys that nothing is known of."""

from __future__ import annotations

from dataclasses import replace

import pytest

from acquatop.answer.why import KeptSolutions
from tests.support.empty_answer import NOTHING


class Kept:
    """Memory of an answer that has no solution with any key."""

    def __init__(self, *, is_full: bool) -> None:
        self.kept = KeptSolutions((), 3, is_whole=False, is_full=is_full)

    def about(self, key: str) -> KeptSolutions:
        return self.kept


@pytest.mark.parametrize("is_full", [True, False])
def test_others_were_better_only_if_there_was_no_room_for_more(is_full: bool) -> None:
    why = str(replace(NOTHING, evidence=Kept(is_full=is_full)).why("nobody"))
    assert ("others were better" in why) is is_full
    assert "not seen in the window" in why
