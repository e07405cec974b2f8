"""Check of a catalog that takes the place of an engine's: what runs must not change under it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from acquatop.catalog.catalog import Catalog
from acquatop.errors import UserError
from acquatop.plan.bound import Bound
from acquatop.plan.used_entries import used_entries


def check_new_catalog(old: Catalog, new: Catalog, running: Mapping[str, Bound]) -> None:
    """Raise :class:`UserError` if a new catalog changes something that is in use.

    ``running`` are the queries at work, by name. What no query uses may change, come and go.
    """
    changed = set(_changed(old, new))
    found = [
        f"<{iri}> is used by {name}"
        for name, bound in running.items()
        for iri in sorted(changed & set(used_entries(bound)))
    ]
    if found:
        raise UserError(
            f"the catalog changes what is in use: {'; '.join(found)}\n"
            "  hint: remove these queries first, or start the engine anew"
        )
    if old.spark != new.spark or old.evaluation != new.evaluation:
        raise UserError(
            "the catalog changes [spark] or [evaluation], which are read when the engine starts\n"
            "  hint: leave them, or start the engine anew"
        )


def _changed(old: Catalog, new: Catalog) -> Iterator[str]:
    pairs: Sequence[tuple[Mapping[str, object], Mapping[str, object]]] = (
        (old.streams, new.streams),
        (old.services, new.services),
        (old.graphs, new.graphs),
    )
    for before, now in pairs:
        yield from (iri for iri, entry in before.items() if now.get(iri) != entry)
