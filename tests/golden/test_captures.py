"""The whole output of ``show`` and ``compare`` on captures."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.harness.captures import capture, op, signpost
from tests.harness.corpus import corpus
from tests.harness.golden import assert_golden

if TYPE_CHECKING:
    from tests.harness.project import Project

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
    timed = [row for row in BEFORE if row["OP CODE"] != "SoftmaxDeviceOperation"]
    (project.path / "timed.csv").write_text(capture(*timed))
    return project


@pytest.mark.parametrize("command", ["show", "compare"])
def test_op_tables(captured: Project, command: str) -> None:
    files = ("before.csv",) if command == "show" else ("timed.csv", "after.csv")
    ran = captured.cli(command, *files, "--start", "PERF")
    assert (ran.code, ran.errors) == (0, "")
    assert_golden(f"{command}_capture_table", ran.text)


def test_windows_and_formats_that_do_not_fit_are_refused(captured: Project) -> None:
    (captured.path / "run.json").write_text('{"format": 1, "tests": {}}')
    refusals = {
        ("show", "before.csv", "--start", "NONE"): (
            "ttnn-perf: the capture has no signpost 'NONE'; its signposts: 'WARMUP', 'PERF', "
            "'PERF_END'"
        ),
        ("compare", "before.csv", "run.json"): (
            "ttnn-perf: a run record is compared with another one: before.csv is an "
            "ops_perf_results CSV, run.json is a run record"
        ),
        ("compare", "after.csv", "before.csv"): (
            "ttnn-perf: before.csv: 1 of 6 device ops has no kernel duration, first in line 9; "
            "capture it again"
        ),
    }
    said = {words: captured.cli(*words).errors for words in refusals}
    assert said == refusals


#: As tt-lang prints it, among other output.
TTLANG = """\
some output of the test
=== PERF SUMMARY ===
arch: wormhole_b0, freq: 1000 MHz, max_compute_cores: 64
programs: 1 (listed in dispatch order, includes ttnn ops)

--- Program 7 (__kernel) ---
grid: 2x2 (4 cores)
duration: 54,311 cycles (54.3 us)
  DRAM read:        512.0 KB  (256 transfers)
  DRAM write:       512.0 KB  (256 transfers)
  effective BW:   19.3 GB/s (total payload / duration)
  transfer size:  2.0 KB (uniform)
  barriers:       16 read (1 per 16 reads), 16 write (1 per 16 writes)

"""


def test_other_captures_are_shown_field_by_field(project: Project) -> None:
    (project.path / "kernel.log").write_text(TTLANG)
    ran = project.cli("show", "kernel.log")
    assert (ran.code, ran.errors) == (0, "")
    assert_golden("show_ttlang_table", ran.text)


def test_compare_takes_folders_of_captures(captured: Project) -> None:
    for side, time in (("before", 2000.0), ("after", 3000.0)):
        folder = captured.path / side / "reports" / "2026_11_01_02_00_00"
        folder.mkdir(parents=True)
        (folder / "ops_perf_results_2026_11_01_02_00_00.csv").write_text(
            capture(op("MatmulDeviceOperation", time))
        )
    (captured.path / "empty").mkdir()
    ran = captured.cli("compare", "before", "after", "--format", "json")
    assert ran.code == 0, ran.errors
    assert json.loads(ran.text)["delta_ns"] == 1000.0
    wrong = captured.cli("compare", "before", "empty")
    assert wrong.code == 3
    assert wrong.errors.startswith("ttnn-perf: empty: expected a folder with db.sqlite")


def test_compare_of_two_logs_of_tt_lang(project: Project) -> None:
    plain = corpus("ttlang/v1_1_1_perf_summary.txt").read_text()
    (project.path / "before.txt").write_text(plain)
    faster = plain.replace("54,311 cycles (54.3 us)", "27,311 cycles (27.3 us)")
    faster = faster.replace("grid: 2x2 (4 cores)", "grid: 4x2 (8 cores)")
    (project.path / "after.txt").write_text(faster)
    ran = project.cli("compare", "before.txt", "after.txt")
    assert (ran.code, ran.errors) == (0, "")
    assert_golden("compare_ttlang_logs", ran.text)
