"""The number of files that a process may open: each connection is one."""

from __future__ import annotations

from contextlib import suppress

OTHERS = 512
"""Files for all but connections: logs, state, remotes, Spark."""


def allow_files(connections: int) -> None:
    """Raise this process's limit on open files so that connections do not exhaust it.

    The system may allow fewer, or have no such limit.
    """
    try:
        import resource
    except ImportError:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = connections + OTHERS
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    with suppress(ValueError, OSError):
        most = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
