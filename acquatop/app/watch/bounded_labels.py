"""Limit on the number of distinct labels."""

from __future__ import annotations

OTHER = "other"
"""The label that replaces every label beyond the limit."""


class BoundedLabels:
    """Map from labels to a bounded number: the first of each group stay, all others become one.

    A metric keeps a line for each label forever. Time and memory O(1) per label.

    >>> labels = BoundedLabels(2)
    >>> [labels("s", each) for each in ("a", "b", "c", "a")]
    ['a', 'b', 'other', 'a']
    >>> labels("t", "c")
    'c'
    >>> labels.forget("s")
    >>> labels("s", "c")
    'c'
    """

    def __init__(self, limit: int, *, longest: int = 120) -> None:
        self._limit = limit
        self._longest = longest
        self._known: dict[str, set[str]] = {}

    def __call__(self, group: str, label: str) -> str:
        """Return the label to count under."""
        known = self._known.setdefault(group, set())
        short = label[: self._longest]
        if short not in known:
            if len(known) >= self._limit:
                return OTHER
            known.add(short)
        return short

    def forget(self, group: str) -> None:
        """Forget the labels of a group."""
        self._known.pop(group, None)
