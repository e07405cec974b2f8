"""The rules of the filtered stream: which posts it brings. X keeps them, per app, until they are deleted."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from connectors import ConnectorError

LONGEST_TAG = 255


@dataclass(frozen=True, order=True)
class Rule:
    """What a post must be like, and a name for that, which comes with the posts that are."""

    value: str
    tag: str = ""

    def written(self) -> Mapping[str, str]:
        """Return the rule as X takes it."""
        return {"value": self.value, "tag": self.tag} if self.tag else {"value": self.value}


@dataclass(frozen=True)
class Change:
    """What makes one set of rules of another: ids of rules to delete, and rules to add, in this order."""

    delete: Sequence[str] = ()
    add: Sequence[Rule] = ()

    def __bool__(self) -> bool:
        return bool(self.delete or self.add)


def change_of(present: Mapping[str, Rule], wanted: Iterable[Rule]) -> Change:
    """Return the least change that leaves exactly the rules that are wanted.

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
    """Return the rules that the option ``rules`` says: a JSON object from tags to what posts must be like.

    >>> rules_of('{"cats": "cat has:images"}')
    [Rule(value='cat has:images', tag='cats')]
    """
    try:
        tagged = json.loads(text)
    except ValueError:
        tagged = None
    if not isinstance(tagged, dict) or not tagged or not all(isinstance(each, str) for each in tagged.values()):
        raise ConnectorError('the option rules is a JSON object from tags to rules, such as {"cats": "cat has:images"}')
    rules = [Rule(value.strip(), tag) for tag, value in tagged.items()]
    for value, count in Counter(rule.value for rule in rules).items():
        if not value or count > 1:
            wrong = f'the rule "{value}" has two tags; X takes each rule once' if value else "a rule is empty"
            raise ConnectorError(f"{wrong} (option rules)")
    for rule in rules:
        if len(rule.tag) > LONGEST_TAG:
            raise ConnectorError(f'the tag "{rule.tag[:20]}…" has more than {LONGEST_TAG} characters (option rules)')
    return rules
