"""``ttnn_perf.attach``: a capture's device times are gated like any other metric."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.behaviour.model import counts_of, record_of
from tests.harness.captures import capture, op

if TYPE_CHECKING:
    from tests.harness.project import Project

MODEL = """
    def test_model(ttnn_perf):
        ttnn_perf.attach("capture.csv")
"""
TEST = "test_model.py::test_model"


def attach(project: Project, *rows: dict[str, str]) -> None:
    (project.path / "capture.csv").write_text(capture(*rows))


def metrics_of(project: Project) -> dict[str, tuple[str, str, list[float]]]:
    """Return kind, source and samples of every metric."""
    metrics = record_of(project)["tests"][TEST]["metrics"]
    return {name: (m["kind"], m["source"], m["samples"]) for name, m in metrics.items()}


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
