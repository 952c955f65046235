"""Findings as they are printed, and what is said while a run is under way."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from pytest_ttnn_perf.analysis.ops.regions import Basis, StepTime
from pytest_ttnn_perf.analysis.show.checklist import Checklist, checklist_listing
from pytest_ttnn_perf.core.finding import Finding, RuleOutcome, Severity
from pytest_ttnn_perf.core.metric import Metric
from pytest_ttnn_perf.core.observation import (
    JudgedTest,
    Observation,
    Outcome,
    Reason,
    Shift,
    Verdict,
)
from pytest_ttnn_perf.report.sentences import Rerun
from pytest_ttnn_perf.report.tables import Style, printed
from pytest_ttnn_perf.report.terminal import (
    confirm_line,
    shift_advice,
    shift_line,
)

DECODE = StepTime("decode", Basis.REPLAYS, 4, 84, 1_272_000.0, {0: 1_272_000.0})


FINDING = Finding(
    "TTP305", "unused-cores", Severity.WARNING, RuleOutcome.FOUND, "few cores", region="decode"
)


def test_findings_without_a_line_of_their_own_are_named_once() -> None:
    covers = replace(FINDING, saving_ns=9e3, adds_ns=9e3, also=("TTP314",))
    quiet = replace(FINDING, quiet=True)
    findings = (
        covers,
        replace(quiet, code="TTP314", saving_ns=8e3, adds_ns=0.0, covered_by="TTP305"),
        replace(quiet, code="TTP309", saving_ns=1.0, adds_ns=1.0),
        replace(quiet, code="TTP401"),
        replace(FINDING, code="TTP402", saving_ns=9e9, adds_ns=9e9, at_most=True),
    )
    report = Checklist(findings, (DECODE,), bottleneck="decode: mixed\nprefill: host-bound")
    lines = list(printed(checklist_listing(report).lines, Style()))
    titles = [line.split()[0] for line in lines if line.startswith("TTP")]
    assert titles == ["TTP305", "TTP402"]  # an upper bound comes last
    assert [line for line in lines if "TTP314" in line] == ["    also: TTP314 names the same ops"]
    assert "not shown, too little to save: TTP309; --all shows them" in lines
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
        (Outcome.SHIFTED, "as much slower as all tests"),
    ],
)
def test_confirm_line_shows_the_newest_value_beside_the_baseline(
    outcome: Outcome, said: str
) -> None:
    verdict = replace(SUSPECT, outcome=outcome, confirmed=(11.0, 0.25))
    assert confirm_line("t.py::t", verdict) == (
        f"t.py::t: latency 0.2500 ms, baseline 10.00 ms: {said}"
    )


def test_confirm_line_of_what_could_not_be_measured_again() -> None:
    unknown = Verdict(TIME, Outcome.NO_DATA, Reason.NOT_CONFIRMED)
    for verdict in (unknown, replace(SUSPECT, confirmed=())):
        assert confirm_line("t.py::t", verdict) == ("t.py::t: latency could not be confirmed")


def test_shift_names_no_cause_but_the_tests_and_what_differs() -> None:
    slower = JudgedTest(Observation("t.py::t"), (replace(SUSPECT, outcome=Outcome.SHIFTED),))
    shift = Shift(0.26, 6, 6, ("governor performance → powersave", "load 9 on 8"))
    assert shift_line(shift) == "all 6 tests 26.0 % slower: the machine, or a change they share"
    assert shift_line(Shift(-0.123, 4, 6)).startswith("4 of 6 tests 12.3 % faster: ")
    assert [*shift_advice(shift, [slower], Rerun(base="3ab6072"), failed=False)] == [
        ("differs from baselines: governor performance → powersave; load 9 on 8", None),
        ("tests: t.py::t", None),
        ("exit code 6: the run fails, no single test is to blame", None),
        ("compare with the merge base", "ttnn-perf ab 3ab6072 t.py::t"),
        ("accept the slower times", 'pytest --ttnn-perf-update=all --ttnn-perf-reason "why"'),
    ]
