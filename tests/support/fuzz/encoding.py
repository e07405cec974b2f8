"""Encoding of items in each format that a stream's mapping may have."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from random import Random
from xml.sax.saxutils import escape, quoteattr

from tests.support.fuzz.items import PROPERTIES, Item
from tests.support.fuzz.times import FORMS_OF_TIME, Moment
from tests.support.fuzz.values import IN_TEMPLATE, NS, XSD, Value

_JSON_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_STATEMENTS = {name: each for name, each in PROPERTIES.items() if each != IN_TEMPLATE}


_OF_POSTS = {name: each for name, each in PROPERTIES.items() if each != XSD + "decimal"}


@dataclass(frozen=True)
class Sent:
    """An item's bytes, the item as these say it, and the verdict on it."""

    payload: bytes
    item: Item
    verdict: bool | None


@dataclass(frozen=True)
class Format:
    """Format of a mapping: its catalog's part, its fields, its forms of time, and its encoder."""

    mapping: Callable[[str], str]
    fields: Mapping[str, str]
    times: tuple[str, ...]
    encode: Callable[[Item, str, Random], Sent]


def encode(format_: Format, item: Item, variant: str, random: Random) -> Sent:
    """Return an item in a format."""
    if item.raw is not None:
        return Sent(item.raw, item, None)
    values = {name: value for name, value in item.values.items() if name in format_.fields}
    return format_.encode(replace(item, values=values), variant, random)


# JSON ---------------------------------------------------------------------------------------------


def fields_mapping(subject: str, extra: str = "", fields: Mapping[str, str] = PROPERTIES) -> str:
    properties = "".join(
        f'"{NS}{name}" = {{ field = "{name}", datatype = "{_datatype(each)}" }}\n'
        for name, each in {**fields, "k": XSD + "integer"}.items()
    )
    return (
        f'subject = "{NS}i/{{{subject}}}"\n{extra}\n'
        f'[streams."{NS}s".mapping.properties]\n{properties}'
    )


def _datatype(each: str) -> str:
    return f"{NS}part/{{}}" if each == IN_TEMPLATE else each


def _json_mapping(time_as: str) -> str:
    return fields_mapping("id", f'time = "t"\ntime_as = "{time_as}"\nformat = "json"')


def _x_mapping(time_as: str) -> str:
    return fields_mapping("id", 'time = "t"\nformat = "x"', _OF_POSTS)


def _token(value: Value, random: Random) -> str:
    return (
        value.text
        if value.kind != "text"
        else json.dumps(value.text, ensure_ascii=random.random() < 0.5)
    )


def _is_json(value: Value) -> bool:
    return value.kind != "number" or (
        _JSON_NUMBER.fullmatch(value.text) is not None and len(value.text) < 4_000
    )


def _json_object(item: Item, fields: Mapping[str, str], random: Random) -> str:
    pairs = [("k", str(item.number)), *fields.items()]
    if item.time.sent is not None:
        pairs.append(("t", _token(item.time.sent, random)))
    for name, value in item.values.items():
        if value is not None:
            pairs.append((name, _token(value, random)))
        elif random.random() < 0.5:
            pairs.append((name, "null"))
    random.shuffle(pairs)
    if random.random() < 0.1:
        pairs.append(
            ("more", random.choice(("[[[]]]", '{"a":[1,{}]}', '"\\ud800"', "1e999", "-0")))
        )
    if random.random() < 0.05:
        pairs.insert(0, random.choice(pairs))
    return "{" + ", ".join(f'"{name}": {token}' for name, token in pairs) + "}"


def _json_verdict(item: Item) -> bool | None:
    sent = [each for each in (item.time.sent, *item.values.values()) if each is not None]
    return item.verdict if all(map(_is_json, sent)) else False


def _json(item: Item, variant: str, random: Random) -> Sent:
    text = _json_object(item, {"id": f'"i{item.number}"'}, random)
    return Sent(text.encode("utf-8", "surrogatepass"), item, _json_verdict(item))


def _x(item: Item, variant: str, random: Random) -> Sent:
    text = _json_object(item, {"id": f'"{10**18 + item.number}"', "text": '"…"'}, random)
    line = f'{{"data": {text}, "matching_rules": [{{"id": "1", "tag": "all"}}]}}'
    return Sent(line.encode("utf-8", "surrogatepass"), item, _json_verdict(item))


# CSV ----------------------------------------------------------------------------------------------

_COLUMNS = ("k", "id", "t", *PROPERTIES)


def _csv_mapping(time_as: str) -> str:
    columns = json.dumps(_COLUMNS)
    return fields_mapping(
        "id", f'time = "t"\ntime_as = "{time_as}"\nformat = "csv"\ncolumns = {columns}'
    )


def _csv(item: Item, variant: str, random: Random) -> Sent:
    values = {name: _in_line(value) for name, value in item.values.items()}
    time = item.time
    if time.sent is not None:
        time = Moment(_in_line(time.sent), time.ms)
    item = replace(item, values=values, time=time)
    cells = [str(item.number), f"i{item.number}"]
    cells += ["" if each is None else each.text for each in (time.sent, *values.values())]
    line = io.StringIO()
    csv.writer(
        line, quoting=random.choice((csv.QUOTE_ALL, csv.QUOTE_MINIMAL)), lineterminator="\r\n"
    ).writerow(cells)
    return Sent(line.getvalue()[:-2].encode("utf-8", "surrogatepass"), item, item.verdict)


def _in_line(value: Value | None) -> Value | None:
    """Return a value as CSV can hold it in a line: an empty one is missing."""
    if value is None or not (text := value.text.replace("\n", "\x00")):
        return None
    return replace(value, text=text)


# Statements ---------------------------------------------------------------------------------------


def _properties() -> str:
    return "".join(
        f'"{NS}{name}" = {{ datatype = "{each}" }}\n'
        for name, each in {**_STATEMENTS, "k": XSD + "integer"}.items()
    )


def _ntriples_mapping(time_as: str) -> str:
    return (
        f'format = "ntriples"\ntime = "{NS}t"\n'
        f'[streams."{NS}s".mapping.properties]\n{_properties()}'
    )


_NUMBERS = [XSD + each for each in ("integer", "double", "decimal", "byte", "float")]
_IRIS = next(name for name, each in PROPERTIES.items() if each == "iri")
_BREAKS = {"\n": "&#10;", "\r": "&#13;"}
IN_A_LINE = ("turtle", "trig", "rdfxml", "jsonld")
"""Syntaxes of RDF in which a document of several statements fits into one line."""
SYNTAXES = ("turtle", "trig", "ntriples", "nquads", "rdfxml", "jsonld")


def _rdf_mapping(variant: str) -> str:
    return (
        f'format = "rdf"\ntime = "{NS}t"\nsyntax = "{variant}"\n'
        f'[streams."{NS}s".mapping.properties]\n{_properties()}'
    )


def _literal(text: str, random: Random) -> str:
    said = []
    for character in text:
        if character in '"\\':
            said.append("\\" + character)
        elif (
            character in "\n\r"
            or "\ud800" <= character <= "\udfff"
            or (len(text) < 99 and random.random() < 0.1)
        ):
            said.append(
                f"\\u{ord(character):04X}"
                if ord(character) < 0x10000
                else f"\\U{ord(character):08X}"
            )
        else:
            said.append(character)
    return '"' + "".join(said) + '"'


def _in_iri(text: str) -> str:
    return "".join(f"\\u{ord(each):04X}" if each in "\n\r>" else each for each in text)


def _object(value: Value, datatype: str, random: Random) -> str:
    if datatype == "iri" and value.kind == "text":
        return f"<{_in_iri(value.text)}>"
    if value.kind == "number":
        named = datatype if datatype in _NUMBERS else XSD + "double"
        return f"{_literal(value.text, random)}^^<{named}>"
    if datatype not in ("iri", XSD + "string"):
        return f"{_literal(value.text, random)}^^<{datatype}>"
    return _literal(value.text, random) + random.choice(("", f"^^<{XSD}string>"))


def _statements(item: Item, random: Random) -> list[str]:
    said = [(f"{NS}k", f'"{item.number}"^^<{XSD}integer>')]
    if (time := item.time.sent) is not None:
        named = "integer" if time.kind == "number" else "dateTime"
        said.append((f"{NS}t", f"{_literal(time.text, random)}^^<{XSD}{named}>"))
    for name, value in item.values.items():
        if value is not None:
            said.append((NS + name, _object(value, _STATEMENTS[name], random)))
    random.shuffle(said)
    return [f"<{NS}i/i{item.number}> <{predicate}> {term} ." for predicate, term in said]


def _ntriples(item: Item, variant: str, random: Random) -> Sent:
    text = "\n".join(_statements(item, random)) + "\n"
    return Sent(text.encode("utf-8", "surrogatepass"), item, item.verdict)


def _rdf(item: Item, variant: str, random: Random) -> Sent:
    if variant == "rdfxml":
        return _rdfxml(item)
    if variant == "jsonld":
        return _jsonld(item, random)
    return _ntriples(item, variant, random)


def _typed(item: Item) -> list[tuple[str, Value, str]]:
    found = [("k", Value(str(item.number), True, "number"), XSD + "integer")]
    if (time := item.time.sent) is not None:
        found.append(("t", time, XSD + ("integer" if time.kind == "number" else "dateTime")))
    for name, value in item.values.items():
        if value is not None:
            found.append((name, value, _STATEMENTS[name]))
    return found


def _rdfxml(item: Item) -> Sent:
    parts = []
    for name, value, datatype in _typed(item):
        if datatype == "iri":
            parts.append(f"<n:{name} r:resource={quoteattr(value.text, _BREAKS)}/>")
        else:
            named = "" if datatype == XSD + "string" else f' r:datatype="{datatype}"'
            parts.append(f"<n:{name}{named}>{escape(value.text, _BREAKS)}</n:{name}>")
    text = (
        f'<r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:n="{NS}">'
        f'<r:Description r:about="{NS}i/i{item.number}">{"".join(parts)}</r:Description></r:RDF>'
    )
    # XML has no control characters.
    odd = re.search("[\x00-\x1f\x7f-\x9f\u2028\ufffe\uffff\ud800-\udfff]", text)
    verdict = None if odd and item.verdict else item.verdict
    return Sent(text.encode("utf-8", "surrogatepass"), item, verdict)


def _jsonld(item: Item, random: Random) -> Sent:
    # A reference that is no IRI is left out by JSON-LD's rules.
    kept = {
        name: value if name != _IRIS or value is None or value.verdict else None
        for name, value in item.values.items()
    }
    item = replace(item, values=kept)
    document: dict[str, object] = {"@id": f"{NS}i/i{item.number}"}
    for name, value, datatype in _typed(item):
        if datatype == "iri":
            document[NS + name] = {"@id": value.text}
        elif datatype == XSD + "string":
            document[NS + name] = value.text
        else:
            document[NS + name] = {"@value": value.text, "@type": datatype}
    text = json.dumps(document, ensure_ascii=random.random() < 0.5)
    return Sent(text.encode("utf-8", "surrogatepass"), item, item.verdict)


FORMATS: Mapping[str, Format] = {
    "json": Format(_json_mapping, PROPERTIES, FORMS_OF_TIME, _json),
    "csv": Format(_csv_mapping, PROPERTIES, FORMS_OF_TIME, _csv),
    "ntriples": Format(_ntriples_mapping, _STATEMENTS, ("milliseconds", "dateTime"), _ntriples),
    "rdf": Format(_rdf_mapping, _STATEMENTS, ("milliseconds", "dateTime"), _rdf),
    "x": Format(_x_mapping, _OF_POSTS, ("dateTime",), _x),
}
"""Formats of bytes, by their names in catalogs; columns have a module of their own."""
