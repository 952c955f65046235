"""What a step closed, what that had promised, and what is worth trying next."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Final

import pytest
from msgspec.structs import replace

from pytest_ttnn_perf.core.finding import Finding, RuleOutcome, Severity, UnansweredRules
from pytest_ttnn_perf.core.metric import KERNEL_TIME, Better, Kind, Metric
from pytest_ttnn_perf.core.observation import Observation, Outcome, Verdict
from pytest_ttnn_perf.experiments.ab import AbResult
from pytest_ttnn_perf.experiments.journal import (
    Decision,
    Effect,
    Prediction,
    Situation,
    Step,
    StepFinding,
    journal_listing,
    ways_of,
)
from pytest_ttnn_perf.experiments.paired import Comparison
from pytest_ttnn_perf.experiments.repository import Commit, WorkingTree
from pytest_ttnn_perf.experiments.rounds import Sessions
from pytest_ttnn_perf.experiments.try_change import (
    candidates_of,
    decide,
    finding_changes,
    predictions_of,
    several_changes,
)

TEST = "test_a.py::test_a"


def finding(code: str, saving_ns: float | None = None, **more: object) -> Finding:
    found = RuleOutcome.FOUND if saving_ns is not None else RuleOutcome.CLEAN
    return Finding(code, "a-rule", Severity.WARNING, found, saving_ns=saving_ns, **more)  # type: ignore[arg-type]


def both(before: Observation, after: Observation) -> AbResult:
    commit = Commit("0" * 40, "0000000", "Start")
    sides = tuple(Sessions(20, 4, {TEST: [seen]}) for seen in (before, after))
    return AbResult("HEAD", commit, WorkingTree(commit), 20, 4, sides=sides)  # type: ignore[arg-type]


def time(metric: str, before: float, after: float) -> Effect:
    return Effect(TEST, metric, "ns", Better.LOWER, Kind.TIME, "IMPROVED", before, after)


def test_a_finding_is_closed_where_its_rule_says_so_and_not_where_nobody_can_tell() -> None:
    then = Observation(
        TEST,
        findings=(
            finding("TTP101", 300.0, adds_ns=250.0),
            finding("TTP305", 200.0),
            finding("TTP402", 100.0),
            finding("TTP203", 90.0, waived="later"),
        ),
    )
    now = Observation(
        TEST,
        findings=(finding("TTP101"), finding("TTP402", 90.0), finding("TTP302", 20.0)),
        unanswered=(UnansweredRules(RuleOutcome.NOT_MEASURED, "no op table", ("TTP305",)),),
    )
    opened, closed = finding_changes(both(then, now))
    assert [each.code for each in closed] == ["TTP101"]
    assert [each.code for each in opened] == ["TTP302"]

    # Alone it saves also what it has in common with a finding that stays.
    assert predictions_of(closed, [time(KERNEL_TIME, 1000.0, 790.0)]) == (
        Prediction(TEST, ("TTP101",), KERNEL_TIME, predicted_ns=300.0, measured_ns=210.0),
    )


def test_less_waiting_shows_in_the_time_that_users_wait_for() -> None:
    then = Observation(TEST, findings=(finding("TTP402", 200.0, at_most=True, region="decode"),))
    _, closed = finding_changes(both(then, Observation(TEST, findings=(finding("TTP402"),))))
    effects = [
        time(f"{KERNEL_TIME}.decode", 700.0, 700.0),
        time("sim_time", 1000.0, 820.0),
    ]
    assert predictions_of(closed, effects) == (
        Prediction(TEST, ("TTP402",), "sim_time", 200.0, 180.0, at_most=True),
    )


def test_kernels_are_promised_no_gaps_between_them() -> None:
    moves = StepFinding(TEST, "TTP302", "resharding", saving_ns=40.0, gaps_ns=15.0)
    trace = StepFinding(TEST, "TTP402", "trace", saving_ns=300.0, gaps_ns=300.0)
    kernel, wall = time(KERNEL_TIME, 1000.0, 975.0), time("wall_time", 2000.0, 1700.0)
    of_kernels = Prediction(TEST, ("TTP302",), KERNEL_TIME, predicted_ns=25.0, measured_ns=25.0)
    of_calls = Prediction(TEST, ("TTP402",), "wall_time", predicted_ns=300.0, measured_ns=300.0)
    assert predictions_of([moves, trace], [kernel, wall]) == (of_kernels, of_calls)
    assert predictions_of([trace], [kernel]) == ()
    # Two regions without a kernel time of their own show in one time: that is measured once.
    other = replace(trace, region="prefill", code="TTP401", saving_ns=100.0)
    joined = replace(of_calls, codes=("TTP402", "TTP401"), predicted_ns=400.0)
    assert predictions_of([trace, other], [kernel, wall]) == (joined,)


def test_the_host_comes_first_where_it_is_in_the_way() -> None:
    findings = (
        finding("TTP605", 30.0),
        finding("TTP402", 20.0, at_most=True),
        finding("TTP303", 25.0, adds_ns=0.0),
        finding("TTP103", 28.0, quiet=True),
    )
    busy, waits = (Observation(TEST, findings=findings, model_kind=kind)
                   for kind in (None, "host-bound model"))  # fmt: skip
    assert [each.code for each in candidates_of(both(busy, busy))] == ["TTP605", "TTP402"]
    assert [each.code for each in candidates_of(both(waits, waits))] == ["TTP402", "TTP605"]


@pytest.mark.parametrize(
    ("facts", "shown"),
    [
        ({"command": "k.py 512"}, False),
        ({"command": "k8192.py"}, False),
        ({"command": "k.py 8192"}, True),
        ({"command": "k.py --m 8192 --n 512"}, False),
        ({"command": "k.py --m 8192 --n 16384"}, True),
        ({"shape": "8192x8192"}, True),
        ({}, False),
    ],
)
def test_a_gain_is_kept_for_the_size_at_which_it_was_shown(
    facts: dict[str, str], *, shown: bool
) -> None:
    now = Observation(TEST, facts={**facts, "production_shape": "8192x8192 bfloat16"})
    metric = Metric("wall_time", unit="ns", kind=Kind.TIME)
    faster = Verdict(metric, Outcome.IMPROVED, observed=1.0, centre=2.0, change=-0.5, limit=0.02)
    compared = Comparison(faster, rounds=4, low=-0.6, high=-0.4, test=TEST)
    decision, reasons = decide(replace(both(now, now), compared=(compared,)), (), edited=False)
    assert decision is Decision.KEEP
    assert any("not shown at 8192x8192" in each for each in reasons) is not shown


_KERNEL: Final = """
BLOCK = 2
@ttl.operation(grid=(2, 2))
def add(a):
    blocks = ttl.make_dataflow_buffer_like(a, shape=(BLOCK, 1), block_count=2)
    ttl.copy(a, blocks)
@operation(grid="full")
def other(a): ttl.copy(a)
"""


@pytest.mark.parametrize(
    ("edits", "said"),
    [
        ({"BLOCK = 2": "BLOCK = 4"}, []),
        ({"grid=(2, 2)": "grid=(4, 4)"}, []),
        ({"BLOCK = 2": "BLOCK = 4", "grid=(2, 2)": "grid=(4, 4)"}, ["2 changes", "BLOCK, grid"]),
        (
            {"block_count=2": "block_count=4", "(BLOCK, 1)": "(1, 1)", "copy(a, b": "copy(b, b"},
            ["3 changes in one step: block shape, block_count, copies"],
        ),
        ({"copy(a)": "copy(b)", "grid=(2, 2)": "grid=(1, 1)"}, ["2 operations", "add, other"]),
    ],
)
def test_several_changes_of_kernels_in_one_step_are_said(
    edits: dict[str, str], said: list[str]
) -> None:
    after = _KERNEL
    for old, new in edits.items():
        assert old in after
        after = after.replace(old, new)
    states = SimpleNamespace(
        changed_files=lambda *_: {"k.py": ("a", "b"), "README": ("a", "b"), "new.py": (None, "c")},
        text=lambda state, _: state,
    )
    remarks = "\n".join(several_changes(states, _KERNEL, after))  # type: ignore[arg-type]
    assert bool(remarks) is bool(said)
    assert all(each in remarks for each in said)


def test_the_journal_has_cycles_bandwidth_and_cores_of_a_kernel() -> None:
    def count(metric: str, before: float, after: float) -> Effect:
        return Effect(TEST, metric, "", Better.LOWER, Kind.COUNT, "WITHIN", before, after)

    effects = (
        time(KERNEL_TIME, 54_000.0, 27_000.0),
        count("kernel_dram_read_bytes", 540_000, 540_000),
        count("kernel_dram_write_bytes", 540_000, 540_000),
        count("kernel_cores", 4, 64),
    )
    commits = ("0" * 40,) * 5
    step = Step("1", "now", "Grid", Decision.KEEP, (), *commits, 4, effects)
    known = replace(step, situations={TEST: Situation(TEST, clock_mhz=1000.0)}, approved_by="Ann")
    (line,) = (each for each in _journal(known) if "Grid" in each)
    assert "54,000 → 27,000" in line
    assert "20.0 → 40.0" in line
    assert "4 → 64" in line
    assert "approved by Ann" in "".join(_journal(known))
    # Without a clock there are no cycles, and without a kernel none of the columns.
    assert "cycles" not in "".join(_journal(step))
    assert "GB/s" not in "".join(_journal(replace(step, effects=effects[:1])))


def _journal(step: Step) -> list[str]:
    text = journal_listing([step], ways_of([step], frozenset())).text("table")
    return text.splitlines()
