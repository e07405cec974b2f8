"""The client's patience with a service that refuses requests for a while."""

from __future__ import annotations

import pytest

from acquatop.app.serve.client import Client, ServiceError
from tests.support.json_server import Answer, serving

TOO_EARLY = Answer(status=429, headers={"Retry-After": "2"})


def test_what_came_too_early_is_sent_again_when_the_service_allows_it() -> None:
    answers = iter([TOO_EARLY, TOO_EARLY, Answer.json({"queries": []})])
    pauses: list[float] = []
    with (
        serving(lambda asked: next(answers)) as server,
        Client(server.url, timeout=60, sleep=pauses.append) as client,
    ):
        assert client.queries() == []
        assert (len(server.asked), pauses) == (3, [2.0, 2.0])


@pytest.mark.parametrize(
    ("answer", "pauses"),
    [
        (TOO_EARLY, [2.0, 2.0]),
        (Answer(status=429), []),
        (Answer(status=429, headers={"Retry-After": "Fri, 01 Jan 2027 00:00:00 GMT"}), []),
        (Answer(status=503, headers={"Retry-After": "2"}), []),
    ],
)
def test_other_refusals_and_longer_waits_are_raised(answer: Answer, pauses: list[float]) -> None:
    slept: list[float] = []
    with (
        serving(lambda asked: answer) as server,
        Client(server.url, timeout=5, sleep=slept.append) as client,
        pytest.raises(ServiceError, match=f"HTTP {answer.status}"),
    ):
        client.queries()
    assert slept == pauses
