"""Where the results of a run go: its records, its reports; and what could not be written."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from pytest_ttnn_perf._support.errors import TtnnPerfError
from pytest_ttnn_perf.model.ci import CiJob
from pytest_ttnn_perf.report.framing import closing_lines, shown_path
from pytest_ttnn_perf.workflow.publish import write_run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pytest_ttnn_perf.baselines.store import BaselineStore
    from pytest_ttnn_perf.model.observation import Run
    from pytest_ttnn_perf.model.settings import Settings
    from pytest_ttnn_perf.report.terminal import Manner
    from pytest_ttnn_perf.workflow.ci_reports import CiReports


@dataclass(slots=True)
class Results:
    """What a run leaves behind. ``job`` is the CI job that it is part of."""

    settings: Settings
    here: Path
    job: CiJob = CiJob()
    reports: CiReports | None = None
    errors: list[str] = field(default_factory=list)
    written: list[Path] = field(default_factory=list)
    records: list[Path] = field(default_factory=list)

    def attempt(self, write: Callable[[], object]) -> bool:
        """Go on after a failed write: what can be saved is saved, and the run says what was not."""
        try:
            write()
        except TtnnPerfError as error:
            self.errors.append(str(error))
            return False
        return True

    def publish(self, run: Run, file: Path) -> bool:
        """Write a record of the run; return whether that worked."""
        if not self.attempt(partial(write_run, run, file)):
            return False
        self.records.append(file)
        return True

    def report(self, run: Run, store: BaselineStore, manner: Callable[[], Manner]) -> None:
        """Tell the run to reviewers and to the CI system, as far as that is wanted."""
        if not self._is_read_elsewhere:
            return
        from pytest_ttnn_perf.workflow.ci_reports import ci_reports

        record = shown_path(self.records[0], self.here) if self.records else None
        self.reports = ci_reports(
            run, self.settings, store, manner=manner(), job=self.job, record=record
        )
        for write in self.reports.writers(self.settings):
            self.attempt(write)

    @property
    def _is_read_elsewhere(self) -> bool:
        settings, job = self.settings, self.job
        files = settings.markdown or settings.gitlab
        shown = settings.step_summary and job.step_summary
        return bool(files or shown or (job.annotates and settings.annotations))

    def closing(self) -> Iterator[str]:
        """Say where the results went."""
        baselines = self.settings.baselines
        return closing_lines(
            missing=None if baselines.is_dir() else baselines,
            written=self.written,
            records=self.records,
            here=self.here,
        )
