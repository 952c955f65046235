"""Whatever a step holds: a plan never saves more than the step has beyond its roofline."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_ttnn_perf.analysis.checklist.plan import Start, plan_of, start_of
from pytest_ttnn_perf.analysis.checklist.runner import all_rules, run_rules
from pytest_ttnn_perf.core.finding import Finding, RuleOutcome, Severity, Subject
from tests.analysis.rules.test_plan import assert_sound
from tests.properties.test_savings_of_any_step import tables

if TYPE_CHECKING:
    from pytest_ttnn_perf.core.ops import OpTable

RULES = [rule.with_limits(share=-1.0) if "share" in rule.limits else rule for rule in all_rules()]


@given(ops=tables())
@settings(deadline=None, max_examples=30)
def test_a_plan_is_sound(ops: OpTable) -> None:
    subject = Subject(ops=ops)
    start = start_of(subject, {})
    if start is None:
        assert not sum(ops.columns.kernel_ns)
        return
    made = plan_of(run_rules(RULES, subject), start)
    assert_sound(made)
    # Nothing counts twice: steps add no more than their ops take, nor than each would alone.
    for step in made.steps:
        adds, saves = step.finding.adds_ns or 0.0, step.finding.saving_ns or 0.0
        assert adds <= saves * (1 + 1e-9) + 1e-6
    told = sum(step.finding.adds_ns or 0.0 for step in made.steps)
    assert told <= made.start.now_ns * (1 + 1e-9) + 1e-6


@st.composite
def findings(draw: st.DrawFn, code: str) -> Finding:
    """Return what a rule found: as much as others, or another amount."""
    adds, more = (draw(st.sampled_from([0.0, 10.0, 300.0, 2e4])) for _ in range(2))
    return Finding(
        code,
        code,
        draw(st.sampled_from([Severity.WARNING, Severity.INFO])),
        RuleOutcome.FOUND,
        saving_ns=adds + more,
        adds_ns=adds,
        at_most=draw(st.booleans()),
    )


starts = st.builds(
    Start,
    st.just("decode"),
    st.sampled_from([500.0, 1e4, 1e6]),
    st.sampled_from([None, 0.0, 400.0]),
    waits=st.booleans(),
)
CODES = ("TTP101", "TTP302", "TTP311", "TTP314", "TTP402", "TTP607")


@given(
    found=st.tuples(*map(findings, CODES)),
    start=starts,
    shuffled=st.permutations(CODES),
)
@settings(deadline=None)
def test_a_plan_of_any_findings_is_sound_and_in_one_order(
    found: tuple[Finding, ...],
    start: Start,
    shuffled: list[str],
) -> None:
    made = plan_of(found, start)
    assert_sound(made)
    again = sorted(found, key=lambda one: shuffled.index(one.code))
    assert plan_of(again, start).steps == made.steps
