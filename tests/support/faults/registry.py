"""Every fault by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.support.faults.connecting import (
    ClosesIdle,
    ConnectHangs,
    DropsReused,
    Refuse,
    Reset,
    ResetMidway,
    Silent,
)
from tests.support.faults.delays import Hang, Latency, Slow, SlowAfterFirst
from tests.support.faults.dribbling import DribbleBody, DribbleHead, EndlessContinue, EndlessHead
from tests.support.faults.fault import Fault, Harm, Healthy
from tests.support.faults.large import Compressed, Large
from tests.support.faults.message import RESULTS, reply
from tests.support.faults.replies import (
    Empty,
    Html,
    Redirect,
    Says,
    Status,
    TooManyUntil,
    Truncated,
)
from tests.support.faults.solutions import (
    Reworked,
    bad_iris,
    blank_keys,
    every_other,
    huge_numbers,
    text_for_numbers,
    twice,
    uninvited,
    without_values,
)
from tests.support.faults.tls import PlainForTls, SelfSigned, TlsDribble, TlsGarbage, TlsHangs

_ROW = (
    b'{"user":{"type":"uri","value":"http://example.org/user/nobody"},'
    b'"followers":{"type":"literal","value":"1"}},'
)


def _json(text: str) -> Callable[[], Fault]:
    return lambda: Says(reply("200 OK", text.encode("latin-1"), RESULTS))


def _rows(text: str) -> Callable[[], Fault]:
    return _json(f'{{"head":{{"vars":["user"]}},"results":{{"bindings":{text}}}}}')


FAULTS: Mapping[str, Callable[[], Fault]] = {
    "none": Healthy,
    "latency": lambda: Latency(0.02),
    "slow": lambda: Slow(60.0),
    "slow after the first": lambda: SlowAfterFirst(60.0),
    "hang": Hang,
    "connecting hangs": ConnectHangs,
    "refused": Refuse,
    "reset": Reset,
    "reset midway": ResetMidway,
    "closed without a byte": Silent,
    "idle connections closed": ClosesIdle,
    "reused connections dropped": DropsReused,
    "head byte by byte": lambda: DribbleHead(0.02),
    "body byte by byte": lambda: DribbleBody(0.02),
    "endless head": EndlessHead,
    "endless continue": lambda: EndlessContinue(0.02),
    "400": lambda: Status("400 Bad Request"),
    "401": lambda: Status("401 Unauthorized", www_authenticate='Basic realm="x"'),
    "404": lambda: Status("404 Not Found"),
    "413": lambda: Status("413 Content Too Large"),
    "429, in seconds": lambda: Status("429 Too Many Requests", retry_after="1"),
    "429, with a date": lambda: TooManyUntil(1.0),
    "429, nonsense": lambda: Status("429 Too Many Requests", retry_after="soon"),
    "500": lambda: Status("500 Internal Server Error"),
    "503": lambda: Status("503 Service Unavailable", retry_after="1"),
    "204": lambda: Says(reply("204 No Content", b"")),
    "empty": Empty,
    "HTML": Html,
    "truncated": lambda: Truncated(sized=True),
    "truncated, unsized": lambda: Truncated(sized=False),
    "not results": _json('{"error": "try later", "bindings": [1, 2]}'),
    "JSON of another kind": _json("[1, 2]"),
    "rows that are none": _rows("[1, null, [], {}]"),
    "terms that are none": _rows(
        '[{"user": 1}, {"user": {"type": "uri", "value": 7}}, {"user": {"type": []}}]'
    ),
    "not UTF-8": _rows('[{"user": {"type": "literal", "value": "\xff\xfe"}}]'),
    "deep": _json("[" * 100_000),
    "100 MB of whitespace": lambda: Large(b"", b" "),
    "100 MB of rows": lambda: Large(
        b'{"head":{"vars":["user","followers"]},"results":{"bindings":[', _ROW
    ),
    "100 MB in one term": lambda: Large(
        b'{"head":{},"results":{"bindings":[{"user":{"type":"uri","value":"', b"x"
    ),
    "100 MB compressed": Compressed,
    "text for numbers": lambda: Reworked(text_for_numbers),
    "huge numbers": lambda: Reworked(huge_numbers),
    "blank keys": lambda: Reworked(blank_keys),
    "bad IRIs": lambda: Reworked(bad_iris),
    "without values": lambda: Reworked(without_values),
    "missing keys": lambda: Reworked(every_other),
    "every solution twice": lambda: Reworked(twice, Harm.NONE),
    "uninvited keys": lambda: Reworked(uninvited, Harm.NONE),
    "redirect": lambda: Redirect("302 Found"),
    "redirect, same method": lambda: Redirect("307 Temporary Redirect"),
    "TLS garbage": TlsGarbage,
    "plain for TLS": PlainForTls,
    "self-signed": SelfSigned,
    "TLS hangs": TlsHangs,
    "TLS byte by byte": lambda: TlsDribble(0.02),
}
"""Every fault by name."""
