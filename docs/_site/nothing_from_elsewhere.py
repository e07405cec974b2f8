"""Warn where a page would load something from elsewhere; a warning fails the build."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.pages import Page

_log = logging.getLogger("mkdocs.hooks.nothing_from_elsewhere")
_LOADED = re.compile(
    r"""<(?:script|img|iframe|source|link)\b[^>]*\b(?:src|href)=["']?((?:https?:)?//[^"'\s>]+)"""
)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Look at a page as it will be written."""
    for address in _LOADED.findall(output):
        _log.warning("%s loads %s; keep what is shown in docs/", page.file.src_uri, address)
    return output
