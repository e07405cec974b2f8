"""Explanation of an answer: why a key is in it, why another is not, what one more request buys."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from rdflib.term import Identifier

from acquatop.instants import instant_text

if TYPE_CHECKING:
    from acquatop.answer.answer import Answer

MOST_FOUND = 5
"""Number of solutions with a key that an explanation shows."""

Value = Literal["known", "absent", "unknown"]
"""State of the remote's value of a key: it is known, the remote had none, or it was never told."""

Verdict = Literal["in", "out", "not found"]

_LOCAL_NAME = re.compile(r"[#/:]([^#/:]+)>$")


@dataclass(frozen=True)
class Standing:
    """Standing of one solution of a window when its answer was made.

    ``rank`` is that in the answer, None for others. ``place`` is the one by the score alone, of all
    that were kept. If there is no ``score``, ``most`` is the best that it could be. ``chance`` is
    that it belongs in the answer by now. ``fails`` are conditions that do not hold, and ``because``
    is what else keeps it out.
    """

    terms: Mapping[str, str]
    rank: int | None = None
    place: int | None = None
    score: float | None = None
    most: float | None = None
    value: Value | None = None
    refreshed: bool | None = None
    age_seconds: float | None = None
    chance: float | None = None
    fails: tuple[str, ...] = ()
    because: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the standing as JSON; numbers that JSON lacks are null."""
        return {
            "rank": self.rank,
            "place": self.place,
            "score": _finite(self.score),
            "most": _finite(self.most),
            "value": self.value,
            "refreshed": self.refreshed,
            "age_seconds": None if self.age_seconds is None else round(self.age_seconds, 3),
            "chance": None if self.chance is None else round(self.chance, 4),
            "fails": list(self.fails),
            "because": self.because,
            "terms": dict(self.terms),
        }


@dataclass(frozen=True)
class OneMore:
    """Request that would have been worth most: its key, and the chance that it corrects the answer.

    The chance is None for a key whose value was never told. ``is_in`` says if the answer has it.
    """

    key: str
    chance: float | None
    is_in: bool

    def to_json(self) -> dict[str, Any]:
        """Return the request as JSON."""
        chance = None if self.chance is None else round(self.chance, 4)
        return {"key": self.key, "chance": chance, "in": self.is_in, "text": str(self)}

    def __str__(self) -> str:
        """Return the request as a sentence."""
        if self.chance is None:
            return f"One more request would have bought the first value of {self.key}"
        change = "does not belong here any more" if self.is_in else "belongs here by now"
        return (
            f"One more request, for {self.key}, would have shown with a chance of "
            f"{self.chance:.2g} that it {change}"
        )


@dataclass(frozen=True)
class KeptSolutions:
    """Solutions of a window that an answer was made of, as far as they are kept.

    ``needed`` is the score of the last result, if there are as many as wanted. Of ``count``
    solutions those asked for are ``found``. Unless that ``is_whole``, others were in the window,
    none better than ``beyond`` if that is known. An answer that is not full has left out none for
    being worse.
    """

    found: Sequence[Standing]
    count: int
    is_whole: bool
    needed: float | None = None
    beyond: float | None = None
    one_more: OneMore | None = None
    conditions: tuple[str, ...] = ()
    is_full: bool = True


class Evidence(Protocol):
    """Memory of how an answer was made."""

    def about(self, key: str) -> KeptSolutions | None:
        """Return what is kept of the solutions with a key; None if that is no longer kept."""


@dataclass(frozen=True)
class Why:
    """Explanation of what an answer says of a key; ``str`` gives it as short sentences."""

    query: str
    closes_ms: int
    status: str
    key: str
    verdict: Verdict
    standings: tuple[Standing, ...]
    sentences: tuple[str, ...]
    needed: float | None = None
    considered: int | None = None
    is_whole: bool = False
    one_more: OneMore | None = None

    def __str__(self) -> str:
        """Return the explanation as lines."""
        return "\n".join(self.sentences)

    def to_json(self) -> dict[str, Any]:
        """Return the same as JSON."""
        return {
            "query": self.query,
            "closes": instant_text(self.closes_ms),
            "status": self.status,
            "key": self.key,
            "verdict": self.verdict,
            "needed": _finite(self.needed),
            "considered": self.considered,
            "whole": self.is_whole,
            "solutions": [each.to_json() for each in self.standings],
            "one_more": None if self.one_more is None else self.one_more.to_json(),
            "text": list(self.sentences),
        }


def explain(answer: Answer, key: str | Identifier) -> Why:
    """Return why a key is in an answer, or is not.

    A key is an IRI, a term as N-Triples text, the text of a literal, or the last part of an IRI.
    """
    wanted = key.n3() if isinstance(key, Identifier) else key.strip()
    kept = None if answer.evidence is None else answer.evidence.about(wanted)
    if kept is None:
        kept = _of_rows(answer, wanted)
        sentences = [*_sentences(answer, wanted, kept), _NOT_KEPT]
    else:
        sentences = list(_sentences(answer, wanted, kept))
    return Why(
        answer.query,
        answer.closes_ms,
        str(answer.status),
        wanted,
        _verdict(kept),
        tuple(kept.found[:MOST_FOUND]),
        tuple(sentences),
        kept.needed,
        kept.count,
        kept.is_whole,
        kept.one_more,
    )


_NOT_KEPT = "Only the answer's rows are kept: nothing is known of what it was chosen from."


def _of_rows(answer: Answer, key: str) -> KeptSolutions:
    """Return what an answer's own rows say."""
    terms = [{name: term.n3() for name, term in row.bindings.items()} for row in answer.rows]
    found = [
        Standing(
            terms[at],
            rank=answer.rows[at].rank,
            score=answer.rows[at].score,
            refreshed=answer.rows[at].refreshed,
            age_seconds=answer.rows[at].age_seconds,
        )
        for at in matching(terms, key)
    ]
    return KeptSolutions(found, len(answer.rows), is_whole=False)


def matching(solutions: Sequence[Mapping[str, str]], key: str) -> list[int]:
    """Return the positions of the solutions, as N-Triples terms, that have a key.

    The most literal reading that fits any of them counts: a whole term, then the text of a literal
    or an IRI without its brackets, then the last part of an IRI.

    >>> some = [{"u": "<http://a/ann>", "n": '"7"'}, {"u": "<http://b/ann>", "n": '"ann"'}]
    >>> matching(some, "http://a/ann"), matching(some, "ann"), matching(some[:1], "ann")
    ([0], [1], [0])
    """
    for reads in (_is_term, _is_text, _is_local_name):
        found = [
            at
            for at, terms in enumerate(solutions)
            if any(reads(term, key) for term in terms.values())
        ]
        if found:
            return found
    return []


def _is_term(term: str, key: str) -> bool:
    return term == key


def _is_text(term: str, key: str) -> bool:
    if term.startswith("<"):
        return term[1:-1] == key
    return term.startswith('"') and term[1 : term.rindex('"')] == key


def _is_local_name(term: str, key: str) -> bool:
    found = _LOCAL_NAME.search(term) if term.startswith("<") else None
    return found is not None and found[1] == key


def _verdict(kept: KeptSolutions) -> Verdict:
    if not kept.found:
        return "not found"
    return "out" if all(each.rank is None for each in kept.found) else "in"


def _sentences(answer: Answer, key: str, kept: KeptSolutions) -> Iterator[str]:
    if not kept.found:
        yield from _of_nothing(answer, key, kept)
    shown = (line for each in kept.found[:MOST_FOUND] for line in _of_one(answer, key, each, kept))
    yield from dict.fromkeys(shown)
    if len(kept.found) > MOST_FOUND:
        yield f"{len(kept.found) - MOST_FOUND} more solutions have {key}."
    if kept.one_more is not None:
        yield f"{kept.one_more}."


def _of_nothing(answer: Answer, key: str, kept: KeptSolutions) -> Iterator[str]:
    """Yield why nothing with a key is known."""
    if kept.is_whole:
        yield f"{key} is in none of the window's {kept.count} solutions."
        if kept.conditions:
            yield f"No record has it, or one of these conditions fails: {_list(kept.conditions)}."
        else:
            yield "No record of the window matches the query's patterns with it."
        return
    yield f"{key} is in none of the {kept.count} solutions kept with this answer."
    reasons = ["it was not seen in the window"]
    if kept.conditions:
        reasons.append(f"one of these conditions fails: {_list(kept.conditions)}")
    if kept.is_full:
        reasons.append(_of_better(answer, kept))
    yield _sentence("; or ".join(reasons))


def _of_better(answer: Answer, kept: KeptSolutions) -> str:
    better = "others were better"
    if kept.needed is not None:
        better += f", the last result has {_number(kept.needed)}"
    if answer.bound is not None and math.isfinite(answer.bound):
        better += f", and what is missing has at best {_number(answer.bound)}"
    return better


def _of_one(answer: Answer, key: str, one: Standing, kept: KeptSolutions) -> Iterator[str]:
    if one.rank is not None:
        score = "" if one.score is None else f" with the score {_number(one.score)}"
        yield f"{key} is in, at rank {one.rank}{score}."
    else:
        reasons = "; ".join(_reasons(one, kept))
        yield f"{key} is not in{': ' if reasons else ''}{reasons}."
    yield from _of_value(answer, one)


def _reasons(one: Standing, kept: KeptSolutions) -> Iterable[str]:
    """Return what keeps a solution out: the conditions, its score, or what is not known of it."""
    needed = "" if kept.needed is None else f", {_number(kept.needed)} needed"
    reasons = [f"the condition {each} fails" for each in one.fails]
    if one.place is not None:
        score = "" if one.score is None else f"score {_number(one.score)}{needed}, "
        reasons.append(f"{score}place {one.place} in the order of scores")
    elif one.value == "unknown" and one.most is not None:
        most = "any" if math.isinf(one.most) else f"at most {_number(one.most)}"
        reasons.append(f"no score yet, {most} possible{needed}")
    elif one.value == "absent":
        reasons.append("the remote has nothing for it that passes the query's filters")
    elif not one.fails and one.score is None:
        reasons.append("its score cannot be computed")
    if one.because is not None:
        reasons.append(one.because)
    return reasons


def _of_value(answer: Answer, one: Standing) -> Iterator[str]:
    """Yield what is known of the remote's value."""
    if one.value == "unknown":
        spent = answer.spending.items >= answer.budget.items
        why = answer.failure or ("the budget went to others" if spent else None)
        yield _sentence("its value was never told" + (f": {why}" if why else ""))
    elif one.refreshed:
        yield "The remote was asked for it for this answer."
    elif one.age_seconds is not None:
        chance = ""
        if one.chance is not None:
            what = "still belongs" if one.rank is not None else "belongs"
            chance = f", with a chance of {one.chance:.2g} that it {what} in the answer by now"
        yield f"What the remote said of it is {_duration(one.age_seconds)} old{chance}."


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _list(conditions: Iterable[str]) -> str:
    return ", ".join(conditions)


def _number(value: float) -> str:
    return f"{value:.6g}"


def _duration(seconds: float) -> str:
    """Return a time in its largest unit.

    >>> _duration(0.25), _duration(200), _duration(9000)
    ('0.25 s', '3 min', '2.5 h')
    """
    if seconds < 60:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 3600 else f"{seconds / 3600:.1f} h"


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
