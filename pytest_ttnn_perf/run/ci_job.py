"""What the variables of GitHub and GitLab tell of the job that a process is part of."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.records.hardware import CiJob

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Where the repository is checked out, on GitHub and on GitLab.
_REPOSITORY: Final = ("GITHUB_WORKSPACE", "CI_PROJECT_DIR")
_RUNNER: Final = ("RUNNER_NAME", "CI_RUNNER_DESCRIPTION")


def ci_job(environment: Mapping[str, str], root: Path) -> CiJob:
    """Return the job that this process is part of; test ids start at ``root``."""
    summary = environment.get("GITHUB_STEP_SUMMARY")
    repository = _first(environment, _REPOSITORY)
    return CiJob(
        annotates=environment.get("GITHUB_ACTIONS") == "true",
        step_summary=Path(summary) if summary else None,
        runner=_first(environment, _RUNNER),
        folder=_below(Path(repository), root) if repository else "",
        commit=_first(environment, _COMMIT),
        branch=_branch(environment),
        pull_request=_pull_request(environment),
        attempt=_count(environment.get("GITHUB_RUN_ATTEMPT")),
        shard=_shard(environment.get("CI_NODE_INDEX"), environment.get("CI_NODE_TOTAL")),
    )


#: What the job was started for; of a pull request on GitHub, a merge that nobody else has.
_COMMIT: Final = ("GITHUB_SHA", "CI_COMMIT_SHA")
_SOURCE: Final = ("GITHUB_HEAD_REF", "CI_MERGE_REQUEST_SOURCE_BRANCH_NAME")
_OF_PULL_REQUEST: Final = re.compile(r"refs/pull/(\d+)/.*")
_OF_BRANCH: Final = "refs/heads/"


def _branch(environment: Mapping[str, str]) -> str | None:
    """Return the branch of a job; a tag is none."""
    reference = environment.get("GITHUB_REF", "")
    named = reference.removeprefix(_OF_BRANCH) if reference.startswith(_OF_BRANCH) else None
    if not reference and environment.get("GITHUB_REF_TYPE") == "branch":
        named = environment.get("GITHUB_REF_NAME")
    return _first(environment, _SOURCE) or named or environment.get("CI_COMMIT_BRANCH") or None


def _pull_request(environment: Mapping[str, str]) -> str | None:
    """Return the number of the pull request that a job is for; else what it comes from."""
    found = _OF_PULL_REQUEST.fullmatch(environment.get("GITHUB_REF", ""))
    if found:
        return found[1]
    # With pull_request_target, the reference is that of the branch it is to be merged into.
    event = environment.get("GITHUB_EVENT_NAME", "")
    of_event = event if event.startswith("pull_request") else None
    return _first(environment, ("CI_MERGE_REQUEST_IID", "GITHUB_HEAD_REF")) or of_event


def _count(text: str | None) -> int | None:
    """Return a whole number from 1 on; None for anything else."""
    short = text is not None and text.isascii() and text.isdigit() and len(text) < 10
    return int(text) or None if short and text else None


def _shard(index: object, total: object) -> str | None:
    """Return which of how many parts of the tests this is; None where they are not split."""
    part, parts = (_count(str(number)) for number in (index, total))
    return f"{part}/{parts}" if part and parts and parts > 1 else None


def of_split(job: CiJob, *, group: object, splits: object) -> CiJob:
    """Return a job whose tests pytest-split splits, as its options say: inside the job's part."""
    own = _shard(group, splits)
    return replace(job, shard=", ".join(filter(None, (job.shard, own)))) if own else job


def _first(environment: Mapping[str, str], names: tuple[str, ...]) -> str | None:
    return next((value for name in names if (value := environment.get(name))), None)


def _below(repository: Path, root: Path) -> str:
    """Return the way down; nothing where it leads elsewhere: then ids say what is known."""
    for above, below in ((repository, root), (repository.resolve(), root.resolve())):
        if below.is_relative_to(above):
            way = below.relative_to(above).as_posix()
            return "" if way == "." else way
    return ""
