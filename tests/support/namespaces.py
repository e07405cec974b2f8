"""Network namespaces with addresses of their own, joined by a bridge: machines in miniature."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

ADDRESS = "10.213.7.{}"
"""Addresses that are used in the namespaces only."""


def reason_without() -> str | None:
    """Return the reason why there can be none here, None if there can be."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    if shutil.which("ip") is None:
        return "network namespaces need the program ip (iproute2)"
    name = f"acquatop-{os.getpid()}-try"
    tried = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True)
    if tried.returncode:
        return f"no network namespace can be made: {tried.stderr.strip()}"
    try:
        for kind in (["veth"], ["bridge"]):
            made = subprocess.run(
                [*_in(name), "ip", "link", "add", "type", *kind], capture_output=True, text=True
            )
            if made.returncode:
                return f"no {kind[0]} can be made: {made.stderr.strip()}"
    finally:
        _run("ip", "netns", "delete", name)
    return None


@contextmanager
def machines(count: int) -> Iterator[dict[str, Sequence[str]]]:
    """Yield each machine's address, and the beginning of a command that runs there."""
    hub = f"acquatop-{os.getpid()}-hub"
    with ExitStack() as made:
        _add(hub, made)
        _run(*_in(hub), "ip", "link", "add", "hub", "type", "bridge")
        _run(*_in(hub), "ip", "link", "set", "hub", "up")
        found: dict[str, Sequence[str]] = {}
        for number in range(1, count + 1):
            name, address = f"acquatop-{os.getpid()}-{number}", ADDRESS.format(number)
            _add(name, made)
            end = f"to{number}"
            pair = ["type", "veth", "peer", "name", "eth0", "netns", name]
            _run(*_in(hub), "ip", "link", "add", end, *pair)
            _run(*_in(hub), "ip", "link", "set", end, "master", "hub", "up")
            _run(*_in(name), "ip", "addr", "add", f"{address}/24", "dev", "eth0")
            _run(*_in(name), "ip", "link", "set", "eth0", "up")
            found[address] = _in(name)
        yield found


def _add(name: str, made: ExitStack) -> None:
    _run("ip", "netns", "add", name)
    made.callback(_run, "ip", "netns", "delete", name)
    _run(*_in(name), "ip", "link", "set", "lo", "up")


def _in(name: str) -> Sequence[str]:
    return ["ip", "netns", "exec", name]


def _run(*command: str) -> None:
    subprocess.run(command, check=True)
