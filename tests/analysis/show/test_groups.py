from __future__ import annotations

import json
import sqlite3
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.analysis.show.groups import Analysis, Figure, Row, Section, analysis_listing
from pytest_ttnn_perf.report.tables import Style
from tests.harness.corpus import corpus

if TYPE_CHECKING:
    from tests.harness.project import Project


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


def figures_of(project: Project, what: str, name: str) -> tuple[dict[str, float], list[str]]:
    """Return the values of an analysis by label, and the labels of its last section."""
    folder = str(corpus(f"report_db/{name}/db.sqlite"))
    found = json.loads(project.cli("analyze", what, "--db", folder, "--format", "json").text)
    rows = found["sections"][-1]["rows"] if found["sections"] else []
    values = {each["label"]: each["value"] for each in (*found["figures"], *rows)}
    return values, [row["label"] for row in rows]


def test_a_report_says_where_reshards_stand_and_from_what_to_what(project: Project) -> None:
    _, labels = figures_of(project, "reshards", "cnn_small")
    assert [label.partition(", ")[2] for label in labels] == [
        "asked for: HEIGHT_SHARDED → BLOCK_SHARDED between ttnn.max_pool2d and ttnn.conv2d",
        "hidden inside another operation: BLOCK_SHARDED → HEIGHT_SHARDED between ttnn.relu and "
        "ttnn.to_memory_config",
    ]


def test_a_report_has_fidelity_and_bytes_of_padding(project: Project) -> None:
    assert figures_of(project, "fidelity", "cnn_small")[0] == {"HiFi2 ttnn.conv2d": 6}
    assert figures_of(project, "padding", "cnn_8_cores")[0]["padding takes"] == 32 * 1024


def test_what_is_alive_is_that_of_the_fullest_bank(project: Project) -> None:
    """Buffers whose largest parts lie in different banks are not added up."""
    values, _ = figures_of(project, "memory", "mlp_bfp8")
    chunks = sqlite3.connect(corpus("report_db/mlp_bfp8/db.sqlite"))
    query = (
        "SELECT max(total) FROM (SELECT sum(chunk_size) AS total FROM buffer_chunks "
        "WHERE buffer_type = 1 GROUP BY operation_id, device_id, bank_id)"
    )
    assert values["L1"] == chunks.execute(query).fetchone()[0]
