"""Plans: order, overlaps, the roofline, targets; of findings and of real captures."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_ttnn_perf.analysis.checklist.plan import (
    Chance,
    Plan,
    Reach,
    Start,
    ideal_of_step,
    plan_of,
    reach_of,
    reaches_of,
)
from pytest_ttnn_perf.core.finding import Finding, RuleOutcome, Severity
from pytest_ttnn_perf.core.metric import Kind, Source
from pytest_ttnn_perf.core.observation import Limits, MetricObservation, Observation
from pytest_ttnn_perf.measure.recorder import metric_of
from tests.analysis.rules.tables import op, table, tensor


def finding(code: str, saves: float, adds: float | None = None, **more: Any) -> Finding:
    told = {"name": f"rule-{code}", "saving_ns": saves, **more}
    told.setdefault("adds_ns", saves if adds is None else adds)
    return Finding(code, severity=Severity.WARNING, outcome=RuleOutcome.FOUND, **told)


def plan(*findings: Finding, now: float = 1000.0, ideal: float | None = 100.0) -> Plan:
    return plan_of(findings, Start("decode", now, ideal))


def test_steps_add_up_and_each_begins_where_the_last_ended() -> None:
    made = plan(finding("TTP305", 90.0, 40.0), finding("TTP102", 200.0))
    assert [step.finding.code for step in made.steps] == ["TTP102", "TTP305"]
    assert [step.left_ns for step in made.steps] == [800.0, 760.0]
    assert made.steps[1].alone_ns == 90.0
    assert (made.left_ns, made.best_ns) == (760.0, 760.0)


def test_an_upper_bound_counts_only_at_best_and_comes_last() -> None:
    made = plan(finding("TTP402", 500.0, at_most=True), finding("TTP102", 100.0))
    assert [(step.saves_ns, step.left_ns, step.best_ns) for step in made.steps] == [
        (100.0, 900.0, 900.0), (500.0, 900.0, 400.0)
    ]  # fmt: skip
    assert plan(finding("TTP402", 950.0, at_most=True)).steps[0].saves_ns == 900.0


def test_a_host_in_the_way_comes_first() -> None:
    found = (finding("TTP402", 50.0, at_most=True), finding("TTP102", 100.0))
    made = plan_of(found, Start("", 1000.0, waits=True))
    assert [step.finding.code for step in made.steps] == ["TTP402", "TTP102"]


def test_it_stops_at_the_roofline() -> None:
    made = plan(finding("TTP102", 600.0), finding("TTP104", 500.0))
    assert (made.stopped, made.left_ns, made.best_ns) == (True, 100.0, 100.0)
    assert made.steps[1].saves_ns == 300.0


def test_what_says_no_saving_adds_little_or_is_waived_is_no_step() -> None:
    untold = finding("TTP504", 1.0, saving_ns=None, adds_ns=None)
    little = finding("TTP101", 50.0, 0.0, quiet=True, covered_by="TTP311")
    waived = finding("TTP203", 70.0, waived="wanted")
    target = finding("TTP905", 5.0)
    made = plan(untold, little, waived, target)
    assert (made.steps, made.untold, made.little, made.waived) == (
        (), (untold,), (little,), (waived,)
    )  # fmt: skip
    assert made.left_ns == made.best_ns == 1000.0


@pytest.mark.parametrize(
    ("target", "chance", "after"),
    [
        (1000.0, Chance.REACHED, None),
        (800.0, Chance.POSSIBLE, 1),
        (760.0, Chance.POSSIBLE, 2),
        (759.0, Chance.AT_BEST, 3),
        (700.0, Chance.AT_BEST, 3),
        (699.0, Chance.BEYOND, None),
        (99.0, Chance.NEVER, None),
    ],
)
def test_targets(target: float, chance: Chance, after: int | None) -> None:
    bound = finding("TTP402", 60.0, at_most=True)
    reach = reach_of(plan(finding("TTP102", 200.0), finding("TTP104", 40.0), bound), target)
    assert (reach.chance, reach.after, reach.left_ns, reach.best_ns) == (chance, after, 760, 700)


def aimed(now: float, target: float, name: str = "sim_time") -> Observation:
    """Return a test with a target for a time."""
    timed = metric_of(name, unit="ns", kind=Kind.TIME, source=Source.SIM)
    observed = MetricObservation(timed, (now,), limits=Limits(target=target))
    return Observation("test_a.py::test_a", metrics={name: observed})


def test_what_kernels_take_knows_no_host() -> None:
    found = (finding("TTP404", 600.0), finding("TTP102", 200.0))
    made = plan_of(found, Start("", 1000.0, waits=True))

    def reach(target: float, *findings: Finding) -> Reach:
        test = aimed(400.0, target, "device_kernel_time")
        (only,) = reaches_of(test, findings, made, alone=True)
        return only

    assert (reach(300.0, *found).chance, reach(300.0, *found).after) == (Chance.POSSIBLE, 2)
    assert reach(50.0, found[0]).best_ns == 400.0


def test_a_target_of_whole_calls_is_answered_by_the_only_region() -> None:
    test, made = aimed(900.0, 500.0), plan()
    (reach,) = reaches_of(test, (), made, alone=True)
    assert (reach.metric, reach.target_ns, reach.left_ns) == ("sim_time", 500.0, 900.0)
    assert list(reaches_of(test, (), made, alone=False)) == [], "nobody knows which part it is"


def test_the_least_time_of_a_step() -> None:
    wide = tensor(1, 1, 4096, 4096)
    narrow = tensor(1, 1, 4096, 4096, dtype="BFLOAT4_B")
    experts = tensor(1, 32, 4096, 4096)
    row = tensor(1, 1, 32, 4096, memory="L1_WIDTH_SHARDED")
    matmuls = [op("Matmul", [row, weights], [row], ns=1e6) for weights in (wide, narrow, experts)]
    stale = op("Matmul", [row, wide], ns=9_000.0)  # it cannot have these shapes
    step = table(*matmuls, op("Unary", [row], [row], ns=1e6), stale)
    read = 4096 * 4096 / 288
    assert ideal_of_step(step) == pytest.approx(read * 2 + read * 0.5625)
    assert ideal_of_step(step, narrow=True) == pytest.approx(read * 1.0625 + read * 0.5625)
    assert ideal_of_step(table(*matmuls, arch="quasar")) is None


def assert_sound(made: Plan) -> None:
    """No plan saves more than there is, and its steps are its sum."""
    start = made.start
    least = start.ideal_ns or 0.0
    assert least <= start.now_ns
    told = sum(step.saves_ns for step in made.steps if not step.finding.at_most)
    assert start.now_ns - told == pytest.approx(made.left_ns)
    for step in made.steps:
        assert -1e-6 <= step.saves_ns <= min(step.alone_ns, start.room_ns) + 1e-6
        assert least - 1e-6 <= step.best_ns <= step.left_ns + 1e-6 <= start.now_ns + 2e-6
