"""Constructors of the service's responses."""

from __future__ import annotations

import json
import math
from typing import Any

from starlette.responses import Response

from acquatop.app.serve.problems import MEDIA_TYPE, Problem


def json_response(document: Any, status: int = 200, **headers: str) -> Response:
    """Return a response with a document. It must not be cached, as it may change at any time."""
    return Response(
        json.dumps(document, separators=(",", ":")).encode(),
        status,
        {"cache-control": "no-store", **headers},
        media_type="application/json",
    )


def problem_response(problem: Problem) -> Response:
    """Return the response for a problem."""
    headers = {"cache-control": "no-store"}
    if problem.retry_after is not None:
        headers["retry-after"] = str(math.ceil(problem.retry_after))
    if problem.status == 401:
        headers["www-authenticate"] = "Bearer"
    if "allow" in problem.more:
        headers["allow"] = str(problem.more["allow"])
    return Response(
        json.dumps(problem.to_json()).encode(), problem.status, headers, media_type=MEDIA_TYPE
    )
