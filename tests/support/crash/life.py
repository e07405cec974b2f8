"""One life of an engine: from its start to its end, or to its kill."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from acquatop import Engine
from acquatop.answer.sinks import Sink, open_sink
from acquatop.engine.state.place import RemotePlace
from tests.support.s3.running import held


@dataclass(frozen=True)
class Life:
    """Settings that an engine is started with.

    With ``only_lines`` no tables are written: one file a query.
    """

    catalog: Path
    state: Path | RemotePlace
    out: Path | RemotePlace
    queries: Mapping[str, str]
    runtime: str = "local"
    only_lines: bool = False

    @property
    def state_text(self) -> str:
        """The state's place as an option has it."""
        if isinstance(self.state, Path):
            return str(self.state)
        return f"{self.state}?lease={self.state.lease_seconds:.0f}s"

    @contextmanager
    def sinks(self) -> Iterator[tuple[Sink, Sink]]:
        """Open what answers are written to.

        Lines of JSON that do not depend on the clock, and files of CSV.
        """
        lines, tables = (
            open_sink(f"canonical:{self.out}/lines"),
            open_sink(f"csv:{self.out}/tables"),
        )
        yield lines, tables
        lines.close()
        tables.close()

    def live(self, started: Callable[[], object] = lambda: None, **options: Any) -> None:
        """Run the queries over all that the recording holds, and write their answers."""
        with ExitStack() as opened:
            lines, tables = opened.enter_context(self.sinks())
            engine = Engine.from_catalog(
                self.catalog,
                runtime=self.runtime,
                until_end=True,
                state=self.state,
                autostart=False,
                **options,
            )
            opened.callback(engine.stop)
            for name, text in self.queries.items():
                is_table = "CONSTRUCT" not in text and not self.only_lines
                sinks = [lines, tables] if is_table else [lines]
                engine.register(text, name=name, sinks=sinks)
            engine.start()
            started()
            for _ in engine.answers():
                pass


def content(folder: Path | RemotePlace) -> dict[str, bytes]:
    """Return all files of a folder that are not hidden.

    Objects that are lines of one query come together, as in the file on a disk.
    """
    if isinstance(folder, RemotePlace):
        return _in_files(held(folder.address))
    files = (
        file
        for file in sorted(folder.rglob("*"))
        if file.is_file() and not file.name.startswith(".")
    )
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


def _in_files(objects: Mapping[str, bytes]) -> dict[str, bytes]:
    files: defaultdict[str, bytes] = defaultdict(bytes)
    for name, its in sorted(objects.items()):
        files[f"{name.rpartition('/')[0]}.ndjson" if name.endswith(".ndjson") else name] += its
    return dict(files)
