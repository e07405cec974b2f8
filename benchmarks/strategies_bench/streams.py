"""Generated streams of the kinds that the papers measure: stock trades, and moving things."""

from __future__ import annotations

import numpy as np

from acquatop.topk.contract import FloatArray, IntArray


def trades(count: int, seed: int = 1) -> FloatArray:
    """Return the amounts of trades: random-walk price times volume; few volumes are large."""
    chance = np.random.default_rng(seed)
    stocks = 500
    of = chance.integers(0, stocks, count)
    steps = chance.normal(0.0, 2e-5, count).cumsum()
    prices = chance.lognormal(3.5, 0.7, stocks)[of] * np.exp(steps)
    volumes = 100 * np.ceil(chance.lognormal(1.0, 1.3, count))
    # To the cent, plus a small random part: the papers assume distinct amounts.
    return np.asarray(np.round(prices * volumes, 2) + 1e-4 * chance.random(count))


def trade_times(seconds: int, mean_per_second: float, seed: int = 2) -> IntArray:
    """Return the times of trades in milliseconds, at a randomly varying rate."""
    chance = np.random.default_rng(seed)
    mood = np.zeros(seconds)
    for second in range(1, seconds):
        mood[second] = 0.97 * mood[second - 1] + chance.normal(0.0, 0.25)
    rates = np.exp(mood)
    counts = chance.poisson(mean_per_second * rates / rates.mean())
    starts = np.repeat(np.arange(seconds) * 1000, counts)
    return np.sort(starts + chance.integers(1, 1001, len(starts)))


def distances(count: int, seed: int = 3) -> FloatArray:
    """Return distances from a station, reported in turn by things that move nearly straight."""
    chance = np.random.default_rng(seed)
    things = 1_000
    rounds = -(-count // things)
    headings = chance.uniform(0, 2 * np.pi, things) + chance.normal(
        0, 0.2, (rounds, things)
    ).cumsum(axis=0)
    speeds = chance.uniform(0.0, 0.2, things)
    start = chance.uniform(-50, 50, (2, things))
    across = start[0] + (speeds * np.cos(headings)).cumsum(axis=0)
    along = start[1] + (speeds * np.sin(headings)).cumsum(axis=0)
    return np.asarray(np.hypot(across, along).ravel()[:count])
