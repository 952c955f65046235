"""The one figure of an analysis that an overview shows."""

from __future__ import annotations

import pytest

from pytest_ttnn_perf.analysis.checklist.analyses.headline import Headline, headline_of
from pytest_ttnn_perf.records.finding import Analysis, AnalysisOutcome, Figure, Row, Section

FORMATS = Section("operands", "B", (Row("BFLOAT16", 300.0, 0.75), Row("UINT32", 100.0, 0.25)),
                  "of operand bytes")  # fmt: skip
TOP = Headline("BFLOAT16", 0.75, "of operand bytes", "operands")
STEP, CORES, TIME = "of a step", "of cores", "of the time"


@pytest.mark.parametrize(
    ("figures", "sections", "expected"),
    [
        pytest.param(
            [("in use", 0.9, CORES), ("few", 0.1, STEP), ("uneven", 0.2, STEP)],
            [FORMATS],
            Headline("uneven", 0.2, STEP),
            id="what weighs most in a step",
        ),
        pytest.param(
            [("few", 0.0004, STEP), ("in use", 0.9, CORES)],
            [FORMATS],
            Headline("in use", 0.9, CORES),
            id="what reads as nothing says nothing",
        ),
        pytest.param([("few", 0.0, STEP)], [FORMATS], TOP, id="nothing to gain: what there is"),
        pytest.param(
            [("queues in use", 1, "queues")],
            [FORMATS],
            Headline("queues in use", 1, "queues"),
            id="a count where there are no fractions",
        ),
        pytest.param([("differ", 0, "executions")], [FORMATS], TOP, id="a count of nothing"),
        pytest.param(
            [("few", 0.0, STEP)], [], Headline("few", 0.0, STEP), id="a zero that is all there is"
        ),
        pytest.param(
            [],
            [Section("kernels", "GB/s", (Row("program 1", 19.3),))],
            Headline("program 1", 19.3, "GB/s", "kernels"),
            id="a row without a share",
        ),
        pytest.param([], [], None, id="nothing"),
    ],
)
def test_the_figure_that_says_most(
    figures: list[tuple[str, float, str]], sections: list[Section], expected: Headline | None
) -> None:
    made = tuple(Figure(*each) for each in figures)
    analysis = Analysis("cores", "cores", figures=made, sections=tuple(sections))
    assert headline_of(analysis, replayed=True) == expected


def test_what_was_not_measured_has_none() -> None:
    analysis = Analysis("cores", "cores", AnalysisOutcome.NOT_MEASURED, "needs an op table")
    assert headline_of(analysis, replayed=True) is None


def test_waiting_outside_a_replay_is_a_bound_and_ranks_with_no_estimate() -> None:
    waiting = Analysis("trace", "", figures=(Figure("devices wait", 0.6, TIME),))
    replayed = headline_of(waiting, replayed=True)
    window = headline_of(waiting, replayed=False)
    assert replayed is not None
    assert window is not None
    assert (replayed.at_most, replayed.weight) == (False, 0.6)
    assert (window.at_most, window.value, window.weight) == (True, 0.6, 0.0)
    estimate = Analysis("cores", "", figures=(Figure("few", 0.1, STEP),))
    found = headline_of(estimate, replayed=False)
    assert found is not None
    assert (found.at_most, found.weight) == (False, 0.1)
