"""Captures that are named by their files alone: formats, folders, several at once, mistakes."""

from __future__ import annotations

import gzip
import json
import os
from typing import TYPE_CHECKING

import pytest

from tests.analysis.readers.report_db_tables import RANKED, build, one_op
from tests.golden.test_checklist import CNN, LLM
from tests.harness.captures import capture, op

if TYPE_CHECKING:
    from pathlib import Path

    from tests.harness.project import Project

#: Replays that differ: TTP002 is an error.
REPLAYS = tuple(
    op(
        "MatmulDeviceOperation",
        100,
        {"METAL TRACE ID": "1", "METAL TRACE REPLAY SESSION ID": session},
    )
    for session in ("1", "1", "2")
)
LOG = "some output before\n=== PERF SUMMARY ===\narch: blackhole\n"
REPORT = "generated/profiler/reports"


@pytest.fixture
def files(project: Project) -> Project:
    """A project with captures of all kinds."""
    for name, rows in (("cnn", CNN), ("llm", LLM), ("replays", REPLAYS)):
        (project.path / f"{name}.csv").write_text(capture(*rows))
    (project.path / "kernel.log").write_text(LOG)
    (project.path / "report").mkdir()
    build(project.path / "report" / "db.sqlite", RANKED, operations=[one_op()])
    return project


def profiled(project: Project, *names: str) -> list[Path]:
    """Write op tables as the profiler does; the first is the one that was touched last."""
    made = []
    for age_s, name in enumerate(names):
        file = project.path / REPORT / name
        file.parent.mkdir(parents=True, exist_ok=True)
        content = capture(*CNN).encode()
        file.write_bytes(gzip.compress(content) if file.suffix == ".gz" else content)
        os.utime(file, (1_000_000_000 - age_s, 1_000_000_000 - age_s))
        made.append(file)
    return made


@pytest.mark.parametrize("command", [("check",), ("analyze", "cores")])
def test_files_of_different_kinds_are_one_program_as_their_options_name_them(
    files: Project, command: tuple[str, ...]
) -> None:
    words = ("cnn.csv", "report", "kernel.log")
    options = ("--csv", "cnn.csv", "--db", "report/db.sqlite", "--log", "kernel.log")
    ran = files.cli(*command, *words, "--format", "json")
    assert json.loads(ran.text)["files"] == ["cnn.csv", "report/db.sqlite", "kernel.log"]
    assert ran.text == files.cli(*command, *options, "--format", "json").text


def test_of_a_profilers_folder_the_newest_table_is_taken(files: Project) -> None:
    """By the time in its name: copies of files are all new."""
    profiled(
        files,
        "2025_01_31_10_00_00/ops_perf_results_2025_01_31_10_00_00.csv",
        "2025_02_01_09_00_00/ops_perf_results_2025_02_01_09_00_00.csv.gz",
        "ops_perf_results.csv",  # of the year 2001
    )
    newest = f"{REPORT}/2025_02_01_09_00_00/ops_perf_results_2025_02_01_09_00_00.csv.gz"
    for folder in ("generated/profiler", REPORT):
        ran = files.cli("check", folder)
        told = f"{newest}: an ops_perf_results CSV, the newest of 3 in {folder}"
        assert ran.text.splitlines()[0] == told


@pytest.mark.parametrize(
    ("words", "code", "complaint"),
    [
        ((), 2, "nothing to look at: name a file, such as an ops_perf_results CSV"),
        (
            ("run 1.json",),
            3,
            "run 1.json: expected an op table, a report database, or output of "
            "tt-lang, found a run record; to see what it holds: ttnn-perf show 'run 1.json'",
        ),
        (
            ("empty",),
            3,
            "empty: expected a folder with db.sqlite of ttnn, or with an ops_perf_results CSV of "
            "the profiler, found neither; name other files themselves",
        ),
        (
            ("cnn.csv", "llm.csv", "report"),
            2,
            "expected the files of one program, at most one of each kind: cnn.csv is an op table, "
            "llm.csv is an op table, report/db.sqlite is a report database; look at them one by "
            "one",
        ),
        (
            ("cnn.csv", "--start", "DECODE"),
            2,
            "the capture has no signpost 'DECODE'; its signposts: none",
        ),
    ],
)
def test_what_cannot_be_looked_at_is_refused(
    files: Project, words: tuple[str, ...], code: int, complaint: str
) -> None:
    (files.path / "run 1.json").write_text('{"format": 1, "tests": {}}')
    (files.path / "empty").mkdir()
    ran = files.cli("check", *words)
    assert (ran.code, ran.text, ran.errors) == (code, "", f"ttnn-perf: {complaint}")
