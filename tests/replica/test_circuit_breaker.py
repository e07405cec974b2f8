from __future__ import annotations

import sys

from hypothesis import given, settings
from hypothesis import strategies as st

from replica.spending.circuit_breaker import CircuitBreaker


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def opened(clock: Clock, failures: int = 3, **others: object) -> CircuitBreaker:
    breaker = CircuitBreaker(clock=clock, random=lambda: 1.0, failures=failures, **others)
    for request in [breaker.sent() for _ in range(failures)]:
        breaker.failed(request=request)
    return breaker


def test_it_opens_after_some_failures_in_a_row_only() -> None:
    breaker = CircuitBreaker(clock=Clock(), random=lambda: 0.0, failures=3)
    for outcome in "ffsffsff":
        request = breaker.sent()
        assert breaker.allowed() > 1
        breaker.succeeded(request) if outcome == "s" else breaker.failed(request=request)
    assert breaker.is_closed
    breaker.failed(request=breaker.sent())
    assert not breaker.is_closed
    assert breaker.allowed() == 0
    assert breaker.wait == 0.5  # Half of the first wait, which chance made the shortest.


def test_the_wait_doubles_up_to_the_longest_and_success_forgets_it() -> None:
    clock = Clock()
    breaker = opened(clock, first_wait=1.0, longest_wait=10.0)
    waits = []
    for _ in range(6):
        waits.append(breaker.wait)
        clock.now += breaker.wait
        breaker.failed(request=breaker.sent())
    assert waits == [1, 2, 4, 8, 10, 10]
    clock.now += breaker.wait
    breaker.succeeded(breaker.sent())
    for _ in range(3):
        breaker.failed(request=breaker.sent())
    assert breaker.wait == 1


def test_the_late_answers_of_requests_sent_before_it_opened_change_nothing() -> None:
    clock = Clock()
    breaker = CircuitBreaker(clock=clock, random=lambda: 1.0, failures=3)
    requests = [breaker.sent() for _ in range(10)]
    for request in requests[:8]:
        breaker.failed(request=request)
    assert breaker.wait == 1.0
    breaker.succeeded(requests[8])
    assert breaker.allowed() == 0
    clock.now += 1.0
    probe = breaker.sent()
    breaker.failed(request=requests[9])
    assert breaker.allowed() == 0
    breaker.succeeded(probe)
    assert breaker.allowed() > 1


def test_without_numbers_what_is_answered_while_it_is_open_is_late() -> None:
    clock = Clock()
    breaker = opened(clock)
    breaker.failed()
    breaker.succeeded()
    assert breaker.wait == 1.0
    clock.now += 1.0
    breaker.sent()
    breaker.succeeded()
    assert breaker.is_closed


def test_a_remote_that_says_how_long_is_left_alone_so_long_whatever_the_count() -> None:
    clock = Clock()
    breaker = CircuitBreaker(clock=clock, random=lambda: 1.0)
    early, late = breaker.sent(), breaker.sent()
    breaker.failed(retry_after=30.0, request=early)
    assert breaker.wait == 30.0
    clock.now += 10.0
    breaker.failed(retry_after=30.0, request=late)
    assert breaker.wait == 30.0
    breaker.failed(retry_after=5.0, request=late)
    assert breaker.wait == 30.0
    clock.now += 30.0
    breaker.failed(retry_after=1e9, request=breaker.sent())
    assert breaker.wait == 3600.0
    breaker.succeeded(late)
    assert breaker.wait == 3600.0


def test_a_probe_that_fails_opens_it_again_whatever_the_count() -> None:
    clock = Clock()
    breaker = CircuitBreaker(clock=clock, random=lambda: 1.0)
    breaker.failed(retry_after=30.0, request=breaker.sent())
    clock.now += 30.0
    breaker.failed(request=breaker.sent())
    assert breaker.wait == 2.0


def test_nonsense_for_how_long_is_an_ordinary_failure() -> None:
    for nonsense in (float("nan"), -1.0, 0.0):
        breaker = CircuitBreaker(clock=Clock(), random=lambda: 1.0)
        breaker.failed(retry_after=nonsense, request=breaker.sent())
        assert breaker.is_closed
    breaker = CircuitBreaker(clock=Clock(), random=lambda: 1.0)
    breaker.failed(retry_after=float("inf"), request=breaker.sent())
    assert breaker.wait == 3600.0


def test_a_probe_that_is_lost_does_not_close_it_for_ever() -> None:
    clock = Clock()
    breaker = opened(clock, longest_wait=60.0)
    clock.now += 1.0
    lost = breaker.sent()
    clock.now += 59.0
    assert breaker.allowed() == 0
    clock.now += 1.0
    assert breaker.allowed() == 1
    probe = breaker.sent()
    breaker.succeeded(lost)
    assert not breaker.is_closed
    breaker.succeeded(probe)
    assert breaker.is_closed


def test_what_is_sent_against_its_word_changes_nothing() -> None:
    breaker = opened(Clock())
    request = breaker.sent()
    breaker.failed(request=request)
    assert breaker.wait == 1.0
    breaker.succeeded(request)
    assert breaker.wait == 1.0


class Model:
    """The rules, written down without thought of time and space: every request knows what was true
    when it was sent.
    """

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.state, self.until, self.probe = "closed", 0.0, None
        self.in_a_row, self.openings, self.epoch = 0, 0, object()
        self.sent: list[tuple[int, object]] = []

    def allowed(self, now: float) -> int:
        if self.state == "closed":
            return sys.maxsize
        if now < self.until or (self.probe is not None and now < self.probe + 60):
            return 0
        return 1

    def send(self, number: int, now: float) -> None:
        if self.state != "closed":
            self.epoch, self.probe = object(), now
        self.sent.append((number, self.epoch))

    def answer(
        self, at: int, now: float, is_success: bool, retry_after: float, chance: float
    ) -> int:
        number, epoch = self.sent.pop(at)
        is_current = epoch is self.epoch
        if is_success and is_current:
            self.in_a_row = self.openings = 0
            if self.state != "closed":
                self.state, self.probe, self.epoch = "closed", None, object()
        if not is_success:
            self.in_a_row += is_current
            waits = [retry_after] if retry_after else []
            if is_current and (
                retry_after or self.state != "closed" or self.in_a_row >= self.failures
            ):
                waits.append(min(60, 2**self.openings) * (0.5 + 0.5 * chance))
                self.openings += 1
            if waits:
                self.until = max(self.until, now + max(waits))
                self.state, self.probe, self.epoch = "open", None, object()
        return number


moves = st.lists(
    st.one_of(
        st.tuples(st.just("pass"), st.sampled_from([0.25, 0.5, 1.0, 3.0, 30.0, 61.0])),
        st.tuples(st.just("send"), st.integers(1, 3)),
        st.tuples(st.just("succeed"), st.integers(0, 9)),
        st.tuples(st.just("fail"), st.integers(0, 9)),
        st.tuples(st.just("fail"), st.integers(0, 9)),
        st.tuples(st.just("busy"), st.integers(0, 9)),
    ),
    max_size=60,
)


@settings(max_examples=200)
@given(moves, st.integers(1, 3), st.sampled_from([0.0, 0.5, 0.75]))
def test_it_does_what_the_rules_say(moves: list, failures: int, chance: float) -> None:
    clock = Clock()
    breaker = CircuitBreaker(clock=clock, random=lambda: chance, failures=failures)
    model = Model(failures)
    for move, amount in moves:
        if move == "pass":
            clock.now += amount
        elif move == "send":
            for _ in range(min(amount, model.allowed(clock.now))):
                model.send(breaker.sent(), clock.now)
        elif model.sent:
            retry_after = 7.0 if move == "busy" else 0.0
            request = model.answer(
                amount % len(model.sent), clock.now, move == "succeed", retry_after, chance
            )
            if move == "succeed":
                breaker.succeeded(request)
            else:
                breaker.failed(retry_after or None, request)
        assert breaker.allowed() == model.allowed(clock.now)
        assert breaker.wait == (max(0.0, model.until - clock.now) if model.state == "open" else 0.0)


@given(st.lists(st.floats(0, 1, exclude_max=True), min_size=1, max_size=12))
def test_it_waits_between_half_and_all_of_a_time_that_doubles(chances: list[float]) -> None:
    clock = Clock()
    drawn = iter(chances)
    breaker = CircuitBreaker(clock=clock, random=lambda: next(drawn), failures=1)
    for number in range(len(chances)):
        breaker.failed(request=breaker.sent())
        full = min(60.0, 2.0**number)
        assert full / 2 - 1e-9 <= breaker.wait <= full + 1e-9
        clock.now += breaker.wait + 1e-6
