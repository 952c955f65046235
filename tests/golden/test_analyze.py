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


def test_an_analysis(captured: Project) -> None:
    ran = captured.cli("analyze", "layout", "--csv", "ops.csv", "--start", "PERF")
    assert (ran.code, ran.errors) == (0, "")
    assert_golden("analyze_layout_table", ran.text)


REFUSALS = {
    "dtype --csv text.csv": (3, "text.csv: "),
    "dtpye ops.csv": (2, "dtpye: there is no such analysis; did you mean dtype?"),
    "ops.csv": (2, "ops.csv: there is no such analysis; analyses: dtype, fidelity, "),
}


@pytest.mark.parametrize("words", REFUSALS)
def test_wrong_words_are_refused(captured: Project, words: str) -> None:
    (captured.path / "text.csv").write_text("not a capture\n")
    code, complaint = REFUSALS[words]
    ran = captured.cli("analyze", *words.split())
    assert (ran.code, ran.text) == (code, "")
    assert ran.errors.startswith(f"ttnn-perf: {complaint}")


def test_regions_are_analysed_one_by_one(captured: Project) -> None:
    replays = [
        op("MatmulDeviceOperation", 9_000, {"METAL TRACE ID": "1",
            "METAL TRACE REPLAY SESSION ID": session})
        for session in ("1", "2")
    ]  # fmt: skip
    window = (signpost("PREFILL"), *PROGRAM[2:5], signpost("PREFILL_END"))
    (captured.path / "both.csv").write_text(capture(*window, *replays))
    ran = captured.cli("analyze", "cores", "both.csv")
    assert (ran.code, ran.errors) == (0, "")
    assert_golden("analyze_regions", ran.text)
