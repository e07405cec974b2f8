"""Problem details (RFC 9457) of refused requests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

MEDIA_TYPE = "application/problem+json"
PREFIX = "urn:acquatop:problem:"


@dataclass(frozen=True)
class ProblemKind:
    """Kind of problem: its HTTP status, and the title that all problems of the kind share."""

    status: int
    title: str


KINDS: Mapping[str, ProblemKind] = {
    "invalid-query": ProblemKind(400, "The query cannot be run"),
    "invalid-request": ProblemKind(400, "The request cannot be understood"),
    "unauthorised": ProblemKind(401, "A token is needed"),
    "forbidden": ProblemKind(403, "The token does not allow that"),
    "foreign-origin": ProblemKind(403, "Requests from other sites are refused"),
    "not-found": ProblemKind(404, "There is no such thing here"),
    "method-not-allowed": ProblemKind(405, "That cannot be done with this"),
    "not-acceptable": ProblemKind(406, "The answer cannot be had in that form"),
    "timeout": ProblemKind(408, "The request took too long to come"),
    "name-taken": ProblemKind(409, "A query of that name is registered already"),
    "is-read": ProblemKind(409, "Other queries read the answers of this one"),
    "too-many-queries": ProblemKind(409, "No more queries can be registered"),
    "conflict": ProblemKind(409, "What is kept does not allow that"),
    "too-large": ProblemKind(413, "The request is too large"),
    "target-too-long": ProblemKind(414, "The address is too long"),
    "unsupported-media-type": ProblemKind(415, "The body is not what is expected here"),
    "unknown-host": ProblemKind(421, "This host is not served here"),
    "too-many-requests": ProblemKind(429, "Too many requests"),
    "headers-too-large": ProblemKind(431, "The headers are too large"),
    "internal": ProblemKind(500, "Something went wrong here"),
    "unknown-method": ProblemKind(501, "The method is not known"),
    "surroundings": ProblemKind(
        502, "A remote, or something else that the query needs, cannot be used"
    ),
    "unavailable": ProblemKind(503, "Not now"),
    "cannot-be-kept": ProblemKind(507, "The query cannot be kept"),
}
"""Every kind by its name, which is the end of its ``type``."""


@dataclass
class Problem(Exception):  # noqa: N818 (the standard's word)
    """Refusal of a request: the kind, the detail of this case, and further members."""

    kind: str
    detail: str
    more: Mapping[str, Any] = field(default_factory=dict)
    retry_after: float | None = None

    @property
    def status(self) -> int:
        """The HTTP status."""
        return KINDS[self.kind].status

    def to_json(self) -> dict[str, Any]:
        """Return the problem's document.

        >>> Problem("not-found", "there is no query \\"q\\"").to_json()
        {'type': 'urn:acquatop:problem:not-found', 'title': 'There is no such thing here',
         'status': 404, 'detail': 'there is no query "q"'}
        """
        kind = KINDS[self.kind]
        return {
            "type": PREFIX + self.kind,
            "title": kind.title,
            "status": kind.status,
            "detail": self.detail,
            **self.more,
        }
