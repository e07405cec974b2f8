"""Lines of the stream: posts, signs of life, and messages of X about the stream itself."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from connectors.fields import FAULT
from connectors.x_api.fields import schema_of_lines, value_of
from connectors.x_api.line_parser import NOT_A_POST, LineParser
from connectors.x_api.recent_ids import Ids

_IDS = LineParser(schema_of_lines({"id": pa.string()}))
_NUMBER = r"^[0-9]{1,19}$"
NO_ID = 0
"""Id of lines without one; X's ids begin with 20."""


@dataclass(frozen=True)
class ApiProblem:
    """A problem that X reports, with the stream or with a request."""

    title: str
    detail: str = ""
    issue: str = ""
    """Machine-readable reason: ``disconnect_type`` or ``connection_issue``.

    The former is for a stream that was closed, the latter for one that was not opened.
    """
    value: str = ""
    """Subject of the problem, such as a rule."""

    @property
    def is_limit(self) -> bool:
        """True if there are too many connections."""
        return self.issue == "TooManyConnections"

    def __str__(self) -> str:
        said = ": ".join(filter(None, (self.title, self.detail)))
        return f"{said} ({self.value})" if self.value else said

    @staticmethod
    def all_of(record: object) -> Sequence[ApiProblem]:
        """Return the problems in a JSON value: a single one, or those under ``errors``.

        >>> (
        ...     ApiProblem.all_of({"errors": [{"title": "operational-disconnect"}]}),
        ...     ApiProblem.all_of({"id": 1}),
        ... )
        ([ApiProblem(title='operational-disconnect', detail='', issue='', value='')], [])
        """
        if not isinstance(record, Mapping):
            return []
        errors = record.get("errors")
        several = errors if isinstance(errors, list) else [record]
        return [
            _problem(each)
            for each in several
            if isinstance(each, Mapping) and ("title" in each or "message" in each)
        ]


def _problem(record: Mapping[str, Any]) -> ApiProblem:
    details = record.get("details")
    detail = details[0] if isinstance(details, list) and details else record.get("detail", "")
    issue = record.get("connection_issue") or record.get("disconnect_type") or ""
    title, value = record.get("title") or record.get("message"), record.get("value") or ""
    return ApiProblem(str(title), str(detail or ""), str(issue), str(value))


@dataclass(frozen=True)
class Messages:
    """Classified lines of the stream.

    ``posts`` also has the unreadable lines, whose id in ``ids`` is ``NO_ID``.
    """

    posts: pa.BinaryArray
    ids: Ids
    problems: Sequence[ApiProblem]

    @staticmethod
    def of(lines: pa.BinaryArray) -> Messages:
        """Classify lines; empty ones are only signs of life.

        >>> found = Messages.of(
        ...     pa.array(
        ...         [b'{"data": {"id": "20"}}', b"", b"{", b'{"title": "closed"}'], pa.binary()
        ...     )
        ... )
        >>> found.posts.to_pylist(), found.ids, [str(each) for each in found.problems]
        ([b'{"data": {"id": "20"}}', b'{'], array([20,  0], dtype=uint64), ['closed'])
        """
        lines = lines.filter(pc.match_substring_regex(lines, r"\S"))
        parsed = _IDS.parse(lines)
        written = pc.fill_null(value_of(parsed, "id"), "")
        numbers = pc.if_else(pc.match_substring_regex(written, _NUMBER), written, str(NO_ID))
        ids = pc.cast(numbers, pa.uint64()).to_numpy(zero_copy_only=False)
        odd = pc.fill_null(pc.equal(parsed.column(FAULT), NOT_A_POST), False).combine_chunks()
        if not pc.any(odd, min_count=1).as_py():
            return Messages(lines, ids, [])
        said = [ApiProblem.all_of(json.loads(line)) for line in lines.filter(odd).to_pylist()]
        is_post = np.ones(len(lines), np.bool_)
        is_post[np.flatnonzero(odd)[[bool(each) for each in said]]] = False
        return Messages(
            lines.filter(pa.array(is_post)), ids[is_post], [each for some in said for each in some]
        )

    def readable(self) -> Messages:
        """Return the same without unreadable lines."""
        has_id = self.ids != NO_ID
        return Messages(self.posts.filter(pa.array(has_id)), self.ids[has_id], self.problems)
