"""How a query will be answered, as data: what the passes produce and the engine runs."""

from __future__ import annotations

from dataclasses import dataclass

from rspql.ast import Expression, Iri, TriplePattern


@dataclass(frozen=True)
class Window:
    """A time-based window over a stream: window *i* holds what happened in ``(t0 + i·slide, t0 + i·slide + width]``."""

    name: Iri
    stream: Iri
    width_ms: int
    slide_ms: int


@dataclass(frozen=True)
class Service:
    """What is asked of a remote: a basic graph pattern and the variables it binds."""

    iri: Iri
    pattern: tuple[TriplePattern, ...]
    variables: tuple[str, ...]


@dataclass(frozen=True)
class Score:
    """What orders the solutions. ``variable`` is None when ORDER BY holds a bare expression."""

    expression: Expression
    descending: bool
    variable: str | None
    stream_variables: tuple[str, ...]
    remote_variables: tuple[str, ...]


@dataclass(frozen=True)
class TopKPlan:
    """A continuous top-k query: WINDOW ⋈ SERVICE, EXTEND with the score, ORDER, LIMIT."""

    name: str | None
    window: Window
    stream_pattern: tuple[TriplePattern, ...]
    stream_variables: tuple[str, ...]
    service: Service
    join_variables: tuple[str, ...]
    score: Score
    k: int
    projection: tuple[str, ...]
