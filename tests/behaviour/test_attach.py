"""``ttnn_perf.attach``: a capture's device times are gated like any other metric."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.behaviour.model import counts_of, record_of
from tests.harness.captures import capture, op

if TYPE_CHECKING:
    from tests.harness.project import Project

MODEL = """
    def test_model(ttnn_perf):
        ttnn_perf.attach("capture.csv")
"""
TEST = "test_model.py::test_model"


def replay(number: int, *times: float) -> list[dict[str, str]]:
    """Return the ops of one replay of trace 0."""
    trace = {"METAL TRACE ID": "0", "METAL TRACE REPLAY SESSION ID": str(number)}
    return [
        op("Matmul", ns, {**trace, "DEVICE FW START CYCLE": str(at)}) for at, ns in enumerate(times)
    ]


@pytest.fixture
def model(project: Project) -> Project:
    project.write(test_model=MODEL)
    return project


def attach(project: Project, *rows: dict[str, str]) -> None:
    (project.path / "capture.csv").write_text(capture(*rows))


def metrics_of(project: Project) -> dict[str, tuple[str, str, list[float]]]:
    """Return kind, source and samples of every metric."""
    metrics = record_of(project)["tests"][TEST]["metrics"]
    return {name: (m["kind"], m["source"], m["samples"]) for name, m in metrics.items()}


def test_every_replay_is_a_sample_and_what_ran_before_is_none(model: Project) -> None:
    attach(model, op("Matmul", 9_000_000), *replay(1, 10_000, 20_000), *replay(2, 11_000, 20_000))

    model.pytest("--ttnn-perf-update=new")

    assert metrics_of(model)["device_kernel_time"] == ("time", "device", [30_000, 31_000])
    assert metrics_of(model)["op_count"][2] == [2]


def test_two_captures_of_one_metric_are_an_error_that_names_both(project: Project) -> None:
    project.write(test_model=MODEL)
    attach(project, op("Matmul", 30_000))
    project.pytest("--ttnn-perf-update=new")
    before = project.stored()
    project.write(test_model=MODEL + '        ttnn_perf.attach("other.csv")\n')
    (project.path / "other.csv").write_text(capture(op("Matmul", 20_000)))

    ran = project.pytest("--ttnn-perf-update")

    assert (ran.code, counts_of(ran)) == (1, "1 failed")
    assert (
        "\ndevice_kernel_time and 2 more: given by attach('capture.csv') and by "
        "attach('other.csv'); leave out one of them: an attach, or the profiler with "
        "--ttnn-perf-profiler off"
    ) in ran.text
    assert metrics_of(project)["device_kernel_time"] == ("time", "device", [30_000])
    assert project.stored() == before
