"""File of lines that grows, and is truncated where lines are written again."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from acquatop.answer.sinks.durable import explained, write_all
from acquatop.errors import UserError
from connectors.durable import sync_folder

Key = tuple[int, int]
"""Key of a line: the close and the number of its answer's window."""

BLOCK = 1 << 16
"""Number of bytes read at a time from the end; doubled each time that no line begins in them."""


class GrowingFile:
    """File of lines with ascending keys.

    ``key_of`` returns a line's key; None if the line is incomplete. Every line begins with
    ``opening``. An existing file must begin with it, too, so that no other file is ever truncated.
    The file is not held open between calls.
    """

    def __init__(self, path: Path, opening: bytes, key_of: Callable[[bytes], Key | None]) -> None:
        self._path = path
        self._opening = opening
        self._key_of = key_of
        self._newest: tuple[Key, int] | None = None
        """Key of the last line, and the file's size with it."""

    def write(self, lines: Mapping[Key, bytes]) -> None:
        """Write lines in the order of their keys, in place of everything from the first key on.

        They are durable on return. O(bytes written); in a new process, or if keys are not newer
        than the file's last, also O(bytes that the file holds from the first key on).
        """
        with explained(self._path):
            is_new = not self._path.exists()
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            try:
                newest, self._newest = self._newest, None
                self._newest = self._write(descriptor, lines, newest)
            finally:
                os.close(descriptor)
            if is_new:
                sync_folder(self._path.parent)

    def _write(
        self, descriptor: int, lines: Mapping[Key, bytes], newest: tuple[Key, int] | None
    ) -> tuple[Key, int]:
        keys = sorted(lines)
        content = b"".join(lines[key] for key in keys)
        size = self._size(descriptor)
        place = (
            size
            if newest and newest[1] == size and newest[0] < keys[0]
            else self._place(descriptor, size, keys[0])
        )
        # Equal bytes that are there already stay: a reader does not see them vanish and come again.
        kept = os.pread(descriptor, len(content), place)
        if not content.startswith(kept):
            kept = b""
        start, end = place + len(kept), place + len(content)
        if size > start:
            os.ftruncate(descriptor, start)
        os.lseek(descriptor, start, os.SEEK_SET)
        try:
            write_all(descriptor, content[len(kept) :])
            os.fsync(descriptor)
        except OSError:
            # Bytes that can be read but could not be synced must not count as written when they
            # come again.
            with suppress(OSError):
                os.ftruncate(descriptor, place)
            raise
        return keys[-1], end

    def _size(self, descriptor: int) -> int:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise UserError(
                f"{self._path} is not a regular file\n"
                "  hint: for the standard output there is stdout"
            )
        return status.st_size

    def _place(self, descriptor: int, size: int, key: Key) -> int:
        """Return the place of a key's line: after the last whole line with a smaller key.

        Bytes behind it are written again, so they may be anything that a loss of power leaves.
        """
        self._check_opening(descriptor, size)
        for start, line in lines_backwards(descriptor, size):
            known = self._key_of(line)
            if known is not None and known < key:
                return start + len(line)
        return 0

    def _check_opening(self, descriptor: int, size: int) -> None:
        # A loss of power leaves zeros in place of bytes that were not synced.
        begins = os.pread(descriptor, min(size, len(self._opening)), 0).rstrip(b"\0")
        if not self._opening.startswith(begins):
            raise UserError(
                f"{self._path} holds something else than this query's answers\n"
                "  hint: name another file, or a folder, in which every query has a file of its own"
            )


def lines_backwards(descriptor: int, end: int, block: int = BLOCK) -> Iterator[tuple[int, bytes]]:
    """Yield a file's lines from last to first, each with its start; the last may lack its end.

    O(bytes read), which are little more than those asked for.
    """
    rest = b""
    while end:
        start = max(0, end - block)
        text = os.pread(descriptor, end - start, start) + rest
        first = text.find(b"\n") + 1 if start else 0
        if start and not first:
            block *= 2
        else:
            at = start + len(text)
            for line in reversed(_lines(text[first:])):
                at -= len(line)
                yield at, line
            text = text[:first]
        rest, end = text, start


def _lines(text: bytes) -> list[bytes]:
    *whole, last = text.split(b"\n")
    return [line + b"\n" for line in whole] + ([last] if last else [])
