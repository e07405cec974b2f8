"""What can go wrong outside the code, told apart by who can mend it."""

from __future__ import annotations


class AcquaTopError(Exception):
    """An error with a message that a person can act on; ``exit_code`` is what a command ends with."""

    exit_code = 1


class UserError(AcquaTopError):
    """The input is wrong: a query, a catalog, an option."""

    exit_code = 2


class EvaluationError(UserError):
    """The SPARQL engine refuses a query, or fails at it."""


class EnvironmentProblem(AcquaTopError):  # noqa: N818 (EnvironmentError is a builtin)
    """The surroundings are wrong: an endpoint that refuses, a port that is taken, a Java too old."""
