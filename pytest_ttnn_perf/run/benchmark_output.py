"""Writes a run for dashboards: where it comes from, and one file for each test."""

from __future__ import annotations

import os
import platform
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from pytest_ttnn_perf._base.files import write_text
from pytest_ttnn_perf.report.benchmark_json import Origin, benchmark_files

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pytest_ttnn_perf.records.observation import Run


def write_benchmarks(run: Run, folder: Path) -> None:
    """Write the tests of a run that ends now into a folder.

    Raises:
        WriteError: the folder or the disk refused.
    """
    now = datetime.now(timezone.utc)
    for file in benchmark_files(run, origin_of(run, os.environ, now=now)):
        write_text(folder / file.name, file.text)


def origin_of(run: Run, variables: Mapping[str, str], *, now: datetime) -> Origin:
    """Return what GitHub's variables and the run itself tell of a run that ends now."""
    ended = now.isoformat(timespec="seconds")
    repository, pipeline = variables.get("GITHUB_REPOSITORY"), variables.get("GITHUB_RUN_ID")
    server = variables.get("GITHUB_SERVER_URL")
    actor = variables.get("GITHUB_TRIGGERING_ACTOR") or variables.get("GITHUB_ACTOR")
    linked = server and repository and pipeline
    return Origin(
        run_start_ts=_utc(run.environment.started_at) or ended,
        run_end_ts=ended,
        device_hostname=variables.get("RUNNER_NAME") or platform.node(),
        git_repo_name=repository or None,
        git_commit_hash=run.environment.commit,
        git_commit_ts=_utc(run.environment.committed_at),
        git_branch_name=_branch(variables) or run.environment.branch,
        github_pipeline_id=_id(pipeline),
        github_pipeline_link=f"{server}/{repository}/actions/runs/{pipeline}" if linked else None,
        # GitHub does not tell a job its id: a step before has to ask for it.
        github_job_id=_id(variables.get("GITHUB_JOB_ID")),
        user_name=actor or None,
    )


def _branch(variables: Mapping[str, str]) -> str | None:
    return variables.get("GITHUB_HEAD_REF") or variables.get("GITHUB_REF_NAME") or None


def _id(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() else None


def _utc(text: str | None) -> str | None:
    """Return a time with its zone as that of UTC; None for one that has none."""
    try:
        moment = datetime.fromisoformat((text or "").replace("Z", "+00:00"))
    except ValueError:
        return None
    if moment.tzinfo is None:
        return None
    return moment.astimezone(timezone.utc).isoformat(timespec="seconds")
