"""Fetching of the W3C's tests, once, into the user's cache folder.

They are in the source distribution of rdflib, in the version and with the hash of
``locks/w3c.lock``. It comes from the package index of pip's settings.

    python -m tests.support.w3c.archive    fetches them, and says if they cannot be fetched
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import re
import ssl
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import unquote, urljoin, urlsplit
from urllib.request import Request, urlopen

LOCK = Path(__file__).parents[3] / "locks" / "w3c.lock"
FOLDER = "/test/data/suites/w3c/"
"""The tests' place in the distribution."""
SIMPLE = "application/vnd.pypi.simple.v1+json"
_TIMEOUT = 60.0
_SETTINGS = [sys.executable, "-m", "pip", "config", "list"]
_DEFAULT = [
    sys.executable,
    "-c",
    "from pip._internal.models.index import PyPI; print(PyPI.simple_url)",
]


class UnreachableError(Exception):
    """Raised if no package index gives the tests."""


@dataclass(frozen=True)
class Locked:
    """A distribution's name, version and hash."""

    name: str
    version: str
    sha256: str

    @property
    def file(self) -> str:
        """Return the name of the source distribution's file."""
        return f"{self.name}-{self.version}.tar.gz"


@dataclass(frozen=True)
class Index:
    """A package index: its address, and the file of certificates to trust."""

    address: str
    certificates: str | None = None

    def get(self, address: str, accept: str = "*/*") -> bytes:
        """Return the content of an address of the index, or of one that it links to."""
        parts = urlsplit(address)
        headers = {"Accept": accept}
        if parts.username is not None:
            person = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            headers["Authorization"] = f"Basic {base64.b64encode(person.encode()).decode()}"
        bare = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
        trust = ssl.create_default_context(cafile=self.certificates)
        with urlopen(Request(bare, headers=headers), timeout=_TIMEOUT, context=trust) as reply:
            content: bytes = reply.read()
        return content


def suites() -> Path:
    """Return the folder of the tests; fetch them if they are not in the cache.

    Raises :class:`UnreachableError`. A distribution with another hash is an error of its own.
    """
    return unpacked(locked_in(LOCK.read_text("utf-8")), user_cache())


def unpacked(locked: Locked, cache: Path, index: Index | None = None) -> Path:
    """Return the folder of a distribution's tests, after fetching it if need be."""
    place = cache / f"w3c-{locked.sha256[:16]}"
    if place.is_dir():
        return place
    data = _fetched(locked, index or pip_index())
    try:
        _unpack(data, place)
    except OSError as error:
        raise UnreachableError(f"they cannot be written to the cache: {error}") from error
    return place


def user_cache() -> Path:
    """Return the project's folder in the user's cache folder."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "acquatop"


def locked_in(text: str) -> Locked:
    """Return the distribution of a lock file.

    >>> locked_in("# A comment.\\nname==1.0 --hash=sha256:0af\\n").file
    'name-1.0.tar.gz'
    """
    ((name, version, sha256),) = re.findall(r"^(\S+)==(\S+) --hash=sha256:(\w+)$", text, re.M)
    return Locked(name, version, sha256)


def pip_index() -> Index:
    """Return the index that pip uses, by its environment, its files, or its default."""
    told = settings_in(subprocess.run(_SETTINGS, capture_output=True, text=True).stdout)
    address = told.get("index-url")
    if address is None:
        address = subprocess.run(_DEFAULT, capture_output=True, text=True).stdout.strip()
    return Index(address, told.get("cert"))


def settings_in(listing: str) -> dict[str, str]:
    """Return pip's settings from its listing; the environment's count most.

    >>> settings_in("global.cert='a'\\n:env:.cert='b'\\ninstall.index-url='c'")
    {'cert': 'b', 'index-url': 'c'}
    """
    found = re.findall(r"^(\S+)\.([\w-]+)='(.*)'$", listing, re.M)
    return {name: value for _, name, value in sorted(found, key=lambda each: each[0] == ":env:")}


def _fetched(locked: Locked, index: Index) -> bytes:
    page = f"{index.address.rstrip('/')}/{locked.name}/"
    try:
        address = link_in(index.get(page, SIMPLE), page, locked.file)
        data = index.get(address)
    except (OSError, HTTPException, ValueError) as error:
        why = f"status {error.code}" if isinstance(error, HTTPError) else str(error)
        raise UnreachableError(f"pip's package index does not give {locked.file}: {why}") from error
    found = hashlib.sha256(data).hexdigest()
    assert found == locked.sha256, f"{locked.file} has the hash {found}, not that of {LOCK.name}"
    return data


def link_in(page: bytes, address: str, file: str) -> str:
    """Return the address of a file from an index's page, which is JSON or HTML.

    >>> link_in(b'<a href="../files/a-1.tar.gz#sha256=0af">', "http://index/a/", "a-1.tar.gz")
    'http://index/files/a-1.tar.gz'
    """
    links = _links(page)
    for link in links:
        bare = link.partition("#")[0]
        if bare.rpartition("/")[2] == file:
            return urljoin(address, bare)
    raise ValueError(f"{file} is not among its {len(links)} files")


def _links(page: bytes) -> list[str]:
    try:
        listed: Any = json.loads(page)
    except ValueError:
        return re.findall(r'href="([^"]+)"', page.decode("utf-8"))
    return [each["url"] for each in listed["files"]]


def _unpack(data: bytes, place: Path) -> None:
    """Write the tests of a distribution to a folder, which then is whole or not there."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent) as unfinished:
        whole = Path(unfinished, "whole")
        with tarfile.open(fileobj=io.BytesIO(data)) as packed:
            members = [each for each in packed if FOLDER in each.name]
            for each in members:
                each.name = each.name.partition(FOLDER)[2]
            packed.extractall(whole, members, filter="data")
        try:
            whole.rename(place)
        except OSError:
            if not place.is_dir():  # else another process was faster
                raise


if __name__ == "__main__":
    try:
        print(f"they are in {suites()}")
    except UnreachableError as error:
        print(f"{error}: the tests that need them are skipped")
