"""What examples need that is not of Python."""

from __future__ import annotations

import pytest

from acquatop.errors import EnvironmentProblem
from examples import mosquitto


def test_a_broker_that_is_missing_is_named_with_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mosquitto, "_PATH", "")
    with pytest.raises(EnvironmentProblem, match="apt-get install mosquitto"), mosquitto.MosquittoBroker():
        pass
