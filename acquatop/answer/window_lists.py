"""Lists of candidates that a running query holds of its open windows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from acquatop.instants import instant_text


@dataclass(frozen=True)
class Listed:
    """Candidate: its time, its score by the values known now, and its terms as N-Triples."""

    time_ms: int
    score: float
    terms: Mapping[str, str]

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            "time": instant_text(self.time_ms),
            "score": self.score,
            "terms": dict(self.terms),
        }


@dataclass(frozen=True)
class WindowLists:
    """K-list of a window, its best if nothing else came, and its N-list, the next ones held."""

    window: int
    opens_ms: int
    closes_ms: int
    k_list: tuple[Listed, ...]
    n_list: tuple[Listed, ...]

    def to_json(self) -> dict[str, Any]:
        """Return them as JSON."""
        return {
            "window": {
                "index": self.window,
                "opens": instant_text(self.opens_ms),
                "closes": instant_text(self.closes_ms),
            },
            "k_list": [each.to_json() for each in self.k_list],
            "n_list": [each.to_json() for each in self.n_list],
        }

    def to_text(self) -> str:
        """Return them as a line.

        >>> best = Listed(5, 2.0, {"post": "<http://example.org/post/7>", "value": '"2"'})
        >>> WindowLists(3, 0, 9, (best,), ()).to_text()
        'window 3: K-list post/7 2; N-list empty'
        """
        names = (", ".join(map(_short, each)) or "empty" for each in (self.k_list, self.n_list))
        return "window {}: K-list {}; N-list {}".format(self.window, *names)


def _short(listed: Listed) -> str:
    first = next(iter(listed.terms.values()), "")
    text = "/".join(first.strip("<>").split("/")[-2:]) if first.startswith("<") else first
    return f"{text} {listed.score:g}"
