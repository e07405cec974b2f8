"""Times as text, whatever their year.

Events happen in the years 1 to 9999. A window that holds them may open before these years, or close
after them.
"""

from __future__ import annotations

import numpy as np


def instant_text(time_ms: int) -> str:
    """Return a time as an xsd:dateTime in UTC, to the millisecond.

    As XSD 1.1 has it, the year 0 is the one before the year 1, and years from 10000 on have more
    digits.

    >>> instant_text(1_750_000_000_123), instant_text(253_402_300_800_000)
    ('2025-06-15T15:06:40.123Z', '10000-01-01T00:00:00.000Z')
    >>> instant_text(-62_135_596_800_001)
    '0000-12-31T23:59:59.999Z'
    """
    return f"{np.datetime64(time_ms, 'ms')}Z"


def date_text(time_ms: int) -> str:
    """Return the date of a time in UTC.

    >>> date_text(1_750_000_000)
    '1970-01-21'
    """
    return instant_text(time_ms).partition("T")[0]


def day_time_text(time_ms: int, now_ms: int) -> str:
    """Return a time in UTC for people: the time of day, after the date if that is not today's.

    >>> noon = 1_750_032_000_000
    >>> day_time_text(noon, noon + 3_600_000), day_time_text(noon + 1, noon + 86_400_000)
    ('00:00:00', '2025-06-16 00:00:00.001')
    """
    date, _, clock = instant_text(time_ms).removesuffix("Z").partition("T")
    clock = clock.removesuffix(".000")
    return clock if date == date_text(now_ms) else f"{date} {clock}"


def span_texts(opens_ms: int, closes_ms: int, now_ms: int) -> tuple[str, str]:
    """Return two times for people; the second has a date only if it is not that of the first.

    >>> span_texts(1_000, 7_000, 0), span_texts(1_000, 7_000, 86_400_000)
    (('00:00:01', '00:00:07'), ('1970-01-01 00:00:01', '00:00:07'))
    >>> span_texts(86_399_000, 86_401_000, 0)
    ('23:59:59', '1970-01-02 00:00:01')
    """
    return day_time_text(opens_ms, now_ms), day_time_text(closes_ms, opens_ms)


def span_text(opens_ms: int, closes_ms: int, now_ms: int) -> str:
    """Return two times for people, with a dash between them."""
    return " – ".join(span_texts(opens_ms, closes_ms, now_ms))


def instant_ms(text: str) -> int:
    """Return the time that such a text says; ValueError for any other text.

    >>> instant_ms("10000-01-01T00:00:00.000Z")
    253402300800000
    """
    if not text.endswith("Z"):
        raise ValueError(f'"{text}" is not an instant in UTC')
    return int(np.datetime64(text[:-1], "ms").astype(np.int64))
