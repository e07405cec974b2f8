"""Time after which a refusing server may be asked again."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime

LONGEST_RETRY = 3600.0
"""Most seconds that a server's request to wait is respected, in case it is a mistake."""


def retry_after(value: str | None, now: float) -> float | None:
    """Return the seconds in a ``Retry-After`` header, given as seconds or date; None if invalid.

    >>> (
    ...     retry_after("120", now=0.0),
    ...     retry_after("Thu, 01 Jan 1970 00:01:00 GMT", now=50.0),
    ...     retry_after("soon", 0.0),
    ... )
    (120.0, 10.0, None)
    """
    text = (value or "").strip()
    if re.fullmatch(r"[0-9]+", text):
        return min(float(text), LONGEST_RETRY)
    try:
        date = parsedate_to_datetime(text)
        seconds = date.replace(tzinfo=date.tzinfo or UTC).timestamp() - now
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
    return min(max(seconds, 0.0), LONGEST_RETRY)


def until_reset(headers: Mapping[str, str], now: float) -> float | None:
    """Return the seconds until requests are allowed again, if a reply says that none are left.

    None for other replies. Known are ``RateLimit``, in the forms of the IETF's drafts, and pairs of
    headers that end with ``-Remaining`` and ``-Reset``: ``RateLimit``, ``X-RateLimit`` and, of X,
    ``X-Rate-Limit``. A reset is a number of seconds, or, of X always, a time in seconds since the
    epoch. Of several limits that are used up the longest wait counts.

    >>> until_reset({"x-rate-limit-remaining": "0", "x-rate-limit-reset": "960"}, now=100.0)
    860.0
    >>> until_reset({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1767226500"}, 1767226440.0)
    60.0
    >>> until_reset({"ratelimit": '"day";r=7;t=9000, "minute";r=0;t=42'}, now=0.0)
    42.0
    >>> until_reset({"x-rate-limit-remaining": "7", "x-rate-limit-reset": "960"}, now=100.0) is None
    True
    """
    found = [*_of_pairs(headers), *_of_field(headers.get("ratelimit", ""))]
    waits = [
        int(reset) - (now if int(reset) >= _EPOCH else 0.0)
        for left, reset in found
        if not int(left)
    ]
    waits += [int(reset) - now for left, reset in _pair(headers, _OF_X) if not int(left)]
    return max((min(max(wait, 0.0), LONGEST_RETRY) for wait in waits), default=None)


_PAIRS = ("ratelimit", "x-ratelimit")
_OF_X = "x-rate-limit"
_EPOCH = 1_000_000_000
"""Least number of a reset that is a time, and not a number of seconds."""
_DIGITS = re.compile(r"[0-9]{1,12}")


def _of_pairs(headers: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name in _PAIRS:
        yield from _pair(headers, name)


def _pair(headers: Mapping[str, str], name: str) -> Iterator[tuple[str, str]]:
    left, reset = (headers.get(f"{name}-{end}", "").strip() for end in ("remaining", "reset"))
    if _DIGITS.fullmatch(left) and _DIGITS.fullmatch(reset):
        yield left, reset


def _of_field(value: str) -> Iterator[tuple[str, str]]:
    """Yield what is left, and the reset, of each limit in a field ``RateLimit``.

    It is ``"minute";r=0;t=30``, several with commas between them, or in an older draft
    ``limit=10, remaining=0, reset=30``.
    """
    old = dict(re.findall(r"\b(remaining|reset)=([0-9]{1,12})\b", value))
    if len(old) == 2:
        yield old["remaining"], old["reset"]
    for each in value.split(","):
        new = dict(re.findall(r";\s*([rt])=([0-9]{1,12})\b", each))
        if len(new) == 2:
            yield new["r"], new["t"]
