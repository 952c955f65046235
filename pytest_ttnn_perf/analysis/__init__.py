"""Captures, ops and the checklist: needs no test and no pytest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf.core.finding import DERIVED

if TYPE_CHECKING:
    from pytest_ttnn_perf.core.finding import Subject
    from pytest_ttnn_perf.core.ops import OpTable


def _step(subject: Subject) -> OpTable | None:
    if subject.ops is None:
        return None
    from pytest_ttnn_perf.analysis.ops.regions import step_of

    return step_of(subject.ops)


DERIVED["step"] = _step
