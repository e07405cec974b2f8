"""Limit on spending in a period, and its notation."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal, get_args

Unit = Literal["requests", "items"]

_UNITS: dict[str, Unit] = {
    "request": "requests",
    "item": "items",
    "requests": "requests",
    "items": "items",
}
_SECONDS = {
    "d": Decimal(86400),
    "h": Decimal(3600),
    "m": Decimal(60),
    "s": Decimal(1),
    "ms": Decimal("0.001"),
}
_LONG_NAMES = {"day": "d", "hour": "h", "minute": "m", "second": "s", "millisecond": "ms"}

_LIMIT = re.compile(r"(?P<amount>\S+)\s+(?P<unit>\S+)\s+per\s+(?P<period>\S.*)", re.IGNORECASE)
_PERIOD = re.compile(r"(?P<count>[0-9]{1,40}(?:\.[0-9]{1,40})?)?\s*(?P<name>[a-z]+)", re.IGNORECASE)
_MOST = 10**15


@dataclass(frozen=True)
class Limit:
    """At most ``amount`` requests or items in any window of ``seconds``, at any position in time.

    >>> limit = Limit.parse("15 requests per 15m")
    >>> limit
    Limit(amount=15, seconds=900.0, unit='requests')
    >>> str(limit)
    '15 requests per 15m'
    >>> str(Limit.parse("1 item per second"))
    '1 item per 1s'
    """

    amount: int
    seconds: float
    unit: Unit

    def __post_init__(self) -> None:
        if not 1 <= self.amount <= _MOST:
            raise ValueError(
                f"a limit must allow at least 1 and at most {_MOST}, not {self.amount}"
            )
        if not (math.isfinite(self.seconds) and self.seconds > 0):
            raise ValueError(
                "a limit's period must be some time longer than nothing, not "
                f"{self.seconds} seconds"
            )
        if self.unit not in get_args(Unit):
            raise ValueError(f"a limit counts requests or items, not {self.unit!r}")

    @classmethod
    def parse(cls, text: str) -> Limit:
        """Parse a limit such as ``15 requests per 15m``; raises ValueError with the reason.

        Periods are a number and one of ms, s, m, h, d, or of these words written out; "per minute"
        is "per 1m".
        """
        found = _LIMIT.fullmatch(text.strip())
        if found is None:
            raise ValueError(f"{text!r} is no limit: write it like '15 requests per 15m'")
        try:
            return cls(_amount(found["amount"]), _period(found["period"]), _unit(found["unit"]))
        except ValueError as error:
            raise ValueError(f"{text!r} is no limit: {error}") from None

    def __str__(self) -> str:
        unit = self.unit if self.amount > 1 else self.unit.removesuffix("s")
        return f"{self.amount} {unit} per {_written(self.seconds)}"


def _amount(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,16}", text):
        raise ValueError(f"{text!r} is no whole number")
    return int(text)


def _unit(text: str) -> Unit:
    unit = _UNITS.get(text.lower())
    if unit is None:
        raise ValueError(f"it must count requests or items, not {text!r}")
    return unit


def _period(text: str) -> float:
    found = _PERIOD.fullmatch(text)
    name = found["name"].lower() if found else ""
    name = _LONG_NAMES.get(name.removesuffix("s"), name)
    if found is None or name not in _SECONDS:
        raise ValueError(f"{text!r} is no period: write it like 30s, 15m, 1h, 1d or 500ms")
    return float(Decimal(found["count"] or 1) * _SECONDS[name])


def _written(seconds: float) -> str:
    exact = Decimal(repr(seconds))
    for name, length in _SECONDS.items():
        count = exact / length
        if count == count.to_integral_value() and count * length == exact:
            return f"{int(count)}{name}"
    return f"{exact:f}s"
