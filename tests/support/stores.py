"""Plain stores of dictionaries as models of the columnar ones, and random operations for both."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from hypothesis import strategies as st

from replica.store import NEVER, ReplicaStore, RunStore, Solution, SolutionStore

XSD = "http://www.w3.org/2001/XMLSchema#"
KEYS = [
    f"<urn:{name}>"
    for name in ("a", "b", "long/" * 9 + "c", "long/" * 9 + "d", "ö", "\ud800", "g", "h")
]


def number(lexical: object, datatype: str = "integer") -> str:
    return f'"{lexical}"^^<{XSD}{datatype}>'


TERMS = [
    *map(number, (7, 8, "007", "-0", 2**53, 2**53 + 1, "nan", "٧", 10**300)),
    *(number(text, "decimal") for text in ("7", "1.50", "1.5", "-0.0", "0.0", ".5", "5.", "1e3")),
    *(
        number(text, "double")
        for text in ("1.5E0", "1.5e0", "1.5E+0", "15.0", "INF", "-INF", "NaN", "inf", "-0.0E0")
    ),
    *('"7"', '"a"', '"b"@en', "<urn:x>", number("true", "boolean"), ""),
]
terms = st.sampled_from(TERMS)
solutions = st.fixed_dictionaries({}, optional={"k": st.sampled_from(KEYS), "v": terms, "w": terms})


@dataclass
class Put:
    asked: list[str]
    solutions: list[Solution]
    now: float


@dataclass
class Touch:
    keys: list[str]


@dataclass
class Evict:
    pass


Step = Put | Touch | Evict
steps = st.one_of(
    st.builds(
        Put,
        st.lists(st.sampled_from(KEYS), max_size=5),
        st.lists(solutions, max_size=8),
        st.integers(0, 9).map(float),
    ),
    st.builds(Touch, st.lists(st.sampled_from(KEYS), max_size=4)),
    st.builds(Evict),
)
lives = st.lists(steps, max_size=30)
limits = st.sampled_from([None, 0, 1, 3, 5])


@dataclass
class Known:
    solutions: list[Solution] = field(default_factory=list)
    fetched_at: float = NEVER
    changed_at: float = NEVER
    needed: int = 0


class PlainStore:
    """Model store. It names only candidates for eviction, as some keys are equally old."""

    def __init__(self, names: Sequence[str], limit: int | None, *, single: bool) -> None:
        self.names, self.limit, self.single = names, limit, single
        self.known: dict[str, Known] = {}
        self.round = 1

    def put(self, put: Put) -> tuple[tuple[str, ...], int]:
        by_key: dict[str, list[Solution]] = {key: [] for key in put.asked}
        for solution in put.solutions:
            if "k" in solution:
                by_key.setdefault(solution["k"], []).append(
                    {name: solution[name] for name in self.names & solution.keys()}
                )
        asked = set(put.asked)
        changed, ambiguous = [], 0
        for key in [*dict.fromkeys(put.asked), *sorted(by_key.keys() - asked)]:
            found = sorted(by_key[key], key=lambda each: sorted(each.items()))
            if self.single:
                ambiguous += max(0, len(found) - 1)
                found = found[:1]
            if self._admits(key, asked) and self._set(key, found, put.now):
                changed.append(key)
            if key in asked:
                self.known[key].needed = self.round
        return tuple(changed), ambiguous

    def touch(self, keys: Iterable[str]) -> None:
        for key in keys:
            if key in self.known:
                self.known[key].needed = self.round

    def evict(self, kept: set[str]) -> int:
        """Forget what is not kept, which must be something that may be forgotten."""
        excess = 0 if self.limit is None else max(0, len(self.known) - self.limit)
        old = sorted(known.needed for known in self.known.values() if known.needed < self.round)
        gone = self.known.keys() - kept
        assert sorted(self.known[key].needed for key in gone) == old[: min(excess, len(old))]
        for key in gone:
            del self.known[key]
        self.round += 1
        return len(gone)

    def _admits(self, key: str, asked: set[str]) -> bool:
        return (
            key in self.known or key in asked or self.limit is None or len(self.known) < self.limit
        )

    def _set(self, key: str, found: list[Solution], now: float) -> bool:
        is_new = key not in self.known
        known = self.known.setdefault(key, Known(needed=self.round - 1))
        if now < known.fetched_at:
            return False
        is_other = known.solutions != found
        if is_other and not is_new:
            known.changed_at = now
        known.solutions, known.fetched_at = found, now
        return is_new or is_other


def live(store: ReplicaStore | SolutionStore, plain: PlainStore, life: Sequence[Step]) -> None:
    """Let both go through the same, and see that they say the same."""
    for step in life:
        rows = dict(zip(plain.known, store.rows(list(plain.known)).tolist(), strict=True))
        match step:
            case Put():
                stored = store.put(step.asked, step.solutions, step.now)
                assert (stored.changed, stored.ambiguous) == plain.put(step)
            case Touch():
                store.touch(store.rows(step.keys))
                plain.touch(step.keys)
            case Evict():
                before = store.held
                evicted = store.evict()
                assert (
                    before - store.held == evicted == plain.evict(set(store.keys(store.all_rows())))
                )
        for key, row in rows.items():
            assert store.rows([key])[0] == (row if key in plain.known else -1)
    check(store, plain)


def in_order(solutions: Iterable[Solution]) -> list[list[tuple[str, str]]]:
    """Return solutions as a sorted list."""
    return sorted(sorted(each.items()) for each in solutions)


def check(store: ReplicaStore | SolutionStore, plain: PlainStore) -> None:
    rows = store.rows(KEYS)
    expected = [plain.known.get(key, Known()) for key in KEYS]
    assert [row >= 0 for row in rows] == [key in plain.known for key in KEYS]
    assert sorted(store.all_rows()) == sorted(rows[rows >= 0])
    assert store.keys(rows[rows >= 0]) == [key for key in KEYS if key in plain.known]
    assert store.held == len(plain.known)
    assert store.fetched_at(rows).tolist() == [known.fetched_at for known in expected]
    assert store.changed_at(rows).tolist() == [known.changed_at for known in expected]
    assert store.present(rows).tolist() == [bool(known.solutions) for known in expected]
    for key, known in zip(KEYS, expected, strict=True):
        if isinstance(store, RunStore):  # its order is another
            assert in_order(store.solutions(key)) == in_order(known.solutions)
        elif isinstance(store, SolutionStore):
            assert list(store.solutions(key)) == known.solutions
        else:
            first = known.solutions[0] if known.solutions else {}
            assert [store.term(name, key) for name in store.variables] == [
                first.get(name) for name in store.variables
            ]
