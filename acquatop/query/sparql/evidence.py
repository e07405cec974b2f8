"""Evidence of answers over whole windows: their content, to evaluate the query without its limits.

A condition keeps a key out if the query has it without that condition.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from acquatop.answer.why import KeptSolutions, Standing, matching
from acquatop.errors import AcquaTopError
from acquatop.query.sparql.content import StoreContent
from acquatop.query.sparql.engine import EngineFunction, SparqlEngine
from acquatop.query.sparql.evaluate import Answers, Evaluator
from acquatop.query.sparql.quad_store import OpenEngine
from acquatop.query.sparql.terms import Solution, Term, text_of
from rspql import ast
from rspql.forms import rows_of
from rspql.plan import RemotePart, StreamPast
from rspql.printer import expression_text

MOST_ANSWERS = 4
"""Number of a query's answers whose windows' content is kept."""

_MOST_CONDITIONS = 12
"""Number of conditions that are left out one by one."""

_HOLDS = ast.Filter(ast.Literal("true", ast.XSD + "boolean"))


@dataclass(frozen=True)
class WholeQuery:
    """Query over whole windows, and what it is evaluated with."""

    query: ast.Query
    windows: Sequence[str]
    remotes: Sequence[RemotePart | StreamPast]
    functions: Mapping[str, EngineFunction]
    open_engine: OpenEngine
    score_of: Callable[[Mapping[str, Term]], float | None]


class WholeEvidence:
    """Evidence of one answer, until it is forgotten."""

    def __init__(
        self,
        whole: WholeQuery,
        content: StoreContent,
        answers: Answers,
        at_ms: int,
        results: Sequence[Solution],
    ) -> None:
        self._whole = whole
        self._content: StoreContent | None = content
        self._answers = answers
        self._at_ms = at_ms
        self._results = results

    def forget(self) -> None:
        """Release the content."""
        self._content = None

    def about(self, key: str) -> KeptSolutions | None:
        """Return what the windows' content says of a key; None if it is not kept any more.

        The query is evaluated again, without its limits, and without each condition if need be.
        """
        content = self._content
        if content is None:
            return None
        try:
            engine = self._whole.open_engine(lambda: content, self._whole.functions)
            try:
                evaluate = partial(self._evaluated, engine)
                return self._kept(evaluate, key)
            finally:
                engine.close()
        except AcquaTopError:
            return None

    def _kept(self, evaluate: Callable[[ast.Query], Sequence[Solution]], key: str) -> KeptSolutions:
        query = _without_limits(self._whole.query)
        everything = evaluate(query)
        found = [*self._standings(everything, key)]
        if not found:
            found = [*self._failing(query, evaluate, key)]
        scores = [self._whole.score_of(each) for each in self._results]
        limit = self._whole.query.limit
        is_full = limit is not None and len(self._results) >= limit
        return KeptSolutions(
            found, len(everything), is_whole=True, needed=scores[-1] if is_full else None
        )

    def _evaluated(self, engine: SparqlEngine, query: ast.Query) -> Sequence[Solution]:
        whole = self._whole
        evaluator = Evaluator(query, engine, windows=whole.windows, remotes=whole.remotes)
        return evaluator.evaluate(self._answers, self._at_ms).rows

    def _standings(self, everything: Sequence[Solution], key: str) -> Iterator[Standing]:
        terms = [_texts(each) for each in everything]
        shown = [_texts(each) for each in self._results]
        for at in matching(terms, key):
            rank = shown.index(terms[at]) + 1 if terms[at] in shown else None
            because = None if rank is not None else "others come first"
            yield Standing(
                terms[at],
                rank,
                at + 1,
                self._whole.score_of(everything[at]),
                because=because,
            )

    def _failing(
        self, query: ast.Query, evaluate: Callable[[ast.Query], Sequence[Solution]], key: str
    ) -> Iterator[Standing]:
        """Yield the solutions that a query without one of its conditions has."""
        standings: dict[tuple[tuple[str, str], ...], Standing] = {}
        for text, relaxed in _relaxed(query):
            rows = evaluate(relaxed)
            terms = [_texts(each) for each in rows]
            for at in matching(terms, key):
                identity = tuple(sorted(terms[at].items()))
                known = standings.get(identity)
                fails = (*(known.fails if known else ()), text)
                standings[identity] = Standing(terms[at], fails=fails)
        yield from standings.values()


def _without_limits(query: ast.Query) -> ast.Query:
    return replace(rows_of(query), limit=None, offset=None, cut=None)


def _relaxed(query: ast.Query) -> Iterator[tuple[str, ast.Query]]:
    """Yield the text of each condition, and the query without it."""
    filters = [each for each in ast.walk(query) if isinstance(each, ast.Filter)]
    for condition in filters[:_MOST_CONDITIONS]:
        leave_out = partial(_replaced, condition)
        yield expression_text(condition.expression), ast.rewritten(query, leave_out)
    for at, having in enumerate(query.having):
        others = query.having[:at] + query.having[at + 1 :]
        yield f"HAVING {expression_text(having)}", replace(query, having=others)


def _replaced(condition: ast.Filter, node: ast.Node) -> ast.Node:
    return _HOLDS if node == condition else node


def _texts(row: Solution) -> dict[str, str]:
    return {name: text_of(term) for name, term in row.items()}


class WholeEvidenceLog:
    """Evidence of a query's last answers, of contents that are not too large."""

    def __init__(self, whole: WholeQuery) -> None:
        self._whole = whole
        self._kept: deque[WholeEvidence] = deque()

    def note(
        self,
        kept: StoreContent | None,
        answers: Answers,
        at_ms: int,
        results: Sequence[Solution],
    ) -> WholeEvidence | None:
        """Keep how an answer was made, if its content is given; the oldest makes way."""
        if kept is None:
            return None
        evidence = WholeEvidence(self._whole, kept, answers, at_ms, results)
        self._kept.append(evidence)
        if len(self._kept) > MOST_ANSWERS:
            self._kept.popleft().forget()
        return evidence
