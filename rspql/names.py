"""Characters allowed in names: exactly the productions of SPARQL 1.1."""

from __future__ import annotations

import functools
import re

_BASE = (
    "A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff"
    "\u200c-\u200d\u2070-\u218f\u2c00-\u2fef"
    "\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
_MORE = "0-9\u00b7\u0300-\u036f\u203f-\u2040"
_PLX = r"%[0-9A-Fa-f]{2}|\\[_~.!$&'()*+,;=/?#@%-]"
_VARIABLE = f"[{_BASE}_0-9][{_BASE}_{_MORE}]*"
_PREFIX = f"(?:[{_BASE}](?:[{_BASE}_{_MORE}.-]*[{_BASE}_{_MORE}-])?)?"
_LOCAL = (
    rf"(?:(?:[{_BASE}_0-9:]|{_PLX})"
    rf"(?:(?:[{_BASE}_{_MORE}.:-]|{_PLX})*(?:[{_BASE}_{_MORE}:-]|{_PLX}))?)?"
)
_LABEL = f"[{_BASE}_0-9](?:[{_BASE}_{_MORE}.-]*[{_BASE}_{_MORE}-])?"


def is_name(token: str) -> bool:
    """Return True if a variable, prefixed name or blank node is valid [140]-[143], [164]-[169].

    >>> is_name("?größe"), is_name("?a\u00d7b"), is_name("é:x"), is_name("_:\u00b7")
    (True, False, True, False)
    """
    return token.isascii() or _names().fullmatch(token) is not None


@functools.cache
def _names() -> re.Pattern[str]:
    return re.compile(rf"[?$]{_VARIABLE}|_:{_LABEL}|{_PREFIX}:{_LOCAL}")
