"""The service does what its OpenAPI document says: requests of all kinds, good and bad, made by
schemathesis.
"""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.core import NOT_SET
from schemathesis.specs.openapi.checks import positive_data_acceptance

from acquatop.app.serve.limits import Limits
from acquatop.app.serve.openapi import document
from acquatop.app.serve.page import Page
from acquatop.app.serve.problems import KINDS
from tests.support.staged import LIMIT, QUERY, Stage, staged

EXAMPLES = 12
ENDLESS = ("/events", "/queries/{id}/events")
turns = itertools.count()


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    limits = Limits(
        queries=20,
        text_bytes=2_000,
        work_rate=1e6,
        work_burst=10**6,
        read_rate=1e6,
        read_burst=10**6,
    )
    with staged(limits) as stage:
        stage.client.register(QUERY)
        stage.give("query", 1000)
        yield stage


schema: Any = schemathesis.openapi.from_dict(document())


@pytest.mark.filterwarnings("ignore")
@schema.exclude(path=list(ENDLESS)).parametrize()
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_every_answer_is_one_that_is_described(case: Any, stage: Stage) -> None:
    # An id that is made up is no query's; half of the requests should meet one.
    if case.method != "DELETE" and "id" in (case.path_parameters or {}) and next(turns) % 2:
        case.path_parameters["id"] = "query"
    # That a body is text says little about whether it is a query.
    excluded = [positive_data_acceptance] if case.body is not NOT_SET else []
    case.call_and_validate(base_url=stage.url, timeout=LIMIT, excluded_checks=excluded)


def test_the_document_has_all_addresses_and_no_others() -> None:
    from acquatop.app.serve.app import Api
    from acquatop.app.serve.refusals import Refusals

    with staged() as stage:
        api = Api(stage.service, stage.meters, Refusals(clock=time.monotonic), time.monotonic)
        routes = {route.path: set(route.methods or ()) - {"HEAD"} for route in api.routes()}
    described = {
        path: {method.upper() for method in operations if method in ("get", "post", "delete")}
        for path, operations in document()["paths"].items()
    }
    assert described == routes


def test_every_kind_of_problem_is_described_somewhere_and_every_type_of_file() -> None:
    text = str(document())
    assert [kind for kind in KINDS if f"problem:{kind}" not in text] == []
    statuses = set(re.findall(r"'([1-5][0-9][0-9])': \{'description'", text))
    spoken = {str(kind.status) for name, kind in KINDS.items() if name != "method-not-allowed"}
    assert spoken <= statuses
    assert len(Page.load().contents) > 10
