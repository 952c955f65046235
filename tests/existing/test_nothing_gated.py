"""A test that is to be gated and ends without a gated number is named, and all are counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.behaviour.model import counts_of, entry_of, outcomes
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


def findings(project: Project, test: str) -> list[tuple[str, str]]:
    found = entry_of(project, test)["findings"]
    return [(f["code"], f["severity"]) for f in found if f["outcome"] == "FOUND"]


PLAIN = """
import pytest

@pytest.mark.ttnn_perf
def test_model():
    pass
"""


def test_marked_tests_without_a_gated_number_are_a_finding(project: Project) -> None:
    write_project(
        project,
        UNKNOWN.format(marker=EXPLICIT),
        test_configured=UNKNOWN.format(marker=CONFIGURED),
        test_plain=PLAIN,
    )

    ran = project.pytest("--ttnn-perf", "--ttnn-perf-missing=ignore")

    assert counts_of(ran) == "1 failed, 2 passed"
    assert ("TTP017", "error") in findings(project, TEST)
    assert "TTP017 nothing-gated (error)" in ran.text
    configured = "test_configured.py::test_model"
    assert outcomes(project, configured) == {"-": "NO_DATA"}
    assert "none of 2 numbers is gated: unknown measurement name" in ran.text
    assert "1 test gated" in ran.text
    assert "2 tests without a gated number" in ran.text
    assert "mood.inference: unknown measurement name" in ran.text
    # The whole call is gated only where the test measures nothing itself.
    call_time = entry_of(project, TEST)["metrics"]["call_time"]
    assert (call_time["gated"], call_time["why_ungated"]) == (False, "the test measures itself")
    plain = entry_of(project, "test_plain.py::test_model")
    assert plain["metrics"]["call_time"].get("gated", True)


NAMES = """
import pytest
from models.perf.benchmarking_utils import BenchmarkData

@pytest.mark.models_performance_bare_metal
def test_model():
    for name in ("mood", "steps_per_second", "qkv-kernel-avg", "errors_per_second"):
        BenchmarkData().add_measurement(None, 0, "inference", name, 3.0)
"""


def test_names_are_declared_or_inferred_where_they_cannot_be_misread(project: Project) -> None:
    write_project(project, NAMES)
    config = project.path / "ttnn_perf.toml"
    declared = '[measurements]\n"mo*" = {unit = "points", better = "higher"}\n'
    config.write_text(config.read_text() + declared)

    ran = project.pytest("--ttnn-perf-update=new", "-v")

    found = entry_of(project, TEST)["metrics"]
    gated = {
        name.removesuffix(".inference"): (metric["unit"], metric["better"])
        for name, metric in found.items()
        if metric.get("gated", True)
    }
    assert gated == {
        "mood": ("points", "higher"),
        "steps_per_second": ("steps/s", "higher"),
        "qkv-kernel-avg": ("", "lower"),
    }
    assert "steps_per_second.inference: gated by its name: higher is better" in ran.text


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ('"a" = {unit = "points"}', "expected a unit that says which way is better, or better ="),
        ('"a" = {unit = "ms", bettr = "lower"}', "expected one of unit, better, gated"),
    ],
)
def test_declarations_that_cannot_be_meant_are_refused(
    project: Project, line: str, complaint: str
) -> None:
    (project.path / "ttnn_perf.toml").write_text(f"[measurements]\n{line}\n")
    assert complaint in project.cli("baseline", "list").errors


STEPS = """
import time

import pytest
from models.common.utility_functions import profiler

@pytest.mark.models_performance_bare_metal
def test_model():
    profiler.start("inference")
    time.sleep(0.004)
    profiler.end("inference", PERF_CNT=4)
    profiler.disable()
    profiler.start("inference_again")
    profiler.end("inference_again")
"""


def test_steps_of_the_older_profiler_are_observed(project: Project) -> None:
    write_project(project, STEPS)
    project.pytest("--ttnn-perf-update=new")
    metrics = entry_of(project, TEST)["metrics"]
    assert metrics.keys() == {"step_time.inference", "call_time"}
    (ns,) = metrics["step_time.inference"]["samples"]
    assert ns >= 1e6  # a quarter of what four calls took


def test_what_is_not_gated_is_counted_by_reason_and_named_on_request(project: Project) -> None:
    write_project(project, IDIOMS[4].text)

    short = project.pytest("--ttnn-perf-update=new")
    entry = entry_of(project, TEST)
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
    # The run is described for targets to be matched.
    told = ("ml_model_name", "batch_size", "input_sequence_length", "output_sequence_length")
    assert [entry["environment"][name] for name in told] == ["Llama-3.1-8B", 32, 128, 200]
    assert entry["metrics"]["tokens/s/user.inference_decode"]["target"] == 60
