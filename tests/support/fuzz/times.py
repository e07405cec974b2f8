"""Times that somebody may send, with the milliseconds that they mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random

from tests.support.fuzz.values import Value, number

FORMS_OF_TIME = ("milliseconds", "seconds", "dateTime")
EARLIEST_MS, LATEST_MS = -62_135_596_800_000, 253_402_300_799_999
CLUSTERS = (EARLIEST_MS, -1_000, 1_700_000_000_000, LATEST_MS - 30_000)
_EPOCH = datetime(1970, 1, 1)
_NO_INSTANTS = (
    *("", "0000-01-01T00:00:00Z", "-0001-01-01T00:00:00Z", "12345-01-01T00:00:00Z", "tomorrow"),
    *("2024-02-30T00:00:00Z", "2023-02-29T00:00:00Z", "2024-06-30T23:59:60Z", "2024-01-01"),
    *("2024-01-01T24:00:01Z", "2024-01-01T00:00:00+15:00", "2024-01-01T00:00:00.Z", "P1D"),
    *(
        "2024-01-01T00:00:00z",
        "2024-01-01 00:00:00Z",
        "2024-13-01T00:00:00Z",
        "٢٠٢٤-01-01T00:00:00Z",
    ),
    *(
        "2024-01-01T00:00:00Z\n",
        "\x00",
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59.999-14:00",
    ),
)
_NO_WHOLE = (
    str(2**63),
    "9" * 400,
    "1e400",
    str(LATEST_MS + 1),
    str(EARLIEST_MS - 1),
    str(-(2**63)),
)


@dataclass(frozen=True)
class Moment:
    """Time of an item as it is sent, and the milliseconds meant; None if it is no time."""

    sent: Value | None
    ms: int | None


def ascending(count: int, clusters: Sequence[int], random: Random) -> list[int]:
    """Return times near some points of time, in ascending order."""
    found = []
    for _ in range(count):
        near = random.choice(clusters)
        found.append(
            min(
                LATEST_MS,
                max(
                    EARLIEST_MS,
                    near
                    + random.choice((0, 0, 1, 999, 1_000, 4_000, 9_999, random.randrange(15_000))),
                ),
            )
        )
    return sorted(found)


def moment(ms: int, time_as: str, random: Random) -> Moment:
    """Return one time in a form, or what is none."""
    if random.random() < 0.04:
        return Moment(None, None)
    if random.random() < 0.1:
        return Moment(_none(time_as, random), None)
    if time_as == "milliseconds":
        return Moment(number(str(ms), True), ms)
    if time_as == "seconds":
        text = f"{'-' if ms < 0 else ''}{abs(ms) // 1000}.{abs(ms) % 1000:03}"
        return Moment(number(text, True), ms)
    return Moment(Value(_instant(ms, random), True), ms)


def _none(time_as: str, random: Random) -> Value:
    if time_as == "dateTime":
        return Value(random.choice(_NO_INSTANTS), False)
    if random.random() < 0.3:
        return Value(random.choice(("", "soon", "\x00", "NaN", "1;2")), False)
    texts = _NO_WHOLE if time_as == "milliseconds" else ("1e300", "-1e300", "1e17", "253402300800")
    return number(random.choice(texts), False)


def _instant(ms: int, random: Random) -> str:
    minutes = random.choice((0, 0, 14 * 60, -14 * 60, 90, -1))
    try:
        local = _EPOCH + timedelta(milliseconds=ms, minutes=minutes)
    except OverflowError:
        minutes, local = 0, _EPOCH + timedelta(milliseconds=ms)
    text = local.isoformat(timespec="milliseconds") + random.choice(("", "9", "0" * 40))
    if not minutes:
        return text + random.choice(("Z", "", "+00:00", "-00:00"))
    return f"{text}{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"
