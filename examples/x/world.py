"""A small simulated network on a mock X server: users mention each other, followers change."""

from __future__ import annotations

import itertools
import random
import threading
import time
from datetime import UTC, datetime

from ..social_media.world import USERS, SocialNetwork
from .server import Record, XServer

_IDS = {user: str(2_000_000 + number) for number, user in enumerate(USERS)}
_FIRST_POST = 1_800_000_000_000_000_000


class PostingNetwork:
    """Simulation that publishes posts with mentions of users, and changes their followers."""

    def __init__(self, server: XServer, seed: int) -> None:
        self._server = server
        self._network = SocialNetwork(seed)
        self._random = random.Random(seed)
        self._ids = itertools.count(_FIRST_POST)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._show(self._network.followers)

    def start(self) -> None:
        """Start."""
        self._thread.start()

    def stop(self) -> None:
        """Stop, and wait until nothing is published any more."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        for number in itertools.count():
            if self._stopping.wait(0.05):
                return
            self._server.publish(self._posts(time.time_ns() // 1_000_000))
            if number % 5 == 0:
                self._show(self._network.followers_change(count=10))

    def _posts(self, now_ms: int) -> list[Record]:
        mentioned = [str(event["user"]) for event in self._network.mentions(now_ms, count=3)]
        return [self._post(mentioned[:1], now_ms), self._post(mentioned[1:], now_ms)]

    def _post(self, mentioned: list[str], now_ms: int) -> Record:
        made = datetime.fromtimestamp(now_ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
        names = [f"@{user}" for user in mentioned]
        starts = itertools.accumulate((len(name) + 1 for name in names), initial=0)
        mentions = [
            {"start": start, "end": start + len(name), "username": name[1:], "id": _IDS[name[1:]]}
            for start, name in zip(starts, names, strict=False)
        ]
        post: Record = {
            "id": str(next(self._ids)),
            "text": " ".join([*names, "👋"]),
            "created_at": made,
        }
        return {
            **post,
            "author_id": _IDS[self._random.choice(USERS)],
            "entities": {"mentions": mentions},
        }

    def _show(self, followers: dict[str, int]) -> None:
        for user, count in followers.items():
            metrics = {
                "followers_count": count,
                "following_count": 0,
                "tweet_count": 0,
                "listed_count": 0,
            }
            about = {"id": _IDS[user], "name": user.title(), "username": user}
            self._server.users[_IDS[user]] = {**about, "public_metrics": metrics}
