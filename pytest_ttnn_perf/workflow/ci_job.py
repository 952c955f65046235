"""What the variables of a CI system tell."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.model.ci import CiJob

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
    )


def _first(environment: Mapping[str, str], names: tuple[str, ...]) -> str | None:
    return next((value for name in names if (value := environment.get(name))), None)


def _below(repository: Path, root: Path) -> str:
    """Return the way down; nothing where it leads elsewhere: then ids say what is known."""
    for above, below in ((repository, root), (repository.resolve(), root.resolve())):
        if below.is_relative_to(above):
            way = below.relative_to(above).as_posix()
            return "" if way == "." else way
    return ""
