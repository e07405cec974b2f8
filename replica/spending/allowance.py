"""Allowance: the items that may be asked for now, usually, and later if they are not asked now."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ItemAllowance:
    """Items that an evaluation may spend: ``usual`` ones on average, and ``now`` at most.

    Of those not spent now up to ``keeps`` may be spent later; the rest is lost. ``saved`` is the
    share of these that earlier evaluations have left.
    """

    usual: float
    now: int
    keeps: int
    saved: float = 0.0

    def without(self, items: int) -> ItemAllowance:
        """Return what is left after some items."""
        return ItemAllowance(
            max(0.0, self.usual - items), max(0, self.now - items), self.keeps, self.saved
        )

    def part(self, share: float) -> ItemAllowance:
        """Return the allowance of one of several who share it: any may spend all of it now."""
        return ItemAllowance(self.usual * share, self.now, self.keeps, self.saved)


SPEND_ALL = ItemAllowance(0.0, 0, 0)
"""Allowance of those who cannot save."""
