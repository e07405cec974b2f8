"""Parts that the pages of reports share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from importlib import resources


def part_of_page(name: str) -> str:
    """Return a file that pages contain: their style, or their script."""
    return resources.files("acquatop.lab.report").joinpath(name).read_text("utf-8")


def html_table(
    head: Sequence[str], rows: Iterable[Sequence[str]], caption: str = "", texts: Sequence[int] = ()
) -> str:
    """Return a table. Cells that are already ``<td>`` elements stay as they are."""

    def cell(text: str, at: int) -> str:
        if text.startswith("<td"):
            return text
        return f'<td class="text">{text}</td>' if at in texts else f"<td>{text}</td>"

    titles = "".join(
        f'<th class="text" scope="col">{title}</th>'
        if at in texts
        else f'<th scope="col">{title}</th>'
        for at, title in enumerate(head)
    )
    body = "".join(
        "<tr>" + "".join(cell(text, at) for at, text in enumerate(row)) + "</tr>\n" for row in rows
    )
    said = f"<caption>{escape(caption)}</caption>" if caption else ""
    return (
        f'<div class="wide"><table>{said}<thead><tr>{titles}</tr></thead>'
        f"<tbody>\n{body}</tbody></table></div>\n"
    )
