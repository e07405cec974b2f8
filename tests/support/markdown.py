"""Links and headings of pages in Markdown."""

from __future__ import annotations

import re
from pathlib import Path

_LINK = re.compile(r"\]\((?![a-z]+:)([^)#\s]*)(?:#([^)\s]+))?\)")


def anchor_of(heading: str) -> str:
    """Return the name that a heading has in links."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def anchors_of(page: Path) -> set[str]:
    """Return the names of all headings of a page."""
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    return {anchor_of(heading) for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE)}


def broken_links(page: Path) -> list[str]:
    """Return the links of a page that lead to no file, or to no heading of a page."""
    return [
        f"{target}#{anchor}" if anchor else target
        for target, anchor in _LINK.findall(page.read_text("utf-8"))
        if not _leads_somewhere(page.parent / target if target else page, anchor)
    ]


def _leads_somewhere(target: Path, anchor: str) -> bool:
    if anchor and target.suffix == ".md" and target.is_file():
        return anchor in anchors_of(target)
    return target.exists()
