"""A plain PySpark program that reads messages of an MQTT broker by the package's data source."""

from __future__ import annotations

import os

from acquatop.examples.mosquitto import MosquittoBroker  # type: ignore[import-not-found]
from paho.mqtt.publish import single
from pyspark.sql import SparkSession

from acquatop.runtime.java import find_java, java_home
from connectors.mqtt import MqttDataSource

SENT = {f"news/{number}": f"message {number}" for number in range(20)}

java = find_java()
assert java is not None, "there is no Java"
with MosquittoBroker() as broker, java_home(java) as home:
    for topic, text in SENT.items():
        single(topic, text, 1, retain=True, hostname="127.0.0.1", port=broker.port)
    os.environ["JAVA_HOME"] = home
    spark = (
        SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    )
    spark.dataSource.register(MqttDataSource)
    messages = (
        spark.readStream.format("mqtt")
        .options(url=broker.url, topics="news/+", log="received", maxPartitions="1")
        .load()
    )
    written = messages.selectExpr("topic", "CAST(value AS STRING)").writeStream.format("memory")
    written.queryName("news").trigger(availableNow=True).start().awaitTermination()
    rows = {row[0]: row[1] for row in spark.sql("SELECT * FROM news").collect()}
    spark.stop()
assert rows == SENT, rows
print("plain PySpark reads what a broker has")
