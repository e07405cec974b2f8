"""Settings for a Spark that an engine starts: its master and its properties.

No Spark is loaded by this.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

MASTERS = (
    "local, local[N], local[*], local-cluster[N,CORES,MB], spark://HOST:PORT, yarn, k8s://HOST:PORT"
)
"""The usual masters, for messages."""

_NUMBER = r"[1-9]\d*"
_HOSTS = r"[^\s:/,]+:\d+(,[^\s:/,]+:\d+)*"
_MASTER = re.compile(
    rf"local(\[(\*|{_NUMBER})(,{_NUMBER})?\])?"
    rf"|local-cluster\[{_NUMBER},{_NUMBER},{_NUMBER}\]"
    rf"|yarn|spark://{_HOSTS}|(?!spark:)[a-z][\w+.-]*://\S+"
)
_KEY = re.compile(r"spark(\.[^\s.=]+)+")


@dataclass(frozen=True)
class SparkSettings:
    """A master and properties for a Spark that an engine starts.

    An engine's own settings hold for all others.
    """

    master: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Say that something is set."""
        return self.master is not None or bool(self.conf)

    def properties(self) -> dict[str, str]:
        """Return all of it as properties of Spark."""
        return {**self.conf, **({} if self.master is None else {"spark.master": self.master})}


def checked_master(text: str) -> str:
    """Return a master's URL, or raise :class:`ValueError`."""
    if not _MASTER.fullmatch(text):
        raise ValueError(f"{text!r} is no master of Spark's: use one like {MASTERS}")
    return text


def parsed_property(text: str) -> tuple[str, str]:
    """Return the name and the value in ``NAME=VALUE``, or raise :class:`ValueError`.

    >>> parsed_property("spark.driver.extraJavaOptions=-Da=b")
    ('spark.driver.extraJavaOptions', '-Da=b')
    """
    name, is_pair, value = text.partition("=")
    if not is_pair:
        raise ValueError(f"{text!r} has no value: write it as spark.driver.memory=4g")
    if not _KEY.fullmatch(name):
        raise ValueError(f"{name!r} is no property of Spark's: their names begin with spark.")
    return name, checked_master(value) if name == "spark.master" else value
