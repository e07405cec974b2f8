"""Words for what has failed on Spark: one message that a person can act on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from acquatop.errors import AcquaTopError, EnvironmentProblem

if TYPE_CHECKING:
    from acquatop.catalog.catalog import Stream
    from acquatop.runtime.session import Session

_MEMORY = "give it more (--conf spark.driver.memory=4g, or --driver-memory of spark-submit)"
_SMALLER = "or let batches be smaller, by the option of the source that limits them"
_FULL = ("out of memory", "OutOfMemoryError", "maxResultSize", "TaskResultLost", "[LOST]")
"""Message if results are too large for the driver."""
_OWN = re.compile(r"\bConnectorError: (.+)(\n  hint: .+)?")
"""Message of a connector, which says what to do."""


@contextmanager
def said_by_spark(session: Session, stream: Stream | None = None) -> Iterator[None]:
    """Raise failures of Spark as an :class:`~acquatop.errors.EnvironmentProblem` of a few words."""
    try:
        yield
    except AcquaTopError:
        raise
    except Exception as failure:
        raise _problem(
            session.fate() or _essence(str(failure)) or type(failure).__name__, stream
        ) from failure


def _problem(said: str, stream: Stream | None) -> EnvironmentProblem:
    what = (
        "Spark has failed" if stream is None else f"the stream <{stream.iri}> has failed on Spark"
    )
    hint = f"\n  hint: {_MEMORY}, {_SMALLER}" if any(each in said for each in _FULL) else ""
    return EnvironmentProblem(f"{what}: {said}{hint}")


def _essence(text: str) -> str:
    """Return the line of a long message that says most.

    >>> _essence("An error occurred while calling o1.x.\\n: org.SparkException: Job aborted")
    'org.SparkException: Job aborted'
    >>> print(_essence("x\\n  connectors.ConnectorError: a has gone\\n  hint: put it back\\n y"))
    a has gone
      hint: put it back
    """
    if (own := _OWN.search(text)) is not None:
        return own[1] + (own[2] or "")
    lines = [line.strip().removeprefix(": ") for line in text.splitlines() if line.strip()]
    for word in ("Error:", "Exception:"):
        for line in lines:
            if word in line:
                return line
    return lines[0] if lines else ""
