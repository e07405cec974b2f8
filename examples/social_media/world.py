"""A small simulated social network: mentioned users, and changing numbers of followers."""

from __future__ import annotations

import json
import math
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import product
from pathlib import Path

import requests

from ..oxigraph import OxigraphServer

NS = "http://example.org/social#"
USER = "http://example.org/social/user/"
_FIRST = ["ada", "ben", "cleo", "dara", "elif", "finn", "gus", "hana", "ivo", "juno", "kai", "lena"]
_LAST = ["abe", "berg", "cruz", "diaz", "eze", "fox", "gray", "hill", "imai", "jones"]
USERS = [f"{first}-{last}" for first, last in product(_FIRST, _LAST)]

MENTION_MEMORY_MS = 10_000
"""Period over which a user's mentions are counted."""
LOOKS_BACK_SECONDS = 4.0
"""Time over which the query compares followers: before, no growth is known."""


class SocialNetwork:
    """Random mentions and followers; now and then one user becomes a star."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        ranked = self._random.sample(USERS, len(USERS))
        self._popularity = {user: 1 / (rank + 5) for rank, user in enumerate(ranked)}
        self.followers = {
            user: min(100_000, int(1000 * math.exp(self._random.gauss(2, 1.2)))) for user in USERS
        }
        self._mentions: dict[str, deque[int]] = {user: deque() for user in USERS}
        self._star, self._star_until = ranked[-1], 0

    def mentions(self, now_ms: int, count: int) -> list[dict[str, object]]:
        """Mention some users; return the events with each one's recent number of mentions."""
        if now_ms >= self._star_until:
            self._star, self._star_until = self._random.choice(USERS), now_ms + 8_000
        weights = [
            weight + (0.4 if user == self._star else 0) for user, weight in self._popularity.items()
        ]
        events: list[dict[str, object]] = []
        for user in self._random.choices(list(self._popularity), weights, k=count):
            recent = self._mentions[user]
            recent.append(now_ms)
            while recent[0] <= now_ms - MENTION_MEMORY_MS:
                recent.popleft()
            events.append({"time_ms": now_ms, "user": user, "mentions": len(recent)})
        return events

    def followers_change(self, count: int) -> dict[str, int]:
        """Change the followers of some users, the star included; return their new numbers."""
        changed = {self._star, *self._random.sample(USERS, count)}
        for user in sorted(changed):
            factor = 1.04 if user == self._star else math.exp(self._random.gauss(0, 0.15))
            self.followers[user] = min(100_000, max(10, int(self.followers[user] * factor)))
        return {user: self.followers[user] for user in sorted(changed)}


def store_followers(server: OxigraphServer, followers: Iterable[tuple[str, int]]) -> None:
    """Set users' numbers of followers at the server, with or without previous values."""
    rows = " ".join(f"(<{USER}{user}> {count})" for user, count in followers)
    predicate = f"<{NS}hasFollowers>"
    server.update(
        f"DELETE {{ ?user {predicate} ?old }} INSERT {{ ?user {predicate} ?new }} "
        f"WHERE {{ VALUES (?user ?new) {{ {rows} }} OPTIONAL {{ ?user {predicate} ?old }} }}"
    )


class Driver:
    """Simulation of the network: two threads write mentions to a file, followers to the server.

    Mentions begin once the growth of the followers can be known.
    """

    def __init__(self, network: SocialNetwork, server: OxigraphServer, folder: Path) -> None:
        self._network = network
        self._server = server
        self._file = folder / "mentions.ndjson"
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._threads = [
            threading.Thread(target=self._every, args=each, daemon=True)
            for each in (
                (0.05, self._write_mentions, LOOKS_BACK_SECONDS),
                (0.25, self._update_followers, 0.0),
            )
        ]

    def start(self) -> None:
        """Start."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Stop, and wait until nothing is written any more."""
        self._stopping.set()
        for thread in self._threads:
            if thread.is_alive():
                thread.join()

    def _every(self, seconds: float, act: Callable[[], None], after: float) -> None:
        self._stopping.wait(after)
        while not self._stopping.wait(seconds):
            act()

    def _write_mentions(self) -> None:
        with self._lock:
            events = self._network.mentions(time.time_ns() // 1_000_000, count=3)
        with self._file.open("a") as stream:
            stream.writelines(json.dumps(event) + "\n" for event in events)

    def _update_followers(self) -> None:
        with self._lock:
            changed = self._network.followers_change(count=10)
        # The user may have stopped the server to see the engine's reaction: skip the change.
        with suppress(requests.RequestException):
            store_followers(self._server, changed.items())
