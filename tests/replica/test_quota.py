from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from replica.clocks import MachineClock
from replica.spending.ledger import Ledger
from replica.spending.limit import Limit
from replica.spending.quota import UNLIMITED, Quota
from replica.spending.spent import (
    Spent,
    SpentInMemory,
    came_back_until,
    comes_back_at,
    seconds_until,
    thinned,
)

UNITS = ("requests", "items")


@pytest.fixture(scope="module", params=["memory", "ledger"])
def new_quota(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable]:
    """Makes quotas that know nothing of each other, kept in memory or in one ledger."""
    path = tmp_path_factory.mktemp("quota") / "spending.db"
    ledger = Ledger(path) if request.param == "ledger" else None
    services = map(str, itertools.count())
    yield lambda limits, **others: Quota(limits, ledger=ledger, service=next(services), **others)
    if ledger is not None:
        ledger.close()


def most_in_any_window(grants: list[tuple[float, int]], seconds: float) -> int:
    """Return the most units in any window, its start included and its end not, counted without
    rounding.
    """
    exact = [(Fraction(at), units) for at, units in grants]
    length = Fraction(seconds)
    return max(
        (sum(n for at, n in exact if start <= at < start + length) for start, _ in exact), default=0
    )


limits = st.lists(
    st.builds(
        Limit,
        st.integers(1, 12),
        st.one_of(st.integers(1, 8), st.floats(0.1, 8)).map(float),
        st.sampled_from(UNITS),
    ),
    min_size=1,
    max_size=3,
)
steps = st.lists(
    st.tuples(
        st.one_of(st.just(0.0), st.integers(0, 3).map(float), st.floats(0, 3)),
        st.integers(0, 6),
        st.integers(0, 2),
    ),
    max_size=25,
)


@settings(max_examples=40)
@given(limits, steps, st.sampled_from([0.0, 1e9, -5.3]))
def test_no_window_ever_holds_more_than_a_limit_and_all_else_is_allowed(
    new_quota: Callable[..., Quota], limits: list[Limit], steps: list, start: float
) -> None:
    now = start
    quota = new_quota(limits, time=lambda: now)
    grants: list[tuple[float, int, int]] = []
    for step, items, requests in steps:
        now += step
        left = []
        for unit in UNITS:
            spent = [
                (at, each[UNITS.index(unit)]) for at, *each in ((at, n, m) for at, m, n in grants)
            ]
            free = [
                limit.amount
                - sum(
                    n for at, n in spent if Fraction(at) + Fraction(limit.seconds) > Fraction(now)
                )
                for limit in limits
                if limit.unit == unit
            ]
            left.append(min(free, default=UNLIMITED))
        assert quota.left() == (left[1], left[0])
        is_allowed = items <= left[1] and requests <= left[0]
        assert (quota.wait(items, requests) == 0) == is_allowed
        assert quota.take(items, requests) == is_allowed
        if is_allowed:
            grants.append((now, items, requests))
    for limit in limits:
        column = 1 if limit.unit == "items" else 2
        assert (
            most_in_any_window([(grant[0], grant[column]) for grant in grants], limit.seconds)
            <= limit.amount
        )


@settings(max_examples=40)
@given(limits, steps, st.integers(0, 6), st.integers(0, 2))
def test_after_the_wait_it_is_allowed_and_not_before(
    new_quota: Callable[..., Quota], limits: list[Limit], steps: list, items: int, requests: int
) -> None:
    now = 1e6
    quota = new_quota(limits, time=lambda: now)
    for step, *wanted in steps:
        now += step
        quota.take(*wanted)
    wait = quota.wait(items, requests)
    too_much = any(
        (items if limit.unit == "items" else requests) > limit.amount for limit in limits
    )
    assert math.isinf(wait) == too_much
    if too_much:
        return
    started = now
    if wait > 1e-6:
        now = started + wait - 1e-6
        assert quota.wait(items, requests) > 0
    now = started + wait
    assert quota.take(items, requests)


@settings(max_examples=40)
@given(
    st.integers(1, 5),
    st.integers(1, 30),
    st.lists(st.tuples(st.integers(0, 10), st.integers(0, 40), st.integers(1, 3)), max_size=25),
)
def test_a_clock_that_is_set_back_frees_nothing_early(
    new_quota: Callable[..., Quota], amount: int, seconds: int, steps: list[tuple[int, int, int]]
) -> None:
    passed, behind = 0, 0
    quota = new_quota(
        [Limit(amount, seconds, "requests")], time=lambda: float(1000 + passed - behind)
    )
    grants = []
    for step, back, requests in steps:
        passed += step
        behind += back
        if quota.take(0, requests):
            grants.append((float(passed), requests))
    assert most_in_any_window(grants, seconds) <= amount


def test_while_the_clock_is_set_back_time_stands_still(new_quota: Callable[..., Quota]) -> None:
    now = 1000.0
    quota = new_quota([Limit.parse("2 requests per 1m")], time=lambda: now)
    assert quota.take(0, 1)
    now = 900.0
    assert quota.take(0, 1)
    assert not quota.take(0, 1)
    assert quota.wait(0, 1) == 160.0
    now = 1059.0
    assert not quota.take(0, 1)
    now = 1060.0
    assert quota.left()[1] == 2


def test_with_a_ledger_nothing_comes_back_early_when_the_clock_is_set(tmp_path: Path) -> None:
    wall, steady = 1000.0, 5.0
    limits = [Limit.parse("2 requests per 1m")]

    def life() -> tuple[Ledger, Quota]:
        machine = MachineClock("boot", lambda: steady)
        ledger = Ledger(tmp_path / "spending.db", machine=machine, wall=lambda: wall)
        return ledger, Quota(limits, ledger=ledger, wall=lambda: wall)

    ledger, quota = life()
    assert quota.take(0, 1)
    for change in (86_400, -3 * 86_400, 86_400):
        wall += change
        assert quota.left() == (UNLIMITED, 1)
        assert quota.wait(0, 2) == 60.0
    assert quota.take(0, 1)
    wall += 86_400
    # Nor after a restart, as the ledger's rows have the machine's time.
    for number in range(3):
        ledger.close()
        steady += 10.0
        ledger, quota = life()
        assert quota.left() == (UNLIMITED, 0)
        assert quota.wait(0, 1) == 50.0 - 10.0 * number
    steady += 30.0
    assert quota.take(0, 2)
    assert not quota.take(0, 1)
    ledger.close()


def test_with_a_ledger_units_come_back_by_the_time_of_day_after_a_boot(tmp_path: Path) -> None:
    wall = 1000.0
    for boot, seconds, left in (("a", 0.0, 1), ("b", 20.0, 0), ("c", 50.0, 1), ("d", -9e9, 0)):
        wall += seconds
        machine = MachineClock(boot, lambda: 3.0)
        ledger = Ledger(tmp_path / "spending.db", machine=machine, wall=lambda wall=wall: wall)
        quota = Quota([Limit.parse("1 request per 1m")], ledger=ledger)
        assert quota.left() == (UNLIMITED, left)
        assert quota.take(0, 1) == bool(left)
        ledger.close()


@given(st.floats(-1e9, 1e9), st.floats(1e-6, 1e6))
def test_when_units_come_back_is_exact_to_the_last_bit(now: float, seconds: float) -> None:
    until, back = came_back_until(now, seconds), comes_back_at(now, seconds)
    assert Fraction(until) + Fraction(seconds) <= Fraction(now)
    assert Fraction(math.nextafter(until, math.inf)) + Fraction(seconds) > Fraction(now)
    assert Fraction(back) >= Fraction(now) + Fraction(seconds)
    assert Fraction(math.nextafter(back, -math.inf)) < Fraction(now) + Fraction(seconds)


@given(st.floats(-1e9, 1e9), st.floats(-1e9, 1e9))
def test_a_wait_never_ends_too_early(then: float, now: float) -> None:
    assert now + seconds_until(then, now) >= then


@pytest.mark.parametrize(
    "texts", [["5000 requests per 1m"], ["60 requests per 1s", "100000 items per 1h"]]
)
def test_memory_is_bounded_and_units_come_back_a_hair_late_at_most(texts: list[str]) -> None:
    now = 0.0
    limits = [Limit.parse(text) for text in texts]
    spent = SpentInMemory()
    ledger: Any = SimpleNamespace(log_of=lambda service: spent)
    quota = Quota(limits, time=lambda: now, ledger=ledger)
    grants: list[tuple[float, int]] = []
    refused = 0
    for number in range(2500):
        now += (number * 7919 % 13) / 400
        count = 1 + number % 5
        if quota.take(count, count):
            grants.append((now, count))
        else:
            refused += 1
            for limit in limits:
                since = now - limit.seconds * (1 + 1 / 100)
                if (
                    sum(n for at, n in reversed(grants[-3000:]) if at > since) + count
                    > limit.amount
                ):
                    break
            else:
                pytest.fail("what must have come back is not allowed")
    assert refused > 100
    assert grants
    assert 0 < len(spent.rows()) <= 1000
    for limit in limits:
        times = [at for at, _ in grants]
        total, first = 0, 0
        for last, (at, count) in enumerate(grants):
            total += count
            while times[first] <= at - limit.seconds:
                total -= grants[first][1]
                first += 1
            assert total <= limit.amount, last


@given(
    st.lists(st.tuples(st.floats(0, 1000), st.integers(0, 9), st.integers(0, 9)), max_size=40),
    st.lists(st.floats(0.1, 2000), min_size=1, max_size=3),
    st.floats(0, 500),
)
def test_thinning_moves_units_to_later_times_only(
    rows: list, periods: list[float], later: float
) -> None:
    ascending = sorted(Spent(*row) for row in rows)
    now = max((row.at for row in ascending), default=0.0) + later
    merged = thinned(ascending, periods, now)
    assert list(merged) == sorted(merged)
    assert {row.at for row in merged} <= {row.at for row in ascending}
    for since in [row.at for row in ascending]:
        for column in (1, 2):
            before = sum(row[column] for row in ascending if row.at >= since)
            assert sum(row[column] for row in merged if row.at >= since) >= before
    for column in (1, 2):
        assert sum(row[column] for row in merged) == sum(row[column] for row in ascending)


def test_many_rows_become_few_for_every_period() -> None:
    rows = [Spent(float(at), 1, 1) for at in range(100_000)]
    assert len(thinned(rows, [60.0, 3600.0, 100_000.0], now=100_000.0)) <= 3 * 130


def test_threads_together_take_exactly_what_is_allowed(new_quota: Callable[..., Quota]) -> None:
    quota = new_quota(
        [Limit.parse("50 requests per 1h"), Limit.parse("60 items per 1h")], time=lambda: 5.0
    )
    taken: list[int] = []

    def take_all() -> None:
        while quota.take(1, 1):
            taken.append(1)

    threads = [threading.Thread(target=take_all) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(taken) == 50
    assert quota.left() == (10, 0)


def test_nothing_is_limited_without_a_limit(new_quota: Callable[..., Quota]) -> None:
    quota = new_quota([])
    assert quota.take(10**9, 10**9)
    assert quota.left() == (UNLIMITED, UNLIMITED)
    assert quota.wait(10**9, 10**9) == 0
    only_requests = new_quota([Limit.parse("2 requests per 1h")], time=lambda: 0.0)
    assert only_requests.left() == (UNLIMITED, 2)


def test_nothing_can_be_given_back(new_quota: Callable[..., Quota]) -> None:
    for limits in ([], [Limit.parse("2 requests per 1h")]):
        with pytest.raises(ValueError, match="given back"):
            new_quota(limits).take(-1, 0)


def test_a_margin_keeps_units_for_as_long_again_as_requests_may_travel(
    new_quota: Callable[..., Quota],
) -> None:
    now = 0.0
    quota = new_quota([Limit.parse("1 request per 10s")], time=lambda: now, margin=2.5)
    assert quota.take(0, 1)
    now = 12.25
    assert not quota.take(0, 1)
    assert quota.wait(0, 1) == 0.25
    now = 12.5
    assert quota.take(0, 1)


@given(
    st.integers(1, 10**6),
    st.one_of(st.floats(1e-9, 1e9), st.integers(1, 10**6)),
    st.sampled_from(UNITS),
)
@example(1, 1.0000000000000003e-09, "requests")
def test_a_limit_is_read_back_as_it_is_written(amount: int, seconds: float, unit: str) -> None:
    limit = Limit(amount, float(seconds), unit)
    again = Limit.parse(str(limit))
    assert again == limit
    assert str(again) == str(limit)


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("15 requests per 15m", Limit(15, 900, "requests")),
        ("1 request per second", Limit(1, 1, "requests")),
        (" 300000  Items PER 1 d ", Limit(300000, 86400, "items")),
        ("2 requests per 500ms", Limit(2, 0.5, "requests")),
        ("3 items per 1.5h", Limit(3, 5400, "items")),
        ("3 items per 2 days", Limit(3, 172800, "items")),
        ("3 items per 30s", Limit(3, 30, "items")),
        ("3 items per minute", Limit(3, 60, "items")),
        ("3 items per hour", Limit(3, 3600, "items")),
        ("3 items per day", Limit(3, 86400, "items")),
    ],
)
def test_limits_are_read_as_people_write_them(text: str, limit: Limit) -> None:
    assert Limit.parse(text) == limit


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "write it like"),
        ("15 per 15m", "write it like"),
        ("15 requests", "write it like"),
        ("many requests per 15m", "'many' is no whole number"),
        ("1.5 requests per 15m", "'1.5' is no whole number"),
        ("-1 requests per 15m", "'-1' is no whole number"),
        ("٣ requests per 15m", "is no whole number"),
        ("0 requests per 15m", "at least 1"),
        ("15 calls per 15m", "requests or items, not 'calls'"),
        ("15 requests per 15x", "'15x' is no period"),
        ("15 requests per 0s", "longer than nothing"),
        ("15 requests per -1s", "is no period"),
        ("15 requests per 15m and more", "is no period"),
        ("15 requests per ms3", "is no period"),
    ],
)
def test_what_is_no_limit_is_refused_with_what_is_wrong(text: str, words: str) -> None:
    with pytest.raises(ValueError, match="is no limit") as caught:
        Limit.parse(text)
    assert words in str(caught.value)
    assert repr(text) in str(caught.value)


@given(st.text(max_size=30))
def test_any_text_is_a_limit_or_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no limit"):
        raise ValueError(f"{Limit.parse(text)} is no limit")
