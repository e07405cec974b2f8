"""What connectors say of themselves, and whether it is so."""

from __future__ import annotations

import re

import pytest
from pyspark.sql.datasource import DataSource

from connectors import ConnectorError
from connectors.registry import CONNECTORS


@pytest.mark.parametrize("name", CONNECTORS)
def test_a_connector_is_a_data_source_whose_docstring_has_its_options_and_an_example(name: str) -> None:
    connector = CONNECTORS[name]
    source = connector.data_source()
    assert issubclass(source, DataSource)
    said = __import__(source.__module__, fromlist=["any"]).__doc__ or ""
    assert f'readStream.format("{source.name()}")' in said.replace("\n    ", "").replace("    ", "")
    assert sorted(re.findall(r"^- ``(\w+)``", said, re.MULTILINE)) == sorted(connector.options)


@pytest.mark.parametrize("name", CONNECTORS)
def test_options_that_are_required_are_asked_for(name: str) -> None:
    for option, about in CONNECTORS[name].options.items():
        if about.required:
            others = {other for other, each in CONNECTORS[name].options.items() if each.required} - {option}
            with pytest.raises(ConnectorError, match=f'the connector "{name}" needs the option {option}'):
                CONNECTORS[name].data_source()(dict.fromkeys(others, "x")).streamReader(None)  # type: ignore[arg-type]
