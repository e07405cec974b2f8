"""Patterns that a query asks services for."""

from __future__ import annotations

from dataclasses import dataclass

from acquatop.catalog.services import Service
from acquatop.plan.bound import BoundQuery, BoundWindowed
from acquatop.plan.remote_query import RemoteQuery
from replica.key_tuples import key_text


@dataclass(frozen=True)
class AskedPattern:
    """Service and the question to it; ``giver`` is the position of the one that gives the keys.

    It is None if the keys are the stream's.
    """

    service: Service
    question: RemoteQuery
    giver: int | None = None

    @property
    def key(self) -> str:
        """Variable by which the service is asked, or the text of several."""
        assert self.question.key is not None
        return self.question.key


def asked_patterns(bound: BoundQuery | BoundWindowed) -> tuple[AskedPattern, ...]:
    """Return the patterns of a query's services, those that give keys before those asked by them.

    They are as many as a join's services; none if the query asks no remote. Those of whole windows
    are in the order of the plan's remotes, and a SPARQL engine finds their keys.
    """
    if isinstance(bound, BoundWindowed):
        return tuple(
            AskedPattern(
                each.service,
                RemoteQuery(each.part.pattern.group, each.part.variables, each.part.key),
            )
            for each in bound.remotes
        )
    plan = bound.plan
    if plan.join is not None:
        return tuple(
            AskedPattern(
                service,
                RemoteQuery(each.pattern.group, each.variables, key_text(each.keys)),
                each.giver,
            )
            for service, each in zip(bound.services, plan.join.services, strict=True)
        )
    if plan.service is None or bound.service is None:
        return ()
    key = plan.join_variables[0]
    question = RemoteQuery(plan.service.group, plan.service.variables, key)
    return (AskedPattern(bound.service, question),)


def joins_many(bound: BoundQuery | BoundWindowed, asked: AskedPattern) -> bool:
    """Return True if a key is joined with all solutions of a pattern, as in joins of several."""
    is_joined = isinstance(bound, BoundWindowed) or bound.plan.join is not None
    return is_joined or asked.service.solutions == "many"
