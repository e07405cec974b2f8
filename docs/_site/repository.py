"""Make pages of the README and of all files of the project that pages link to."""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from mkdocs.structure.files import File, InclusionLevel

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
_LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)[^)#\s]+")
_ALWAYS = ("CONTRIBUTING.md", "CODE_OF_CONDUCT.md", "SECURITY.md", "CHANGELOG.md")
"""In the site's navigation, whoever links to them."""
_LANGUAGES = {".py": "python", ".toml": "toml", ".lark": "text", ".sh": "sh"}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the home page, and a page for each file or folder outside ``docs`` that is linked."""
    files.append(
        File.generated(config, "index.md", content=(ROOT / "README.md").read_text("utf-8"))
    )
    pages = [(_origin(file.src_uri), file.content_string) for file in files.documentation_pages()]
    waiting = [*_ALWAYS, *(target for origin, text in pages for target in _outside(origin, text))]
    made: set[str] = set()
    while waiting:
        target = waiting.pop()
        if target not in made:
            made.add(target)
            text = _text(target)
            inclusion = InclusionLevel.INCLUDED if target in _ALWAYS else InclusionLevel.NOT_IN_NAV
            files.append(
                File.generated(config, _page_of(target), content=text, inclusion=inclusion)
            )
            waiting += _outside(target, text)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let links lead to the pages that were made of what they name."""
    origin, folder = _origin(page.file.src_uri), posixpath.dirname(page.file.src_uri)

    def page_instead(link: re.Match[str]) -> str:
        target = _target(origin, link[0])
        return (
            posixpath.relpath(_page_of(target), folder or ".")
            if (ROOT / target).exists()
            else link[0]
        )

    return _LINK.sub(page_instead, markdown)


def _outside(origin: str, text: str) -> Iterator[str]:
    """Yield what a page links to that is there, but not in ``docs``."""
    for link in _LINK.findall(text):
        target = _target(origin, link)
        if not target.startswith(("docs/", "../", "README.md")) and (ROOT / target).exists():
            yield target


def _target(origin: str, link: str) -> str:
    """Return where in the project a link leads.

    >>> _target("docs/howto/policy.md", "../../replica/rankers/")
    'replica/rankers'
    """
    return posixpath.normpath(posixpath.join(posixpath.dirname(origin), link))


def _origin(page: str) -> str:
    """Return where in the project a page comes from."""
    if page == "index.md":
        return "README.md"
    return page.removeprefix("source/") if page.startswith("source/") else f"docs/{page}"


def _page_of(target: str) -> str:
    """Return the page that shows a place in the project; a picture in ``docs`` is its own."""
    if target.startswith("docs/"):
        return target.removeprefix("docs/")
    if target == "README.md":
        return "index.md"
    return f"source/{target}" if target.endswith(".md") else f"source/{target}.md"


def _text(target: str) -> str:
    """Return the text shown of a place: a document itself, a file's text, a folder's list."""
    place = ROOT / target
    if place.is_dir():
        files = sorted(each for each in place.iterdir() if each.is_file())
        rows = [f"- [{each.name}]({place.name}/{each.name}): {_summary(each)}" for each in files]
        return f"# {target}\n\n" + "\n".join(rows) + "\n"
    text = place.read_text("utf-8")
    if place.suffix == ".md":
        return text
    return f"# {target}\n\n````{_LANGUAGES.get(place.suffix, 'text')}\n{text}````\n"


def _summary(file: Path) -> str:
    """Return what a file says of itself in its first line."""
    if file.suffix == ".py":
        said = ast.get_docstring(ast.parse(file.read_text("utf-8")))
    else:
        said = file.read_text("utf-8").partition("\n")[0].lstrip("# ")
    return (said or "").partition("\n")[0]
