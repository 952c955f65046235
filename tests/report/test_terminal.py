"""The summary of a run: what is listed, what is folded, and what is told once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pytest_ttnn_perf.core.metric import Metric
from pytest_ttnn_perf.core.observation import MetricObservation, Outcome, Reason
from pytest_ttnn_perf.report.findings import First, Progress, State, Step, findings_lines
from pytest_ttnn_perf.report.tables import Style, printed
from pytest_ttnn_perf.report.terminal import SummaryOptions, progress_lines, summary_lines
from tests.harness.ci_report import PCC, WALL, finding, judged, verdict

if TYPE_CHECKING:
    from pytest_ttnn_perf.core.observation import JudgedTest

MATMUL = Metric("device_kernel_time_matmul", "ns")
EXPLAINS = verdict(Outcome.WITHIN, MATMUL, reason=Reason.EXPLAINS, detail="wall_time", limit=None)
WITHIN = verdict(Outcome.WITHIN)
SAME_PCC = verdict(Outcome.WITHIN, PCC)


def summary(*tests: JudgedTest, **options: object) -> list[str]:
    """Return the lines of a summary, as a log has them."""
    summary_options = SummaryOptions(**options)  # type: ignore[arg-type]
    return list(printed(summary_lines(tests, summary_options=summary_options), Style()))


def rows(lines: list[str]) -> list[list[str]]:
    """Return metric and verdict of each row of the table."""
    table = lines[2 : lines.index("")]
    start, end = lines[0].index("metric"), lines[0].index("baseline")
    last = lines[0].index("verdict")
    return [[line[start:end].strip(), line[last:].strip()] for line in table]


@pytest.mark.parametrize(
    ("verdicts", "listed"),
    [
        ([WITHIN, SAME_PCC], [["wall_time, 1 more", "WITHIN"]]),
        (
            [verdict(Outcome.REGRESSED), EXPLAINS, SAME_PCC],
            [["wall_time, 2 more", "REGRESSED"]],
        ),
        (
            [verdict(Outcome.REGRESSED), verdict(Outcome.REGRESSED, PCC), EXPLAINS],
            [["pcc", "REGRESSED"], ["wall_time, 1 more", "REGRESSED"]],
        ),
    ],
    ids=["steady", "explained", "two regressions"],
)
def test_what_is_as_before_is_counted(verdicts: list[object], listed: list[list[str]]) -> None:
    test = judged("m.py::test_m", *verdicts)  # type: ignore[arg-type]
    assert rows(summary(test)) == listed


def test_verbosity_lists_all_or_failures_alone() -> None:
    extra = MetricObservation(Metric("extra", "ns"), (2e6,))
    empty = MetricObservation(Metric("p99", "ns"), (), note="too few")
    metrics = {"extra": extra, "p99": empty}
    steady = judged("m.py::test_m", WITHIN, SAME_PCC, metrics=metrics)
    bad = judged("m.py::test_bad", verdict(Outcome.REGRESSED))
    more = summary(steady, bad, verbosity=1, failed=frozenset({"m.py::test_bad"}))
    assert rows(more) == [
        ["wall_time", "REGRESSED"],
        ["wall_time", "WITHIN"],
        ["pcc", "WITHIN"],
        ["extra", "recorded only"],
        ["p99", "not measured"],
    ]
    bad_alone = frozenset({"m.py::test_bad"})
    less = summary(steady, bad, verbosity=-1, failed=bad_alone, told=bad_alone)
    assert [line.split()[0] for line in less if line] == ["test", "-" * 14, "m.py::test_bad", "2"]


def test_a_failure_that_was_shown_is_not_told_again_but_a_gain_beside_it_is() -> None:
    test = judged("m.py::test_m", verdict(Outcome.REGRESSED), verdict(Outcome.IMPROVED, PCC))
    names = frozenset({"m.py::test_m"})
    alone, after = summary(test, failed=names), summary(test, failed=names, told=names)
    assert any(line.startswith("REGRESSED m.py::test_m: ") for line in alone)
    assert not any(line.startswith("REGRESSED") for line in after)
    assert any(line.startswith("IMPROVED m.py::test_m: ") for line in after)


def test_what_several_tests_note_is_one_line() -> None:
    def noted(name: str, note: str, *samples: float) -> JudgedTest:
        metric = MetricObservation(WALL, samples, note=note)
        return judged(f"m.py::{name}", WITHIN, metrics={"wall_time": metric})

    lines = summary(noted("a", "cold", 1.0), noted("b", "cold", 1.0), noted("c", "warm", 1.0))
    assert [line for line in lines if line.startswith("note")] == [
        "note 2 tests: wall_time: cold",
        "note m.py::c: wall_time: warm",
    ]
    lacking = summary(noted("a", "no profiler"), noted("b", "no profiler"))
    assert "not measured 2 tests: no profiler" in lacking
    several = (noted("a", "no profiler"), noted("b", "the worker died"))
    assert "not measured 2 tests: -v says why" in summary(*several)
    assert "note m.py::b: wall_time: the worker died" in summary(*several, verbosity=1)


def test_what_the_machine_does_is_told_once_whatever_its_numbers() -> None:
    tests = [
        judged(f"m.py::{name}", findings=(finding("TTP006", reason=f"load {name}"),))
        for name in ("1.5", "2.5")
    ]
    short, full = (
        [*printed(findings_lines(tests, verbose=verbose), Style(80))] for verbose in (False, True)
    )
    assert short[:2] == [
        "checklist: 1 finding in 2 tests (-v: where, how to fix)",
        "  TTP006 layout-conversions    2 tests: load 1.5",
    ]
    assert "2 tests: TTP006 layout-conversions (warning): load 1.5" in full
    assert len([text for text in full if "load" in text]) == 1


def test_many_models_take_a_line_for_each_rule() -> None:
    saving: dict[str, Any] = {"saving_ns": 146e3, "adds_ns": 146e3, "step_ns": 482e3}
    tests = [
        judged(
            f"m.py::test_{n}", findings=(finding(reason=f"{n} ops", **saving), finding("TTP311"))
        )
        for n in range(20)
    ]
    lines = [*printed(findings_lines(tests), Style(80))]
    assert lines == [
        "checklist: 2 findings in 20 tests (-v: where, how to fix)",
        "  TTP203 layout-conversions  saves 146.0 of 482.0 µs  20 tests: 0 ops",
        "  TTP311 layout-conversions                           20 tests: 12 % of the tim…",
        "",
    ]


def test_progress_is_listed_where_a_step_is_open() -> None:
    def progress(state: State) -> Progress:
        done = Step("baseline", State.DONE)
        steps = (Step("data formats", state, ("TTP101",) if state is State.OPEN else ()),)
        firsts = (First("TTP101", "weights-not-bfloat8"),) if state is State.OPEN else ()
        return Progress(done, steps * 7, done, firsts=firsts)

    finished, going = ("m.py::a", progress(State.DONE)), ("m.py::b", progress(State.OPEN))
    assert list(progress_lines([finished])) == []
    for width in (40, 60, 80, 200):
        lines = list(printed(progress_lines([finished, going]), Style(width)))
        assert not any("m.py::a" in line for line in lines)
        assert max(map(len, lines)) <= width
        names = " ".join(" ".join(lines).split())
        assert (
            "OPEN: 1 formats, 2 layouts, 3 memory, 4 trace, 5 queues, 6 convs, 7 devices" in names
        )
        assert "TTP101 weights-not-bfloat8" in names
    everything = list(printed(progress_lines([finished, going], verbose=True), Style()))
    assert any(line.startswith("m.py::a  9 of 9") for line in everything)
