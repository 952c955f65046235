"""The journal of a run, and the circumstances that its record has."""

from __future__ import annotations

import contextlib
import json
import os
import posixpath
import re
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Final, TextIO

from msgspec import Struct
from msgspec.structs import replace

from pytest_ttnn_perf.core.errors import WriteError
from pytest_ttnn_perf.core.files import write_text
from pytest_ttnn_perf.core.observation import encode_heading
from pytest_ttnn_perf.machine.environment import (
    chosen_variables,
    host_environment,
    host_hardware,
    on_this_host,
)
from pytest_ttnn_perf.machine.git import state

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_ttnn_perf.core.hardware import Environment, Hardware
    from pytest_ttnn_perf.core.observation import Run
    from pytest_ttnn_perf.core.settings import Settings


class Journal(Struct):
    """One line per test, which a killed run leaves behind."""

    file: Path
    _stream: TextIO | None = None

    def open(self, heading: Run) -> None:
        """Start the journal with the heading of the run."""
        ignore_folder(self.file.parent.parent)
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            self._stream = self.file.open("w", encoding="utf-8")
        except OSError as cause:
            raise WriteError(self.file, cause) from cause
        try:
            self._line({**encode_heading(heading), "journal": True})
        except WriteError:
            self.file.unlink(missing_ok=True)
            raise

    def add(self, test: str, observed: dict[str, object]) -> None:
        """Append the observation of a test."""
        self._line({test: observed})

    def close(self) -> None:
        """Remove the journal: the record of the run has taken its place."""
        if self._stream is not None:
            self._abandon()
            self.file.unlink(missing_ok=True)

    def _line(self, document: dict[str, object]) -> None:
        if self._stream is None:
            return
        try:
            self._stream.write(json.dumps(document) + "\n")
            self._stream.flush()
        except OSError as cause:
            self._abandon()
            raise WriteError(self.file, cause) from cause

    def _abandon(self) -> None:
        # Closing writes again what could not be written, in vain.
        stream, self._stream = self._stream, None
        with contextlib.suppress(OSError):
            if stream is not None:
                stream.close()


def ignore_folder(folder: Path) -> None:
    """Make a folder that git ignores by itself."""
    ignore = folder / ".gitignore"
    if not ignore.exists():
        write_text(ignore, "*\n")


class CiJob(Struct, frozen=True):
    """A job of a CI system; empty outside of one.

    ``annotates``: it turns lines of the output into annotations, as GitHub does. ``step_summary``
    is the file that it shows with the job. ``folder`` leads from the repository's root to where
    test ids start. The job was started for ``commit`` of ``branch``, or for a ``pull_request``.
    """

    annotates: bool = False
    step_summary: Path | None = None
    runner: str | None = None
    folder: str = ""
    commit: str | None = None
    branch: str | None = None
    pull_request: str | None = None
    attempt: int | None = None
    shard: str | None = None

    def path(self, file: str) -> str:
        """Return a file as seen from the repository's root."""
        return posixpath.normpath(posixpath.join(self.folder, file))


#: What the job was started for; of a pull request on GitHub, a merge that exists nowhere else.
_COMMIT: Final = ("GITHUB_SHA", "CI_COMMIT_SHA")
#: Where the repository is checked out, on GitHub and on GitLab.
_REPOSITORY: Final = ("GITHUB_WORKSPACE", "CI_PROJECT_DIR")
_RUNNER: Final = ("RUNNER_NAME", "CI_RUNNER_DESCRIPTION")
_SOURCE: Final = ("GITHUB_HEAD_REF", "CI_MERGE_REQUEST_SOURCE_BRANCH_NAME")
_OF_PULL_REQUEST: Final = re.compile(r"refs/pull/(\d+)/.*")
_OF_BRANCH: Final = "refs/heads/"


def ci_job(environment: Mapping[str, str], root: Path) -> CiJob:
    """Return the CI job of this process; test ids start at ``root``."""

    def first(names: tuple[str, ...]) -> str | None:
        return next((value for name in names if (value := environment.get(name))), None)

    summary, repository = environment.get("GITHUB_STEP_SUMMARY"), first(_REPOSITORY)
    reference = environment.get("GITHUB_REF", "")
    branch = reference.removeprefix(_OF_BRANCH) if reference.startswith(_OF_BRANCH) else None
    if not reference and environment.get("GITHUB_REF_TYPE") == "branch":
        branch = environment.get("GITHUB_REF_NAME")
    found = _OF_PULL_REQUEST.fullmatch(reference)
    # With pull_request_target, the reference is of the branch it is to be merged into.
    event = environment.get("GITHUB_EVENT_NAME", "")
    of_event = event if event.startswith("pull_request") else None
    pull_request = first(("CI_MERGE_REQUEST_IID", "GITHUB_HEAD_REF")) or of_event
    return CiJob(
        annotates=environment.get("GITHUB_ACTIONS") == "true",
        step_summary=Path(summary) if summary else None,
        runner=first(_RUNNER),
        folder=_below(Path(repository), root) if repository else "",
        commit=first(_COMMIT),
        branch=first(_SOURCE) or branch or environment.get("CI_COMMIT_BRANCH") or None,
        pull_request=found[1] if found else pull_request,
        attempt=_count(environment.get("GITHUB_RUN_ATTEMPT")),
        shard=_shard(environment.get("CI_NODE_INDEX"), environment.get("CI_NODE_TOTAL")),
    )


def _count(text: object) -> int | None:
    return int(str(text)) or None if re.fullmatch("[0-9]{1,9}", str(text)) else None


def _shard(index: object, total: object) -> str | None:
    part, parts = _count(index), _count(total)
    return f"{part}/{parts}" if part and parts and parts > 1 else None


def of_split(job: CiJob, *, group: object, splits: object) -> CiJob:
    """Add the part of the job's tests that pytest-split selects."""
    own = _shard(group, splits)
    return replace(job, shard=", ".join(filter(None, (job.shard, own)))) if own else job


def _below(repository: Path, root: Path) -> str:
    for above, below in ((repository, root), (repository.resolve(), root.resolve())):
        if below.is_relative_to(above):
            way = below.relative_to(above).as_posix()
            return "" if way == "." else way
    return ""


def environment_of(project: Path, job: CiJob = CiJob()) -> Environment:
    """Return the environment of this host and of the ``project`` on it.

    The branch is that of git. CI systems often check out a commit alone: then it is that of the
    job, if it was started for this commit. A job of a pull request measures an unmerged commit.
    """
    here = state(project, host_environment(now=datetime.now(timezone.utc)))
    of_job = job.branch if job.commit in {None, here.commit} else None
    return replace(
        here,
        branch=job.branch if job.pull_request else here.branch or of_job,
        pull_request=job.pull_request,
        runner=job.runner,
        attempt=job.attempt,
        shard=job.shard,
        variables=chosen_variables(os.environ),
    )


class RunContext(Struct, frozen=True):
    """The circumstances of a run before its first test."""

    settings: Settings
    project: Path
    cwd: Path
    job: CiJob
    #: Whether tests run in workers.
    isolated: bool
    #: The profiler, and why it was chosen.
    profiler: str
    has_devices: bool

    @property
    def hardware(self) -> Hardware:
        """The hardware of a test that opened no device."""
        return on_this_host(host_hardware(), self.settings.key, os.environ)
