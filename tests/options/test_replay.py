"""``--ttnn-perf-replay`` and ``replay``: device metrics from recorded artifacts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.behaviour.model import record_of
from tests.harness.captures import capture, op

if TYPE_CHECKING:
    from pathlib import Path

    from tests.harness.project import Project

MODELS = """
    import pytest

    @pytest.mark.ttnn_perf(tolerance={"wall_time": 0.05})
    @pytest.mark.parametrize("batch", [8])
    def test_resnet(ttnn_perf, batch):
        ttnn_perf.measure(lambda: None)
        ttnn_perf.check_accuracy(top1=0.9, at_least=0.8)
        ttnn_perf.attach("what only the hardware's machine has")
"""
TEST = "models/test_cnn.py::test_resnet[8]"


@pytest.fixture
def models(project: Project) -> Project:
    (project.path / "models").mkdir()
    project.write(**{"models/test_cnn": MODELS})
    return project


def recorded(project: Project, name: str, *rows: dict[str, str]) -> Path:
    """Write a capture into the folder of artifacts."""
    file = project.path / "recorded" / "models" / "test_cnn" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(capture(*rows))
    return file


def metrics_of(project: Project) -> dict[str, Any]:
    metrics = record_of(project)["tests"][TEST]["metrics"]
    return {name: (m["source"], m["samples"]) for name, m in metrics.items()}


@pytest.mark.parametrize(
    "name", ["test_resnet%5B8%5D.csv", "test_resnet[8]/reports/now/ops_perf_results_now.csv"]
)
def test_artifacts_are_found_by_the_name_of_their_test(models: Project, name: str) -> None:
    recorded(models, name, op("Matmul", 50_000), op("Matmul", 51_000))

    ran = models.pytest("--ttnn-perf-replay", "recorded", "--ttnn-perf-update=new")

    assert ran.code == 0
    assert (
        "ttnn-perf: gate on, keys of the artifacts, baselines baselines, update new, "
        "replaying recorded, times of this machine are left out"
    ) in ran.text
    measured = metrics_of(models)
    assert measured["device_kernel_time"] == ("replay", [101_000])
    assert measured["op_count"] == ("replay", [2])
    assert measured["top1"] == ("wall", [0.9])
    assert not {"wall_time", "first_call_time", "second_call_time"} & set(measured)
    assert (models.path / "baselines/wormhole_b0-unknown-1x1/models/test_cnn.json").exists()
    assert (models.path / "baselines/wormhole_b0-unknown-1x1/models/test_cnn.ops").is_dir()


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        (
            "test_vgg.csv",
            "",
            "nothing is recorded for this test in recorded: expected "
            "models/test_cnn/test_resnet[8].* or models/test_cnn/test_resnet%5B8%5D.*",
        ),
        (
            "test_resnet[8].txt",
            "hello",
            "test_resnet[8].txt: no artifact of a known format is recorded for this test",
        ),
        (
            "test_resnet[8].csv",
            "OP CODE,OP TYPE\nMatmul,tt_dnn_device\n",
            "recorded/models/test_cnn/test_resnet[8].csv:1: expected a column 'DEVICE ID'",
        ),
    ],
    ids=["absent", "unknown", "damaged"],
)
def test_without_artifacts_there_is_no_data(
    models: Project, name: str, content: str, problem: str
) -> None:
    recorded(models, name).write_text(content)

    ran = models.pytest("--ttnn-perf-replay", "recorded")

    assert ran.code == 1
    said = next(line for line in ran.text.splitlines() if line.startswith("NO_DATA: "))
    assert said.startswith("NO_DATA: device_kernel_time has no samples: ")
    assert problem in said
