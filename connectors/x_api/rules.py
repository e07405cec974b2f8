"""Rules of the filtered stream that select posts. X stores them per app until they are deleted."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from connectors import ConnectorError

LONGEST_TAG = 255


@dataclass(frozen=True, order=True)
class Rule:
    """Condition on posts, and its tag, which comes with the matching posts."""

    value: str
    tag: str = ""

    def written(self) -> Mapping[str, str]:
        """Return the rule in X's format."""
        return {"value": self.value, "tag": self.tag} if self.tag else {"value": self.value}


@dataclass(frozen=True)
class Change:
    """Difference between two sets of rules: first ids of rules to delete, then rules to add."""

    delete: Sequence[str] = ()
    add: Sequence[Rule] = ()

    def __bool__(self) -> bool:
        return bool(self.delete or self.add)


def change_of(present: Mapping[str, Rule], wanted: Iterable[Rule]) -> Change:
    """Return the smallest change that leaves exactly the wanted rules.

    >>> cats, dogs = Rule("cat", "cats"), Rule("dog", "dogs")
    >>> change_of({"1": cats, "2": Rule("dog", "pets"), "3": cats}, [cats, dogs])
    Change(delete=['3', '2'], add=[Rule(value='dog', tag='dogs')])
    """
    kept: dict[Rule, str] = {}
    surplus = [id_ for id_, rule in sorted(present.items()) if kept.setdefault(rule, id_) != id_]
    asked = sorted(set(wanted))
    obsolete = [id_ for rule, id_ in kept.items() if rule not in asked]
    return Change([*surplus, *obsolete], [rule for rule in asked if rule not in kept])


def rules_of(text: str) -> Sequence[Rule]:
    """Return the rules in the option ``rules``: a JSON object from tags to conditions on posts.

    >>> rules_of('{"cats": "cat has:images"}')
    [Rule(value='cat has:images', tag='cats')]
    """
    try:
        tagged = json.loads(text)
    except ValueError:
        tagged = None
    if (
        not isinstance(tagged, dict)
        or not tagged
        or not all(isinstance(each, str) for each in tagged.values())
    ):
        raise ConnectorError(
            'the option rules is a JSON object from tags to rules, such as {"cats": "cat '
            'has:images"}'
        )
    rules = [Rule(value.strip(), tag) for tag, value in tagged.items()]
    for value, count in Counter(rule.value for rule in rules).items():
        if not value or count > 1:
            wrong = (
                f'the rule "{value}" has two tags; X takes each rule once'
                if value
                else "a rule is empty"
            )
            raise ConnectorError(f"{wrong} (option rules)")
    for rule in rules:
        if len(rule.tag) > LONGEST_TAG:
            raise ConnectorError(
                f'the tag "{rule.tag[:20]}…" has more than {LONGEST_TAG} characters (option rules)'
            )
    return rules
