"""The summary of a run: what is listed, folded, and told once."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_ttnn_perf.records.finding import Progress, State, Step
from pytest_ttnn_perf.records.metric import Metric
from pytest_ttnn_perf.records.observation import MetricObservation
from pytest_ttnn_perf.report.checklist import findings_lines, progress_lines
from pytest_ttnn_perf.report.layout import Style, printed
from pytest_ttnn_perf.report.terminal import SummaryOptions, summary_lines
from tests.harness.ci_report import finding, judged

if TYPE_CHECKING:
    from pytest_ttnn_perf.records.observation import JudgedTest
