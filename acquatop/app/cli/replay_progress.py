"""Progress of replays on the standard error, and what is left of those that a signal stops."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from acquatop.app.cli.tell import tell

_TENTHS = 10


class ReplayStoppedError(Exception):
    """Ctrl-C or SIGTERM before all settings were replayed."""

    exit_code = 130


class _Lines:
    """Progress for what is no terminal: a line for each tenth of the settings."""

    def __init__(self) -> None:
        self._told = 0

    def __call__(self, done: int, total: int) -> None:
        tenth = _TENTHS * done // total
        # The next search of an advice begins anew.
        if tenth != self._told:
            self._told = tenth
            tell(f"replayed {done} of {total} settings")


@contextmanager
def telling(out: Path | None = None) -> Iterator[Callable[[int, int], None]]:
    """Show progress on the standard error; yield the function to update it.

    That is a bar on a terminal, and lines elsewhere. Raises :class:`ReplayStoppedError` at a
    signal: what is done is kept in ``out``, if that is given.
    """
    counts = 0, 0
    try:
        with _shown() as shown:

            def told(done: int, total: int) -> None:
                nonlocal counts
                counts = done, total
                shown(done, total)

            yield told
    except KeyboardInterrupt:
        raise ReplayStoppedError(_stopped(*counts, out)) from None


@contextmanager
def _shown() -> Iterator[Callable[[int, int], None]]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    if not console.is_terminal:
        yield _Lines()
        return
    columns = (TextColumn("replaying"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task("", total=None)
        yield lambda done, total: progress.update(bar, completed=done, total=total)


def _stopped(done: int, total: int, out: Path | None) -> str:
    what = f"stopped when {done} of {total} settings were done" if total else "stopped"
    if out is None:
        return f"{what}: nothing is kept without --out"
    return f"{what}\n  hint: the same command goes on from there, as {out} keeps them"
