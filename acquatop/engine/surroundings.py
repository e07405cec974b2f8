"""Surroundings of an engine: its clocks, its randomness, its threads, the files of its state."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from acquatop.engine.idle_timer import IdleTimer, TimerFactory
from acquatop.engine.state.folder import Folder
from acquatop.query.kinds import OpenLimited
from acquatop.query.sparql.worker_engine import WorkerEngine
from acquatop.refresh.open_replicas import FeedFactory, open_feed
from replica.clocks import Clock
from replica.workers import Workers


@dataclass(frozen=True)
class Surroundings:
    """Everything that an engine takes from outside, so that a simulation can replace it.

    ``clock`` measures waits, ``wall_clock`` is the time of day, and ``random`` spreads retries.
    ``workers`` makes the threads for the requests of one remote, ``timer`` one that advances an
    idle stream's time, ``open_feed`` a feed, ``open_sparql`` the engine for one query over whole
    windows, and ``state_folder`` gives access to the disk.
    """

    clock: Clock = time.monotonic
    wall_clock: Clock = time.time
    random: Random = field(default_factory=Random)
    workers: Callable[[int], Workers] = Workers
    timer: TimerFactory = IdleTimer
    open_feed: FeedFactory = open_feed
    open_sparql: OpenLimited = WorkerEngine
    state_folder: Callable[[Path], Folder] = Folder
