"""A town of 20 by 20 kilometres, whose taxis drive about and say where they are."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from random import Random
from typing import NamedTuple

SIZE_KM = 20.0
_KM_PER_PING = 0.2


class Stand(NamedTuple):
    """A taxi stand: its name, and its place in kilometres."""

    name: str
    x: float
    y: float

    def text(self, template: str) -> str:
        """Return the stand's query."""
        return template.replace("STAND_X", f"{self.x:.3f}").replace("STAND_Y", f"{self.y:.3f}")


def stands(count: int, seed: int) -> list[Stand]:
    """Return stands in random places, more of them near the middle."""
    random = Random(f"stands {seed}")

    def place() -> float:
        return round(min(SIZE_KM, max(0.0, random.gauss(SIZE_KM / 2, SIZE_KM / 5))), 3)

    return [Stand(f"stand-{number}", place(), place()) for number in range(count)]


def pings(taxis: int, seconds: int, seed: int) -> Iterator[str]:
    """Yield the pings as lines: each taxi says every ten seconds where it is."""
    random = Random(f"taxis {seed}")
    places = [[random.uniform(0, SIZE_KM), random.uniform(0, SIZE_KM)] for _ in range(taxis)]
    for number in range(taxis * seconds // 10):
        taxi = number % taxis
        angle = random.uniform(0, math.tau)
        steps = _KM_PER_PING * math.cos(angle), _KM_PER_PING * math.sin(angle)
        for axis, step in enumerate(steps):
            places[taxi][axis] = min(SIZE_KM, max(0.0, places[taxi][axis] + step))
        x, y = places[taxi]
        t = 1 + number * 10_000 // taxis
        yield json.dumps({"id": number, "t": t, "taxi": taxi, "x": round(x, 4), "y": round(y, 4)})
