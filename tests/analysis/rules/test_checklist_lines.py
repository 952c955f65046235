"""Findings as they are printed, and what is said while a run is under way."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from pytest_ttnn_perf.analysis.ops.regions import Basis, StepTime
from pytest_ttnn_perf.analysis.show.checklist import Checklist, checklist_listing
from pytest_ttnn_perf.analysis.show.ops import step_line
from pytest_ttnn_perf.core.finding import Finding, RuleOutcome, Severity
from pytest_ttnn_perf.core.metric import Metric
from pytest_ttnn_perf.core.observation import Outcome, Reason, Shift, Verdict
from pytest_ttnn_perf.report.findings import (
    First,
    Progress,
    State,
    Step,
    first_step,
    saving_lines,
    shown,
)
from pytest_ttnn_perf.report.tables import Style, printed
from pytest_ttnn_perf.report.terminal import (
    confirm_line,
    shift_line,
)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.05, "of kernel time", "5.0 % of kernel time"),
        (202_500, "ns", "202.5 µs"),
        (430_080, "bytes", "420.0 KiB"),
        (15_728_640, "B saved", "15.00 MiB saved"),
        (1, "processes", "1 process"),
        (1.0, "transfers per barrier", "1 transfer per barrier"),
        (1, "x the median", "1 x the median"),
        (1234.5, "", "1,234"),
    ],
)
def test_a_number_in_its_unit(value: float, unit: str, text: str) -> None:
    assert shown(value, unit) == text


DECODE = StepTime("decode", Basis.REPLAYS, 4, 84, 1_272_000.0, {0: 1_272_000.0})


@pytest.mark.parametrize(
    ("time", "text"),
    [
        (
            replace(DECODE, gaps_ns=80_000.0),
            "decode: 1,272.0 µs of kernels and 80.0 µs of gaps in 84 ops, 4 replays",
        ),
        (
            StepTime("", Basis.WINDOW, 1, 1, 500.0, {0: 500.0, 1: 400.0}, 961_000.0),
            "all ops: 0.5 µs of kernels and at most 961.0 µs of gaps in 1 op, 1 window, on the "
            "slowest of 2 devices (0.4 µs on the fastest)",
        ),
        (replace(DECODE, basis=Basis.WHOLE), "decode: 1,272.0 µs of kernels in 84 ops"),
    ],
)
def test_a_region_says_what_kernels_and_gaps_take(time: StepTime, text: str) -> None:
    assert step_line(time) == text


FINDING = Finding(
    "TTP305", "unused-cores", Severity.WARNING, RuleOutcome.FOUND, "few cores", region="decode"
)


@pytest.mark.parametrize(
    ("finding", "lines"),
    [
        (replace(FINDING, saving_ns=9e3, adds_ns=9e3), ["would save 9.0 µs of a step"]),
        (
            replace(FINDING, saving_ns=9e3, adds_ns=2e3, arithmetic="half"),
            ["would save 9.0 µs of a step, 2.0 µs of it not already counted above: half"],
        ),
        (
            replace(FINDING, saving_ns=9e3, at_most=True, also=("TTP202", "TTP314")),
            ["would save at most 9.0 µs of a step", "also: TTP202, TTP314 name the same ops"],
        ),
        (FINDING, []),
    ],
)
def test_what_a_finding_would_save(finding: Finding, lines: list[str]) -> None:
    assert [line.strip() for line in saving_lines(finding)] == lines


@pytest.mark.parametrize(
    ("first", "text"),
    [
        (
            First("TTP311", "matmul-not-dram-sharded", "decode", 55_800.0, 548_100.0),
            "first: TTP311 matmul-not-dram-sharded in decode, up to 55.8 µs of 548.1 µs",
        ),
        (
            First("TTP402", "trace-not-used", "", 9e3, 2e4, at_most=True),
            "first: TTP402 trace-not-used, at most 9.0 µs of 20.0 µs",
        ),
        # The wall time of a call is longer than what its ops take.
        (First("TTP402", "a", "", 9e6, 2e6), "first: TTP402 a, up to 9,000.0 µs"),
        (First("TTP203", "layout-conversions"), "first: TTP203 layout-conversions"),
    ],
)
def test_what_to_begin_with(first: First, text: str) -> None:
    step = Step("layouts", State.OPEN)
    assert list(first_step(Progress(step, (step,), step, first=first))) == [text]


def test_findings_without_a_line_of_their_own_are_named_once() -> None:
    covers = replace(FINDING, saving_ns=9e3, adds_ns=9e3, also=("TTP314",))
    quiet = replace(FINDING, quiet=True)
    findings = (
        covers,
        replace(quiet, code="TTP314", saving_ns=8e3, adds_ns=0.0, covered_by="TTP305"),
        replace(quiet, code="TTP306", saving_ns=1.0, adds_ns=1.0),
        replace(quiet, code="TTP401"),
        replace(FINDING, code="TTP402", saving_ns=9e9, adds_ns=9e9, at_most=True),
    )
    report = Checklist(findings, (DECODE,), bottleneck="decode: mixed\nprefill: host-bound")
    lines = list(printed(checklist_listing(report).lines, Style()))
    titles = [line.split()[0] for line in lines if line.startswith("TTP")]
    assert titles == ["TTP305", "TTP402"]  # an upper bound comes last
    assert [line for line in lines if "TTP314" in line] == ["    also: TTP314 names the same ops"]
    assert "not shown, too little to save: TTP306; --all shows them" in lines
    assert "not shown, no saving known: TTP401; --all shows them" in lines
    assert [line for line in lines if line.startswith("bottleneck")] == [
        "bottleneck: decode: mixed",
        "bottleneck: prefill: host-bound",
    ]
    every = printed(checklist_listing(report, hide_quiet=False).lines, Style())
    assert sum(line.startswith("TTP") for line in every) == 5


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
    ],
)
def test_confirm_line_shows_the_newest_value_beside_the_baseline(
    outcome: Outcome, said: str
) -> None:
    verdict = replace(SUSPECT, outcome=outcome, confirmed=(11.0, 0.25))
    assert confirm_line("t.py::t", verdict) == (
        f"ttnn-perf: t.py::t: latency 0.2500 ms, baseline 10.00 ms: {said}"
    )


def test_confirm_line_of_what_could_not_be_measured_again() -> None:
    said = "ttnn-perf: t.py::t: latency could not be confirmed"
    assert confirm_line("t.py::t", Verdict(TIME, Outcome.NO_DATA, Reason.NOT_CONFIRMED)) == said
    assert confirm_line("t.py::t", replace(SUSPECT, confirmed=())) == said


def test_shift_says_how_much_of_how_many_and_what_differs() -> None:
    shift = Shift(0.123, 4, 6, ("governor powersave, at the baselines performance", "load 9 on 8"))
    assert shift_line(shift) == (
        "environment shifted: 12.3 % slower as a whole (4 of 6 tests moved the same way); "
        "governor powersave, at the baselines performance; load 9 on 8"
    )
