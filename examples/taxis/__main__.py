"""Print the taxis nearest to each of many stands: ``python -m examples.taxis``."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from acquatop import Answer, Engine

from .world import pings, stands

HERE = Path(__file__).parent


def main(arguments: Sequence[str]) -> None:
    """Run the example."""
    parser = argparse.ArgumentParser(prog="python -m examples.taxis", description=__doc__)
    parser.add_argument("--stands", type=int, default=400, help="how many (%(default)s)")
    parser.add_argument("--taxis", type=int, default=2_000, help="how many (%(default)s)")
    parser.add_argument("--seconds", type=int, default=120, help="of the stream (%(default)s)")
    parser.add_argument("--seed", type=int, default=7, help="of the town (%(default)s)")
    options = parser.parse_args(arguments)
    for answer in answers(options.stands, options.taxis, options.seconds, options.seed):
        nearest = ", ".join(
            f"{str(row.bindings['taxi']).rpartition('/')[2]} ({row.score:.2f} km)"
            for row in answer.rows
        )
        print(f"{answer.closes_ms // 1000:5} s  {answer.query}: {nearest}")


def answers(count: int, taxis: int, seconds: int, seed: int) -> Iterator[Answer]:
    """Yield the answers of all stands."""
    template = (HERE / "query.rspql").read_text("utf-8")
    with tempfile.TemporaryDirectory(prefix="acquatop-taxis-") as folder:
        recording = Path(folder) / "pings.ndjson"
        recording.write_text("".join(f"{line}\n" for line in pings(taxis, seconds, seed)))
        with Engine.from_catalog(
            HERE / "catalog.toml",
            runtime="local",
            until_end=True,
            autostart=False,
            variables={"pings": str(recording)},
        ) as engine:
            for stand in stands(count, seed):
                engine.register(stand.text(template), name=stand.name)
            engine.start()
            yield from engine.answers()


if __name__ == "__main__":
    main(sys.argv[1:])
