"""HDFS for the tests: a NameNode and a DataNode in one process, which Hadoop's own tests use."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from acquatop.runtime.java import find_java
from tests.support.maven import HDFS
from tests.support.waiting import until

MAIN = "org.apache.hadoop.test.MiniDFSClusterManager"
SETTINGS = {
    # The DataNode asks again soon whether the NameNode knows of a block.
    "dfs.client.block.write.locateFollowingBlock.initial.delay.ms": "5",
}


@contextmanager
def hdfs_server() -> Iterator[int]:
    """Run an empty file system, and yield the port of its NameNode's HTTP."""
    java = find_java()
    assert java is not None
    with tempfile.TemporaryDirectory() as place:
        written = Path(place, "configuration.xml")
        options = [text for name, value in SETTINGS.items() for text in ("-D", f"{name}={value}")]
        command = [
            java.command,
            *("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m"),
            f"-Dtest.build.data={place}",
            *("-cp", HDFS.class_path, MAIN),
            *("-datanodes", "1", "-format", "-writeConfig", written, *options),
        ]
        with subprocess.Popen(
            command, cwd=place, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as server:
            try:
                yield _port(server, written)
            finally:
                server.kill()


def _port(server: subprocess.Popen[bytes], written: Path) -> int:
    """Return the port that a server's configuration names, once it is up."""

    def is_up() -> bool:
        assert server.poll() is None, "the file system has ended"
        return written.exists() and written.read_text().rstrip().endswith("</configuration>")

    until(is_up)
    found = re.search(
        r"<name>dfs.namenode.http-address</name><value>[^<]*:(\d+)<", written.read_text()
    )
    assert found is not None
    return int(found[1])
