"""Remotes by the names that catalogs use."""

from __future__ import annotations

from collections.abc import Mapping

from replica.remotes.sparql import SparqlRemote

REMOTES: Mapping[str, type[SparqlRemote]] = {"sparql": SparqlRemote}
