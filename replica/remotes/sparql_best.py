"""The best rows of a SPARQL endpoint, by a number that it computes."""

from __future__ import annotations

from replica.remotes.best import BestRows
from replica.remotes.sparql import SparqlRemote


class SparqlBest:
    """Request for the rows of an endpoint with the greatest, or the least, ``rank``.

    The remote's pattern binds the rank wherever it is a number. Equal ranks are in the order of the
    ``key``, an IRI. An endpoint that gives fewer rows than asked for is taken to have no more.
    """

    def __init__(self, remote: SparqlRemote, *, rank: str, key: str, descending: bool) -> None:
        self._remote = remote
        order = "DESC" if descending else "ASC"
        self._order = f"ORDER BY {order}(?{rank}) ?{key}"

    def best(self, count: int, timeout: float) -> BestRows:
        """Return the best ``count`` rows, with one request."""
        rows = self._remote.ordered(self._order, count, timeout)
        found = [row for row in rows if row is not None]
        return BestRows(found, len(rows) < count, ties_by_key=True)
