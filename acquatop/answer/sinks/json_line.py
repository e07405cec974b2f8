"""A JSON document as one line of bytes."""

from __future__ import annotations

import json
import math
from typing import Any


def json_line(document: Any) -> bytes:
    r"""Return a document as a line that any reader of JSON understands: numbers that JSON does not have are null.

    >>> json_line({"score": float("inf"), "bindings": {"name": "Zoë\n", "half": chr(0xD800)}})
    b'{"score": null, "bindings": {"name": "Zo\xc3\xab\\n", "half": "\\ud800"}}\n'
    """
    try:
        text = json.dumps(document, ensure_ascii=False, allow_nan=False)
    except ValueError:
        text = json.dumps(_finite(document), ensure_ascii=False)
    # Half a character, as an escape in a stream's record can make one, is none of UTF-8's; so it stays escaped.
    return text.encode(errors="backslashreplace") + b"\n"


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
