"""Captures that were there before a test: of which hardware they are, and how much they prove."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

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
    model.pytest("--ttnn-perf")
    assert record_of(model)["tests"][TEST]["verdicts"]["device_kernel_time"]["provisional"]

    attach(model, op("Matmul", 100_400))
    model.pytest("--ttnn-perf-update")
    assert len(sessions(model, "wormhole_b0-unknown-1x1")) == 2
