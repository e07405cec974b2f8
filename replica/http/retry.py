"""Time after which a refusing server may be asked again."""

from __future__ import annotations

import re
from collections.abc import Mapping
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

    None for other replies. The headers are those of X: the number left, and the time of the reset
    in seconds since the epoch.

    >>> until_reset({"x-rate-limit-remaining": "0", "x-rate-limit-reset": "960"}, now=100.0)
    860.0
    >>> until_reset({"x-rate-limit-remaining": "7", "x-rate-limit-reset": "960"}, now=100.0) is None
    True
    """
    left, reset = (
        headers.get(f"x-rate-limit-{name}", "").strip() for name in ("remaining", "reset")
    )
    if not re.fullmatch(r"0+", left) or not re.fullmatch(r"[0-9]{1,12}", reset):
        return None
    return min(max(float(reset) - now, 0.0), LONGEST_RETRY)
