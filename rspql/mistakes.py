"""Mistakes that people make, each with a message of its own, a remedy, and an edit that mends it.

Habits from other languages first: SQL, C, Turtle. A recogniser looks at the place at which the
grammar stops, and returns None if it is another mistake.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from rspql.draft import Edit
from rspql.syntax_errors import ORDER, Finding, Stop, keywords

_OPERATORS = {
    "==": ("=", "equality is one sign"),
    "===": ("=", "equality is one sign"),
    "<>": ("!=", "inequality is written with an exclamation mark"),
    "=<": ("<=", "the equals sign comes second"),
    "=>": (">=", "the equals sign comes second"),
    "&": ("&&", "SPARQL doubles the sign"),
    "|": ("||", "SPARQL doubles the sign"),
}
_WORDS = {"AND": "&&", "OR": "||", "NOT": "!"}
_QUOTES = {**dict.fromkeys("“”„‟«»", '"'), **dict.fromkeys("‘’‚‛‹›`´", "'")}
_VARIABLE = r"[?$]\w+"
_CLAUSE = r"GROUP\s+BY|HAVING|ORDER\s+BY|LIMIT|OFFSET|VALUES"
_FORM = r"(?:REGISTER|SELECT|CONSTRUCT|ASK|DESCRIBE|PREFIX|BASE)\b"
_FAR = 2_000
"""Number of characters in which the end of something is looked for."""


def recognised(stop: Stop) -> Finding | None:
    """Return the mistake at a place, or None."""
    return next((found for each in _ALL if (found := each(stop)) is not None), None)


# Looking around -----------------------------------------------------------------------------------


def _here(stop: Stop, pattern: str) -> re.Match[str] | None:
    return re.compile(pattern, re.IGNORECASE).match(stop.text, stop.at)


def _behind(stop: Stop, pattern: str) -> tuple[re.Match[str], int] | None:
    """Return a match that ends at the place, blanks aside, and where it starts in the text."""
    match = re.search(rf"(?:{pattern})\s*\Z", stop.before, re.IGNORECASE)
    return match and (match, stop.at - len(stop.before) + match.start())


def _in_select(stop: Stop) -> bool:
    """Return True if the place is among the columns of a SELECT."""
    clause = re.compile(r"\bSELECT\b(?!.*(?:\bFROM\b|\bWHERE\b|\{))", re.IGNORECASE | re.DOTALL)
    return clause.search(stop.before) is not None


def _end_of_condition(text: str, at: int) -> int:
    """Return the end of an expression without brackets: that of its line, pattern or triple."""
    end = re.compile(r"\s*(?:[\n}#]|\.\s|\Z)").search(text, at, at + _FAR)
    return end.start() if end else at


def _closing(text: str, at: int) -> int | None:
    """Return the place of the square bracket that closes the one at ``at``."""
    depth = 0
    for each in re.compile(r"[\[\]]").finditer(text, at, at + _FAR):
        depth += 1 if each[0] == "[" else -1
        if not depth:
            return each.start()
    return None


def _parentheses(start: int, end: int) -> tuple[Edit, Edit]:
    return Edit(start, start, "("), Edit(end, end, ")")


def _syntax(stop: Stop, message: str, hint: str, *fix: Edit, end: int | None = None) -> Finding:
    end = stop.at + max(1, len(stop.found)) if end is None else end
    return Finding("syntax", message, stop.at, end, hint, fix)


# Signs --------------------------------------------------------------------------------------------


def _operator(stop: Stop) -> Finding | None:
    """Operators of other languages."""
    start = stop.at
    while start and stop.at - start < 2 and stop.text[start - 1] in "=<>&|":
        start -= 1
    signs = re.compile(r"[=<>&|]+").match(stop.text, start)
    if signs is None or signs[0] not in _OPERATORS:
        return None
    right, why = _OPERATORS[signs[0]]
    return Finding(
        "syntax",
        f'"{signs[0]}" is no operator of SPARQL',
        start,
        signs.end(),
        f'write "{right}": {why}',
        (Edit(start, signs.end(), right),),
    )


def _word_for_sign(stop: Stop) -> Finding | None:
    """AND, OR and NOT of SQL."""
    word = _here(stop, r"(AND|OR|NOT)\b(?!\s+(?:IN|EXISTS)\b)")
    negated = _behind(stop, r"\bNOT") if "EXISTS" in stop.expected else None
    if negated is not None:
        start, name = negated[1], "NOT"
    elif word is not None:
        start, name = stop.at, word[1].upper()
    else:
        return None
    sign, end = _WORDS[name], start + len(name)
    return Finding(
        "syntax",
        f"{name} is no operator of SPARQL",
        start,
        end,
        f"write {sign}",
        (Edit(start, end, sign),),
    )


def _null(stop: Stop) -> Finding | None:
    """IS NULL and IS NOT NULL of SQL."""
    test, subject = _here(stop, r"IS\s+(NOT\s+)?NULL\b"), _behind(stop, _VARIABLE)
    if test is None or subject is None:
        return None
    name = subject[0][0].strip()
    right = f"BOUND({name})" if test[1] else f"!BOUND({name})"
    return _syntax(
        stop,
        "there is no NULL: a variable has a value, or it is unbound",
        f"write {right}",
        Edit(subject[1], test.end(), right),
        end=test.end(),
    )


def _between(stop: Stop) -> Finding | None:
    """BETWEEN of SQL."""
    word = _here(stop, r"BETWEEN\s+([^\s{}]+)\s+AND\s+([^\s{})]+)")
    subject = _behind(stop, _VARIABLE)
    if word is None or subject is None:
        return None
    name = subject[0][0].strip()
    right = f"{name} >= {word[1]} && {name} <= {word[2]}"
    edit = Edit(subject[1], word.end(), right)
    return _syntax(stop, "BETWEEN is no operator of SPARQL", f"write {right}", edit, end=word.end())


def _like(stop: Stop) -> Finding | None:
    """LIKE of SQL."""
    word, subject = _here(stop, r"I?LIKE\s+([\"'])(.*?)\1"), _behind(stop, _VARIABLE)
    if word is None or subject is None:
        return None
    name, text = subject[0][0].strip(), word[2].strip("%")
    begins, ends = word[2].startswith("%"), word[2].endswith("%")
    function = {(False, True): "STRSTARTS", (True, False): "STRENDS"}.get(
        (begins, ends), "CONTAINS"
    )
    right = f'{function}(STR({name}), "{text}")'
    edit = Edit(subject[1], word.end(), right)
    return _syntax(stop, "LIKE is no operator of SPARQL", f"write {right}", edit, end=word.end())


def _quote(stop: Stop) -> Finding | None:
    """Typographic quotation marks."""
    mark = stop.found
    if mark not in _QUOTES:
        return None
    straight = _QUOTES[mark]
    edits = [Edit(stop.at, stop.at + 1, straight)]
    marks = "".join(each for each, of in _QUOTES.items() if of == straight)
    other = re.compile(f"[{marks}\n]").search(stop.text, stop.at + 1, stop.at + _FAR)
    if other is not None and other[0] != "\n":
        edits.append(Edit(other.start(), other.end(), straight))
    return _syntax(stop, f"{mark} is no quotation mark of SPARQL", f"write {straight}", *edits)


def _comment(stop: Stop) -> Finding | None:
    """Comments of other languages."""
    comment = _here(stop, r"//[^\n]*|--[^\n]*|/\*[\s\S]*?\*/")
    if comment is None:
        return None
    text = comment[0].strip("/*- \n")
    return _syntax(
        stop,
        "comments begin with #",
        f"write # {text.splitlines()[0] if text else ''}".rstrip(),
        Edit(comment.start(), comment.end(), "\n".join(f"# {line}" for line in text.split("\n"))),
        end=comment.end(),
    )


def _comma(stop: Stop) -> Finding | None:
    """Commas between columns and keys."""
    if stop.found != ",":
        return None
    clause = _behind(stop, r"\b(ORDER\s+BY|GROUP\s+BY|HAVING)\b[^{}]*")
    if not (_in_select(stop) or clause):
        return None
    what = "columns" if _in_select(stop) else "keys"
    return _syntax(
        stop, f"{what} are separated by blanks", "remove the comma", Edit(stop.at, stop.at + 1)
    )


def _semicolon(stop: Stop) -> Finding | None:
    """A semicolon behind the query."""
    if _here(stop, r";\s*\Z") is None or "$END" not in stop.expected:
        return None
    return _syntax(
        stop, "a query ends without a semicolon", "remove it", Edit(stop.at, stop.at + 1)
    )


def _square_bracket(stop: Stop) -> Finding | None:
    """Square brackets where parentheses stand."""
    if stop.found != "[" or not stop.expected & {"LPAR", "NIL"}:
        return None
    end = _closing(stop.text, stop.at)
    edits = [Edit(stop.at, stop.at + 1, "(")]
    if end is not None:
        edits.append(Edit(end, end + 1, ")"))
    return _syntax(
        stop,
        "expressions must stand in parentheses, not in square brackets",
        "write ( and )",
        *edits,
    )


# Columns ------------------------------------------------------------------------------------------


def _column(stop: Stop) -> Finding | None:
    """A computed column without parentheses, or with its name in front."""
    if not _in_select(stop):
        return None
    named = _behind(stop, _VARIABLE)
    if stop.found == "=" and named is not None:
        value = re.compile(r"=\s*(.+?)\s*(?=,|\n|\Z|\bFROM\b|\bWHERE\b|\{)", re.IGNORECASE)
        of = value.match(stop.text, stop.at)
        if of is not None:
            right = f"({of[1]} AS {named[0][0].strip()})"
            return _syntax(
                stop,
                "a computed column is written as (expression AS ?variable)",
                f"write {right}",
                Edit(named[1], of.end(1), right),
            )
    computed = re.compile(rf"([^{{}}\n]*?)\s+AS\s+({_VARIABLE})", re.IGNORECASE)
    of = computed.match(stop.text, stop.at)
    if of is None or stop.found == ",":
        return None
    start, inner = stop.at, of[1]
    if named is not None and stop.found in ("+", "-", "*", "/", *_OPERATORS):
        start, inner = named[1], stop.text[named[1] : of.end(1)]
    right = f"({inner} AS {of[2]})"
    return _syntax(
        stop,
        "a computed column must stand in parentheses",
        f"write {right}",
        *_parentheses(start, of.end()),
    )


def _star(stop: Stop) -> Finding | None:
    """Columns beside ``*``."""
    star = _behind(stop, r"\*")
    if star is None or not _in_select(stop) or _here(stop, rf"\(|{_VARIABLE}") is None:
        return None
    if _behind(stop, r"\b(?:SELECT|DISTINCT|REDUCED|[IRD]STREAM)\s*\*") is None:
        return None
    return Finding(
        "syntax",
        "SELECT * has all variables, and no columns beside them",
        star[1],
        star[1] + 1,
        "name the columns, or compute this one by BIND in the pattern",
        (Edit(star[1], star[1] + 1, " "),),
    )


def _top(stop: Stop) -> Finding | None:
    """TOP of SQL."""
    top = _here(stop, r"TOP\s*\(?\s*(\d+)\s*\)?")
    if top is None or not _in_select(stop):
        return None
    limited = re.compile(r"\bLIMIT\b", re.IGNORECASE).search(stop.text, stop.at)
    end = len(stop.text.rstrip())
    at_end = () if limited else (Edit(end, end, f"\nLIMIT {top[1]}"),)
    return _syntax(
        stop,
        "there is no TOP",
        f"write LIMIT {top[1]} at the end of the query",
        Edit(top.start(), top.end()),
        *at_end,
        end=top.end(),
    )


def _limit_by(stop: Stop) -> Finding | None:
    """``LIMIT 3 BY ?x``, as in other dialects of SQL."""
    by = _here(stop, rf"(?:PARTITION\s+)?BY(?=\s+{_VARIABLE})")
    if by is None or _behind(stop, r"\bLIMIT\s+\d+") is None:
        return None
    return _syntax(
        stop,
        "the groups of a LIMIT stand behind PER",
        "write PER",
        Edit(stop.at, by.end(), "PER"),
        end=by.end(),
    )


# Clauses ------------------------------------------------------------------------------------------


def _direction(stop: Stop) -> Finding | None:
    """``?x DESC`` and ``DESC ?x`` in ORDER BY."""
    behind = _behind(stop, rf"({_VARIABLE}|\))\s+(ASC|DESC)")
    if behind is not None and "LPAR" in stop.expected:
        match, start = behind
        if match[1] == ")":
            return Finding(
                "syntax",
                f"{match[2].upper()} must stand before its key",
                start,
                stop.at,
                f"write {match[2].upper()}(…)",
            )
        right = f"{match[2].upper()}({match[1]})"
        end = start + len(match[0].rstrip())
        return Finding(
            "syntax",
            f"{match[2].upper()} must stand before its key",
            start,
            end,
            f"write {right}",
            (Edit(start, end, right),),
        )
    word, key = _behind(stop, r"\b(ASC|DESC)"), _here(stop, _VARIABLE)
    if word is None or key is None:
        return None
    right = f"{word[0][1].upper()}({key[0]})"
    return _syntax(
        stop,
        f"the key of {word[0][1].upper()} must stand in parentheses",
        f"write {right}",
        Edit(word[1], key.end(), right),
        end=key.end(),
    )


def _order_of_clauses(stop: Stop) -> Finding | None:
    """GROUP BY or HAVING behind ORDER BY or LIMIT."""
    clause = _here(stop, rf"(GROUP\s+BY|HAVING|ORDER\s+BY)\b(?:(?!\b(?:{_CLAUSE})\b)[^{{}}])*")
    if clause is None:
        return None
    later = {"GROUP": r"HAVING|ORDER\s+BY|LIMIT|OFFSET", "HAVIN": r"ORDER\s+BY|LIMIT|OFFSET"}
    follows = later.get(clause[1][:5].upper(), "LIMIT|OFFSET")
    place = re.search(rf"\b(?:{follows})\b(?=[^{{}}]*\Z)", stop.before, re.IGNORECASE)
    if place is None:
        return None
    to, name = stop.at - len(stop.before) + place.start(), " ".join(clause[1].upper().split())
    return _syntax(
        stop,
        f"{name} must stand before {' '.join(place[0].upper().split())}",
        ORDER,
        Edit(to, to, clause[0].rstrip() + "\n"),
        Edit(stop.at, clause.end()),
        end=stop.at + len(clause[1]),
    )


def _bare_condition(stop: Stop) -> Finding | None:
    """FILTER, BIND and HAVING without parentheses."""
    keyword = _behind(stop, r"\b(FILTER|BIND|HAVING)")
    if keyword is None or "LPAR" not in stop.expected:
        return None
    end = _end_of_condition(stop.text, stop.at)
    inner = stop.text[stop.at : end]
    name = keyword[0][1].upper()
    return _syntax(
        stop,
        f"the expression of {name} must stand in parentheses",
        f"write {name}({inner})",
        *_parentheses(stop.at, end),
        end=max(end, stop.at + 1),
    )


def _bare_key(stop: Stop) -> Finding | None:
    """A computed key of ORDER BY or GROUP BY without parentheses."""
    clause = _behind(stop, rf"\b(ORDER|GROUP)\s+BY\s+({_VARIABLE})")
    if clause is None or stop.found not in ("+", "-", "*", "/"):
        return None
    end = _end_of_condition(stop.text, stop.at)
    start = clause[1] + clause[0].start(2) - clause[0].start()
    inner = stop.text[start:end]
    return _syntax(
        stop,
        f"a computed key of {clause[0][1].upper()} BY must stand in parentheses",
        f"write ({inner})",
        *_parentheses(start, end),
    )


# Prologue, and the query as a whole ---------------------------------------------------------------


def _prefix(stop: Stop) -> Finding | None:
    """PREFIX without its colon."""
    name = _here(stop, r"([A-Za-z][\w.-]*)(?=\s*<)")
    if name is None or _behind(stop, r"\bPREFIX") is None:
        return None
    return _syntax(
        stop,
        "a prefix is declared with a colon",
        f"write PREFIX {name[1]}:",
        Edit(name.end(), name.end(), ":"),
    )


def _turtle(stop: Stop) -> Finding | None:
    """``@prefix`` and ``@base`` of Turtle."""
    line = _here(stop, r"@(prefix|base)(\s+(?:[\w.-]*:\s*)?<[^>\s]*>)[ \t]*\.?")
    if line is None:
        return None
    word = line[1].upper()
    return _syntax(
        stop,
        f"@{line[1]} belongs to Turtle",
        f"write {word}{line[2]}, without @ and full stop",
        Edit(line.start(), line.end(), word + line[2]),
        end=stop.at + len(word) + 1,
    )


def _full_stop(stop: Stop) -> Finding | None:
    """The full stop of Turtle behind PREFIX or BASE."""
    if stop.found != "." or _behind(stop, r"\b(PREFIX|BASE)\s+[^<>]*<[^<>]*>") is None:
        return None
    return _syntax(
        stop, "declarations end without a full stop", "remove it", Edit(stop.at, stop.at + 1)
    )


def _two_queries(stop: Stop) -> Finding | None:
    """A second query in one text."""
    if "$END" not in stop.expected or _here(stop, _FORM) is None:
        return None
    return Finding(
        "syntax",
        "a text holds one query, and another one begins here",
        stop.at,
        stop.at + len(stop.found),
        "put each query into a text of its own",
        (Edit(stop.at, len(stop.text)),),
        is_last=True,
    )


# Patterns -----------------------------------------------------------------------------------------


def _bare_word(stop: Stop) -> Finding | None:
    """A name without a prefix in a triple."""
    word = _here(stop, r"([A-Za-z_]\w*)(?![\w:(])")
    takes_terms = {"PNAME_LN", "IRIREF"} <= stop.expected and "LPAR" in stop.expected
    if word is None or not takes_terms or "AS" in stop.expected or "LBRACE" in stop.expected:
        return None
    if stop.found.upper() in keywords():
        return None
    return _syntax(
        stop,
        f'"{word[1]}" is neither an IRI nor a variable',
        f"write :{word[1]} with a prefix, or ?{word[1]}",
        Edit(stop.at, stop.at, ":"),
    )


def _missing_stop(stop: Stop) -> Finding | None:
    """Two triples without a full stop between them."""
    if "DOT" not in stop.expected or _here(stop, rf"{_VARIABLE}\s+\S+\s+\S") is None:
        return None
    end = len(stop.text[: stop.at].rstrip())
    return _syntax(
        stop,
        "a triple ends before this",
        "put a full stop between the triples",
        Edit(end, end, " ."),
    )


def _type(stop: Stop) -> Finding | None:
    """``A`` for ``a``."""
    if stop.found != "A" or "A" not in stop.expected:
        return None
    return _syntax(
        stop, "rdf:type is written a, in lower case", "write a", Edit(stop.at, stop.at + 1, "a")
    )


_ALL: tuple[Callable[[Stop], Finding | None], ...] = (
    _two_queries,
    _turtle,
    _full_stop,
    _prefix,
    _operator,
    _null,
    _between,
    _like,
    _word_for_sign,
    _quote,
    _comment,
    _top,
    _limit_by,
    _direction,
    _square_bracket,
    _star,
    _column,
    _comma,
    _semicolon,
    _order_of_clauses,
    _bare_condition,
    _bare_key,
    _type,
    _missing_stop,
    _bare_word,
)
