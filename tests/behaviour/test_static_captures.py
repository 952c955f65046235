"""Captures that were there before a test: of which hardware they are, and how much they prove."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ttnn_perf.core.hardware import Hardware
from pytest_ttnn_perf.core.observation import Artifact
from pytest_ttnn_perf.measure.hardware import other_hardware
from tests.behaviour.model import counts_of, record_of
from tests.harness.captures import capture, op

if TYPE_CHECKING:
    from tests.harness.project import Project

MODEL = """
    def test_model(ttnn_perf):
        ttnn_perf.attach("capture.csv")
"""
TEST = "test_model.py::test_model"
NEW = ("--ttnn-perf-update=new", "--ttnn-perf-confirm=2")


@pytest.fixture
def model(project: Project) -> Project:
    project.write(test_model=MODEL)
    return project


def attach(project: Project, *rows: dict[str, str], name: str = "capture.csv") -> None:
    """Write a capture that is an hour old."""
    file = project.path / name
    file.write_text(capture(*rows))
    old_s = file.stat().st_mtime - 3600
    os.utime(file, (old_s, old_s))


def sessions(project: Project, key: str) -> list[Any]:
    file = project.path / "baselines" / key / "test_model.json"
    stored = json.loads(file.read_text())["tests"]["test_model"]["metrics"]
    return list(stored["device_kernel_time"]["sessions"])


def test_a_static_file_is_one_session_of_one_run(model: Project) -> None:
    attach(model, op("Matmul", 100_000), op("Softmax", 50_000))

    ran = model.pytest(*NEW, "--ttnn-perf-isolate=process")

    assert (ran.code, counts_of(ran)) == (0, "1 passed")
    (only,) = sessions(model, "wormhole_b0-unknown-1x1")
    assert only[:3] == [150_000, 0, 1]
    assert only[3].startswith("capture-")
    assert record_of(model)["tests"][TEST]["metrics"]["device_kernel_time"]["confirmations"] == []


def test_the_same_file_in_many_runs_is_still_one_session(model: Project) -> None:
    attach(model, op("Matmul", 100_000))
    for _ in range(3):
        assert model.pytest("--ttnn-perf-update").code == 0
    assert len(sessions(model, "wormhole_b0-unknown-1x1")) == 1
    ran = model.pytest("--ttnn-perf")
    assert "WITHIN (provisional)" in ran.text

    attach(model, op("Matmul", 100_400))
    model.pytest("--ttnn-perf-update")
    assert len(sessions(model, "wormhole_b0-unknown-1x1")) == 2


def test_a_slower_file_fails_without_being_read_again(model: Project) -> None:
    attach(model, op("Matmul", 100_000))
    model.pytest("--ttnn-perf-update=new")
    attach(model, op("Matmul", 200_000))

    ran = model.pytest("--ttnn-perf", "--ttnn-perf-confirm=2", "--ttnn-perf-isolate=process")

    assert (ran.code, counts_of(ran)) == (1, "1 failed")
    said = "REGRESSED: device_kernel_time 200.0 us, baseline 100.0 us: 100.0 % slower"
    assert said in ran.text
    assert "confirm pass" not in ran.text


def test_captures_are_filed_under_the_hardware_that_they_tell(model: Project) -> None:
    attach(model, op("Matmul", 100_000))
    model.pytest("--ttnn-perf-update=new")
    other = {"DEVICE ARCH": "blackhole"}
    attach(model, op("Matmul", 30_000, other), op("Matmul", 30_000, {**other, "DEVICE ID": "3"}))

    ran = model.pytest("--ttnn-perf")

    assert "NOT_COMPARABLE" in ran.text
    assert "IMPROVED" not in ran.text
    hardware = record_of(model)["tests"][TEST]["hardware"]
    assert hardware == {"arch": "blackhole", "board": "unknown", "mesh": "1x2"}


def test_a_capture_of_other_hardware_than_the_test_opened_is_named() -> None:
    opened = Hardware("wormhole_b0", "n300", "1x2")
    told = "is attached, and the test opened wormhole_b0-n300-1x2: attach one of that hardware"
    for other, found in (
        (Artifact((), arch="blackhole"), "a capture of blackhole"),
        (Artifact((), arch="Wormhole_B0", devices=3), "a capture of 3 devices"),
    ):
        assert str(other_hardware(opened, other)).startswith(f"{found} {told}")
    assert other_hardware(opened, Artifact((), arch="Wormhole_B0", devices=2)) is None
    assert other_hardware(opened, Artifact(())) is None


def test_times_of_this_machine_beside_a_capture_of_another_are_recorded_only(
    project: Project,
) -> None:
    project.write(
        test_model="""
            def test_model(ttnn_perf):
                ttnn_perf.measure(lambda: None)
                ttnn_perf.record("latency", 3.0, unit="ms")
                ttnn_perf.attach("capture.csv")
        """
    )
    attach(project, op("Matmul", 100_000))

    project.pytest("--ttnn-perf-update=new")

    metrics = record_of(project)["tests"][TEST]["metrics"]
    assert metrics["wall_time"]["gated"] is False
    assert metrics["wall_time"]["note"] == (
        "of this machine, while the capture is of wormhole_b0-unknown-1x1: recorded only"
    )
    assert "gated" not in metrics["latency"]  # what the author records is for the author to know
