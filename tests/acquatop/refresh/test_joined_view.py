"""Knowledge of several replicas together: when it is there, and when it is joined again."""

from __future__ import annotations

from acquatop.refresh.joined_view import JoinedView, TupleNews
from replica.store import SolutionStore
from rspql.compiler import compile_query
from rspql.plan import Join, TopKPlan

XSD = "http://www.w3.org/2001/XMLSchema#"
CHAINED = """PREFIX : <urn:>
SELECT ?e ?f (?m + ?f AS ?score) FROM NAMED WINDOW :w ON :s [RANGE 9m] WHERE {
  WINDOW :w { ?e :user ?user ; :m ?m }
  SERVICE :a { ?user :city ?city } SERVICE :b { ?city :f ?f }
} ORDER BY DESC(?score) LIMIT 3"""

PAST = """PREFIX : <urn:> PREFIX change: <urn:acquatop:change:>
PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
SELECT ?e ?f (?m + ?f - {ago} AS ?score) FROM NAMED WINDOW :w ON :s [RANGE 9m] WHERE {{
  WINDOW :w {{ ?e :user ?user ; :m ?m }}
  SERVICE :a {{ ?user :city ?city ; :n ?n }} SERVICE :b {{ ?city :f ?f }}
}} ORDER BY DESC(?score) LIMIT 3"""


def joined_by(text: str) -> Join:
    plan = compile_query(text)
    assert isinstance(plan, TopKPlan)
    assert plan.join is not None
    return plan.join


def view_of(text: str) -> tuple[JoinedView, list[SolutionStore]]:
    join = joined_by(text)
    stores = [SolutionStore(each.keys[0], each.variables) for each in join.services]
    return JoinedView(join, stores), stores


def known(view: JoinedView, key: str) -> list[str] | None:
    """Return the values of ?f that a tuple joins, None if the tuple is unknown."""
    rows = view.rows([key])
    if rows[0] < 0:
        return None
    return [each.split('"')[1] for each in view.terms("f", view.runs(rows).places) if each]


def test_what_depends_on_a_key_never_asked_for_is_unknown() -> None:
    view, (cities, values) = view_of(CHAINED)
    ann = "<urn:ann>"
    assert known(view, ann) is None
    cities.put([ann], [{"user": ann, "city": "<urn:rome>"}], 1.0)
    assert known(view, ann) is None
    assert view.needs_of(ann) == ((ann,), ("<urn:rome>",))
    values.put(["<urn:rome>"], [{"city": "<urn:rome>", "f": f'"7"^^<{XSD}integer>'}], 2.0)
    assert known(view, ann) == ["7"]
    assert view.fetched_at(view.rows([ann])).tolist() == [1.0]
    # She moves to a city of which nothing is known: what was known of her is so no longer.
    cities.put([ann], [{"user": ann, "city": "<urn:oslo>"}], 3.0)
    assert view.update([{ann}, ()], [[ann], ()]) == TupleNews(frozenset([ann]), frozenset())
    assert known(view, ann) is None
    values.put(["<urn:oslo>"], [], 4.0)
    assert known(view, ann) == []
    assert view.wholly([frozenset([ann]), frozenset()]) == frozenset()
    assert view.wholly([frozenset([ann]), frozenset(["<urn:oslo>"])]) == frozenset([ann])


def test_a_key_without_an_answer_needs_no_other() -> None:
    view, (cities, _) = view_of(CHAINED)
    cities.put(["<urn:bob>"], [], 1.0)
    assert known(view, "<urn:bob>") == []


def test_a_view_goes_on_from_a_snapshot() -> None:
    view, (cities, values) = view_of(CHAINED)
    cities.put(["<urn:ann>"], [{"user": "<urn:ann>", "city": "<urn:rome>"}], 1.0)
    values.put(["<urn:rome>"], [{"city": "<urn:rome>", "f": f'"7"^^<{XSD}integer>'}], 2.0)
    assert known(view, "<urn:ann>") == ["7"]
    again, stores = view_of(CHAINED)
    for one, other in zip(stores, (cities, values), strict=True):
        one.resume(other.snapshot())
    again.resume(view.snapshot())
    assert again.snapshot() == view.snapshot()
    values_again = stores[1]
    values_again.put(["<urn:rome>"], [], 3.0)
    news = again.update([(), ["<urn:rome>"]], [(), ["<urn:rome>"]])
    assert news == TupleNews(frozenset(["<urn:ann>"]), frozenset())
    assert known(again, "<urn:ann>") == []


def test_terms_stay_as_the_remote_wrote_them() -> None:
    view, (cities, values) = view_of(CHAINED)
    cities.put(["<urn:ann>"], [{"user": "<urn:ann>", "city": "<urn:rome>"}], 1.0)
    written = f'"007"^^<{XSD}integer>'
    values.put(["<urn:rome>"], [{"city": "<urn:rome>", "f": written}], 2.0)
    rows = view.rows(["<urn:ann>"])
    assert view.terms("f", view.runs(rows).places) == [written]


def test_what_looking_up_has_made_known_is_told_once() -> None:
    view, (cities, _) = view_of(CHAINED)
    cities.put(["<urn:bob>"], [], 1.0)
    assert known(view, "<urn:bob>") == []
    bob = frozenset(["<urn:bob>"])
    assert view.update([(), ()], [(), ()]) == TupleNews(bob, bob)
    assert view.update([(), ()], [(), ()]) == TupleNews(frozenset(), frozenset())


def test_what_a_key_had_is_remembered_while_no_tuple_depends_on_it() -> None:
    text = PAST.format(ago='change:before(?n, "PT10S"^^xsd:dayTimeDuration)')
    view, (cities, values) = view_of(text)
    (past,) = joined_by(text).services[0].past
    ann = "<urn:ann>"

    def number(value: int) -> str:
        return f'"{value}"^^<{XSD}integer>'

    def look(at: float, city: str, n: int) -> None:
        cities.put([ann], [{"user": ann, "city": city, "n": number(n)}], at)
        moved = view.look_back(at, [[ann], ()])
        view.update([[ann], ()], [{ann, *moved[0]}, ()])

    values.put(["<urn:rome>"], [{"city": "<urn:rome>", "f": number(0)}], 0.0)
    assert known(view, ann) is None
    look(0.0, "<urn:rome>", 7)
    assert known(view, ann) == ["0"]
    # Nothing is known of the city that she moves to.
    for at, n in ((1.0, 1), (2.0, 8), (9.0, 9)):
        look(at, "<urn:oslo>", n)
        assert known(view, ann) is None
    values.put(["<urn:oslo>"], [{"city": "<urn:oslo>", "f": number(0)}], 10.0)
    view.look_back(14.0, [(), ()])
    rows = view.rows([ann])
    assert view.terms(past.name, view.runs(rows).places) == [number(8)]
