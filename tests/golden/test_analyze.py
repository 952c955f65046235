"""The whole output of ``analyze`` on small captures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.harness.captures import capture, op, signpost
from tests.harness.golden import assert_golden

if TYPE_CHECKING:
    from tests.harness.project import Project

ROWS = {"INPUT_0_LAYOUT": "ROW_MAJOR", "INPUT_0_MEMORY": "DEV_0_DRAM_INTERLEAVED"}
BFP8 = {"INPUT_0_DATATYPE": "BFLOAT8_B"}
PROGRAM = (
    op("MatmulDeviceOperation", 900_000),
    signpost("PERF"),
    *(op("Conv2dDeviceOperation", 61_000, {"OP TO OP LATENCY [ns]": "4200"}) for _ in range(3)),
    op("TilizeDeviceOperation", 40_000, ROWS, cores=8),
    op("MatmulDeviceOperation", 120_000, BFP8),
    op("SoftmaxDeviceOperation", 9_000, cores=32),
    signpost("PERF_END"),
)


@pytest.fixture
def captured(project: Project) -> Project:
    (project.path / "ops.csv").write_text(capture(*PROGRAM))
    return project


@pytest.mark.parametrize(
    ("golden", "words"),
    [
        ("layout_table", ("layout",)),
        ("overview_table", ()),
    ],
)
def test_analyze(captured: Project, golden: str, words: tuple[str, ...]) -> None:
    ran = captured.cli("analyze", *words, "--csv", "ops.csv", "--start", "PERF")
    assert (ran.code, ran.errors) == (0, "")
    assert_golden(f"analyze_{golden}", ran.text)


REFUSALS = {
    "dtype --csv text.csv": (3, "text.csv: "),
    "dtpye ops.csv": (
        2, "dtpye: there is no such analysis, and no such file; did you mean dtype?"
    ),
    "ops.csv dtype": (2, "name one analysis, before the files: ttnn-perf analyze dtype FILE"),
}  # fmt: skip


@pytest.mark.parametrize("words", REFUSALS)
def test_wrong_words_are_refused(captured: Project, words: str) -> None:
    (captured.path / "text.csv").write_text("not a capture\n")
    code, complaint = REFUSALS[words]
    ran = captured.cli("analyze", *words.split())
    assert (ran.code, ran.text) == (code, "")
    assert ran.errors.startswith(f"ttnn-perf: {complaint}")


@pytest.mark.parametrize("name", ["regions", "doubt"])
def test_overview_of_regions_and_of_what_is_in_doubt(captured: Project, name: str) -> None:
    """Where replays differ, nothing is told but that."""
    sessions = ("1", "2") if name == "regions" else ("1", "1", "2")
    replays = [
        op("MatmulDeviceOperation", 9_000, {"METAL TRACE ID": "1", **session, **gap})
        for session in ({"METAL TRACE REPLAY SESSION ID": each} for each in sessions)
        for gap in ({"OP TO OP LATENCY [ns]": "6000"},)
    ]
    window = (signpost("PREFILL"), *PROGRAM[2:5], signpost("PREFILL_END"))
    (captured.path / "both.csv").write_text(capture(*window, *replays))
    ran = captured.cli("analyze", "both.csv")
    assert (ran.code, ran.errors) == (0, "")
    assert_golden(f"analyze_overview_{name}", ran.text)
