"""Atomic files: present as a whole or not at all, even after a crash or a loss of power."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from acquatop.errors import EnvironmentProblem
from connectors.durable import sync_folder

_REMEDIES = {
    errno.ENOSPC: "make room there, or name another place",
    errno.EDQUOT: "make room there, or name another place",
    errno.EFBIG: "raise the limit on a file's size (ulimit -f), or name another place",
    errno.EROFS: "it is mounted read-only; name another place",
    errno.EACCES: "make it writable for this user, or name another place",
    errno.EPERM: "make it writable for this user, or name another place",
    errno.ENOTDIR: "a part of the path is a file; name another place",
    errno.EEXIST: "there is a file of that name; name another place",
    errno.EISDIR: "there is a folder of that name; name another place",
}
_AFTERWARDS = "; answers that were not written are given again at the next start"


@contextmanager
def explained(place: Path | str) -> Iterator[None]:
    """Turn an error of the operating system at a place into a message with a remedy."""
    try:
        yield
    except BrokenPipeError:
        raise  # the reader has gone, which is no fault
    except OSError as error:
        remedy = _REMEDIES.get(
            error.errno or 0, "see whether the disk is well, or name another place"
        )
        raise EnvironmentProblem(
            f"cannot write answers to {place}: {error.strerror or error}\n"
            f"  hint: {remedy}{_AFTERWARDS}"
        ) from error


def make_folder(folder: Path) -> None:
    """Make a folder and its parents, durably; raise an error if it cannot be written to."""
    with explained(folder):
        missing = [each for each in (folder, *folder.parents) if not each.exists()]
        for each in reversed(missing):
            each.mkdir(exist_ok=True)
            sync_folder(each.parent)
        if not folder.is_dir():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def write_files(files: Mapping[Path, bytes]) -> None:
    """Write whole files, replacing those that exist, and return when they are on the disk.

    Each is written under a name that begins with a dot and then renamed: no reader sees a part of
    one. Their folders must exist. One sync per file and one per folder.
    """
    for path, content in files.items():
        with explained(path):
            _replace(path, content)
    for folder in {path.parent for path in files}:
        with explained(folder):
            sync_folder(folder)


def write_all(descriptor: int, content: bytes) -> None:
    """Write all bytes, in as many calls to the operating system as it takes."""
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _replace(path: Path, content: bytes) -> None:
    # Always the same name: a file that a crash leaves behind is overwritten when the answer is
    # given again.
    part = path.with_name(f".{path.name}.part")
    try:
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
        try:
            write_all(descriptor, content)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.replace(part, path)  # noqa: PTH105 (one way to the operating system, which tests make fail)
    except OSError:
        with suppress(OSError):
            part.unlink()
        raise
