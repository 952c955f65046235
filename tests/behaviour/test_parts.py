"""Op counts and the times of categories explain a kernel time, and fail no test beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.behaviour.model import counts_of, record_of
from tests.harness.captures import capture, op

if TYPE_CHECKING:
    from tests.harness.project import Project, Ran

MODEL = """
    import pytest
    from pathlib import Path

    @pytest.mark.ttnn_perf({tolerance})
    def test_model(ttnn_perf):
        ttnn_perf.attach("capture.csv")
        ttnn_perf.record("launches", int(Path("launches").read_text()), kind="count")
"""
TEST = "test_model.py::test_model"


#: One matmul split into two that are shorter together, with a reshard before them.
BEFORE = (op("Matmul", 100_000), op("Softmax", 40_000))
FASTER = (op("Reshard", 5_000), op("Matmul", 30_000), op("Matmul", 31_000), op("Softmax", 60_000))
WITHIN = (op("Reshard", 5_000), op("Matmul", 75_000), op("Softmax", 60_000))


@pytest.fixture
def model(project: Project) -> Project:
    project.write(test_model=MODEL.format(tolerance="tolerance=0.01"))
    profiled(project, *BEFORE)
    project.pytest("--ttnn-perf-update=new")
    return project


def profiled(project: Project, *rows: dict[str, str], launches: int = 7) -> None:
    (project.path / "capture.csv").write_text(capture(*rows))
    (project.path / "launches").write_text(str(launches))


def verdicts_of(project: Project) -> dict[str, dict[str, Any]]:
    verdicts: dict[str, dict[str, Any]] = record_of(project)["tests"][TEST]["verdicts"]
    return verdicts


def row_of(ran: Ran, metric: str) -> list[str]:
    """Return the line of a metric in the table, word by word."""
    (row,) = (each for line in ran.text.splitlines() if metric in (each := line.split())[:2])
    return row


@pytest.mark.parametrize("rows", [FASTER, WITHIN], ids=["faster", "within"])
def test_more_ops_that_take_no_longer_fail_no_test(
    model: Project, rows: tuple[dict[str, str], ...]
) -> None:
    profiled(model, *rows)

    ran = model.pytest("--ttnn-perf", "-v")

    assert (ran.code, counts_of(ran)) == (0, "1 passed")
    verdicts = verdicts_of(model)
    assert {each["outcome"] for each in verdicts.values()} <= {"WITHIN", "IMPROVED"}
    softmax = verdicts["device_kernel_time_norm"]
    assert (softmax["reason"], softmax["detail"]) == ("explains", "device_kernel_time")
    assert softmax["centre"] == pytest.approx(40_000)
    assert softmax["observed"] == 60_000
    assert verdicts["op_count"]["observed"] == len(rows)
    # What changed is told all the same.
    assert row_of(ran, "op_count") == [
        "op_count", "2", str(len(rows)), f"+{(len(rows) - 2) / 2 * 100:.1f}", "%", "-",
        "explains", "it",
    ]  # fmt: skip
    assert row_of(ran, "device_kernel_time_movement")[-2:] == ["explains", "it"]
    parts = sum(each.get("reason") == "explains" for each in verdicts.values())
    assert f"; {parts} parts explain a change" in ran.text


def test_counts_of_the_test_itself_and_parts_with_a_limit_are_judged(model: Project) -> None:
    model.write(test_model=MODEL.format(tolerance="tolerance={'op_count': 0.6}"))
    profiled(model, *FASTER, launches=8)

    ran = model.pytest("--ttnn-perf")

    assert ran.code == 1
    assert "REGRESSED: launches 8, baseline 7" in ran.text
    assert "REGRESSED: op_count 4, baseline 2: 100.0 % higher, limit 60.0 %" in ran.text
    assert "added: 1 Matmul 1x1x1000x512, 1 Reshard 1x1x1000x512" in ran.text
