"""Settings that all streams of an engine share."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from acquatop.engine.idle_timer import IdleTimer, TimerFactory
from replica.clocks import Clock

if TYPE_CHECKING:
    from acquatop.engine.recorder import Recorder


@dataclass(frozen=True)
class StreamSettings:
    """Settings of streams: clocks, and the ends and effects of a step.

    ``live`` streams have no end. If state is ``durable``, answers are delivered after the commit.
    ``reads_together`` says that queries share one reading of a stream.
    """

    clock: Clock
    live: bool
    durable: bool = False
    reads_together: bool = True
    wall_clock: Clock = time.time
    timer: TimerFactory = IdleTimer
    recording: Recorder | None = None
