"""Objects of a property as terms: of the first of some datatypes that a value fits."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from connectors.escapes import unescaped
from connectors.iris import are_iris, in_template, make_iris
from connectors.lexical import INTEGERS, NUMBERS, XSD, canonical
from connectors.scalars import BARE, BOOLEAN, INSTANT, NUMBER, TEXT, of_kinds

LANGUAGE_TAG = r"[a-zA-Z]{1,8}(?:-[a-zA-Z0-9]{1,8})*"
LANG_STRING = "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString"
_STRING = XSD + "string"
_TEXTUAL = (_STRING, LANG_STRING, XSD + "anyURI")


def named(datatype: str) -> str:
    """Return a datatype for a message.

    >>> named("http://www.w3.org/2001/XMLSchema#decimal"), named("iri")
    ('an xsd:decimal', 'an IRI')
    """
    if datatype == "iri":
        return "an IRI"
    written = datatype.replace(XSD, "xsd:").replace(LANG_STRING, "rdf:langString")
    return f"an {written}"


@dataclass(frozen=True)
class Datatype:
    """Literals of a datatype; those of ``rdf:langString`` have the language of their property."""

    iri: str

    @property
    def words(self) -> str:
        """The datatype for a message."""
        return named(self.iri)

    @property
    def written_as(self) -> str:
        """The kinds of values that can have the datatype."""
        if self.iri in (*INTEGERS, XSD + "double", XSD + "float"):
            return NUMBER + BARE
        if self.iri == XSD + "decimal":
            return NUMBER + TEXT + BARE
        if self.iri == XSD + "boolean":
            return BOOLEAN + BARE
        return TEXT + BARE if self.iri in _TEXTUAL else TEXT + INSTANT + BARE

    def terms(self, scalars: pa.Array) -> pa.StringArray:
        """Return distinct values as terms, null for those that do not fit."""
        texts = of_kinds(scalars, self.written_as)
        if self.iri in (_STRING, LANG_STRING):
            return quoted(texts)
        return _typed(canonical(texts, self.iri), self.iri)

    def among(self, terms: pa.StringArray) -> pa.StringArray:
        """Return those terms that are of the datatype, in their usual form; null for the others."""
        if self.iri == LANG_STRING:
            fit = _matching(terms, rf'^".*"@{LANGUAGE_TAG}$')
            texts = pc.replace_substring_regex(fit, "@[a-zA-Z0-9-]*$", "")
            tags = pc.utf8_lower(pc.replace_substring_regex(fit, '^.*"@', ""))
            return pc.binary_join_element_wise(texts, tags, "@")
        if self.iri == _STRING:
            return _matching(terms, '^".*"$')
        ending = f'"^^<{self.iri}>'
        typed = pc.and_(pc.starts_with(terms, '"'), pc.ends_with(terms, ending))
        texts = pc.utf8_slice_codeunits(pc.if_else(typed, terms, None), 1, -len(ending))
        return _typed(canonical(texts, self.iri), self.iri)


@dataclass(frozen=True)
class Iris:
    """IRIs: whole ones, or a template around a text or a whole number."""

    prefix: str = ""
    suffix: str = ""

    @property
    def words(self) -> str:
        """The datatype for a message."""
        return "an IRI" if not self.prefix else f"a part of <{self.prefix}{{}}{self.suffix}>"

    def terms(self, scalars: pa.Array) -> pa.StringArray:
        """Return distinct values as terms, null for those that do not fit."""
        if not self.prefix:
            names = of_kinds(scalars, TEXT + BARE)
            return in_template(pc.if_else(are_iris(names), names, None), "", "")
        numbers = of_kinds(scalars, NUMBER)
        numbers = pc.if_else(pc.match_substring_regex(numbers, "^-?[0-9]+$"), numbers, None)
        names = pc.coalesce(of_kinds(scalars, TEXT + BARE), numbers)
        fit = pc.if_else(make_iris(names, self.prefix), names, None)
        return in_template(fit, self.prefix, self.suffix)

    def among(self, terms: pa.StringArray) -> pa.StringArray:
        """Return those terms that are IRIs; null for the others."""
        begins = f"<{self.prefix}"
        fit = pc.and_(pc.starts_with(terms, begins), pc.ends_with(terms, f"{self.suffix}>"))
        return pc.if_else(fit, terms, None)


@dataclass(frozen=True)
class AnyTerm:
    """Terms of any kind, as they are: of statements that an engine has made."""

    words: str = "a term of any kind"

    def terms(self, scalars: pa.Array) -> pa.StringArray:
        """Return nulls: a value is of some kind."""
        return pa.nulls(len(scalars), pa.string())

    def among(self, terms: pa.StringArray) -> pa.StringArray:
        """Return all terms."""
        return terms


_IRI = r'<[A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20<>"{}|\\^`]*>'
_CODE_UNIT = "(?:[0-9A-CE-Fa-ce-f][0-9A-Fa-f]{3}|[Dd][0-7][0-9A-Fa-f]{2})"
_ESCAPED = (
    rf'^"(?:[^"\\]|\\[tbnrf"\'\\]|\\u{_CODE_UNIT}|\\U0000{_CODE_UNIT}'
    r'|\\U00(?:0[1-9A-Fa-f]|10)[0-9A-Fa-f]{4})*"'
)
"""Beginning of a literal all of whose escapes stand for characters."""
_TERM = rf'^(?:{_IRI}|"(?:[^"\\\n\r]|\\[tbnrf"\'\\])*"(?:@{LANGUAGE_TAG}|\^\^{_IRI})?)$'


@dataclass(frozen=True)
class Terms:
    """IRIs and literals that texts hold whole, in N-Triples syntax."""

    words: ClassVar[str] = "a term in N-Triples syntax"

    def terms(self, scalars: pa.Array) -> pa.StringArray:
        """Return distinct values as terms, null for those that do not fit."""
        return self.among(_in_usual_form(of_kinds(scalars, TEXT + BARE)))

    def among(self, terms: pa.StringArray) -> pa.StringArray:
        """Return those texts that are terms; null for the others."""
        return _matching(terms, _TERM)


Kind = Datatype | Iris | AnyTerm | Terms


@dataclass(frozen=True)
class Objects:
    """Kinds of a property's objects, in the order in which they are tried.

    ``language`` is the language of those of ``rdf:langString``: a tag, or a field's name in braces.
    """

    kinds: tuple[Kind, ...]
    language: str = ""

    @property
    def words(self) -> str:
        """The kinds for a message."""
        return " or ".join(each.words for each in self.kinds)

    @property
    def language_field(self) -> str | None:
        """The field that has the language, if one has it."""
        return self.language[1:-1] if self.language.startswith("{") else None

    @property
    def are_numbers(self) -> bool:
        """True if all objects are numbers."""
        return all(isinstance(each, Datatype) and each.iri in NUMBERS for each in self.kinds)

    @property
    def can_be_keys(self) -> bool:
        """True if equal objects have equal terms, wherever they come from."""
        plain = (*INTEGERS, *_TEXTUAL, XSD + "boolean")
        return all(
            isinstance(each, Iris) or (isinstance(each, Datatype) and each.iri in plain)
            for each in self.kinds
        )

    @property
    def are_any(self) -> bool:
        """True if the objects may be anything."""
        return AnyTerm() in self.kinds

    def terms(self, scalars: pa.Array) -> pa.StringArray:
        """Return distinct values as terms, null for those that fit no kind.

        Languages of a field are still to be added to the texts that need one.
        """
        found = [self._of_kind(each, scalars) for each in self.kinds]
        return pc.coalesce(*found)

    def _of_kind(self, kind: Kind, scalars: pa.Array) -> pa.StringArray:
        terms = kind.terms(scalars)
        if kind == Datatype(LANG_STRING) and self.language_field is None:
            return pc.binary_join_element_wise(terms, self.language, "@")
        return terms

    def among(self, terms: pa.StringArray) -> pa.StringArray:
        """Return those terms that are of one of the kinds, null for the others."""
        usual = _in_usual_form(terms)
        return pc.coalesce(*(each.among(usual) for each in self.kinds))


def with_languages(
    terms: pa.DictionaryArray, languages: pa.DictionaryArray
) -> tuple[pa.StringArray, pa.BooleanArray]:
    """Return plain texts with their languages, and True where a language can be one.

    A text without a language stays plain.
    """
    tags = pc.utf8_lower(of_kinds(languages.dictionary, TEXT + BARE))
    good = pc.fill_null(pc.match_substring_regex(tags, f"^{LANGUAGE_TAG}$"), False)
    is_said = languages.is_valid()
    texts = terms.dictionary_decode()
    tagged = pc.binary_join_element_wise(texts, tags.take(languages.indices), "@")
    takes = pc.and_(is_said, pc.fill_null(pc.ends_with(texts, '"'), False))
    return (
        pc.if_else(takes, tagged, texts),
        pc.or_(pc.invert(is_said), pc.fill_null(good.take(languages.indices), True)),
    )


def quoted(texts: pa.StringArray) -> pa.StringArray:
    """Return texts as plain literals."""
    for character, escape in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r")):
        texts = pc.replace_substring(texts, character, escape)
    return pc.binary_join_element_wise('"', texts, '"', "")


def _typed(texts: pa.StringArray, datatype: str) -> pa.StringArray:
    return pc.binary_join_element_wise('"', texts, f'"^^<{datatype}>', "")


def _matching(terms: pa.StringArray, pattern: str) -> pa.StringArray:
    return pc.if_else(pc.match_substring_regex(terms, pattern), terms, None)


def _in_usual_form(terms: pa.StringArray) -> pa.StringArray:
    """Return terms with only the necessary escapes, and plain texts without their datatype.

    Terms with invalid escapes stay as they are.
    """
    terms = pc.replace_substring_regex(terms, rf'"\^\^<{re.escape(_STRING)}>$', '"')
    escaped = pc.and_(pc.match_substring(terms, "\\"), pc.match_substring_regex(terms, _ESCAPED))
    escaped = pc.fill_null(escaped, False)
    if not pc.any(escaped, min_count=0).as_py():
        return terms
    usual = []
    for term in terms.filter(escaped).to_pylist():
        text, quote, rest = term[1:].rpartition('"')
        plain = quoted(pa.array([unescaped(text)], pa.string()))[0].as_py()
        usual.append(plain[:-1] + quote + rest)
    return pc.replace_with_mask(terms, escaped, pa.array(usual, pa.string()))
