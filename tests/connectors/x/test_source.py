"""The data source in plain PySpark."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

from pyspark.sql import SparkSession

from connectors.x import XDataSource
from examples.x.server import XServer
from tests.support.x_posts import post

SEEN_BY_SPARK = "HOME"
"""A variable that the JVM has from its start, whose value stands in for a token."""


def test_plain_pyspark_reads_the_stream(spark: SparkSession, tmp_path: Path) -> None:
    spark.dataSource.register(XDataSource)
    options = {"log": str(tmp_path / "log"), "tokenVariable": SEEN_BY_SPARK}
    with XServer(token=os.environ[SEEN_BY_SPARK], keep_alive=0.2) as x:
        x.rules["1"] = {"value": "has:mentions", "tag": ""}
        posts = spark.readStream.format("x").option("url", x.url).options(**options).load()
        query = posts.writeStream.format("memory").queryName("posts_of_x").start()
        try:
            assert x.wait_for(streams=1, timeout=120.0)
            x.publish([post(20), post(21), post(20)])
            pause = threading.Event()
            for _ in range(6000):
                rows = spark.table("posts_of_x").collect()
                if len(rows) >= 2:
                    break
                pause.wait(0.02)
        finally:
            query.stop()
    assert [json.loads(row["value"])["data"]["id"] for row in rows] == ["20", "21"]
    assert [row["position"] for row in rows] == [0, 1]
