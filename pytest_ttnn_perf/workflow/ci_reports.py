"""The reports of a run that others read: reviewers, GitHub, GitLab."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from pytest_ttnn_perf._support.atomic import write_text
from pytest_ttnn_perf._support.errors import WriteError
from pytest_ttnn_perf.model.rule_settings import Checklist
from pytest_ttnn_perf.report.annotations import annotation_lines
from pytest_ttnn_perf.report.fitting import COMMENT_BYTES, SUMMARY_BYTES
from pytest_ttnn_perf.report.gitlab import gitlab_text
from pytest_ttnn_perf.report.markdown import markdown_text
from pytest_ttnn_perf.report.told import Told
from pytest_ttnn_perf.workflow.shifted import differences

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pytest_ttnn_perf.baselines.store import BaselineStore
    from pytest_ttnn_perf.model.ci import CiJob
    from pytest_ttnn_perf.model.observation import Run
    from pytest_ttnn_perf.model.settings import Settings
    from pytest_ttnn_perf.report.terminal import Manner


@dataclass(frozen=True, slots=True)
class CiReports:
    """A judged run, told in the ways that CI systems understand."""

    told: Told

    def markdown(self, *, parts: int = 1) -> str:
        """Return the report for reviewers, no longer than that many in one comment may be."""
        return markdown_text(self.told, most_bytes=COMMENT_BYTES // parts)

    def gitlab(self) -> str:
        """Return the code quality report."""
        return gitlab_text(self.told)

    def annotations(self, *, failures: bool) -> Iterator[str]:
        """Return the lines that GitHub turns into annotations."""
        return annotation_lines(self.told, failures=failures)

    def writers(self, settings: Settings) -> Iterator[Callable[[], None]]:
        """Yield what writes each report that is wanted."""
        if settings.markdown is not None:
            yield partial(write_text, settings.markdown, self.markdown())
        if settings.gitlab is not None:
            yield partial(write_text, settings.gitlab, self.gitlab())
        if settings.step_summary and self.told.job.step_summary is not None:
            yield partial(self._append, self.told.job.step_summary)

    def _append(self, file: Path) -> None:
        """Add to the summary of this step, which others may have begun."""
        try:
            taken = file.stat().st_size if file.exists() else 0
            text = markdown_text(self.told, most_bytes=SUMMARY_BYTES - taken)
            with file.open("a", encoding="utf-8") as stream:
                stream.write(text)
        except OSError as cause:
            raise WriteError(file, cause) from cause


def ci_reports(
    run: Run,
    settings: Settings,
    store: BaselineStore,
    *,
    manner: Manner,
    job: CiJob,
    record: str | None,
) -> CiReports:
    """Return the reports of a judged run; ``record`` is where all of it can be read."""
    told = Told(
        run,
        manner,
        settings.missing,
        settings.checklist is Checklist.ENFORCE,
        differences(run.tests, store, hardware=run.hardware, environment=run.environment),
        record,
        job,
    )
    return CiReports(told)
