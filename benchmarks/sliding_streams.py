"""Streams for windows that slide at every event: random order, trades, moving objects, a sensor."""

from __future__ import annotations

import numpy as np

from acquatop.topk.contract import FloatArray

SHARES = 500
OBJECTS = 5_000
STEPS = 2_000
"""Number of price steps over a stream."""


def uniform(size: int, dimensions: int, seed: int = 1) -> FloatArray:
    """Return points anywhere in the unit cube, in random order."""
    return np.random.default_rng(seed).random((size, dimensions))


def moving(size: int, dimensions: int, seed: int = 1) -> FloatArray:
    """Return positions of objects that move straight, reflect at the border, and report in turn.

    An object moves by about a thousandth every two thousand events: near objects stay near for
    long.
    """
    chance = np.random.default_rng(seed)
    at = np.arange(size)
    start = chance.random((OBJECTS, dimensions))
    speed = chance.normal(0, 5e-7, (OBJECTS, dimensions))
    objects = chance.permutation(OBJECTS)[at % OBJECTS]
    along = start[objects] + speed[objects] * at[:, None]
    return np.abs((along + 1) % 2 - 1)


def trades(size: int, seed: int = 1) -> FloatArray:
    """Return values of trades: random-walk prices, and more volume early and late in the day."""
    chance = np.random.default_rng(seed)
    shares = np.minimum(chance.zipf(1.3, size), SHARES) - 1
    prices = np.exp(
        np.cumsum(chance.normal(0, 0.01, (STEPS, SHARES)), axis=0) + chance.normal(3, 1, SHARES)
    )
    of_day = np.arange(size) / max(1, size - 1)
    volumes = chance.lognormal(5, 1.2, size) * (1 + 2 * np.abs(2 * (4 * of_day % 1) - 1))
    values: FloatArray = prices[(of_day * (STEPS - 1)).astype(np.int64), shares] * volumes
    return values


def sensor(size: int, seed: int = 1) -> FloatArray:
    """Return a sensor's readings: a daily wave of a hundred thousand events, with some noise."""
    days = np.arange(size) / 100_000
    return np.sin(2 * np.pi * days) + np.random.default_rng(seed).normal(0, 0.01, size)
