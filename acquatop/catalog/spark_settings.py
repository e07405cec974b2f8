"""Settings for a Spark that an engine starts: its master and its properties."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from acquatop.catalog.section import Section

MASTERS = (
    "local, local[N], local[*], local-cluster[N,CORES,MB], spark://HOST:PORT, yarn, k8s://HOST:PORT"
)
"""The usual masters, for messages."""

_NUMBER = r"[1-9]\d*"
_HOSTS = r"[^\s:/,]+:\d+(,[^\s:/,]+:\d+)*"
_MASTER = re.compile(
    rf"local(\[(\*|{_NUMBER})(,{_NUMBER})?\])?"
    rf"|local-cluster\[{_NUMBER},{_NUMBER},{_NUMBER}\]"
    rf"|yarn|spark://{_HOSTS}|(?!spark:|sc:)[a-z][\w+.-]*://\S+"
)
_MASTER_KEY = "spark.master"
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
        return {**self.conf, **({} if self.master is None else {_MASTER_KEY: self.master})}

    def over(self, usual: SparkSettings) -> SparkSettings:
        """Return these settings, and the usual ones for what they leave open."""
        return SparkSettings(conf={**usual.properties(), **self.properties()})


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
    return name, checked_value(name, value)


def checked_value(name: str, value: str) -> str:
    """Return a property's value, or raise :class:`ValueError` for a name or value that is wrong."""
    if not _KEY.fullmatch(name):
        raise ValueError(f"{name!r} is no property of Spark's: their names begin with spark.")
    if name == "spark.remote":
        raise ValueError("'spark.remote' is for Spark Connect, which is not supported")
    return checked_master(value) if name == _MASTER_KEY else value


def read_spark(section: Section) -> SparkSettings:
    """Return the settings of a catalog's table ``spark``."""
    section.allow("master", "conf")
    conf = section.section("conf")
    values = {name: _conf_value(conf, name) for name in conf}
    master = section.text("master") if "master" in section else None
    if master is not None:
        try:
            checked_master(master)
        except ValueError as error:
            section.problem(str(error), "master")
        if values.get(_MASTER_KEY, master) != master:
            section.problem(f'"master" and "{_MASTER_KEY}" name two masters', "master")
    return SparkSettings(master, values)


def _conf_value(conf: Section, name: str) -> str:
    if conf.is_table(name):
        hint = f'write a name in quotes: "{name}.driver.memory" = "4g"'
        conf.problem(f'"{name}" is a table, not a property', name, hint)
        return ""
    value = conf.scalar(name)
    try:
        return checked_value(name, value)
    except ValueError as error:
        conf.problem(str(error), name)
        return value
