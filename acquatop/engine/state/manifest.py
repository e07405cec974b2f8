"""Manifest of a state directory: the texts of its queries and streams, which must not change."""

from __future__ import annotations

import difflib
import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from acquatop.engine.state.folder import Folder, read_file, write_file
from acquatop.engine.state.names import LOCK, MANIFEST, UNFINISHED
from acquatop.errors import EnvironmentProblem, UserError

FORMAT = 1
"""The version of the format of a state directory: names, manifest, snapshots, journal."""

ANSWERS_OF = "answers of: "
"""Beginning of the text of a stream that another query makes."""

_SHOWN_LINES = 24
_SHOWN_WIDTH = 160
_NOT_FILES_OF_SOMEBODY = {LOCK, UNFINISHED + MANIFEST, "lost+found"}


@dataclass(frozen=True)
class ManifestEntry:
    """One text; ``dropped_after`` is the newest snapshot at the time it was dropped."""

    text: str
    dropped_after: int | None = None

    def dropped(self, newest: int) -> ManifestEntry:
        """Return the entry as dropped; ``newest`` is the newest snapshot."""
        return self if self.dropped_after is not None else replace(self, dropped_after=newest)

    def is_forgotten(self, oldest: int) -> bool:
        """Return True if it was dropped before the oldest remaining snapshot was written."""
        return self.dropped_after is not None and self.dropped_after < oldest


@dataclass(frozen=True)
class Manifest:
    """Texts by name, including dropped ones that a snapshot may still contain.

    Earlier versions wrote it without a checksum.
    """

    entries: Mapping[str, ManifestEntry]
    has_checksum: bool = True

    def agreed(self, wanted: Mapping[str, str], snapshots: list[int], path: object) -> Manifest:
        """Return the manifest for the wanted texts; raises :class:`UserError` if one has changed.

        A dropped name is remembered until no remaining snapshot (given by number) may contain it.
        """
        newest, oldest = max(snapshots, default=0), min(snapshots, default=0)
        known = {
            name: entry for name, entry in self.entries.items() if not entry.is_forgotten(oldest)
        }
        changed = [
            name for name, text in wanted.items() if name in known and known[name].text != text
        ]
        if changed:
            raise UserError(_say_changed(changed, known, wanted, path))
        gone = {name: entry.dropped(newest) for name, entry in known.items() if name not in wanted}
        return Manifest({**gone, **{name: ManifestEntry(text) for name, text in wanted.items()}})

    def dropped_by(self, wanted: Mapping[str, str]) -> tuple[str, ...]:
        """Return the names in use that are no longer wanted."""
        return tuple(
            name
            for name, entry in self.entries.items()
            if name not in wanted and entry.dropped_after is None
        )

    @classmethod
    def read(cls, folder: Folder) -> Manifest | None:
        """Return the manifest of a directory, or None if it is new; raises if it is not ours."""
        names = folder.names()
        if MANIFEST in names:
            return _parse(read_file(folder, MANIFEST), folder.path / MANIFEST)
        others = [name for name in names if name not in _NOT_FILES_OF_SOMEBODY]
        if others:
            shown = ", ".join(others[:3]) + (", …" if len(others) > 3 else "")
            raise UserError(
                f"{folder.path} is not a state directory: it holds other files ({shown}) and "
                f"no {MANIFEST}\n"
                f"  hint: name a new or an empty directory, or put {MANIFEST} back if it was "
                "removed"
            )
        return None

    def document(self) -> dict[str, Any]:
        """Return its entries as JSON has them."""
        return {name: _to_json(entry) for name, entry in sorted(self.entries.items())}

    @classmethod
    def of_document(cls, document: Mapping[str, Any]) -> Manifest:
        """Return the manifest with these entries."""
        entries = {
            str(name): ManifestEntry(_present(str(each["text"])), each.get("dropped_after"))
            for name, each in document.items()
        }
        return cls(entries)

    def write(self, folder: Folder) -> None:
        """Write it atomically: a crash leaves the old one or the new one."""
        document = {"format": FORMAT, "entries": self.document()}
        document["checksum"] = _checksum(document)
        content = json.dumps(document, indent=2, ensure_ascii=False)
        # Texts may contain lone surrogates, which UTF-8 does not allow.
        write_file(folder, UNFINISHED + MANIFEST, [content.encode("utf-8", "surrogatepass"), b"\n"])
        folder.rename(UNFINISHED + MANIFEST, MANIFEST)
        folder.sync_names()


def _present(text: str) -> str:
    """Return a text as this version has it.

    Earlier ones told the mapping of a stream of answers, which planning chooses.
    """
    return text.partition("\n")[0] if text.startswith(ANSWERS_OF) else text


def _to_json(entry: ManifestEntry) -> dict[str, Any]:
    return {"text": entry.text} | (
        {} if entry.dropped_after is None else {"dropped_after": entry.dropped_after}
    )


def _parse(content: bytes, path: Path) -> Manifest:
    try:
        parsed = json.loads(content.decode("utf-8", "surrogatepass"))
        checksum = parsed.pop("checksum", None)
        # Before anything is concluded from the content, also from the version.
        if checksum is not None and checksum != _checksum(parsed):
            raise ValueError("its checksum does not match")
        version = int(parsed["format"])
        if version <= FORMAT:
            return replace(
                Manifest.of_document(parsed["entries"]), has_checksum=checksum is not None
            )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        said = error if isinstance(error, ValueError) else "it is not what is written there"
        raise EnvironmentProblem(
            f"{path} is damaged: {said}\n"
            "  hint: put back a copy of it, or delete the directory to begin anew"
        ) from error
    raise EnvironmentProblem(
        f"{path.parent} was written by a newer version of AcquaTop (format {version}, this one "
        f"knows {FORMAT})\n"
        "  hint: use that version, or another directory"
    )


def _checksum(document: Mapping[str, Any]) -> str:
    """Return the checksum of a manifest's values, however they are laid out."""
    return f"{zlib.crc32(json.dumps(document, sort_keys=True).encode()):08x}"


def _say_changed(
    changed: list[str], known: Mapping[str, ManifestEntry], wanted: Mapping[str, str], path: object
) -> str:
    first, *others = changed
    lines = [f"{first} has changed since the state in {path} was written:"]
    lines += (f"    {line}" for line in _difference(known[first].text, wanted[first]))
    if others:
        lines.append("  so have: " + ", ".join(others))
    return "\n".join(
        [
            *lines,
            f"  hint: take the old text again, use another directory, or delete {path} to "
            "begin anew",
        ]
    )


def _difference(old: str, new: str) -> Iterator[str]:
    """Yield the difference of two texts, up to a number of lines."""
    before, after = old.splitlines(), new.splitlines()
    if before == after:
        yield "(only the ends of its lines differ)"
        return
    lines = list(difflib.unified_diff(before, after, "in the directory", "now", lineterm="", n=1))
    for line in lines[:_SHOWN_LINES]:
        yield line if len(line) <= _SHOWN_WIDTH else line[:_SHOWN_WIDTH] + "…"
    if len(lines) > _SHOWN_LINES:
        yield f"… and {len(lines) - _SHOWN_LINES} lines more"
