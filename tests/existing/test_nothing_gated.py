"""A test that is to be gated and ends without a gated number is named, and all are counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.behaviour.model import counts_of, entry_of
from tests.existing.idioms import IDIOMS, write_project

if TYPE_CHECKING:
    from tests.harness.project import Project

TEST = "test_model.py::test_model"
UNKNOWN = """
import pytest
from models.perf.benchmarking_utils import BenchmarkData

{marker}
def test_model():
    BenchmarkData().add_measurement(None, 0, "inference", "mood", 3.0)
"""
EXPLICIT = "@pytest.mark.ttnn_perf"
CONFIGURED = "@pytest.mark.models_performance_bare_metal"
FOUND = (
    "TTP017 nothing-gated ({severity}): 2 numbers recorded, none of them gated "
    "(value: 0 gated numbers)"
)


def findings(project: Project) -> list[tuple[str, str]]:
    found = entry_of(project, TEST)["findings"]
    return [(f["code"], f["severity"]) for f in found if f["outcome"] == "FOUND"]


@pytest.mark.parametrize(
    ("marker", "severity", "count"),
    [(EXPLICIT, "error", "1 failed"), (CONFIGURED, "warning", "1 passed")],
    ids=["explicit", "configured"],
)
def test_marked_test_without_a_gated_number_is_a_finding(
    project: Project, marker: str, severity: str, count: str
) -> None:
    write_project(project, UNKNOWN.format(marker=marker))

    ran = project.pytest("--ttnn-perf")

    assert counts_of(ran) == count
    assert ("TTP017", severity) in findings(project)
    assert f"TTP017 nothing-gated ({severity}): 2 numbers recorded, none of them gated" in ran.text
    assert "0 tests gated" in ran.text
    assert "1 test without a gated number" in ran.text
    assert "mood.inference: unknown measurement name" in ran.text


def test_whole_call_is_gated_only_where_the_test_measures_nothing(project: Project) -> None:
    plain = "import pytest\n\n@pytest.mark.ttnn_perf\ndef test_model():\n    pass\n"
    write_project(project, plain)
    project.pytest("--ttnn-perf-update=new")
    assert entry_of(project, TEST)["metrics"]["call_time"].get("gated", True)

    write_project(project, UNKNOWN.format(marker=EXPLICIT))
    (project.path / "baselines").rename(project.path / "others")
    project.pytest("--ttnn-perf")

    call_time = entry_of(project, TEST)["metrics"]["call_time"]
    assert (call_time["gated"], call_time["why_ungated"]) == (False, "the test measures itself")


def test_what_is_not_gated_is_counted_by_reason_and_named_on_request(project: Project) -> None:
    write_project(project, IDIOMS[4].text)

    short = project.pytest("--ttnn-perf-update=new")
    long = project.pytest("--ttnn-perf", "-v")

    assert (
        "recorded, not gated, and why: 3 numbers (1: a compile time; 1: the test measures itself; "
        "1: unknown measurement name)"
    ) in short.text.splitlines()
    lines = long.text.splitlines()
    at = lines.index("recorded, not gated, and why: 3 numbers")
    assert lines[at + 1 : at + 7] == [
        "  a compile time:",
        f"    {TEST}: time(s).compile_prefill",
        "  the test measures itself:",
        f"    {TEST}: call_time",
        "  unknown measurement name:",
        f"    {TEST}: mood.inference_decode",
    ]


def test_run_is_described_for_targets_to_be_matched(project: Project) -> None:
    write_project(project, IDIOMS[4].text)

    project.pytest("--ttnn-perf-update=new")

    entry = entry_of(project, TEST)
    told = ("ml_model_name", "batch_size", "input_sequence_length", "output_sequence_length")
    assert [entry["environment"][name] for name in told] == ["Llama-3.1-8B", 32, 128, 200]
    assert entry["metrics"]["tokens/s/user.inference_decode"]["target"] == 60


def test_nothing_is_observed_where_that_is_not_wanted(project: Project) -> None:
    write_project(project, IDIOMS[4].text)
    config = project.path / "ttnn_perf.toml"
    config.write_text(config.read_text() + "observe = false\n")

    project.pytest("--ttnn-perf")

    assert list(entry_of(project, TEST)["metrics"]) == ["call_time"]


def test_benchmarks_in_ci_are_written_as_ever(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "true")
    write_project(project, IDIOMS[4].text)

    ran = project.pytest("--ttnn-perf-update=new")

    assert counts_of(ran) == "1 passed", ran.text
    assert (project.path / "generated/benchmark_data/partial_run.pkl").exists()
    assert "tokens/s/user.inference_decode" in entry_of(project, TEST)["metrics"]


def test_helpers_are_left_as_they_were(project: Project) -> None:
    write_project(project, IDIOMS[4].text)
    (project.path / "conftest.py").write_text(
        "def pytest_sessionfinish():\n"
        "    import builtins, sys\n"
        "    builtins.kept = sys.modules['models.perf.benchmarking_utils'].BenchmarkData\n"
    )

    project.pytest("--ttnn-perf-update=new")

    import builtins
    import inspect

    kept = vars(builtins).pop("kept").add_measurement
    assert "IS_CI_ENV" in kept.__code__.co_names
    assert "__signature__" not in vars(kept)
    assert list(inspect.signature(kept).parameters)[:4] == [
        "self",
        "profiler",
        "iteration",
        "step_name",
    ]
