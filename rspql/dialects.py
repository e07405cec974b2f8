"""Constructs of other dialects and languages that are not supported, each with its own message."""

from __future__ import annotations

import re

# Patterns for the text at which the grammar fails, with the message and the hint.
_HERE: tuple[tuple[str, str, str | None], ...] = (
    (
        r"P[0-9.]+[YMW]",
        "years, months and weeks are not supported as lengths of windows",
        "write days: P30D or 30d",
    ),
    (
        r"<<",
        "RDF-star's quoted triples are not supported",
        "describe the statement with triples of its own",
    ),
    (
        r"LANDMARK\b",
        "landmark windows are not supported",
        "use a sliding window: [RANGE 9m STEP 3m]",
    ),
    (
        r"(ON_CONTENT_CHANGE|NON_EMPTY_CONTENT|PERIODIC|TUPLE_DRIVEN|BATCH_DRIVEN)\b",
        "this report or tick strategy is not supported",
        "windows report ON_WINDOW_CLOSE and are TIME_DRIVEN",
    ),
    (r"(NOW|ALL)\s*\]", "[NOW] and [ALL] windows are not supported", "use [RANGE 9m STEP 3m]"),
    (r"OFFSET\b[^\]]*\bRANGE\b", "windows with an OFFSET into the past are not supported", None),
    (
        r"(INSERT|DELETE|LOAD|CLEAR|DROP|CREATE|ADD|MOVE|COPY|WITH(?!\s+POLICY))\b",
        "updates are not supported: this must be a query",
        None,
    ),
    (r"WITH\s+POLICY\b", "policies of Kolibrie are not supported", None),
    (
        r"FROM\s+NOW\b",
        "windows over a stretch of the past are not supported",
        "use [RANGE 9m STEP 3m]",
    ),
    (r"RETRIEVE\b", "RETRIEVE of Kolibrie is not supported", "name the stream in the query"),
    (r"UNDER\s+ENTAILMENT\b", "entailment regimes are not supported", None),
    (r"DEFINE\s+BASELINE\b", "baselines of Janus are not supported", None),
    (r"(RULE|ML|PREDICT)\b", "rules and machine-learning clauses are not supported", None),
    (r"LATERAL\b", "LATERAL is not part of SPARQL 1.1", None),
)
# The same for constructs that are recognised only together with the text before that place.
_BEFORE: tuple[tuple[str, str, str, str | None], ...] = (
    (
        r"\b(ON|STREAM|RANGE|STEP|SLIDE|ITEM|QUERY)\s+$",
        r"[?$]",
        "a variable cannot stand here: queries with parameters are not supported",
        "write the stream's name and the window's length",
    ),
    (
        r"REGISTER\s+STREAM\s+\S+\s+$",
        r"FROM\b",
        "stream definitions of Kolibrie are not supported",
        "name the stream's source in the catalog",
    ),
    (
        r"\[\s*$",
        r"START\b",
        "windows over a stretch of the past are not supported",
        "use [RANGE 9m STEP 3m]",
    ),
    (r"\bON\s+LOG\s+$", r"", "windows over a LOG are not supported", "use ON STREAM"),
    (
        r"\bON\s+(STREAM\s+)?\S+\s+$",
        r"RANGE\b",
        "the window's length must stand in brackets",
        "write [RANGE 9m STEP 3m]",
    ),
    (
        r"\bFROM\s+$",
        r"WINDOW\b",
        "windows without a name are not supported",
        "write FROM NAMED WINDOW :w ON :stream [RANGE 9m STEP 3m]",
    ),
    (
        r"\{$",
        r"\|",
        "RDF-star's annotations are not supported",
        "describe the statement with triples of its own",
    ),
    (r"[{.;]\s*$", r"GRAPH\b", "quads in a CONSTRUCT template are not supported", None),
    (
        r"FROM\s+$",
        r"(NAMED\s+)?STREAM\b",
        "FROM STREAM of C-SPARQL is not supported",
        (
            "write FROM NAMED WINDOW :w ON :stream [RANGE 9m STEP 3m], and WINDOW :w { … } in "
            "the pattern"
        ),
    ),
    (
        r"FROM\s+NAMED\s+$",
        r"STREAM\b",
        "FROM NAMED STREAM of C-SPARQL is not supported",
        (
            "write FROM NAMED WINDOW :w ON :stream [RANGE 9m STEP 3m], and WINDOW :w { … } in "
            "the pattern"
        ),
    ),
    (
        r"",
        r"STREAM\s",
        "STREAM patterns of CQELS are not supported",
        (
            "write FROM NAMED WINDOW :w ON :stream [RANGE 9m STEP 3m], and WINDOW :w { … } in "
            "the pattern"
        ),
    ),
)


def not_supported(text: str, at: int) -> tuple[str, str | None] | None:
    """Return the message and hint for an unsupported construct at ``at``, or None.

    >>> not_supported("FROM NAMED WINDOW :w ON :s [LANDMARK]", 28)
    ('landmark windows are not supported', 'use a sliding window: [RANGE 9m STEP 3m]')
    """
    if re.compile(r"[^\W\d][\w.-]*:").match(text, at):
        return None  # a prefixed name, whatever its prefix
    for pattern, message, hint in _HERE:
        if re.compile(pattern, re.IGNORECASE).match(text, at):
            return message, hint
    before = text[max(0, at - 40) : at]
    for earlier, pattern, message, hint in _BEFORE:
        if re.search(earlier, before, re.IGNORECASE) and re.compile(pattern, re.IGNORECASE).match(
            text, at
        ):
            return message, hint
    return None
