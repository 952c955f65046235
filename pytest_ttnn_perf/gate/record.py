"""What a run is told and leaves behind: its journal, its record, its result and its reports."""

from __future__ import annotations

import contextlib
import json
import os
import posixpath
import re
import shutil
import time
from datetime import datetime, timezone
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final, TextIO

from msgspec import Struct
from msgspec.structs import replace

from pytest_ttnn_perf.core.codec import encode
from pytest_ttnn_perf.core.errors import WriteError
from pytest_ttnn_perf.core.files import write_text
from pytest_ttnn_perf.core.observation import encode_heading
from pytest_ttnn_perf.core.settings import Checklist, Missing
from pytest_ttnn_perf.gate.health import HEALTHY, BaselineHealth, find_orphans
from pytest_ttnn_perf.gate.judging import (
    environment_differences,
    summary_options_of,
    swept,
    violations,
)
from pytest_ttnn_perf.machine.host import host_environment, host_hardware, on_this_host
from pytest_ttnn_perf.report.sentences import sentence
from pytest_ttnn_perf.report.tables import shown_path
from pytest_ttnn_perf.report.terminal import health_lines, summary_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pytest_ttnn_perf.core.hardware import Environment, Hardware
    from pytest_ttnn_perf.core.observation import JudgedTest, Run
    from pytest_ttnn_perf.core.settings import Settings
    from pytest_ttnn_perf.gate.store import BaselineStore
    from pytest_ttnn_perf.report.ci import CiReport
    from pytest_ttnn_perf.report.sentences import Rerun
    from pytest_ttnn_perf.report.tables import Line, Table
    from pytest_ttnn_perf.report.terminal import SummaryOptions


class Journal(Struct):
    """One line per test, written before the test is judged: a killed run keeps what it has."""

    file: Path
    _stream: TextIO | None = None

    def open(self, heading: Run) -> None:
        """Start the journal with what is known of the run."""
        artifacts = self.file.parent.parent
        ignore_folder(artifacts)
        remove_leftovers(artifacts)
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
        """Append what one test observed."""
        self._line({test: observed})

    def close(self) -> None:
        """Remove the journal: the run's document has taken its place."""
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
        """Close the file, which writes again what could not be written, in vain."""
        stream, self._stream = self._stream, None
        with contextlib.suppress(OSError):
            if stream is not None:
                stream.close()


def write_run(run: Run, file: Path) -> None:
    """Write a run record with the sentence of every verdict in it."""
    write_text(file, run_text(run) + "\n")


def run_text(run: Run) -> str:
    """Return a run record as text, one line per test."""
    heading = json.dumps(encode_heading(run))
    tests = (f"  {json.dumps(name)}: {_test_text(judged)}" for name, judged in run.tests.items())
    # Told for those who draw them; a reader of ours finds them out anew.
    sweeps = [json.dumps(encode(sweep)) for sweep in swept(run.tests.values())]
    told = ', "sweeps": [\n' + ",\n".join(sweeps) + "\n]" if sweeps else ""
    return heading[:-1] + ', "tests": {\n' + ",\n".join(tests) + "\n}" + told + "}"


def _test_text(judged: JudgedTest) -> str:
    """Return one test of the record, every verdict with its sentence."""
    encoded = encode(judged)
    for verdict in judged.verdicts:
        encoded["verdicts"][verdict.metric.name]["sentence"] = sentence(verdict)
    return json.dumps(encoded)


#: No run lasts so long: what is older, and has no record, is of a process that was killed.
_LEFT_BEHIND_S: Final = 24 * 60 * 60.0
#: The folder of a run, whose id says when it began: the artifacts' folder may have others.
_OF_RUN: Final = "*[0-9]T[0-9][0-9][0-9][0-9][0-9][0-9]Z-*"


def remove_leftovers(artifacts: Path) -> None:
    """Remove what killed processes left in the artifacts' folder, once it is a day old.

    The folders of a run's workers stay for as long as its record or its journal, which names the
    logs in them; captures that were never finished do not.
    """
    latest_s = time.time() - _LEFT_BEHIND_S
    recorded = {file.stem for file in (artifacts / "runs").glob("*.json*")}
    folders = [f for f in (artifacts / "passes").glob(_OF_RUN) if f.name not in recorded]
    for folder in (*folders, *(artifacts / "reports").glob(".report-*")):
        with contextlib.suppress(OSError):  # another run was quicker, or it is not ours
            if folder.stat().st_mtime < latest_s:
                shutil.rmtree(folder)


def ignore_folder(folder: Path) -> None:
    """Make a folder that git ignores by itself."""
    ignore = folder / ".gitignore"
    if not ignore.exists():
        write_text(ignore, "*\n")


def ci_report(
    run: Run,
    settings: Settings,
    store: BaselineStore,
    *,
    summary_options: SummaryOptions,
    job: CiJob,
    record: str | None,
) -> CiReport:
    """Return what reports for CI are made of; ``record`` is where all of the run can be read."""
    from pytest_ttnn_perf.report.ci import CiReport

    return CiReport(
        run,
        summary_options,
        settings.missing,
        settings.checklist is Checklist.ENFORCE,
        environment_differences(
            run.tests, store, hardware=run.hardware, environment=run.environment
        ),
        record,
        job,
    )


def report_writers(report: CiReport, settings: Settings) -> Iterator[Callable[[], None]]:
    """Yield what writes each report for CI that is wanted."""
    if settings.markdown is not None:
        from pytest_ttnn_perf.report.markdown import markdown_text

        yield partial(write_text, settings.markdown, markdown_text(report))
    if settings.gitlab is not None:
        from pytest_ttnn_perf.report.ci import gitlab_text

        yield partial(write_text, settings.gitlab, gitlab_text(report))
    if settings.step_summary and report.job.step_summary is not None:
        yield partial(_add_to_step_summary, report.job.step_summary, report)


def _add_to_step_summary(file: Path, report: CiReport) -> None:
    """Add a report to the summary of this step, which others may have begun."""
    from pytest_ttnn_perf.report.markdown import SUMMARY_BYTES, markdown_text

    try:
        taken = file.stat().st_size if file.exists() else 0
        text = markdown_text(report, most_bytes=SUMMARY_BYTES - taken)
        with file.open("a", encoding="utf-8") as stream:
            stream.write(text)
    except OSError as cause:
        raise WriteError(file, cause) from cause


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


class CiJob(Struct, frozen=True):
    """What the variables of a CI system tell of a job; nothing outside of one.

    ``annotates``: it turns lines of the output into annotations, as GitHub does. ``step_summary``
    is the file that it shows beside the job. ``runner`` is the name of the machine. ``folder``
    leads from the repository's root to where test ids start. The job was started for ``commit``
    of ``branch``, or for a ``pull_request`` that comes from that branch. ``attempt`` and ``shard``
    are as in ``Environment``.
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


def environment_of(project: Path, job: CiJob = CiJob()) -> Environment:
    """Return what is true now of this host and of the ``project`` checked out on it.

    The branch is that of git. CI systems often check out a commit alone: then it is that of the
    job, if it was started for this commit. Any job of a pull request measures what nobody merged.
    """
    from pytest_ttnn_perf.machine.git import state

    checked_out = state(project)
    of_job = job.branch if job.commit in {None, checked_out.commit} else None
    branch = job.branch if job.pull_request else checked_out.branch or of_job
    return replace(
        host_environment(now=datetime.now(timezone.utc)),
        **checked_out._asdict() | {"branch": branch},
        pull_request=job.pull_request,
        runner=job.runner,
        attempt=job.attempt,
        shard=job.shard,
    )


class RunContext(Struct, frozen=True):
    """What is known of a run before its first test."""

    settings: Settings
    project: Path
    cwd: Path
    rerun: Rerun
    job: CiJob
    #: Whether tests run in workers.
    isolated: bool
    #: The profiler, and why it was chosen.
    profiler: str
    has_devices: bool

    @property
    def hardware(self) -> Hardware:
        """What a test ran on that opened no device, and of which nothing else is known."""
        return on_this_host(host_hardware(), self.settings.key, os.environ)

    def heading(self) -> str:
        """Say what this run does, and for which key: that of the host, if there are no devices."""
        settings, cwd = self.settings, self.cwd
        key = (
            "keys of the devices that tests open"
            if self.has_devices
            else f"key {self.hardware.key}"
        )
        if settings.replay is not None:
            key = "keys of the artifacts"
        parts = [f"gate on, {key}", f"baselines {shown_path(settings.baselines, cwd)}"]
        if settings.update:
            parts.append(f"update {settings.update.value}")
        if settings.missing is not Missing.FAIL:
            parts.append(f"missing {settings.missing.value}")
        if not self.isolated:
            parts.append("in this process, nothing is measured again")
        if settings.replay is None:
            return ", ".join([*parts, self.profiler])
        replayed = f"replaying {shown_path(settings.replay, cwd)}"
        return ", ".join([*parts, f"{replayed}, times of this machine are left out"])


class RunResult(Struct, frozen=True):
    """A run that is over: what was judged and written, and what could not be written."""

    context: RunContext
    run: Run
    store: BaselineStore
    health: BaselineHealth = HEALTHY
    #: The baseline files that were changed.
    written: Sequence[Path] = ()
    records: Sequence[Path] = ()
    errors: list[str] = []
    #: What the reports for CI are made of; None if none of them is wanted.
    ci_report: CiReport | None = None
    #: The page for a browser, if one was written.
    page: Path | None = None

    def summary_options(self) -> SummaryOptions:
        """Return how the run is summarised, on every surface."""
        context, run = self.context, self.run
        options = summary_options_of(
            list(run.tests.values()), context.settings, rerun=context.rerun, shift=run.shift
        )
        return replace(options, health=self.health)

    def with_ci_report(self) -> RunResult:
        """Return the result with its report for CI, if that is wanted in any form."""
        settings, job = self.context.settings, self.context.job
        files = settings.markdown or settings.gitlab or settings.html
        shown = settings.step_summary and job.step_summary
        if not (files or shown or (job.annotates and settings.annotations)):
            return self
        record = shown_path(self.records[0], self.context.cwd) if self.records else None
        report = ci_report(
            self.run,
            settings,
            self.store,
            summary_options=self.summary_options(),
            job=job,
            record=record,
        )
        return replace(self, ci_report=report)

    def summary(
        self, *, told: frozenset[str] = frozenset(), verbosity: int = 0
    ) -> Iterator[Line | Table]:
        """Return the terminal's summary; without tests, what fails such a run.

        ``told`` are the tests whose failure was shown, ``verbosity`` is pytest's.
        """
        context, run = self.context, self.run
        if not run.tests:
            return health_lines(self.health)
        found = find_orphans(run, self.store)
        if found is not None:  # what the commands about them must be given
            record = os.path.relpath(self.records[0], context.cwd) if self.records else None
            found = replace(found, record=record, options=context.rerun.baselines_option)
        options = replace(
            self.summary_options(),
            update=context.settings.update,
            orphaned=found,
            told=told,
            verbosity=verbosity,
        )
        lines = summary_lines(list(run.tests.values()), summary_options=options)
        if verbosity < 1 or context.settings.targets is None:
            return lines
        from pytest_ttnn_perf.gate.update import unmatched
        from pytest_ttnn_perf.report.tables import Line

        return chain(lines, map(Line, unmatched(run, context.settings.targets)))

    def closing(self) -> Iterator[str]:
        """Say where the results went."""
        baselines, cwd = self.context.settings.baselines, self.context.cwd
        if not baselines.is_dir():
            yield f"no baselines folder at {shown_path(baselines, cwd)}"
        for path in self.written:
            yield f"wrote {shown_path(path, cwd)}"
        for path in self.records:
            yield f"run record: {shown_path(path, cwd)}"
        if self.page is not None:
            yield f"page: {shown_path(self.page, cwd)}"

    def annotations(self, *, failures: bool) -> Iterator[str]:
        """Return the lines that GitHub turns into annotations, if they are wanted."""
        wanted = self.context.job.annotates and self.context.settings.annotations
        if self.ci_report is None or not wanted:
            return iter(())
        from pytest_ttnn_perf.report.ci import annotation_lines

        return annotation_lines(self.ci_report, failures=failures)

    def shift_text(self) -> str | None:
        """Return what fails a run whose machine is slower as a whole; None if it is not."""
        shift = self.run.shift
        if shift is None or not shift.worse:
            return None
        from pytest_ttnn_perf.report.terminal import shift_advice, shift_size

        advice = shift_advice(shift, self.context.rerun.accept_all(), failed=False)
        return "\n  ".join([shift_size(shift), *advice])

    def axes_text(self) -> str | None:
        """Return what fails a run by sweeps whose axes took no effect; None if nothing does.

        That is known when the last point is measured: the tests have been told as passed.
        """
        if not any(judged.observation.sweep for judged in self.run.tests.values()):
            return None
        from pytest_ttnn_perf.gate.checklist import OF_AXES
        from pytest_ttnn_perf.report.findings import title

        found: dict[str, None] = {}
        for judged in self.run.tests.values():
            for finding in violations(judged, self.context.settings.checklist):
                if finding.code == OF_AXES and judged.observation.sweep is not None:
                    found[f"{judged.observation.sweep.sweep}: {title(finding)}"] = None
        return "\n".join(found) or None
