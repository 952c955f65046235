"""What a run leaves behind: its journal, its record, and its reports for CI."""

from __future__ import annotations

import contextlib
import json
from dataclasses import replace
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, TextIO

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.errors import WriteError
from pytest_ttnn_perf._base.files import write_text
from pytest_ttnn_perf.device.host import host_environment
from pytest_ttnn_perf.records.hardware import CiJob
from pytest_ttnn_perf.records.json import encode
from pytest_ttnn_perf.records.observation import encode_heading
from pytest_ttnn_perf.records.settings import Checklist
from pytest_ttnn_perf.report.sentences import sentence
from pytest_ttnn_perf.run.judge import environment_differences

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pytest_ttnn_perf.baselines.store import BaselineStore
    from pytest_ttnn_perf.records.hardware import Environment
    from pytest_ttnn_perf.records.observation import JudgedTest, Run
    from pytest_ttnn_perf.records.settings import Settings
    from pytest_ttnn_perf.report.ci import CiReport
    from pytest_ttnn_perf.report.terminal import SummaryOptions


@dataclass(slots=True)
class Journal:
    """One line per test, written before the test is judged: a killed run keeps what it has."""

    file: Path
    _stream: TextIO | None = None

    def open(self, heading: Run) -> None:
        """Start the journal with what is known of the run."""
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
    return heading[:-1] + ', "tests": {\n' + ",\n".join(tests) + "\n}}"


def _test_text(judged: JudgedTest) -> str:
    """Return one test of the record, every verdict with its sentence."""
    encoded = encode(judged)
    for verdict in judged.verdicts:
        encoded["verdicts"][verdict.metric.name]["sentence"] = sentence(verdict)
    return json.dumps(encoded)


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


def environment_of(project: Path) -> Environment:
    """Return what is true now of this host and of the ``project`` checked out on it."""
    from pytest_ttnn_perf.processes.git import state

    commit, dirty = state(project)
    return replace(host_environment(now=datetime.now(timezone.utc)), commit=commit, dirty=dirty)
