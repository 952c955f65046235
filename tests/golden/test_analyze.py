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
    op("SoftmaxDeviceOperation", ""),
    signpost("PERF_END"),
)


@pytest.fixture
def captured(project: Project) -> Project:
    (project.path / "ops.csv").write_text(capture(*PROGRAM))
    return project


@pytest.mark.parametrize("shape", ["table", "json", "csv"])
def test_analyze_in_every_shape(captured: Project, shape: str) -> None:
    ran = captured.cli(
        "analyze", "layout", "--csv", "ops.csv", "--start", "PERF", "--format", shape
    )
    assert (ran.code, ran.errors) == (0, "")
    assert_golden(f"analyze_layout_{shape}", ran.text)


@pytest.mark.parametrize("what", ["bottlenecks", "cores", "dtype"])
def test_analyze(captured: Project, what: str) -> None:
    ran = captured.cli("analyze", what, "--csv", "ops.csv", "--start", "PERF")
    assert (ran.code, ran.errors) == (0, "")
    assert_golden(f"analyze_{what}", ran.text)


def test_what_cannot_be_told_is_no_failure(captured: Project) -> None:
    reason = "needs a report database: op tables have no transfers or command queues"
    ran = captured.cli("analyze", "queues", "--csv", "ops.csv")
    assert (ran.code, ran.text, ran.errors) == (0, f"NOT_MEASURED queues: {reason}", "")
    ran = captured.cli("analyze", "queues", "--csv", "ops.csv", "--format", "csv")
    assert ran.text.splitlines()[1] == f"queues,NOT_MEASURED,,{reason},,,,,"


def test_wrong_input_is_refused(captured: Project) -> None:
    (captured.path / "text.csv").write_text("not a capture\n")
    refusals = {
        ("analyze", "dtype"): (2, "ttnn-perf: nothing to look at: name --csv, --db or --log"),
        ("analyze", "dtype", "--csv", "none.csv"): (
            3,
            "ttnn-perf: none.csv: cannot read: No such file or directory",
        ),
        ("analyze", "dtype", "--csv", "ops.csv", "--start", "NONE"): (
            2,
            "ttnn-perf: the capture has no signpost 'NONE'; its signposts: 'PERF', 'PERF_END'",
        ),
    }
    for words, expected in refusals.items():
        ran = captured.cli(*words)
        assert (ran.code, ran.errors) == expected
    assert captured.cli("analyze", "dtype", "--csv", "text.csv").code == 3
    unknown = captured.cli("analyze", "everything", "--csv", "ops.csv")
    assert unknown.code == 2
    assert "choose from" in unknown.errors
