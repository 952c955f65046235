"""The whole output of ``show`` and ``compare`` on captures."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING

import pytest

from tests.harness.golden import assert_golden

if TYPE_CHECKING:
    from tests.harness.project import Project

COLUMNS = (
    "OP CODE", "OP TYPE", "DEVICE ID", "DEVICE ARCH", "ATTRIBUTES", "MATH FIDELITY", "CORE COUNT",
    "AVAILABLE WORKER CORE COUNT", "DEVICE FW START CYCLE", "OP TO OP LATENCY [ns]",
    "DEVICE KERNEL DURATION [ns]",
    *(f"INPUT_0_{part}" for part in (
        "W_PAD[LOGICAL]", "Z_PAD[LOGICAL]", "Y_PAD[LOGICAL]", "X_PAD[LOGICAL]",
        "LAYOUT", "DATATYPE", "MEMORY")),
    "METAL TRACE ID", "METAL TRACE REPLAY SESSION ID", "PROGRAM HASH",
)  # fmt: skip


def op(
    code: str, ns: float | str, *, cores: int = 64, memory: str = "L1_HEIGHT_SHARDED", **more: str
) -> dict[str, str]:
    """Return a row of a capture."""
    row = dict.fromkeys(COLUMNS, "")
    row |= {
        "OP CODE": code, "OP TYPE": "tt_dnn_device", "DEVICE ID": "0",
        "DEVICE ARCH": "wormhole_b0", "MATH FIDELITY": "HiFi2", "CORE COUNT": str(cores),
        "AVAILABLE WORKER CORE COUNT": "64", "DEVICE KERNEL DURATION [ns]": str(ns),
        "OP TO OP LATENCY [ns]": "500", "INPUT_0_W_PAD[LOGICAL]": "1[1]",
        "INPUT_0_Z_PAD[LOGICAL]": "1[1]", "INPUT_0_Y_PAD[LOGICAL]": "1024[1000]",
        "INPUT_0_X_PAD[LOGICAL]": "512[512]", "INPUT_0_LAYOUT": "TILE",
        "INPUT_0_DATATYPE": "BFLOAT16", "INPUT_0_MEMORY": f"DEV_0_{memory}",
        "PROGRAM HASH": "7",
    }  # fmt: skip
    return {**row, **more}


def signpost(name: str) -> dict[str, str]:
    """Return a mark between rows."""
    return {**dict.fromkeys(COLUMNS, ""), "OP CODE": name, "OP TYPE": "signpost"}


def capture(*rows: dict[str, str]) -> str:
    """Return a capture."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


BEFORE = (
    signpost("WARMUP"),
    op("MatmulDeviceOperation", 900_000),
    signpost("PERF"),
    *(op("Conv2dDeviceOperation", 61_000) for _ in range(3)),
    op("MatmulDeviceOperation", 120_000),
    op("SoftmaxDeviceOperation", ""),
    signpost("PERF_END"),
)
AFTER = (
    signpost("WARMUP"),
    op("MatmulDeviceOperation", 900_000),
    signpost("PERF"),
    *(op("Conv2dDeviceOperation", 122_000, cores=32) for _ in range(3)),
    op("ReshardDeviceOperation", 18_000),
    op("MatmulDeviceOperation", 120_000),
    signpost("PERF_END"),
)


@pytest.fixture
def captured(project: Project) -> Project:
    (project.path / "before.csv").write_text(capture(*BEFORE))
    (project.path / "after.csv").write_text(capture(*AFTER))
    return project


@pytest.mark.parametrize("shape", ["table", "json", "csv"])
@pytest.mark.parametrize("command", ["show", "compare"])
def test_command_in_every_shape(captured: Project, command: str, shape: str) -> None:
    files = ("before.csv",) if command == "show" else ("before.csv", "after.csv")
    ran = captured.cli(command, *files, "--start", "PERF", "--format", shape)
    assert (ran.code, ran.errors) == (0, "")
    assert_golden(f"{command}_capture_{shape}", ran.text)


def test_parts_of_a_comparison_add_up(captured: Project) -> None:
    found = json.loads(captured.cli("compare", "before.csv", "after.csv", "--format", "json").text)
    assert found["delta_ns"] == 3 * 61_000 + 18_000
    parts = sum(part["delta_ns"] for part in found["parts"])
    assert parts + found["unexplained_ns"] == found["delta_ns"]


def test_windows_and_formats_that_do_not_fit_are_refused(captured: Project) -> None:
    (captured.path / "run.json").write_text('{"format": 1, "tests": {}}')
    lost = tuple(
        op("Matmul", 9, **{"METAL TRACE ID": "0", "METAL TRACE REPLAY SESSION ID": replay})
        for replay in ("1", "1", "2")
    )
    (captured.path / "lost.csv").write_text(capture(*lost))
    refusals = {
        ("show", "before.csv", "--start", "NONE"): (
            "ttnn-perf: the capture has no signpost 'NONE'; its signposts: 'WARMUP', 'PERF', "
            "'PERF_END'"
        ),
        ("show", "run.json", "--start", "PERF"): (
            "ttnn-perf: --start and --end select ops of a capture; a run record has none"
        ),
        ("compare", "before.csv", "run.json"): (
            "ttnn-perf: run.json: expected an ops_perf_results CSV, found a run record"
        ),
        ("compare", "lost.csv", "before.csv"): (
            "ttnn-perf: lost.csv: trace 0 on device 0 is incomplete: its 2 replays ran different "
            "ops; capture it again"
        ),
    }
    said = {words: captured.cli(*words).errors for words in refusals}
    assert said == refusals
