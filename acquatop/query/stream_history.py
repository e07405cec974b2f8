"""Values that a window's part of a query had at earlier closes, by key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from acquatop.ingest.terms import to_ast
from acquatop.topk.snapshot import State, pack, pack_parts, reading, unpack, unpack_parts
from replica.past_values import PastValues, Terms
from replica.terms import is_term
from rspql.ast import Iri, Literal, Values, Variable
from rspql.plan import StreamPast

_KIND, _VERSION = "stream history", 1

Rows = Sequence[Mapping[str, str]]
"""Solutions of the query's part, as N-Triples texts."""


class StreamHistory:
    """History of values at closes, back to the longest time that the query looks back.

    The value of some time ago is that of the last window that closed up to then. Memory is O(keys +
    changes + closes of that time).
    """

    def __init__(self, plan: StreamPast) -> None:
        self.plan = plan
        self.variables = tuple(dict.fromkeys(each.variable for each in plan.past))
        self._longest = max(each.back_ms for each in plan.past)
        self._past = PastValues(self.variables, self._longest)
        self._closes: list[int] = []
        self._doubtful: set[int] = set()
        """Closes of windows that may lack something."""

    def note(self, rows: Rows, close_ms: int, *, is_certain: bool) -> None:
        """Note the values of the window that closes; keys that have none now have none."""
        found: dict[str, set[Terms]] = {}
        for row in rows:
            terms = tuple(row.get(name, "") for name in self.variables)
            found.setdefault(self._key(row), set()).add(terms)
        nothing = ("",) * len(self.variables)
        for key in {*self._past.keys(), *found}:
            values = found.get(key, {nothing})
            self._past.note(key, close_ms, values.pop() if len(values) == 1 else nothing)
        self._past.forget(list(self._past.keys()), close_ms)
        self._past.drop_empty(close_ms)
        self._closes = [each for each in self._closes if each != close_ms] + [close_ms]
        kept = self._last(close_ms - self._longest)
        self._closes = [each for each in self._closes if kept is None or each >= kept]
        self._doubtful = {each for each in self._doubtful if each in self._closes}
        if not is_certain:
            self._doubtful.add(close_ms)

    def lose(self, close_ms: int) -> None:
        """Note that the values of a window are not known: its evaluation was lost."""
        if close_ms not in self._closes:
            self._closes.append(close_ms)
        self._doubtful.add(close_ms)

    def doubt(self) -> None:
        """Note that a window that has closed may lack a late record."""
        self._doubtful.update(self._closes)

    def values(self, rows: Rows, close_ms: int) -> Values:
        """Return the past values of a window's keys, as a VALUES block to join with."""
        columns = tuple(map(Variable, self.plan.columns))
        known = {self._key(row): row for row in rows}
        return Values(columns, tuple(self._row(key, known[key], close_ms) for key in known))

    def before(self, rows: Rows, close_ms: int) -> Mapping[str, list[str]]:
        """Return the past values of some rows, by their names; empty for those that lack one."""
        keys = [self._key(row) for row in rows]
        found: dict[str, list[str]] = {}
        for each in self.plan.past:
            at = self.variables.index(each.variable)
            terms = (self._past.at(key, close_ms - each.back_ms) for key in keys)
            found[each.name] = [known[at] if known else "" for known in terms]
        return found

    def reason(self, close_ms: int) -> str | None:
        """Return why the past values of a close are uncertain; None if they are certain."""
        for each in self.plan.past:
            last = self._last(close_ms - each.back_ms)
            if last is None:
                return f"no window that ?{each.variable} is compared with has been answered yet"
            if last in self._doubtful:
                return f"a window that ?{each.variable} is compared with may lack something"
        return None

    def snapshot(self) -> bytes:
        """Return the whole state."""
        settings = {"closes": self._closes, "doubtful": sorted(self._doubtful)}
        state = pack(_KIND, _VERSION, State(settings, {}))
        return pack_parts({"state": state, "past": self._past.snapshot()})

    def resume(self, snapshot: bytes) -> None:
        """Restore a snapshot; raises ``SnapshotError`` for any other bytes."""
        with reading():
            parts = unpack_parts(snapshot)
            settings = unpack(_KIND, _VERSION, parts["state"]).settings
            self._past.resume(parts["past"])
            self._closes = list(settings["closes"])
            self._doubtful = set(settings["doubtful"])

    def _last(self, ms: int) -> int | None:
        return max((each for each in self._closes if each <= ms), default=None)

    def _key(self, row: Mapping[str, str]) -> str:
        return " ".join(row[name] for name in self.plan.keys)

    def _row(
        self, key: str, row: Mapping[str, str], close_ms: int
    ) -> tuple[Iri | Literal | None, ...]:
        found: list[Iri | Literal | None] = [to_ast(row[name]) for name in self.plan.keys]
        for each in self.plan.past:
            terms = self._past.at(key, close_ms - each.back_ms)
            text = terms[self.variables.index(each.variable)] if terms else ""
            found.append(to_ast(text) if is_term(text) else None)
        return tuple(found)
