"""JSON documents as single lines of bytes."""

from __future__ import annotations

import json
import math
from typing import Any


def json_line(document: Any) -> bytes:
    r"""Return a document as a line of strict JSON: numbers that JSON does not have are null.

    >>> json_line({"score": float("inf"), "bindings": {"name": "Zoë\n", "half": chr(0xD800)}})
    b'{"score": null, "bindings": {"name": "Zo\xc3\xab\\n", "half": "\\ud800"}}\n'
    """
    try:
        text = json.dumps(document, ensure_ascii=False, allow_nan=False)
    except ValueError:
        text = json.dumps(_finite(document), ensure_ascii=False)
    # A lone surrogate, which an escape in a record can make, is not valid UTF-8: it stays escaped.
    return text.encode(errors="backslashreplace") + b"\n"


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
