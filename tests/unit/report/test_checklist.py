"""Findings as they are printed, and what is said while a run is under way."""

from __future__ import annotations

import pytest

from pytest_ttnn_perf.records.metric import Metric
from pytest_ttnn_perf.records.verdict import (
    Outcome,
    Reason,
    Shift,
    Verdict,
)
from pytest_ttnn_perf.report.checklist import (
    confirm_heading,
    confirm_line,
    controls_line,
    shift_line,
    shift_refuted_line,
    shown,
)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.05, "of kernel time", "5.0 % of kernel time"),
        (0.1, "above the mean", "10.0 % above the mean"),
        (202_500, "ns", "202.5 us"),
        (1, "B", "1 B"),
        (430_080, "bytes", "420.0 KiB"),
        (15_728_640, "B saved", "15.00 MiB saved"),
        (1, "ops", "1 op"),
        (2, "ops", "2 ops"),
        (0, "losses", "0 losses"),
        (1, "processes", "1 process"),
        (1.0, "transfers per barrier", "1 transfer per barrier"),
        (1, "GB/s", "1 GB/s"),
        (1, "fps", "1 fps"),
        (1, "x the median", "1 x the median"),
        (1234.5, "", "1,234"),
    ],
)
def test_a_number_in_its_unit(value: float, unit: str, text: str) -> None:
    assert shown(value, unit) == text


TIME = Metric("latency", "ms")
SUSPECT = Verdict(
    TIME, Outcome.REGRESSED, observed=12.0, centre=10.0, change=0.2, limit=0.05, confirmed=(11.0,)
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


@pytest.mark.parametrize(
    ("tests", "controls", "what"),
    [(1, 0, "1 test"), (2, 3, "2 tests and 3 controls"), (0, 1, "1 control")],
)
def test_a_confirm_pass_says_what_it_measures(tests: int, controls: int, what: str) -> None:
    assert confirm_heading(tests, controls, number=1, passes=2) == (
        f"ttnn-perf: confirm pass 1 of 2: measuring {what} again in a fresh process"
    )


@pytest.mark.parametrize(
    ("controls", "move", "text"),
    [
        (3, 0.021, "3 controls: 2.1 % slower than their baselines"),
        (1, -0.021, "1 control: 2.1 % faster than its baseline"),
        (8, 0.0001, "8 controls: as fast as their baselines"),
    ],
)
def test_controls_say_what_the_machine_does(controls: int, move: float, text: str) -> None:
    assert controls_line(controls, move) == f"ttnn-perf: {text}"


def test_a_shift_that_controls_refute() -> None:
    assert shift_refuted_line(Shift(0.1, 5, 8)) == (
        "ttnn-perf: not the environment: 5 of 8 tests moved, and the controls did not"
    )
