"""Regions of a capture: each is gated, explained and missed under its own name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.behaviour.model import outcomes, record_of
from tests.harness.captures import capture, op, signpost

if TYPE_CHECKING:
    from pathlib import Path

    from tests.harness.project import Project

MODEL = """
    import pytest

    @pytest.mark.ttnn_perf({marker})
    def test_model(ttnn_perf):
        ttnn_perf.attach("capture.csv"{choice})
"""
TEST = "test_model.py::test_model"
DECODE_NS = (40_000, 41_000, 42_000)


def rows(
    *, prefill_ns: float = 300_000, decode_ns: tuple[float, ...] = DECODE_NS, prefix: str = "PERF_"
) -> list[dict[str, str]]:
    """Return loading, a prefill of two ops, and replays of a trace on two devices."""
    found = [
        op("Tilize", 900_000),
        op("Tilize", 900_000, {"DEVICE ID": "1"}),
        signpost(f"{prefix}PREFILL"),
        op("Matmul", prefill_ns * 2 / 3),
        op("Softmax", prefill_ns / 3),
        signpost(f"{prefix}PREFILL_END"),
        signpost(f"{prefix}DECODE_START"),
    ]
    for replay, ns in enumerate(decode_ns):
        for device, slower in (("0", 0), ("1", 500)):
            traced = {
                "METAL TRACE ID": "1",
                "METAL TRACE REPLAY SESSION ID": str(replay),
                "DEVICE ID": device,
            }
            found += [op("Matmul", ns + slower, traced), op("Reshard", 5_000, traced)]
    return [*found, signpost(f"{prefix}DECODE_STOP")]


def write_capture(project: Project, found: list[dict[str, str]]) -> Path:
    file = project.path / "capture.csv"
    file.write_text(capture(*found))
    return file


@pytest.fixture
def model(project: Project) -> Project:
    project.write(test_model=MODEL.format(marker="", choice=""))
    write_capture(project, rows())
    assert project.pytest("--ttnn-perf-update=new").code == 0
    return project


def metrics_of(project: Project) -> dict[str, list[float]]:
    metrics: dict[str, Any] = record_of(project)["tests"][TEST]["metrics"]
    return {name: metric["samples"] for name, metric in metrics.items()}


def test_each_region_is_a_metric_one_sample_per_step_on_the_slowest_device(model: Project) -> None:
    metrics = metrics_of(model)

    assert metrics["device_kernel_time.prefill"] == [300_000]
    assert metrics["device_kernel_time.decode"] == [ns + 500 + 5_000 for ns in DECODE_NS]
    assert (metrics["op_count.prefill"], metrics["op_count.decode"]) == ([2], [2])
    assert metrics["device_kernel_time.outside"] == [900_000]
    stored = model.stored()["test_model"]["metrics"]
    assert "device_kernel_time.outside" not in stored


@pytest.mark.parametrize(
    ("marker", "choice"),
    [
        ("region='decode'", ""),
        ("", ", region='PERF_DECODE'"),
        ("region='prefill'", ", start='PERF_DECODE_START', end='PERF_DECODE_STOP'"),
        ("", ", start='PERF_DECODE_START'"),
    ],
)
def test_a_test_is_about_the_region_that_it_asks_for(
    project: Project, marker: str, choice: str
) -> None:
    project.write(test_model=MODEL.format(marker=marker, choice=choice))
    write_capture(project, rows())

    assert project.pytest("--ttnn-perf-update=new").code == 0

    metrics = metrics_of(project)
    assert metrics["device_kernel_time.decode"] == [ns + 500 + 5_000 for ns in DECODE_NS]
    assert {name.partition(".")[2] for name in metrics} == {"decode"}


@pytest.mark.parametrize(
    ("choice", "why"),
    [
        ("region='decode'", "capture.csv has no region 'decode'; its regions: 'my_prefill'"),
        (
            "start='PERF_DECODE_START'",
            "the capture has no signpost 'PERF_DECODE_START'; its signposts: 'MY_PREFILL', "
            "'MY_PREFILL_END'",
        ),
    ],
)
def test_a_region_that_a_new_capture_lacks_has_no_data_by_name(
    project: Project, choice: str, why: str
) -> None:
    project.write(test_model=MODEL.format(marker="", choice=f", {choice}"))
    write_capture(project, rows())
    assert project.pytest("--ttnn-perf-update=new").code == 0
    write_capture(project, rows(prefix="MY_")[:6])

    ran = project.pytest("--ttnn-perf")

    assert ran.code == 1
    assert outcomes(project, TEST) == {"device_kernel_time.decode": "NO_DATA"}
    assert f"device_kernel_time.decode has no samples: {why}" in ran.text


def test_a_number_of_ops_fails_a_test_that_asks_for_it(project: Project) -> None:
    project.write(test_model=MODEL.format(marker="gate='op_count'", choice=""))
    found = rows()
    write_capture(project, found)
    assert project.pytest("--ttnn-perf-update=new").code == 0
    # The second op of each replay as two that take as long.
    split = [
        each
        for row in found
        for each in (
            [{**row, "DEVICE KERNEL DURATION [ns]": "2500"}] * 2
            if row["OP CODE"] == "Reshard"
            else [row]
        )
    ]
    write_capture(project, split)

    ran = project.pytest("--ttnn-perf")

    assert ran.code == 1
    assert "REGRESSED: op_count.decode 50.0 % higher, none allowed (3, baseline 2)" in ran.text
    assert outcomes(project, TEST)["device_kernel_time.decode"] == "WITHIN"
