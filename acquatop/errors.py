"""Errors with causes outside the code: a wrong input, or a wrong environment."""

from __future__ import annotations


class AcquaTopError(Exception):
    """Error with a message that a person can act on; ``exit_code`` is a command's exit code."""

    exit_code = 1


class UserError(AcquaTopError):
    """Wrong input: a query, a catalog, an option."""

    exit_code = 2


class EvaluationError(UserError):
    """Failure of the SPARQL engine: it refuses a query, or cannot evaluate it."""


class EvaluationLost(EvaluationError):  # noqa: N818 (no error of the query's text)
    """Evaluation without a result: it exceeded a limit, or its process ended.

    ``reason`` is one word for counters: ``memory``, ``time``, ``result`` or ``process``.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class EnvironmentProblem(AcquaTopError):  # noqa: N818 (EnvironmentError is a builtin)
    """Wrong environment: an endpoint that refuses, a port that is taken, a Java too old."""
