"""The whole output of ``show`` and ``compare`` on captures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.harness.captures import capture, op, signpost
from tests.harness.corpus import captures, corpus
from tests.harness.golden import assert_golden
from tests.harness.project import run_command

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


@pytest.mark.parametrize(
    ("command", "shape"),
    [("show", "table"), ("compare", "table"), ("compare", "json"), ("compare", "csv")],
)
def test_command_in_every_shape(captured: Project, command: str, shape: str) -> None:
    files = ("before.csv",) if command == "show" else ("timed.csv", "after.csv")
    ran = captured.cli(command, *files, "--start", "PERF", "--format", shape)
    assert (ran.code, ran.errors) == (0, "")
    assert_golden(f"{command}_capture_{shape}", ran.text)


def test_windows_and_formats_that_do_not_fit_are_refused(captured: Project) -> None:
    (captured.path / "run.json").write_text('{"format": 1, "tests": {}}')
    lost = tuple(
        op("Matmul", 9, {"METAL TRACE ID": "0", "METAL TRACE REPLAY SESSION ID": replay})
        for replay in ("1", "1", "2")
    )
    (captured.path / "lost.csv").write_text(capture(*lost))
    refusals = {
        ("show", "before.csv", "--start", "NONE"): (
            "ttnn-perf: the capture has no signpost 'NONE'; its signposts: 'WARMUP', 'PERF', "
            "'PERF_END'"
        ),
        ("show", "run.json", "--start", "PERF"): (
            "ttnn-perf: --region, --start and --end select ops of an op table; run.json is a run "
            "record"
        ),
        ("compare", "before.csv", "run.json"): (
            "ttnn-perf: a run record is compared with another one: before.csv is an "
            "ops_perf_results CSV, run.json is a run record"
        ),
        ("compare", "lost.csv", "before.csv"): (
            "ttnn-perf: lost.csv: the replays of trace 0 on device 0 ran different ops; capture it "
            "again"
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


@pytest.mark.long
@pytest.mark.parametrize("name", captures("*"))
def test_every_capture_of_the_corpus_is_shown(name: str) -> None:
    file = corpus(name)
    shown = run_command("show", str(file)).text
    assert shown.partition(": ")[0] == file.name


def test_compare_of_two_logs_of_tt_lang(project: Project) -> None:
    plain = corpus("ttlang/v1_1_1_perf_summary.txt").read_text()
    (project.path / "before.txt").write_text(plain)
    faster = plain.replace("54,311 cycles (54.3 us)", "27,311 cycles (27.3 us)")
    faster = faster.replace("grid: 2x2 (4 cores)", "grid: 4x2 (8 cores)")
    (project.path / "after.txt").write_text(faster)
    ran = project.cli("compare", "before.txt", "after.txt")
    assert (ran.code, ran.errors) == (0, "")
    assert_golden("compare_ttlang_logs", ran.text)


def test_captures_of_different_kinds_are_not_compared(project: Project) -> None:
    log, report = corpus("ttlang/v1_1_1_perf_summary.txt"), corpus("report_db/mlp_bf16/db.sqlite")
    assert project.cli("compare", str(log), str(report)).errors == (
        "ttnn-perf: a capture is compared with another of its kind: v1_1_1_perf_summary.txt is a "
        "tt-lang log, db.sqlite is a report database"
    )
