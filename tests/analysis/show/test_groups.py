from __future__ import annotations

import pytest

from pytest_ttnn_perf.analysis.show.groups import Analysis, Figure, Row, Section, analysis_listing
from pytest_ttnn_perf.report.tables import Style


def test_a_table_is_short_and_narrow_and_json_has_all() -> None:
    long = "Matmul\n" + "1x1x32x4096 @ " * 20
    rows = tuple(Row(f"{at} {long}", 12.0 - at, (12 - at) / 78, at + 1) for at in range(12))
    note = "word " * 60
    analysis = Analysis(
        "matmul", "x", sections=(Section("y" * 200, "ns", rows, "of time"),), notes=(note,)
    )
    listing = analysis_listing([("", analysis)])
    lines = listing.text("table", Style(100, wrap=True)).splitlines()
    assert max(map(len, lines)) <= 100
    rows_shown = lines[4:15]
    assert rows_shown[0].startswith("0 Matmul 1x1x32x4096 @ 1x1x32x4096")
    assert "…  " in rows_shown[0]
    assert len({line.index("%") for line in rows_shown[:10]}) == 1
    assert rows_shown[10] == "and 2 more, which --format json lists"
    assert len(listing.rows) == 12


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (1_500.0, "ns", "1.500 µs"),
        (0.05, "of a step", "5.0 % of a step"),
        (65_411_234, "elements", "65,411,234 elements"),
        (0.3333333, "GB/s", "0.3333 GB/s"),
        (float("inf"), "GB/s", "inf GB/s"),
        (2048, "B", "2.000 KiB"),
    ],
)
def test_figures(value: float, unit: str, text: str) -> None:
    analysis = Analysis("a", "b", figures=(Figure("it", value, unit),))
    assert analysis_listing([("", analysis)]).lines == ("a: b", f"  it: {text}")


def test_shares_of_nothing() -> None:
    section = Section("operands", "B", (Row("BFLOAT4_X", 0.0, None, 3),), "of bytes")
    analysis = Analysis("a", "b", sections=(section,))
    lines = analysis_listing([("", analysis)]).text("table").splitlines()
    assert lines[-1] == "BFLOAT4_X         3  0.000 B           -"
