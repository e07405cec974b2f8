"""Find the keys by which several services are asked: of the stream, or of another one's answers."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from rspql import ast
from rspql.passes.not_incremental import NotIncremental
from rspql.plan import JoinedService
from rspql.scope import certain, certain_in, visible

_Giver = int | None
"""Position of the service whose answers give a variable; None for the stream."""
_NOTHING: Mapping[str, _Giver] = {}


def find_keys(
    group: ast.Group, inputs: Sequence[str], records: Collection[str] = ()
) -> tuple[JoinedService, ...]:
    """Return the services of a group, each after those whose answers give its keys.

    A key must be bound by all that a service is joined with: by the stream, or by a service beside
    it or around it. For an OPTIONAL or MINUS only what stands before it in its own group counts,
    because that alone decides what it adds or removes. Raises :class:`NotIncremental` if there is
    none. Services of ``records`` are asked by one variable.
    """
    finder = _Finder(records)
    stream = dict.fromkeys(inputs)
    finder.visit(group, stream, stream)
    return tuple(finder.found)


class _Finder:
    def __init__(self, records: Collection[str]) -> None:
        self._records = records
        self.found: list[JoinedService] = []

    def visit(
        self,
        group: ast.Group,
        around: Mapping[str, _Giver],
        first: Mapping[str, _Giver] = _NOTHING,
    ) -> dict[str, _Giver]:
        """Find the services of a group; return the variables that it always binds, too.

        ``around`` are variables bound by what the group is joined with, ``first`` those that are
        bound before the group's own elements.
        """
        known, before = dict(around), dict(first)
        waiting = [each for each in group.elements if isinstance(each, ast.ServicePattern)]
        while waiting:
            ready = [each for each in waiting if self._keys_of(each, known)]
            if not ready:
                raise NotIncremental(_why_not(waiting[0], around), waiting[0])
            for each in ready:
                known |= self._add(each, known)
                waiting.remove(each)
        for element in group.elements:
            match element:
                case ast.OptionalPattern(inner) | ast.MinusPattern(inner):
                    self.visit(inner, before)
                case ast.UnionPattern(groups):
                    for inner in groups:
                        self.visit(inner, known)
                case ast.Group():
                    known |= self.visit(element, known)
            before |= {name: known[name] for name in certain_in(element) if name in known}
        return known

    def _add(self, pattern: ast.ServicePattern, known: Mapping[str, _Giver]) -> dict[str, _Giver]:
        """Add a service, if it is not there; return what its answers bind."""
        keys = self._keys_of(pattern, known)
        assert isinstance(pattern.service, ast.Iri)
        found = JoinedService(
            pattern, pattern.service, tuple(visible(pattern.group)), keys, known[keys[0]]
        )
        at = next((at for at, each in enumerate(self.found) if _same(each, found)), None)
        if at is None:
            at = len(self.found)
            self.found.append(found)
        return {name: at for name in certain(pattern.group) if name not in known}

    def _keys_of(self, pattern: ast.ServicePattern, known: Mapping[str, _Giver]) -> tuple[str, ...]:
        """Return the variables by which a service is best asked; none if none is known.

        That is a subject, if the stream gives it. If no subject is known, it is asked by all that
        the stream gives together: by one of them alone it would give what no solution joins.
        """
        keys = [name for name in certain(pattern.group) if name in known]
        subjects = set(_subjects(pattern.group))
        keys.sort(key=lambda name: (name not in subjects, known[name] is not None))
        assert isinstance(pattern.service, ast.Iri)
        if not keys or keys[0] in subjects or pattern.service.value in self._records:
            return tuple(keys[:1])
        return tuple(name for name in keys if known[name] is None) or (keys[0],)


def _same(one: JoinedService, other: JoinedService) -> bool:
    if one.pattern != other.pattern:
        return False
    if (one.keys, one.giver) != (other.keys, other.giver):
        raise NotIncremental("one SERVICE pattern is asked by different keys", other.pattern)
    return True


def _subjects(group: ast.Group) -> Iterator[str]:
    for element in group.elements:
        if isinstance(element, ast.TriplePattern) and isinstance(element.subject, ast.Variable):
            yield element.subject.name


def _why_not(pattern: ast.ServicePattern, around: Mapping[str, _Giver]) -> str:
    shared = [name for name in visible(pattern.group) if name in around]
    if shared:
        return f"the SERVICE does not always bind ?{shared[0]}"
    return "the SERVICE shares no variable with what always binds one beside it"
