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


SUMMARY = "v1_1_1_perf_summary.txt"
PROFILE = ("v1_1_1_auto_profile.ansi.txt", "v1_1_1_cb_flow_graph.txt", "pipe_graph_inferred.txt")
TRACE = "mm4_small.jsonl.gz"


@pytest.mark.parametrize(
    ("command", "name"),
    [("show", "summary"), ("show", "profile"), ("show", "trace"), ("show", "instrumented"),
     ("check", "summary"), ("check", "profile"), ("plan", "summary"), ("plan", "profile"),
     ("compare", "summary docs")],
    ids=lambda words: words.replace(" ", "_"),
)  # fmt: skip
def test_kernels_at_80_columns(
    project: Project, monkeypatch: pytest.MonkeyPatch, command: str, name: str
) -> None:
    texts = {
        "summary": corpus(f"ttlang/{SUMMARY}").read_text(),
        "profile": "".join(corpus(f"ttlang/{each}").read_text() for each in PROFILE),
        "docs": corpus("ttlang/perf_summary_docs_cores.txt").read_text(),
    }
    texts["instrumented"] = texts["profile"] + texts["summary"]
    for one, text in texts.items():
        (project.path / one).write_text(text)
    (project.path / "trace").write_bytes(corpus(f"ttlang/sim/{TRACE}").read_bytes())
    monkeypatch.setenv("COLUMNS", "80")
    ran = project.cli(command, *name.split())
    assert (ran.code, ran.errors) == (0, "")
    if command in {"show", "compare"}:
        assert max(map(len, ran.text.splitlines())) <= 80
    assert_golden(f"kernels_{command}_{name.replace(' ', '_')}", ran.text)
