"""Errors of a state directory, with remedies for users."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from acquatop.errors import EnvironmentProblem

_FULL = (
    "free some space on that disk; what was saved before is whole, and the next attempt may succeed"
)
_RIGHTS = (
    "let this user read and write the directory and all that is in it, or use another directory"
)
_HINTS = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EFBIG: "raise the limit on the size of files (ulimit -f); what was saved before is whole",
    errno.EROFS: (
        "mount that disk for writing, or use another directory; what was saved before is whole"
    ),
    errno.EACCES: _RIGHTS,
    errno.EPERM: _RIGHTS,
    errno.ENOENT: (
        "the directory has vanished: put it back and start again, or begin anew with another "
        "directory"
    ),
    errno.ESTALE: (
        "the directory has vanished: put it back and start again, or begin anew with another "
        "directory"
    ),
    errno.EEXIST: "a file stands where a directory is needed: remove it, or use another directory",
    errno.ENOTDIR: "a file stands where a directory is needed: remove it, or use another directory",
    errno.EISDIR: "a directory stands where a file is needed: remove it, or use another directory",
    errno.EIO: "the disk fails: look at the system's log, and move the directory to another disk",
    errno.ENOLCK: "files cannot be locked there: use a directory on a local disk",
    errno.ENOTSUP: "files cannot be locked or flushed there: use a directory on a local disk",
    errno.EMFILE: "raise the limit on open files (ulimit -n)",
}


class Damaged(Exception):  # noqa: N818 (a finding; the caller decides if it is an error)
    """Bytes on the disk that differ from those written; the message names them."""


@contextmanager
def explained(path: Path, doing: str) -> Iterator[None]:
    """Translate an :class:`OSError` into an :class:`EnvironmentProblem` with the path and a remedy.

    >>> with explained(Path("state"), "save the state"):
    ...     raise OSError(errno.EMFILE, "Too many open files")
    Traceback (most recent call last):
    acquatop.errors.EnvironmentProblem: state: cannot save the state: Too many open files
      hint: raise the limit on open files (ulimit -n)
    """
    try:
        yield
    except OSError as error:
        hint = _HINTS.get(
            error.errno or 0, "see that the disk can be written, or use another directory"
        )
        said = error.strerror or str(error)
        raise EnvironmentProblem(f"{path}: cannot {doing}: {said}\n  hint: {hint}") from error
