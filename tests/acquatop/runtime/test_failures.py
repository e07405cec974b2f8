"""Failures of Spark are said as such, and no others."""

from __future__ import annotations

from typing import cast

import pytest
from py4j.protocol import Py4JError

from acquatop.errors import EnvironmentProblem
from acquatop.runtime.failures import said_by_spark
from acquatop.runtime.session import Session


class _Ended:
    """Session whose Java has ended."""

    is_on_cluster = False

    def fate(self) -> str | None:
        return "Spark's Java has ended (signal 9)"


SESSION = cast("Session", _Ended())


def test_a_call_of_a_java_that_has_ended_is_a_failure_of_spark() -> None:
    told = pytest.raises(EnvironmentProblem, match=r"Spark's Java has ended \(signal 9\)")
    with told, said_by_spark(SESSION, of=Py4JError):
        raise Py4JError("org.apache.spark.api.python.PythonRDD does not exist in the JVM")


def test_other_errors_stay_what_they_are() -> None:
    with pytest.raises(KeyError), said_by_spark(SESSION, of=Py4JError):
        raise KeyError("a defect")


def test_an_interrupt_stays_one_whatever_fails_behind_it() -> None:
    def interrupted() -> None:
        try:
            raise KeyboardInterrupt
        finally:
            raise Py4JError("Answer from Java side is empty")

    with pytest.raises(KeyboardInterrupt), said_by_spark(SESSION):
        interrupted()
