"""What MinTopk and PreTopk refuse alike."""

from __future__ import annotations

from acquatop.topk.contract import AnyArray, Rows


class Steady:
    """A structure for queries that ask no remote: scores never change, and what has arrived stays."""

    def change(self, keys: AnyArray) -> Rows:
        """Raise an error: scores never change here."""
        raise NotImplementedError(f"{type(self).__name__} is for scores that never change: take PaneDominance")

    def remove(self, identities: AnyArray) -> None:
        """Raise an error: what has arrived stays a solution here."""
        raise NotImplementedError(f"{type(self).__name__} is for solutions that stay: take PaneDominance")
