"""Offsets of readers of files, without the fingerprints."""

from __future__ import annotations

from connectors.offsets_by_file import Offset, reached


def reached_in(offset: Offset) -> dict[str, int]:
    """Return how far each file was read."""
    return {name: reached(place) for name, place in offset.items()}
