"""Judged runs made by hand, for what is told of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_ttnn_perf.core.finding import Finding, RuleOutcome, Severity
from pytest_ttnn_perf.core.hardware import Environment, Hardware
from pytest_ttnn_perf.core.metric import Better, Kind, Metric
from pytest_ttnn_perf.core.observation import (
    JudgedTest,
    Observation,
    Outcome,
    Reason,
    Run,
    Verdict,
)
from pytest_ttnn_perf.report.ci import CiReport
from pytest_ttnn_perf.report.terminal import SummaryOptions

if TYPE_CHECKING:
    from pytest_ttnn_perf.core.observation import Shift

WALL = Metric("wall_time", "ns")
PCC = Metric("pcc", "", better=Better.HIGHER, kind=Kind.ACCURACY)
#: The numbers of a verdict of each outcome.
_NUMBERS: dict[Outcome, dict[str, Any]] = {
    Outcome.WITHIN: {"observed": 10.1e6, "centre": 10e6, "change": 0.01, "limit": 0.035},
    Outcome.REGRESSED: {"observed": 12e6, "centre": 10e6, "change": 0.2, "limit": 0.035},
    Outcome.IMPROVED: {"observed": 8e6, "centre": 10e6, "change": -0.2, "limit": 0.035},
    Outcome.TOO_NOISY: {"observed": 10e6, "centre": 10e6, "change": 0.0, "limit": 0.4},
    Outcome.NO_BASELINE: {"observed": 10e6, "reason": Reason.NEW_TEST},
    Outcome.NOT_COMPARABLE: {
        "observed": 10e6,
        "reason": Reason.OTHER_KEY,
        "detail": "wormhole_b0-n300-1x2",
    },
    Outcome.NO_DATA: {"reason": Reason.RAISED, "detail": "RuntimeError: out of memory"},
}


def verdict(outcome: Outcome, metric: Metric = WALL, **numbers: object) -> Verdict:
    """Return a verdict with the numbers that are usual for its outcome."""
    return Verdict(
        metric, outcome, **{"samples": 10, "sessions": 5, **_NUMBERS[outcome], **numbers}
    )


def finding(code: str = "TTP203", severity: Severity = Severity.WARNING, **more: Any) -> Finding:
    """Return something that was found."""
    found = {"reason": "12 % of the time goes into `tilize`", "fix": "Keep tensors in `TILE`."}
    return Finding(code, "layout-conversions", severity, RuleOutcome.FOUND, **{**found, **more})


def judged(
    test: str = "test_resnet.py::test_resnet[8]",
    *verdicts: Verdict,
    by_op: str | None = None,
    line: int | None = 12,
    **observed: Any,
) -> JudgedTest:
    """Return a test with these verdicts."""
    file = test.partition("::")[0]
    observation = Observation(test, location=(file, line), **observed)
    return JudgedTest(observation, verdicts, by_op=by_op)


def told(
    *tests: JudgedTest,
    passes: bool = False,
    shift: Shift | None = None,
    environment: Environment | None = None,
    complete: bool = True,
    **more: Any,
) -> CiReport:
    """Return a run of these tests; those fail that have something to fail for."""
    good = {Outcome.WITHIN, Outcome.IMPROVED}
    failed = {
        each.observation.test
        for each in tests
        if any(v.outcome not in good for v in each.verdicts)
        or any(f.fails for f in each.observation.findings)
        or each.observation.problems
    }
    run = Run(
        Hardware("wormhole_b0", "n150", "1x1"),
        {each.observation.test: each for each in tests},
        environment or Environment(plugin="1.0"),
        id="20261116T022602Z-95c8a0",
        complete=complete,
        shift=shift,
    )
    summary_options = SummaryOptions(
        failed=frozenset() if passes else frozenset(failed), shift=shift
    )
    return CiReport(run, summary_options, **{"record": ".ttnn_perf/runs/run.json", **more})
