"""Catalog of a recording: what only its live sources need may be missing."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from acquatop.catalog.catalog import Catalog
from acquatop.catalog.section import CatalogError


class _OrNames(Mapping[str, str]):
    """The environment, and for a variable that is not set, an address that says so."""

    def __getitem__(self, name: str) -> str:
        return os.environ.get(name, f"http://{name.lower().replace('_', '-')}.is-not-set.invalid")

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str)

    def __iter__(self) -> Iterator[str]:
        return iter(os.environ)

    def __len__(self) -> int:
        return len(os.environ)


def load_catalog(file: Path) -> Catalog:
    """Return a recording's catalog.

    A replay asks no address and no broker, so it needs no token of theirs: environment variables
    that are not set matter only where their values would make the catalog another one.

    Raises :class:`~acquatop.catalog.section.CatalogError`.
    """
    try:
        catalog = Catalog.load(file)
    except CatalogError as error:
        try:
            catalog = Catalog.load(file, variables=_OrNames())
        except CatalogError:
            raise error from None
    return replace(catalog, asks_for_records=True)
