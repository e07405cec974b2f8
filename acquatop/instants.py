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


def instant_ms(text: str) -> int:
    """Return the time that such a text says; ValueError for any other text.

    >>> instant_ms("10000-01-01T00:00:00.000Z")
    253402300800000
    """
    if not text.endswith("Z"):
        raise ValueError(f'"{text}" is not an instant in UTC')
    return int(np.datetime64(text[:-1], "ms").astype(np.int64))
