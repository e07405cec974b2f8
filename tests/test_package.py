"""Contents of the package: all that is tracked. `.ci/newcomer` installs and uses it."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("acquatop", "connectors", "examples", "replica", "rspql")
BESIDE = {
    *("CHANGELOG.md", "CITATION.cff", "LICENSE", "MANIFEST.in", "README.md", "SECURITY.md"),
    *("pyproject.toml", "setup.py"),
}


def tracked(*places: str) -> set[str]:
    listed = subprocess.run(
        ["git", "ls-files", "--", *places], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return set(listed.stdout.split())


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the two distributions, built from the tracked files alone."""
    sources, place = tmp_path_factory.mktemp("sources"), tmp_path_factory.mktemp("dist")
    for name in {*tracked(*PACKAGES), *BESIDE}:
        target = sources / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((ROOT / name).read_bytes())
    uv = Path(sys.executable).parent / "uv"
    options = ["--no-build-isolation", "--offline", "--python", sys.executable, "--out-dir", place]
    subprocess.run([uv, "build", "--quiet", *options, sources], check=True)
    return place


def test_the_wheel_has_every_tracked_file_and_no_other(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert names == {
        re.sub("^examples/", "acquatop/examples/", each) for each in tracked(*PACKAGES)
    }


def test_the_source_distribution_has_what_the_wheel_is_made_of(built: Path) -> None:
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        names = {each.name.partition("/")[2] for each in opened.getmembers() if each.isfile()}
    made = {name for name in names if ".egg-info/" in name} | {"PKG-INFO", "setup.cfg"}
    assert names - made == tracked(*PACKAGES) | BESIDE


def test_links_and_pictures_of_the_readme_work_outside_of_the_repository(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as opened:
        (name,) = (each for each in opened.namelist() if each.endswith("/METADATA"))
        said = Parser().parsestr(opened.read(name).decode())
    text = said.get_payload()
    assert isinstance(text, str)
    source = said["Project-URL"].partition(", ")[2]
    links = re.findall(r"(!?)\[[^\]]*\]\(([^)]*)\)", text)
    assert len(links) > 20
    for mark, link in links:
        assert link.startswith("https://")
        kind, place = ("raw" if mark else "blob"), link.partition("#")[0]
        if place.startswith(source):
            path = place.removeprefix(f"{source}/{kind}/main/")
            assert (ROOT / path).exists(), link
