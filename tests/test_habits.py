"""The project's files for citing, reporting and contributing, and its glossary, say what holds.

That their links lead somewhere is tested with those of all pages, in ``test_documentation.py``.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

import acquatop
from tests.support.house import ROOMS

ROOT = Path(__file__).parents[1]
TEMPLATES = ROOT / ".github" / "ISSUE_TEMPLATE"
FORMS = [TEMPLATES / "bug.yml", TEMPLATES / "feature.yml"]
PAPERS = (
    "Continuous Top-k Approximated Join of Streaming and Evolving Distributed Data",
    "An Optimal Strategy for Monitoring Top-k Queries in Streaming Windows",
    "MTopS: Scalable Processing of Continuous Top-K Multi-Query Workloads",
    "Efficient Maintenance of Materialized Top-k Views",
    "Time- and Space-Efficient Sliding Window Top-k Query Processing",
)
SECTIONS = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")


def text_of(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def citation() -> dict[str, Any]:
    said: dict[str, Any] = yaml.safe_load(text_of("CITATION.cff"))
    return said


# Citing ---------------------------------------------------------------------------------------


def test_the_citation_is_of_this_version_and_has_what_the_format_requires() -> None:
    said = citation()
    assert said["cff-version"] == "1.2.0"
    assert said["version"] == acquatop.__version__
    assert said["authors"] == [{"name": "The AcquaTop developers"}]
    assert {"title", "message"} <= set(said)
    assert f'license = "{said["license"]}"' in text_of("pyproject.toml")


def test_the_citation_has_the_papers_with_their_authors_and_years() -> None:
    references = citation()["references"]
    assert tuple(each["title"] for each in references) == PAPERS
    assert [each["year"] for each in references] == [2019, 2011, 2011, 2003, 2015]
    for each in references:
        assert each["type"] in ("article", "conference-paper")
        assert each["authors"]
        assert all(author["given-names"] and author["family-names"] for author in each["authors"])


def test_the_project_s_home_stands_in_one_line() -> None:
    home = citation()["url"]
    files = [*ROOT.glob("*.md"), ROOT / "CITATION.cff", *(ROOT / ".github").rglob("*.*")]
    texts = [file.read_text("utf-8") for file in files if file.is_file()]
    lines = [line for text in texts for line in text.splitlines() if home in line]
    assert lines == [f"url: {home}"]


# Reporting ------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.stem)
def test_an_issue_s_form_is_well_formed(form: Path) -> None:
    said = yaml.safe_load(form.read_text("utf-8"))
    assert {"name", "description", "body"} <= set(said)
    asked = [each for each in said["body"] if each["type"] != "markdown"]
    assert {each["type"] for each in asked} <= {"input", "textarea", "dropdown", "checkboxes"}
    for names in ({each["id"] for each in asked}, {each["attributes"]["label"] for each in asked}):
        assert len(names) == len(asked)


def test_a_bug_s_form_asks_for_what_is_needed_to_see_it() -> None:
    asked = {each.get("id") for each in yaml.safe_load((TEMPLATES / "bug.yml").read_text())["body"]}
    assert asked >= {"version", "runtime", "query", "catalog", "said"}


def test_blank_issues_are_off() -> None:
    said = yaml.safe_load((TEMPLATES / "config.yml").read_text())
    assert said == {"blank_issues_enabled": False}


def test_this_version_is_supported() -> None:
    supported = re.findall(r"^\| ([\d.]+) \| yes \|$", text_of("SECURITY.md"), re.MULTILINE)
    assert acquatop.__version__.startswith(f"{supported[0]}.")


# Changes --------------------------------------------------------------------------------------


def test_the_changelog_has_this_version_and_known_sections() -> None:
    text = text_of("CHANGELOG.md")
    versions = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert versions[:2] == ["Unreleased", acquatop.__version__]
    assert set(re.findall(r"^### (.+)$", text, re.MULTILINE)) <= set(SECTIONS)


def test_no_section_of_the_changelog_is_empty_or_out_of_order() -> None:
    for version in re.split(r"^## ", text_of("CHANGELOG.md"), flags=re.MULTILINE)[1:]:
        _, *sections = re.split(r"^### ", version, flags=re.MULTILINE)
        names = [each.partition("\n")[0] for each in sections]
        assert names == [name for name in SECTIONS if name in names]
        assert all(each.partition("\n")[2].strip() for each in sections)


# Contributing ---------------------------------------------------------------------------------


def test_every_place_that_contributors_are_sent_to_is_there() -> None:
    places = set(re.findall(r"`((?:[\w.]+/)+[\w.-]*)`", text_of("CONTRIBUTING.md")))
    assert len(places) > 50
    assert [each for each in places if not (ROOT / each).exists()] == []


def test_the_map_of_the_house_has_every_room_in_the_order_of_the_arrows() -> None:
    rooms = re.findall(
        r"^\| `acquatop/(\w+)(?:/|\.py)` \|", text_of("CONTRIBUTING.md"), re.MULTILINE
    )
    assert tuple(rooms) == ROOMS


# The glossary ---------------------------------------------------------------------------------


def entries() -> list[tuple[str, str]]:
    return re.findall(r"^- \*\*(.+?)\*\*: (.+)$", text_of("docs/glossary.md"), re.MULTILINE)


def test_the_glossary_s_terms_are_sorted_and_each_stands_once() -> None:
    terms = [term.casefold() for term, _ in entries()]
    assert len(terms) > 100
    assert terms == sorted(set(terms))


def test_every_line_of_the_glossary_is_a_term_with_one_link_at_its_end() -> None:
    lines = [line for line in text_of("docs/glossary.md").splitlines() if line.startswith("-")]
    assert len(lines) == len(entries())
    at_its_end = re.compile(r"[^\]]\. \[[^\[\]]+\]\([^()]+\)$")
    assert [term for term, said in entries() if not at_its_end.search(said)] == []


def test_the_glossary_is_in_the_site_s_navigation() -> None:
    assert re.search(r"^ +- glossary\.md$", text_of("mkdocs.yml"), re.MULTILINE)


def test_no_two_public_classes_have_one_name() -> None:
    files: dict[str, list[str]] = {}
    for package in ("rspql", "replica", "connectors", "acquatop"):
        for file in sorted((ROOT / package).rglob("*.py")):
            for node in ast.parse(file.read_text("utf-8")).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    files.setdefault(node.name, []).append(str(file.relative_to(ROOT)))
    assert {name: places for name, places in files.items() if len(places) > 1} == {}
