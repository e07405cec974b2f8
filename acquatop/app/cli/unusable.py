"""Messages on the standard error about items that cannot be used, independent of answers."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from acquatop.app.cli.tell import tell
from acquatop.app.watch.intake import Intake, ItemCounts
from acquatop.errors import AcquaTopError

MOST_REASONS = 5
"""The number of reasons in a message; the rest are only counted."""


class NothingUsable(AcquaTopError):  # noqa: N818 (it is how a run has ended)
    """Items came, and all of them are bad."""


class Unusable:
    """Report of bad items at the end of the run; with ``at_first`` at each stream's first one, too.

    Use it as a context manager around the run, and call :meth:`check` at the end of the block. The
    engine needs ``intake`` as an observer. ``silent`` is for a standard error with a log on it: the
    log has the same figures.
    """

    def __init__(self, *, at_first: bool, silent: bool = False) -> None:
        self.intake = Intake(self._say_first) if at_first and not silent else Intake()
        self._silent = silent

    def _say_first(self, stream: str, came: ItemCounts) -> None:
        tell(f"{told(stream, came, so_far=True)}; the end of the run brings the total")

    def check(self) -> None:
        """Raise :class:`NothingUsable` if only bad items have come."""
        if self.intake.is_all_bad:
            raise NothingUsable(self._all())

    def _all(self) -> str:
        bad = {stream: came for stream, came in self.intake.streams().items() if came.bad}
        return "\n".join(told(stream, came) for stream, came in bad.items())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        # An error of check() contains the message already.
        if not self._silent and not isinstance(error, NothingUsable) and self.intake.bad_items:
            tell(self._all())


def told(stream: str, came: ItemCounts, *, so_far: bool = False) -> str:
    """Return the message about a stream's bad items: their number, reasons, and first places.

    >>> from acquatop.ingest.place import Place
    >>> told("urn:s", ItemCounts(3, {"not JSON": 2}, {"not JSON": Place("events", 30)}))
    '2 of 3 items of <urn:s> could not be used: not JSON (2, the first at position 30 of events)'
    """
    from acquatop.app.cli.print_answers import printable

    reasons = [_reason(reason, came) for reason in came.reasons]
    more = len(reasons) - MOST_REASONS
    said = [
        *reasons[:MOST_REASONS],
        *([f"{more} more reason{'s' if more > 1 else ''}"] if more > 0 else []),
    ]
    how = "so far cannot be used" if so_far else "could not be used"
    items = f"{came.bad_items:,} of {came.items:,} item{'' if came.items == 1 else 's'}"
    return printable(f"{items} of <{stream}> {how}: {'; '.join(said)}")


def _reason(reason: str, came: ItemCounts) -> str:
    place = str(came.bad_at.get(reason) or "")
    return f"{reason} ({came.bad[reason]:,}{f', the first at {place}' if place else ''})"
