"""Descriptions of connectors, compared with their behaviour."""

from __future__ import annotations

import importlib
import re

import pytest
from pyspark.sql.datasource import DataSource

from connectors import ConnectorError
from connectors.registry import CONNECTORS

OURS = [name for name, connector in CONNECTORS.items() if connector.source]


@pytest.mark.parametrize("name", OURS)
def test_a_connector_is_a_data_source_whose_docstring_has_its_options_and_an_example(
    name: str,
) -> None:
    connector = CONNECTORS[name]
    source = connector.data_source()
    assert issubclass(source, DataSource)
    said = importlib.import_module(source.__module__).__doc__ or ""
    assert f'readStream.format("{source.name()}")' in said
    documented = [
        option
        for line in re.findall(r"^- (``.*?):", said, re.MULTILINE)
        for option in line.split(", ")
    ]
    assert sorted(each.strip("`") for each in documented) == sorted(connector.options)


def test_a_source_of_spark_s_is_no_source_of_ours() -> None:
    with pytest.raises(ConnectorError, match="can be read with Spark only"):
        CONNECTORS["spark"].data_source()


@pytest.mark.parametrize("name", OURS)
def test_options_that_are_required_are_asked_for(name: str) -> None:
    for option, about in CONNECTORS[name].options.items():
        if about.required:
            others = {
                other for other, each in CONNECTORS[name].options.items() if each.required
            } - {option}
            with pytest.raises(
                ConnectorError, match=f'the connector "{name}" needs the option {option}'
            ):
                CONNECTORS[name].data_source()(dict.fromkeys(others, "x")).streamReader(None)  # type: ignore[arg-type]
