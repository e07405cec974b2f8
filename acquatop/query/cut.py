"""Cut of ordered results: the first k, or those of each group, and what ties with the last."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class LimitCut:
    """Cut behind the ``count`` results that follow the first ``offset``, in each group.

    ``with_ties``, it is behind the last result that ties with the last of these.

    >>> LimitCut(1).kept(["x", "y", "x", "y"], [0, 0, 0, 1])
    [0, 1]
    >>> LimitCut(1, with_ties=True).kept(["x", "y", "x", "y"], [0, 0, 0, 1])
    [0, 1, 2]
    """

    count: int
    offset: int = 0
    with_ties: bool = False

    def kept(self, groups: Sequence[Hashable], classes: Sequence[int]) -> list[int]:
        """Return the positions of the results that stay, given each one's group and class.

        Results of one class tie. O(results).
        """
        return list(self._kept(groups, classes))

    def _kept(self, groups: Sequence[Hashable], classes: Sequence[int]) -> Iterator[int]:
        before: Counter[Hashable] = Counter()
        last: dict[Hashable, int] = {}
        for at, (group, tied) in enumerate(zip(groups, classes, strict=True)):
            place = before[group] - self.offset
            before[group] += 1
            if 0 <= place < self.count:
                last[group] = tied
                yield at
            elif place >= self.count and self.with_ties and last.get(group) == tied:
                yield at


def classes_of(ordered: Sequence[Hashable], otherwise: Sequence[Hashable]) -> list[int]:
    """Return the class of each of some ordered results, given them in another order, too.

    The two orders have the same keys; what ties is in one order in the first, and in the opposite
    one in the second. So a class ends where as many first results of both are the same. Equal
    results tie. O(results).

    >>> classes_of(["a", "b", "c", "d"], ["a", "c", "b", "d"])
    [0, 1, 1, 2]
    >>> classes_of(["a", "a", "b"], ["a", "a", "b"])
    [0, 0, 1]
    """
    classes: list[int] = []
    surplus: Counter[Hashable] = Counter()
    class_ = 0
    for at, (one, other) in enumerate(zip(ordered, otherwise, strict=True)):
        classes.append(class_)
        surplus[one] += 1
        surplus[other] -= 1
        for each in {one, other}:
            if not surplus[each]:
                del surplus[each]
        if not surplus and at + 1 < len(ordered) and ordered[at + 1] != one:
            class_ += 1
    return classes
