"""What is said while a run is under way, word by word."""

from __future__ import annotations

import pytest

from pytest_ttnn_perf.records.metric import Better, Kind, Metric
from pytest_ttnn_perf.records.verdict import (
    Drift,
    Drifting,
    DriftKind,
    Outcome,
    Reason,
    Shift,
    Verdict,
)
from pytest_ttnn_perf.report.checklist import (
    confirm_heading,
    confirm_line,
    drift_line,
    shift_line,
    suspicion_line,
)

TIME = Metric("latency", "ms")
RATE = Metric("rate", "tok/s", Better.HIGHER, Kind.THROUGHPUT)
SUSPECT = Verdict(
    TIME, Outcome.REGRESSED, observed=12.0, centre=10.0, change=0.2, limit=0.05, confirmed=(11.0,)
)


def test_suspicion_names_every_metric_and_how_much_worse_it_is() -> None:
    rate = Verdict(RATE, Outcome.REGRESSED, observed=50.0, centre=100.0, change=1.0, limit=0.05)
    assert suspicion_line("t.py::t", [SUSPECT, rate]) == (
        "ttnn-perf: t.py::t: latency 20.0 % slower, rate 50.0 % lower: to be measured again"
    )


@pytest.mark.parametrize(("tests", "said"), [(1, "1 test"), (12, "12 tests")])
def test_confirm_pass_tells_its_number_and_its_tests(tests: int, said: str) -> None:
    assert confirm_heading(tests, number=1, passes=3) == (
        f"ttnn-perf: confirm pass 1 of 3: measuring {said} again in a fresh process"
    )


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        (Outcome.REGRESSED, "beyond its limit again"),
        (Outcome.WITHIN, "within its limit now"),
        (Outcome.SHIFTED, "only as slow as the machine"),
        (Outcome.TOO_NOISY, "within its limit now"),
    ],
)
def test_confirm_line_shows_the_newest_value_beside_the_baseline(
    outcome: Outcome, said: str
) -> None:
    verdict = SUSPECT._replace(outcome=outcome, confirmed=(11.0, 0.25))
    assert confirm_line("t.py::t", verdict) == (
        f"ttnn-perf: t.py::t: latency 0.2500 ms, baseline 10.00 ms: {said}"
    )


@pytest.mark.parametrize(
    "verdict",
    [Verdict(TIME, Outcome.NO_DATA, Reason.NOT_CONFIRMED), SUSPECT._replace(confirmed=())],
    ids=["no data", "no pass"],
)
def test_confirm_line_of_what_could_not_be_measured_again(verdict: Verdict) -> None:
    assert confirm_line("t.py::t", verdict) == (
        "ttnn-perf: t.py::t: latency could not be confirmed"
    )


def test_shift_says_how_much_of_how_many_and_what_differs() -> None:
    shift = Shift(0.123, 4, 6, ("governor powersave, at the baselines performance", "load 9 on 8"))
    assert shift_line(shift) == (
        "environment shifted: 12.3 % slower as a whole (4 of 6 tests moved the same way); "
        "governor powersave, at the baselines performance; load 9 on 8"
    )


def test_shift_to_the_better_without_any_difference() -> None:
    assert shift_line(Shift(-0.08, 5, 5)) == (
        "environment shifted: 8.0 % faster as a whole (5 of 5 tests moved the same way); "
        "nothing that is recorded differs"
    )


STEP = Drifting("t.py::t", "latency", 10, Drift(DriftKind.STEP, 0.1, 4))
TREND = Drifting("t.py::t", "latency", 30, Drift(DriftKind.TREND, -0.05))
CAUSE = ": a clock or a temperature that had not settled; more warm-up may help"


@pytest.mark.parametrize(
    ("drifting", "said"),
    [
        (STEP, "got 10.0 % slower after the first 4 of 10 samples"),
        (TREND, "got 5.0 % faster in the course of 30 samples"),
    ],
    ids=["step", "trend"],
)
def test_drift_of_samples(drifting: Drifting, said: str) -> None:
    assert drift_line(drifting) == f"drift t.py::t: latency {said}{CAUSE}"


@pytest.mark.parametrize(
    ("drift", "said"),
    [
        (Drift(DriftKind.STEP, 0.1, 4), "10.0 % slower against the baselines after the first "
                                        "4 of 12 tests"),
        (Drift(DriftKind.TREND, -0.05), "5.0 % faster against the baselines in the course of "
                                        "12 tests"),
    ],
    ids=["step", "trend"],
)  # fmt: skip
def test_drift_of_a_run(drift: Drift, said: str) -> None:
    assert drift_line(Drifting(None, None, 12, drift)) == f"drift of the run: {said}"
