"""Program that writes a query's answers to Parquet files by Spark: ``answers_out.py FOLDER``.

With a second argument it ends when all events of the folder have been answered and written.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import SparkSession

from acquatop import Engine
from acquatop.answer.sinks import open_sink
from acquatop.catalog.spark_settings import SparkSettings
from acquatop.runtime.session import OwnSession

CATALOG = """[prefixes]
"" = "http://example.org/"
[streams.":s"]
connector = "lines"
options = {{ path = "{folder}/events" }}
[streams.":s".mapping]
subject = ":user/{{user}}"
time = "t"
properties = {{ ":n" = {{ field = "n", datatype = "xsd:integer" }} }}
"""
QUERY = """PREFIX : <http://example.org/> SELECT ?s ?n FROM NAMED WINDOW :w ON :s [RANGE 10ms]
WHERE { WINDOW :w { ?s :n ?n } } ORDER BY DESC(?n) LIMIT 2"""
LIGHT = SparkSettings(
    "local[1]",
    {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1", "spark.driver.memory": "512m"},
)


def engine(folder: Path, *, until_end: bool, state: Path | None = None) -> Engine:
    """Return an engine in this process on the folder's events."""
    (folder / "catalog.toml").write_text(CATALOG.format(folder=folder))
    return Engine.from_catalog(
        folder / "catalog.toml", runtime="local", until_end=until_end, state=state
    )


def write(spark: SparkSession, folder: Path, *, until_end: bool) -> None:
    """Write the answers, one in each of Spark's batches; print a line for each batch."""
    with engine(folder, until_end=until_end, state=folder / "state") as running:
        query = running.register(QUERY, sinks=[open_sink(f"parquet:{folder}/answers")])
        running.start()
        frame = query.to_dataframe(spark)
        writer = frame.writeStream.format("parquet").option("path", str(folder / "out"))
        writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
        if until_end:
            list(query)
            writer.trigger(availableNow=True).start().awaitTermination()
            return
        writing, seen = writer.start(), 0
        while True:
            writing.processAllAvailable()
            number = len(list((folder / "out" / "_spark_metadata").glob("[0-9]*")))
            if number > seen:
                seen = number
                print(number, flush=True)


def main() -> None:
    """Run the program."""
    folder, *ends = sys.argv[1:]
    session = OwnSession(LIGHT)
    try:
        write(session.spark, Path(folder), until_end=bool(ends))
    finally:
        session.close()


if __name__ == "__main__":
    main()
