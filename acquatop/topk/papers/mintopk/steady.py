"""Operations that MinTopk and PreTopk do not support."""

from __future__ import annotations

from acquatop.topk.contract import AnyArray, Rows


class Steady:
    """Structure for queries without a remote: scores never change, and arrivals stay."""

    def change(self, keys: AnyArray) -> Rows:
        """Raise an error: scores never change here."""
        raise NotImplementedError(
            f"{type(self).__name__} is for scores that never change: take PaneDominance"
        )

    def remove(self, identities: AnyArray) -> None:
        """Raise an error: arrivals stay solutions here."""
        raise NotImplementedError(
            f"{type(self).__name__} is for solutions that stay: take PaneDominance"
        )
