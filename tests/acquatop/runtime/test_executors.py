"""The warning if a cluster's master cannot be reached."""

from __future__ import annotations

import socket
import threading

import pytest

from acquatop.runtime.executors import say_if_unreachable
from examples.server_process import free_port


def said_of(master: str, caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return what is logged of a master, when all of it has been."""
    before = set(threading.enumerate())
    say_if_unreachable(master)
    for thread in set(threading.enumerate()) - before:
        thread.join()
    return [record.getMessage() for record in caplog.records]


def test_an_absent_master_is_said(caplog: pytest.LogCaptureFixture) -> None:
    master = f"spark://127.0.0.1:{free_port()}"
    (said,) = said_of(master, caplog)
    assert said.startswith(f"{master} cannot be reached: Connection refused\n  hint: ")


def test_a_port_that_there_is_not_is_said(caplog: pytest.LogCaptureFixture) -> None:
    (said,) = said_of("spark://127.0.0.1:70770", caplog)
    assert "spark://127.0.0.1:70770 cannot be reached" in said


def test_one_master_of_several_is_enough(caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        master = f"spark://127.0.0.1:{free_port()},127.0.0.1:{server.getsockname()[1]}"
        assert said_of(master, caplog) == []
        server.settimeout(0)
        assert server.accept()


@pytest.mark.parametrize("master", ["local[2]", "yarn", "k8s://https://127.0.0.1:9"])
def test_others_are_left_to_spark(master: str, caplog: pytest.LogCaptureFixture) -> None:
    assert said_of(master, caplog) == []
