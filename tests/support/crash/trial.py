"""Comparison of killed lives with an uninterrupted one: same answers, no request repeated."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest

from tests.support.crash.history import judged
from tests.support.crash.life import Life, content
from tests.support.crash.world import SERVICE_OF, People
from tests.support.simulation.checker import Verdict

Asked = Mapping[str, list[tuple[str, ...]]]
LivesOn = Callable[[Life], bool]
"""Function that lives a life, and returns True if it was killed before its end."""


@dataclass
class Trial:
    """Result of an uninterrupted life, and the differences of killed ones from it."""

    life: Life
    people: People
    whole: dict[str, bytes] = field(default_factory=dict)
    asked: Asked = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    verdict: Verdict = field(default_factory=Verdict)
    """What the simulation's checker says of the histories of all runs."""
    _requests: list[tuple[int, str, Sequence[str]]] = field(default_factory=list)
    _lives: int = 0

    def uninterrupted(self, live: Callable[[Life], object] = Life.live) -> None:
        """Note what is right."""
        self.people.take()
        live(self._named("whole"))
        self.whole, self.asked = content(self._named("whole").out), self.people.take()
        for service, query in SERVICE_OF.items():
            if query in self.life.queries:
                # Every evaluation asks once: so it can be told which one has asked.
                assert len(self.asked[service]) == self._answered(self._named("whole"))[service] > 3

    def run(
        self, name: str, lives: Iterable[tuple[str, LivesOn]], at_last: LivesOn | None = None
    ) -> int:
        """Live until a life comes to its end, each killed in a way that has a name.

        Return how many were killed.

        The last one is not killed, unless one before has come to its end; ``at_last`` lives it.
        """
        life, answered, killed = self._named(name), dict.fromkeys(SERVICE_OF, 0), 0
        self._requests, self._lives, ends = [], 0, []
        for how, live in lives:
            goes_on = live(life)
            self._check_asked(f"{name}, {how}", self.people.take(), answered)
            if not goes_on:
                break
            killed += 1
            ends.append(how)
            answered = self._answered(life)
        else:
            self._live_on(life, name, at_last or _to_its_end, answered)
        self._compare(name, content(life.out))
        verdict = judged(life, ends, self._requests, self.whole)
        self.verdict.add(verdict)
        self.failures += (f"{name}: {problem}" for problem in verdict.problems)
        return killed

    def _live_on(self, life: Life, name: str, live: LivesOn, answered: Mapping[str, int]) -> None:
        """Live to the end, in a few attempts: Spark may fail by itself where a machine is busy."""
        for _ in range(5):
            goes_on = live(life)
            self._check_asked(f"{name}, at last", self.people.take(), answered)
            if not goes_on:
                return
            answered = self._answered(life)
        self.failures.append(f"{name}: never came to its end")

    def _named(self, name: str) -> Life:
        state, out = self.life.state / name, self.life.out / name
        return replace(self.life, state=state, out=out)

    def _compare(self, name: str, found: dict[str, bytes]) -> None:
        wrong = [
            file
            for file in sorted({*found, *self.whole})
            if found.get(file) != self.whole.get(file)
        ]
        if wrong:
            first = _difference(found.get(wrong[0], b""), self.whole.get(wrong[0], b""))
            self.failures.append(
                f"{name}: {len(wrong)} files differ: {', '.join(wrong[:4])}; {first}"
            )

    def _answered(self, life: Life) -> dict[str, int]:
        """Return how many evaluations of each service have been answered visibly."""
        files = content(life.out)
        return {
            service: files.get(f"lines/{query}.ndjson", b"").count(b"}\n")
            for service, query in SERVICE_OF.items()
        }

    def _check_asked(self, name: str, asked: Asked, answered: Mapping[str, int]) -> None:
        for service, requests in asked.items():
            self._requests += ((self._lives, service, keys) for keys in requests)
            right = self.asked[service]
            starts = range(answered[service], len(right) - len(requests) + 1)
            if not any(right[start : start + len(requests)] == requests for start in starts):
                self.failures.append(
                    f"{name}: <{service}> was asked again, or for something else: {requests[:3]}"
                )
        self._lives += 1


def _difference(found: bytes, right: bytes) -> str:
    """Return the first lines that differ."""
    pairs = zip_longest(found.splitlines(), right.splitlines())
    number, pair = next(
        ((at, each) for at, each in enumerate(pairs, 1) if each[0] != each[1]), (0, ())
    )
    return f"line {number}: {' instead of '.join(str(line)[:900] for line in pair)}"


def _to_its_end(life: Life) -> bool:
    life.live()
    return False
