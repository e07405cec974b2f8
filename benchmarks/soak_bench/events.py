"""Writer of the soak benchmark's stream, in a process of its own: keys that come and go.

Each key comes twice within some thousand events and never again. One event in 500 is late. In one
of ten stretches one event in 700 cannot be used.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import islice

PER_SECOND = 100
"""Events of one second of the stream."""
TIMES = 2
"""Times that a key comes."""
START_MS = 1_700_000_000_000
"""Time of the first event."""
_SPREAD = 997
_AT_ONCE = 5_000
_STRETCH = 50_000
_BAD = (
    b'{"t": %d, "user": "u',
    b'{"time": %d, "user": "u1", "mentions": 1}',
    b'{"t": %d, "user": "u1", "mentions": "many"}',
    b"\xff\xfe %d",
)


def keys(seconds: int) -> int:
    """Return the number of distinct keys in the events of some seconds."""
    return seconds * PER_SECOND // TIMES


def events(first: int = 0) -> Iterator[bytes]:
    """Yield events as lines, from one on; they never end."""
    number = first
    while True:
        time_ms = START_MS + number * 1_000 // PER_SECOND
        if number // _STRETCH % 10 == 0 and number % 700 == 699:
            yield _BAD[number // 700 % len(_BAD)] % time_ms + b"\n"
        elif number % 500 == 499:
            yield _line(number, time_ms - 60_000)
        else:
            yield _line(number, time_ms)
        number += 1


def _line(number: int, time_ms: int) -> bytes:
    user = number // TIMES + number * 7919 % _SPREAD
    vip = b', "vip": 1' if number % 50 == 0 else b""
    return b'{"t": %d, "user": "u%d", "mentions": %d%s}\n' % (
        time_ms,
        user,
        number * 31 % 1_009,
        vip,
    )


def main() -> None:
    """Write events to a pipe until nobody reads it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pipe")
    found = events()
    try:
        with open(parser.parse_args().pipe, "wb") as pipe:  # noqa: PTH123 (a pipe)
            while True:
                pipe.write(b"".join(islice(found, _AT_ONCE)))
    except BrokenPipeError:
        return


if __name__ == "__main__":
    main()
