"""The Super-MTK+N list: the few candidates that can still reach an answer, for all open windows at once.

For every open window the best K+N candidates are its *members* (its MTK+N list). All windows'
members stand in one list, sorted best first; a candidate that is a member of no window is
dropped. Instead of start and end marks on each candidate, every window keeps the rank of its
last member (its *tail*, the lower bound pointer of the paper): membership in a window is then
"lies in the window, and ranks no worse than its tail". That stays right when scores change,
when a newer arrival replaces an older one, and when windows do not overlap evenly.

What is dropped is remembered per window as one rank (the best) and one range per scoring
variable, from which an answer knows whether anything forgotten could belong to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sortedcontainers import SortedKeyList

from acquatop.topk.candidate import Candidate, Dropped, Rank, best_rank

_BEFORE_ALL = -(2**63)


@dataclass(slots=True)
class _Window:
    """One open window: how many members it has, the last one's rank, what it has lost."""

    members: int = 0
    tail: Rank | None = None
    dropped: Dropped | None = None


class SuperMTKN:
    """Candidates for the top k of every open window, with N more for scores that fall.

    With L candidates held and W open windows, inserting takes O(log L + W) and a scan of the
    list per window that pushes a member out; a batch that replaces or rescores takes O(L·W)
    once. L is at most W·(K+N), and about (K+N)·H(width/slide) for arrivals in random order,
    however many events a window holds.
    """

    def __init__(self, k: int, n: int) -> None:
        if k < 1 or n < 0:
            raise ValueError("k must be at least 1 and n at least 0")
        self.k = k
        self.n = n
        self._current = _BEFORE_ALL
        self._list: SortedKeyList[Candidate] = SortedKeyList(key=_rank_of)
        self._by_identity: dict[str, Candidate] = {}
        self._by_key: dict[str, dict[str, Candidate]] = {}
        self._windows: dict[int, _Window] = {}

    def __len__(self) -> int:
        return len(self._list)

    def __iter__(self) -> Iterator[Candidate]:
        """Iterate over the candidates, best first."""
        return iter(self._list)

    def with_key(self, key: str) -> list[Candidate]:
        """Return the candidates that join with one of the remote's keys."""
        return list(self._by_key.get(key, {}).values())

    def find(self, identity: str) -> Candidate | None:
        """Return the candidate held under an identity."""
        return self._by_identity.get(identity)

    def top(self, window: int) -> list[Candidate]:
        """Return a window's best k candidates, best first. O(L)."""
        best: list[Candidate] = []
        for candidate in self._list:
            if candidate.covers(window):
                best.append(candidate)
                if len(best) == self.k:
                    break
        return best

    def dropped(self, window: int) -> Dropped | None:
        """Return what is remembered of the candidates that a window has lost, None if it lost none."""
        state = self._windows.get(window)
        return state.dropped if state else None

    def insert(self, arrivals: Iterable[Candidate]) -> None:
        """Take in arrivals; one with the identity of a candidate that is held replaces it, unless it is older."""
        newest: dict[str, Candidate] = {}
        for arrival in arrivals:
            held = newest.get(arrival.identity) or self._by_identity.get(arrival.identity)
            if held is None or arrival.time_ms >= held.time_ms:
                newest[arrival.identity] = arrival
        replaced = [self._by_identity[identity] for identity in newest if identity in self._by_identity]
        for candidate in replaced:
            self._remove(candidate)
        if replaced:
            self._recount()
        for arrival in sorted(newest.values(), key=_rank_of):
            self._insert(arrival)

    def remove(self, identities: Iterable[str]) -> None:
        """Take out candidates that are no solutions any more, such as those the remote no longer has."""
        removed = [self._by_identity[identity] for identity in identities if identity in self._by_identity]
        for candidate in removed:
            self._remove(candidate)
        if removed:
            self._recount()

    def rescore(self, merits: Iterable[tuple[Candidate, float]]) -> None:
        """Give candidates that are held new merits. O(L·W) for all together."""
        changes = list(merits)
        for candidate, merit in changes:
            self._list.remove(candidate)
            candidate.set_merit(merit)
            self._list.add(candidate)
        if changes:
            self._recount()

    def note_dropped(self, windows: range, best: Rank, lows: tuple[float, ...], highs: tuple[float, ...]) -> None:
        """Note that windows have lost candidates that never came here: their best rank, their numbers' ranges."""
        for window in range(max(windows.start, self._current), windows.stop):
            state = self._windows.setdefault(window, _Window())
            if state.dropped is None:
                state.dropped = Dropped(best, lows, highs)
            else:
                state.dropped.add(best, lows, highs)

    def raise_dropped(self, window: int, merit: float) -> None:
        """Note that something a window has lost may by now be worth up to ``merit``."""
        dropped = self.dropped(window)
        if dropped is not None:
            dropped.best = min(dropped.best, best_rank(merit))

    def open_windows(self) -> list[int]:
        """Return the windows that are open and hold or have lost something, oldest first."""
        return sorted(self._windows)

    def close_before(self, window: int) -> None:
        """Close every window before this one: their members expire, unless a later window needs them. O(L·W)."""
        self._current = window
        for closed in [index for index in self._windows if index < window]:
            del self._windows[closed]
        for candidate in [each for each in self._list if not self._is_needed(each)]:
            self._remove(candidate)
            self._forget(candidate)

    # How it works -----------------------------------------------------------------------------

    def _span(self, candidate: Candidate) -> range:
        return range(max(candidate.first, self._current), candidate.last + 1)

    def _is_needed(self, candidate: Candidate) -> bool:
        return any(self._is_member(candidate, window) for window in self._span(candidate))

    def _is_member(self, candidate: Candidate, window: int) -> bool:
        state = self._windows.get(window)
        return state is not None and state.tail is not None and candidate.rank <= state.tail

    def _insert(self, arrival: Candidate) -> None:
        windows = [(index, self._windows.setdefault(index, _Window())) for index in self._span(arrival)]
        full = [pair for pair in windows if pair[1].members == self.k + self.n]
        entered = [pair for pair in full if pair[1].tail is not None and arrival.rank < pair[1].tail]
        if len(full) == len(windows) and not entered:
            self._forget(arrival)
            return
        self._add(arrival)
        for _, state in windows:
            if state.members < self.k + self.n:
                state.members += 1
                state.tail = arrival.rank if state.tail is None else max(state.tail, arrival.rank)
        for index, state in entered:
            self._push_out_tail(index, state)

    def _push_out_tail(self, window: int, state: _Window) -> None:
        """Move a window's tail up by one of its candidates; drop the one it left if no window needs it."""
        covering = (
            candidate
            for candidate in self._list.irange_key(max_key=state.tail, reverse=True)
            if candidate.covers(window)
        )
        leaving, new_tail = next(covering), next(covering)
        state.tail = new_tail.rank
        if not self._is_needed(leaving):
            self._remove(leaving)
            self._forget(leaving)

    def _recount(self) -> None:
        """Set every window's members and tail anew from the list, then drop who is needed nowhere."""
        for state in self._windows.values():
            state.members, state.tail = 0, None
        for candidate in self._list:
            for window in self._span(candidate):
                state = self._windows[window]
                if state.members < self.k + self.n:
                    state.members += 1
                    state.tail = candidate.rank
        for candidate in [each for each in self._list if not self._is_needed(each)]:
            self._remove(candidate)
            self._forget(candidate)

    def _forget(self, candidate: Candidate) -> None:
        self.note_dropped(self._span(candidate), candidate.rank, candidate.numbers, candidate.numbers)

    def _add(self, candidate: Candidate) -> None:
        self._list.add(candidate)
        self._by_identity[candidate.identity] = candidate
        self._by_key.setdefault(candidate.key, {})[candidate.identity] = candidate

    def _remove(self, candidate: Candidate) -> None:
        self._list.remove(candidate)
        del self._by_identity[candidate.identity]
        siblings = self._by_key[candidate.key]
        del siblings[candidate.identity]
        if not siblings:
            del self._by_key[candidate.key]

    def _check(self) -> None:
        """Assert every invariant. O(L·W)."""
        self._list._check()
        assert set(self._by_identity) == {each.identity for each in self._list}
        assert {name for group in self._by_key.values() for name in group} == set(self._by_identity)
        for window, state in self._windows.items():
            assert window >= self._current
            covering = [each for each in self._list if each.covers(window)]
            members = covering[: self.k + self.n]
            assert state.members == len(members), (window, state.members, len(members))
            assert state.tail == (members[-1].rank if members else None)
        assert all(self._is_needed(each) for each in self._list), "a candidate is held for no window"


def _rank_of(candidate: Candidate) -> Rank:
    return candidate.rank
