"""Reports that a profiler left: in which folder they are looked for, and since when."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pytest_ttnn_perf.device.profilers import ops_reports_since

USUAL = Path("generated/profiler/reports/2026_01_01")


def write(folder: Path, name: str, written_s: float) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    file.write_text("OP CODE\n", encoding="utf-8")
    os.utime(file, (written_s, written_s))
    return file


def test_the_oldest_is_first_and_what_was_there_before_is_left_out(tmp_path: Path) -> None:
    folder = tmp_path / USUAL
    before = write(folder, "ops_perf_results_0.csv", 99.5)
    second = write(folder, "ops_perf_results_a.csv", 200.0)
    first = write(folder / "deeper", "ops_perf_results_z.csv", 100.0)
    assert ops_reports_since(100.0, {}, tmp_path) == [first, second]
    assert ops_reports_since(99.5, {}, tmp_path) == [before, first, second]
    assert ops_reports_since(200.5, {}, tmp_path) == []


def test_of_the_same_moment_the_names_decide(tmp_path: Path) -> None:
    second, first = (write(tmp_path / USUAL, f"ops_perf_results_{n}.csv", 5.0) for n in "ba")
    assert ops_reports_since(5.0, {}, tmp_path) == [first, second]


def test_other_files_and_folders_are_no_reports(tmp_path: Path) -> None:
    folder = tmp_path / USUAL
    for name in ("profile_log_device.csv", "ops_perf_results.txt", "my_ops_perf_results.csv"):
        write(folder, name, 5.0)
    (folder / "ops_perf_results_folder.csv").mkdir()
    plain = write(folder, "ops_perf_results.csv", 5.0)
    assert ops_reports_since(0.0, {}, tmp_path) == [plain]


@pytest.mark.parametrize(
    ("variables", "found"),
    [
        ({}, "cwd"),
        ({"TT_METAL_HOME": ""}, "cwd"),
        ({"TT_METAL_HOME": "{home}"}, "home"),
        ({"TT_METAL_PROFILER_DIR": "{own}"}, "own"),
        ({"TT_METAL_HOME": "{home}", "TT_METAL_PROFILER_DIR": "{own}"}, "own"),
    ],
    ids=["current folder", "empty home", "home", "own", "own before home"],
)
def test_where_reports_are_looked_for(
    tmp_path: Path, variables: dict[str, str], found: str
) -> None:
    places = {name: tmp_path / name for name in ("cwd", "home", "own")}
    for name, place in places.items():
        write(place / ("reports" if name == "own" else USUAL), f"ops_perf_results_{name}.csv", 5.0)
    environment = {name: text.format(**places) for name, text in variables.items()}
    assert [file.stem for file in ops_reports_since(0.0, environment, places["cwd"])] == [
        f"ops_perf_results_{found}"
    ]


def test_a_folder_that_is_named_emptily_is_not_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, cwd = tmp_path / "here", tmp_path / "cwd"
    write(here, "ops_perf_results_here.csv", 5.0)
    expected = write(cwd / USUAL, "ops_perf_results_cwd.csv", 5.0)
    monkeypatch.chdir(here)
    assert ops_reports_since(0.0, {"TT_METAL_PROFILER_DIR": ""}, cwd) == [expected]
