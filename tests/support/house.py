"""Order of the house: a room imports only the rooms before it."""

from __future__ import annotations

ROOMS = (
    *(
        "errors",
        "instants",
        "windows",
        "topk",
        "plugins",
        "catalog",
        "ingest",
        "plan",
        "answer",
        "refresh",
        "query",
    ),
    *("runtime", "engine", "lab", "app"),
)
"""The rooms of ``acquatop`` in their order: a room may import those before it, and no other."""
