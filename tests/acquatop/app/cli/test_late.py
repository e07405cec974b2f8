"""Late records are reported on the standard error: at once in live runs, and at the end."""

from __future__ import annotations

import pytest

from acquatop.app.cli.late import LateReport
from acquatop.engine.observer import BatchSeen


def seen(late: int, stream: str = "urn:s") -> BatchSeen:
    return BatchSeen(stream=stream, events=9, late=late, watermark_ms=1_000)


def test_a_live_run_reports_the_first_ones_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    with LateReport(at_first=True) as report:
        report.batch(seen(0))
        assert capsys.readouterr().err == ""
        report.batch(seen(2))
        said = capsys.readouterr().err
        assert said == (
            "acquatop: 2 records of <urn:s> came too late: windows up to 1970-01-01T00:00:01.000Z"
            " are closed; see lateness in the catalog\n"
        )
        report.batch(seen(1))
        report.batch(seen(1, "urn:t"))
        assert "<urn:t>" in capsys.readouterr().err
    assert capsys.readouterr().err.splitlines() == [
        "acquatop: 3 records of <urn:s> came too late for every window in all",
        "acquatop: 1 record of <urn:t> came too late for every window in all",
    ]


def test_a_recording_reports_them_at_the_end_alone(capsys: pytest.CaptureFixture[str]) -> None:
    with LateReport(at_first=False) as report:
        report.batch(seen(2))
        assert capsys.readouterr().err == ""
    assert "2 records of <urn:s>" in capsys.readouterr().err
