"""Fingerprint of the beginning of a file, to notice that it is not the same any more."""

from __future__ import annotations

import hashlib
import os

EDGE = 4096
"""Bytes at the beginning, and at the end, of the length to compare."""


def fingerprint(file: int, length: int) -> str:
    """Return the fingerprint of the first ``length`` bytes of an open file.

    Covers the length, the first 4 KiB and the last 4 KiB of these bytes. So it tells apart files
    that grow by different appends, without a look at all that was read.
    """
    found = hashlib.blake2b(length.to_bytes(8, "big"), digest_size=8)
    first = min(EDGE, length)
    found.update(os.pread(file, first, 0))
    if length > first:
        start = max(first, length - EDGE)
        found.update(os.pread(file, length - start, start))
    return found.hexdigest()
