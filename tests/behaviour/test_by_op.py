"""Which op did it: op tables are kept beside baselines, and a changed time is told by op."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.behaviour.model import record_of
from tests.harness.captures import capture, op

if TYPE_CHECKING:
    from tests.harness.project import Project

MODEL = """
    import pytest
    from pathlib import Path

    @pytest.mark.parametrize("batch", [8])
    def test_model(ttnn_perf, batch):
        for file in sorted(Path(__file__).parent.glob("*.csv")):
            ttnn_perf.attach(file)
        ttnn_perf.record("latency", float(Path("latency").read_text()), unit="ms")
"""
TEST = "test_model.py::test_model[8]"

CONV = op("Conv2d", 100_000, {"ATTRIBUTES": "{'act_block_h_ntiles': '2'; 'dtype': 'BFLOAT16'}"})
SLOW_CONV = {**CONV, "CORE COUNT": "32", "DEVICE KERNEL DURATION [ns]": "161000"}


@pytest.fixture
def model(project: Project) -> Project:
    project.write(test_model=MODEL)
    record(project, CONV, op("Matmul", 50_000), op("Matmul", 52_000))
    project.pytest("--ttnn-perf-update=new")
    return project


def record(project: Project, *rows: dict[str, str], latency_ms: float = 1.0) -> None:
    (project.path / "capture.csv").write_text(capture(*rows))
    (project.path / "latency").write_text(str(latency_ms))


def test_a_regression_names_its_ops_once(model: Project) -> None:
    record(model, SLOW_CONV, op("Matmul", 50_000), op("Matmul", 52_000), op("Reshard", 18_000))

    ran = model.pytest("--ttnn-perf", "--ttnn-perf-json", "run.json")

    by_op = (
        "cause: +39.1 % (+79.0 µs) = Conv2d 1x1x1000x512 +61.0 µs (64 → 32 cores), "
        "1 new Reshard 1x1x1000x512 +18.0 µs"
    )
    assert ran.code == 1
    assert ran.text.count(by_op) == 1
    said = ran.text.partition("\nREGRESSED: ")[2]
    assert said.splitlines()[1:3] == [
        f"  {by_op}",
        f"  accept: ttnn-perf baseline accept run.json --reason \"why\" -- '{TEST}'",
    ]
    assert record_of(model)["tests"][TEST]["by_op"] == by_op.removeprefix("cause: ")
    # A run that is judged elsewhere names them as well.
    assert f"  {by_op}" in model.cli("gate", "run.json").text
    shown = model.cli("gate", "run.json", "--format", "json")
    assert '"by_op": "+39.1 % (+79.0 \\u00b5s) = Conv2d' in shown.text
