"""What the variables of CI systems tell of a job."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_ttnn_perf.records.hardware import CiJob
from pytest_ttnn_perf.run.record import ci_job


def test_outside_of_ci_nothing_is_known() -> None:
    assert ci_job({"CI": "true"}, Path("/src/project")) == CiJob()


def test_github() -> None:
    variables = {
        "GITHUB_ACTIONS": "true",
        "GITHUB_STEP_SUMMARY": "/tmp/summary.md",
        "GITHUB_WORKSPACE": "/src",
        "RUNNER_NAME": "tt-n150-07",
    }
    found = ci_job(variables, Path("/src/models/vision"))
    assert found == CiJob(
        annotates=True,
        step_summary=Path("/tmp/summary.md"),
        runner="tt-n150-07",
        folder="models/vision",
    )
    assert found.path("test_a.py") == "models/vision/test_a.py"
    assert found.path("../test_a.py") == "models/test_a.py"


def test_gitlab() -> None:
    variables = {"CI_PROJECT_DIR": "/builds/x", "CI_RUNNER_DESCRIPTION": "n150"}
    assert ci_job(variables, Path("/builds/x")) == CiJob(runner="n150")


def test_repository_elsewhere_leaves_ids_as_they_are() -> None:
    assert ci_job({"GITHUB_WORKSPACE": "/src"}, Path("/other")).path("a.py") == "a.py"


def test_link_to_the_repository_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real" / "models").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    found = ci_job({"GITHUB_WORKSPACE": str(tmp_path / "link")}, tmp_path / "real" / "models")
    assert found.folder == "models"


@pytest.mark.parametrize("value", ["", "false", "1"])
def test_only_true_is_github(value: str) -> None:
    assert not ci_job({"GITHUB_ACTIONS": value}, Path("/src")).annotates
