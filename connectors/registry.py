"""Registry of connectors: names, formats and options. Light to import: it loads no connector."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from connectors import ConnectorError
from connectors.option import Kind, Option

if TYPE_CHECKING:
    from connectors.spark_classes import DataSource

PLACES, ARRIVALS, TOPICS, ENVELOPES = "places", "arrivals", "topics", "envelopes"


@dataclass(frozen=True)
class Connector:
    """Description of a connector.

    ``source`` is its PySpark data source, as ``module:class``. ``formats`` are the formats that its
    rows may have; the first one is the default. ``guarantee`` tells what happens to rows if their
    reader is killed. ``says`` are the further facts that a source gives about its rows: their place
    (:data:`PLACES`), their arrival (:data:`ARRIVALS`), their topic (:data:`TOPICS`),
    their key, headers and time (:data:`ENVELOPES`). A connector that ``is_open`` passes on options
    besides its own.
    """

    name: str
    summary: str
    source: str
    formats: tuple[str, ...]
    guarantee: str
    options: Mapping[str, Option]
    says: tuple[str, ...] = (PLACES,)
    is_open: bool = False

    def data_source(self) -> type[DataSource]:
        """Load and return the data source. Its name in Spark may differ, as some are taken.

        Raises :class:`~connectors.ConnectorError` for a source of Spark's, which only Spark can
        read.
        """
        if not self.source:
            raise ConnectorError(
                f'the connector "{self.name}" is a source of Spark\'s, and can be read with '
                "Spark only"
            )
        module, _, name = self.source.partition(":")
        source: type[DataSource] = getattr(importlib.import_module(module), name)
        return source

    def to_json(self) -> dict[str, Any]:
        """Return the description as JSON values."""
        options = [{"name": name, **asdict(option)} for name, option in self.options.items()]
        said = {
            "name": self.name,
            "summary": self.summary,
            "formats": list(self.formats),
            "guarantee": self.guarantee,
        }
        return {**said, "options": options}

    @property
    def in_catalogs(self) -> Mapping[str, Option]:
        """The options that catalogs may set."""
        return {name: option for name, option in self.options.items() if not option.implied}


_PARTITIONS = Option(
    "into how many parts to cut what is read at a time, so that as many cores decode it",
    Kind.NUMBER,
    "one per core",
)
_REPLAYABLE = "every row once: offsets are places in files, which can be read again"

LINES = Connector(
    name="lines",
    summary="a file, or a folder of files, that grow line by line",
    source="connectors.lines:LinesDataSource",
    formats=("json", "csv", "ntriples", "x"),
    guarantee=_REPLAYABLE,
    options={
        "path": Option("the file or the folder", Kind.PATH, required=True, names_source=True),
        "maxBytesPerBatch": Option("how much to read at a time", Kind.NUMBER, "64 MiB"),
        "maxPartitions": _PARTITIONS,
        "together": Option(
            "which neighbouring lines are never parted",
            default="none",
            choices=("subject", "subject and graph"),
            implied=True,
        ),
        "header": Option(
            "whether a file's first line stands beside all others", Kind.FLAG, "false", implied=True
        ),
    },
)

PARQUET = Connector(
    name="parquet",
    summary="a file, or a folder of Parquet files that are whole when they appear",
    source="connectors.parquet:ParquetDataSource",
    formats=("columns",),
    guarantee=_REPLAYABLE,
    options={
        "path": Option("the file or the folder", Kind.PATH, required=True, names_source=True),
        "maxRowsPerBatch": Option("how many rows to read at a time", Kind.NUMBER, "2 million"),
        "maxPartitions": _PARTITIONS,
        "columns": Option(
            "a JSON object with the types of the columns wanted: `bigint`, `double` or `string`",
            required=True,
            implied=True,
        ),
        "coded": Option("a JSON list of the columns that are read as dictionaries", implied=True),
    },
)

FILES = Connector(
    name="files",
    summary="a folder to which small files with RDF are added, each a graph that happened "
    "at one time",
    source="connectors.files:FilesDataSource",
    formats=("rdf",),
    guarantee=_REPLAYABLE,
    options={
        "path": Option("the folder, or a single file", Kind.PATH, required=True, names_source=True),
        "ending": Option("what names must end with to be read", default="any", names_source=True),
        "maxFilesPerBatch": Option("how many files to read at a time", Kind.NUMBER, "1000"),
        "maxBytesPerBatch": Option("how much to read at a time", Kind.NUMBER, "64 MiB"),
        "maxBytesPerFile": Option(
            "how long a file may be; longer ones are bad", Kind.NUMBER, "64 MiB"
        ),
        "maxPartitions": _PARTITIONS,
    },
    says=(PLACES, ARRIVALS),
)

SPARK = Connector(
    name="spark",
    summary="any streaming source of Spark's, such as kafka, rate or delta, by its name "
    "and options",
    source="",
    formats=("columns", "json", "csv", "rdf"),
    guarantee="every row once if the source can be read again, as Kafka, Delta and files can",
    options={
        "format": Option(
            "the source's name in Spark; all other options are handed on to it; none if the "
            "program gives a DataFrame",
            names_source=True,
        ),
        "select": Option(
            "SQL expressions that make the columns, such as `from_avro(value, …) AS event`",
            Kind.TEXTS,
            "the source's columns",
        ),
        "where": Option("SQL condition on the source's columns", default="all"),
    },
    says=(),
    is_open=True,
)

_LOG = {
    "log": Option(
        "a folder of its own on a local disk for what has been received",
        Kind.PATH,
        required=True,
        names_source=True,
    ),
    "maxLogBytes": Option(
        "how much may wait there; then nothing is received", Kind.NUMBER, "1 GiB", least=1 << 20
    ),
    "maxBytesPerBatch": Option("how much to read at a time", Kind.NUMBER, "64 MiB"),
    "maxPartitions": _PARTITIONS,
    "commits": Option(
        "when what has been read is let go: with each batch that Spark commits, or when the "
        "stream's owner says so",
        default="batch",
        choices=("batch", "owner"),
        implied=True,
    ),
}
"""Options of all connectors whose sources send everything only once."""

_REPEATS = {
    "messageId": Option(
        "what tells a repeated message from a new one: `payload`, with the topic, or `field:NAME`; "
        "repeated ones are dropped",
        default="none",
    ),
    "duplicateWindow": Option(
        "for how many seconds at least messages are remembered for that", Kind.NUMBER, "3600"
    ),
}
"""Options of live sources that may send something again as if it were new."""

MQTT = Connector(
    name="mqtt",
    summary="messages of an MQTT broker",
    source="connectors.mqtt:MqttDataSource",
    formats=("json", "rdf"),
    guarantee="with QoS 1 every message once, with QoS 2 as long as the broker lives; with QoS 0 "
    "at most once",
    options={
        "url": Option(
            "the broker: mqtt://HOST[:PORT], or mqtts:// for TLS", required=True, names_source=True
        ),
        "topics": Option(
            "topic filters; in PySpark with commas between them",
            Kind.TEXTS,
            required=True,
            names_source=True,
        ),
        "qos": Option("the quality of service", Kind.NUMBER, "1", least=0),
        **_LOG,
        **_REPEATS,
        "version": Option("of the protocol", default="5", choices=("5", "3.1.1")),
        "clientId": Option("this client's name", default="one per log"),
        "session": Option(
            "whether what comes meanwhile is kept",
            default="persistent",
            choices=("persistent", "clean"),
        ),
        "sessionExpiry": Option(
            "for how many seconds it is kept (MQTT 5)", Kind.NUMBER, "a day", least=0
        ),
        "receiveMaximum": Option(
            "how many messages may be under way (MQTT 5)", Kind.NUMBER, "2000"
        ),
        "keepAlive": Option(
            "after how many seconds of silence a connection is probed", Kind.NUMBER, "30"
        ),
        "patience": Option(
            "within how many seconds the first connection must come about",
            Kind.NUMBER,
            "30",
            least=0,
        ),
        "quietMs": Option(
            "with Trigger.AvailableNow, after how long without a message the stream ends",
            Kind.NUMBER,
            "1000",
            least=0,
        ),
        "maxMessageBytes": Option(
            "of longer messages only the beginning is kept", Kind.NUMBER, "8 MiB"
        ),
        "userVariable": Option(
            "the environment variable with the user", default="ACQUATOP_MQTT_USER"
        ),
        "passwordVariable": Option(
            "the environment variable with the password", default="ACQUATOP_MQTT_PASSWORD"
        ),
        "caFile": Option("the certificates to trust with TLS", Kind.PATH, "the system's"),
        "certificateFile": Option("this client's certificate", Kind.PATH, "none"),
        "keyFile": Option("its key, where it is not in the same file", Kind.PATH, "none"),
        "willTopic": Option("where the broker says that this client is lost", default="nowhere"),
        "willMessage": Option("what it says", default="nothing"),
        "willQos": Option("with which quality of service", Kind.NUMBER, "0", least=0),
        "willRetain": Option("whether it is kept there", Kind.FLAG, "false"),
    },
    says=(PLACES, ARRIVALS, TOPICS),
)

KAFKA = Connector(
    name="kafka",
    summary="messages of Kafka's topics, by a client of its own, in process and on Spark",
    source="connectors.kafka:KafkaDataSource",
    formats=("json", "csv", "rdf"),
    guarantee="every committed message once: offsets can be read again while the topic keeps them",
    options={
        "url": Option(
            "the brokers: kafka://HOST[:PORT][,HOST…], or kafkas:// for TLS", required=True
        ),
        "topics": Option(
            "topics; in PySpark with commas between them",
            Kind.TEXTS,
            required=True,
            names_source=True,
        ),
        "begin": Option(
            "where a new stream begins", default="earliest", choices=("earliest", "latest")
        ),
        "group": Option(
            "a consumer group whose offsets show Kafka's tools how far it is read", default="none"
        ),
        "maxRowsPerBatch": Option("how many messages to read at a time", Kind.NUMBER, "200 000"),
        "maxPartitions": _PARTITIONS,
        "encoding": Option(
            "the content's wire format, which becomes JSON",
            default="plain",
            choices=("plain", "avro", "protobuf", "json-schema"),
        ),
        "registry": Option("the address of the schema registry", default="none"),
        "patience": Option(
            "within how many seconds the first connection must come about",
            Kind.NUMBER,
            "30",
            least=0,
        ),
        "settingsFile": Option(
            "a file of `NAME=VALUE` lines with settings of librdkafka",
            Kind.PATH,
            "`ACQUATOP_KAFKA_SETTINGS`",
        ),
        "userVariable": Option(
            "the environment variable with the user", default="ACQUATOP_KAFKA_USER"
        ),
        "passwordVariable": Option(
            "the environment variable with the password", default="ACQUATOP_KAFKA_PASSWORD"
        ),
    },
    says=(PLACES, ARRIVALS, TOPICS, ENVELOPES),
)

_UNANSWERED = (
    "every row once that has reached the log; what is on its way there is lost with this end"
)
_PATIENCE = Option(
    "within how many seconds the first connection must come about; later ones are tried for ever",
    Kind.NUMBER,
    "30",
)
_LONGEST_LINE = Option("of a longer line only the beginning is kept", Kind.NUMBER, "8 MiB")

TCP = Connector(
    name="tcp",
    summary="lines that a TCP server sends",
    source="connectors.tcp:TcpDataSource",
    formats=("json", "csv", "rdf"),
    guarantee=_UNANSWERED,
    options={
        "address": Option("the server, as `HOST:PORT`", required=True, names_source=True),
        **_LOG,
        **_REPEATS,
        "maxLineBytes": _LONGEST_LINE,
        "patience": _PATIENCE,
    },
    says=(PLACES, ARRIVALS),
)

WEBSOCKET = Connector(
    name="websocket",
    summary="messages, or lines of messages, that a WebSocket server sends",
    source="connectors.websocket:WebSocketDataSource",
    formats=("json", "csv", "rdf"),
    guarantee=_UNANSWERED,
    options={
        "url": Option(
            "the server, as `ws://HOST[:PORT]/PATH` or `wss://…`", required=True, names_source=True
        ),
        **_LOG,
        **_REPEATS,
        "subscribe": Option("a text to send whenever a connection is made", default="none"),
        "split": Option(
            "whether a message is one record, or holds one per line",
            default="none",
            choices=("none", "lines"),
        ),
        "tokenVariable": Option("the environment variable with a token to show", default="none"),
        "maxMessageBytes": Option(
            "of a longer message only the beginning is kept", Kind.NUMBER, "8 MiB"
        ),
        "keepAlive": Option(
            "after how many seconds of silence the connection is probed", Kind.NUMBER, "30"
        ),
        "patience": _PATIENCE,
    },
    says=(PLACES, ARRIVALS),
)

PIPE = Connector(
    name="pipe",
    summary="lines from a named pipe, or the standard input",
    source="connectors.pipe:PipeDataSource",
    formats=("json", "csv", "rdf"),
    guarantee=_UNANSWERED,
    options={
        "path": Option("the pipe, or `-` for the standard input", required=True, names_source=True),
        **_LOG,
        **_REPEATS,
        "maxLineBytes": _LONGEST_LINE,
    },
    says=(PLACES, ARRIVALS),
)

X = Connector(
    name="x",
    summary="posts of X (Twitter), as the filtered stream of its API v2 brings them",
    source="connectors.x:XDataSource",
    formats=("x",),
    guarantee="every post that X sends once: a durable log, and posts that come again are known "
    "by their ids",
    options={
        **_LOG,
        "rules": Option(
            "which posts are wanted, by tags; X has these rules and no others then",
            Kind.TABLE,
            "the rules that X has",
        ),
        "backfillMinutes": Option(
            "for how many missed minutes X may be asked, 5 at most", Kind.NUMBER, "0", least=0
        ),
        "fields": Option(
            "the fields of posts to ask for besides `id` and `text`, with commas between them",
            default="author_id,created_at,entities,public_metrics",
            implied=True,
        ),
        "tokenVariable": Option(
            "the environment variable with the app's bearer token", default="X_BEARER_TOKEN"
        ),
        "url": Option("where X is", default="https://api.x.com", names_source=True),
    },
    says=(PLACES, ARRIVALS),
)

CLOCK = Connector(
    name="clock",
    summary="ticks of the clock, as JSON objects with `time_ms`",
    source="connectors.clock:ClockDataSource",
    formats=("json",),
    guarantee="the latest tick; those missed by a stopped stream do not come",
    options={
        "everyMs": Option(
            "milliseconds between two ticks", Kind.NUMBER, required=True, names_source=True
        )
    },
    says=(),
)

CONNECTORS: Mapping[str, Connector] = {
    connector.name: connector
    for connector in (LINES, PARQUET, FILES, MQTT, KAFKA, TCP, WEBSOCKET, PIPE, CLOCK, SPARK, X)
}
"""Every connector, by its name in catalogs."""
