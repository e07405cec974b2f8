"""Labels of which there must not be too many."""

from __future__ import annotations

OTHER = "other"
"""What stands for every label beyond the limit."""


class BoundedLabels:
    """Lets the first labels of each group through, and makes one of all others: a metric keeps a line for each forever.

    Time and memory O(1) per label.

    >>> labels = BoundedLabels(2)
    >>> [labels("s", each) for each in ("a", "b", "c", "a")]
    ['a', 'b', 'other', 'a']
    >>> labels("t", "c")
    'c'
    """

    def __init__(self, limit: int, *, longest: int = 120) -> None:
        self._limit = limit
        self._longest = longest
        self._known: dict[str, set[str]] = {}

    def __call__(self, group: str, label: str) -> str:
        """Return what to count a label of a group as."""
        known = self._known.setdefault(group, set())
        short = label[: self._longest]
        if short not in known:
            if len(known) >= self._limit:
                return OTHER
            known.add(short)
        return short
