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

_MEMORY = (
    "give it more (--conf spark.driver.memory=4g, or --driver-memory of spark-submit), or let "
    "batches be smaller, by the option of the source that limits them"
)
_PYTHON = (
    "spark.pyspark.python names the executors' Python, which needs the packages and the version "
    "of this one"
)
_FILES = "executors read the files of streams themselves: each machine needs them at that path"
_ENDED = (
    "a master that does not answer ends it, and so do executors that end at once or cannot reach "
    "the driver: see the master's page, and work/app-*/*/stderr on a worker"
)
_HINTS = (
    (("out of memory", "OutOfMemoryError", "maxResultSize", "TaskResultLost", "[LOST]"), _MEMORY),
    (("No module named", "Cannot run program", "PYTHON_VERSION_MISMATCH"), _PYTHON),
    (("No such file", "Permission denied"), _FILES),
    (("SparkContext was shut down", "stopped SparkContext"), _ENDED),
)
"""Words of failures, and their remedy."""

_HINT = "\n  hint: "
_PLACE = re.compile(r"\((\S+) executor \d+\): (.*)")
_OWN = re.compile(r"\bConnectorError: (.+)(\n  hint: .+)?")
"""Message of a connector, which says what to do."""


@contextmanager
def said_by_spark(
    session: Session, stream: Stream | None = None, *, of: type[Exception] = Exception
) -> Iterator[None]:
    """Raise failures of Spark as an :class:`~acquatop.errors.EnvironmentProblem` of a few words.

    Only those ``of`` a type are known to be Spark's. An interrupt stays one: PySpark calls its Java
    once more on the way out, which may fail.
    """
    try:
        yield
    except AcquaTopError:
        raise
    except of as failure:
        if _is_interrupted(failure):
            raise KeyboardInterrupt from failure
        said, place = essence(str(failure))
        what = _what(stream) + ("" if place is None else f", on {place}")
        known = with_hint(
            f"{what}: {session.fate() or said or type(failure).__name__}",
            on_cluster=session.is_on_cluster,
        )
        raise EnvironmentProblem(known) from failure


def _is_interrupted(failure: BaseException | None) -> bool:
    """Return True if something failed while an interrupt was on its way out."""
    while failure is not None and not isinstance(failure, KeyboardInterrupt):
        failure = failure.__context__
    return failure is not None


def _what(stream: Stream | None) -> str:
    return (
        "Spark has failed" if stream is None else f"the stream <{stream.iri}> has failed on Spark"
    )


def with_hint(said: str, *, on_cluster: bool) -> str:
    """Return a failure's message, with the remedy if that is known.

    A message's own remedy counts, unless there is one for clusters, and it comes from there.

    >>> print(with_hint("no heap: out of memory\\n  hint: be brief", on_cluster=False))
    no heap: out of memory
      hint: be brief
    >>> print(with_hint("a: No such file\\n  hint: let it stay", on_cluster=True))
    a: No such file
      hint: executors read the files of streams themselves: each machine needs them at that path
    """
    message, _, own = said.partition(_HINT)
    known = (hint for words, hint in _HINTS if any(each in message for each in words))
    hint = own if own and not on_cluster else next(known, own)
    return message + _HINT + hint if hint else message


def essence(text: str) -> tuple[str, str | None]:
    """Return the line of a long message that says most, and the executor's machine if that is said.

    PySpark 4.3 leaves it out of failures in Python.

    >>> essence("An error occurred while calling o1.x.\\n: org.SparkException: Job aborted")
    ('org.SparkException: Job aborted', None)
    >>> essence("Lost task 1.3 (TID 5) (10.0.0.2 executor 1): Traceback:\\n  x\\nOSError: no")
    ('OSError: no', '10.0.0.2')
    >>> print(essence("x\\n  connectors.ConnectorError: a has gone\\n  hint: put it back\\n y")[0])
    a has gone
      hint: put it back
    """
    found = _PLACE.search(text)
    said = text if found is None else text[found.start(2) :]
    return _best_part(said), None if found is None else found[1]


def _best_part(text: str) -> str:
    if (own := _OWN.search(text)) is not None:
        return own[1] + (own[2] or "")
    lines = [line.strip().removeprefix(": ") for line in text.splitlines() if line.strip()]
    for word in ("Error:", "Exception:"):
        for line in lines:
            if word in line:
                return line
    return lines[0] if lines else ""
