"""One look at artifacts: the numbers behind the checklist, without a judgement."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf.checklist.analyses.registry import ANALYSES
from pytest_ttnn_perf.model.result import Result
from pytest_ttnn_perf.report.analysis import analysis_listing
from pytest_ttnn_perf.workflow.check import subject_of

if TYPE_CHECKING:
    from pytest_ttnn_perf.workflow.check import Artifacts


def analyze_artifacts(name: str, artifacts: Artifacts, *, shape: str) -> Result:
    """Return one analysis; what cannot be told is no failure.

    Raises:
        InputError: an artifact is not what it should be.
        UsageError: nothing to look at, or a window that does not exist.
    """
    analysis = ANALYSES[name].analysis(subject_of(artifacts))
    return Result(analysis_listing(analysis).text(shape))
