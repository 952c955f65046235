"""What the variables of CI systems tell of a job."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_ttnn_perf.gate.record import CiJob, ci_job

GITHUB = {
    "GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": "/tmp/summary.md",
    "GITHUB_WORKSPACE": "/src", "RUNNER_NAME": "tt-n150-07",
}  # fmt: skip
SUMMARY = Path("/tmp/summary.md")


@pytest.mark.parametrize(
    ("variables", "folder", "job"),
    [
        ({"CI": "true"}, "/src/project", CiJob()),
        (GITHUB, "/src/a/b", CiJob(annotates=True, step_summary=SUMMARY, runner="tt-n150-07",
                                   folder="a/b")),
        *(({"GITHUB_ACTIONS": value}, "/src", CiJob()) for value in ("", "false", "1")),
        ({"GITHUB_WORKSPACE": "/src"}, "/other", CiJob()),
        ({"CI_PROJECT_DIR": "/b/x", "CI_RUNNER_DESCRIPTION": "n150"}, "/b/x", CiJob(runner="n150")),
    ],
    ids=["none", "github", "empty", "false", "1", "repository elsewhere", "gitlab"],
)  # fmt: skip
def test_what_is_known_of_a_job(variables: dict[str, str], folder: str, job: CiJob) -> None:
    assert ci_job(variables, Path(folder)) == job


def test_paths_count_from_the_repository() -> None:
    job = CiJob(folder="models/vision")
    assert job.path("test_a.py") == "models/vision/test_a.py"
    assert job.path("../test_a.py") == "models/test_a.py"
    assert CiJob().path("a.py") == "a.py"


def test_link_to_the_repository_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real" / "models").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    found = ci_job({"GITHUB_WORKSPACE": str(tmp_path / "link")}, tmp_path / "real" / "models")
    assert found.folder == "models"
