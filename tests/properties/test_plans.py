"""Whatever a step holds: a plan never saves more than the step has beyond its roofline.

Whatever was tried: estimates move towards what was gained, and never beyond it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_ttnn_perf.analysis.checklist.plan import Plan, Start, plan_of
from pytest_ttnn_perf.analysis.checklist.plan_start import start_of
from pytest_ttnn_perf.analysis.checklist.runner import all_rules, run_rules
from pytest_ttnn_perf.analysis.checklist.track_record import corrected, spread_of
from pytest_ttnn_perf.records.finding import Finding, RuleOutcome, Severity, Subject
from tests.properties.test_savings_of_any_step import tables
from tests.rules.test_plan import assert_sound

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_ttnn_perf.records.ops import OpTable

RULES = [rule.with_limits(share=-1.0) if "share" in rule.limits else rule for rule in all_rules()]


#: What steps gained, in parts of the estimate: also nothing, much more, or a loss.
ratios = st.lists(st.floats(-2.0, 5.0), max_size=12)
tried = st.fixed_dictionaries(dict.fromkeys(("TTP101", "TTP311", "TTP314", "TTP607"), ratios))


@given(ops=tables(), tried=tried)
@settings(deadline=None, max_examples=30)
def test_a_plan_is_sound(ops: OpTable, tried: Mapping[str, list[float]]) -> None:
    subject = Subject(ops=ops)
    start = start_of(subject, {})
    if start is None:
        assert not sum(ops.columns.kernel_ns)
        return
    made = plan_of(run_rules(RULES, subject), start, tried)
    assert_sound(made)
    assert_nothing_counts_twice(made)


def assert_nothing_counts_twice(made: Plan) -> None:
    """Steps add no more than the ops that they are of take, nor than each would alone."""
    for step in made.steps:
        adds, saves = step.finding.adds_ns or 0.0, step.finding.saving_ns or 0.0
        assert adds <= saves * (1 + 1e-9) + 1e-6
    told = sum(step.finding.adds_ns or 0.0 for step in made.steps)
    assert told <= made.start.now_ns * (1 + 1e-9) + 1e-6


@st.composite
def findings(draw: st.DrawFn, code: str) -> Finding:
    """Return what a rule found: as much as others, or another amount."""
    adds, more, rest = (draw(st.sampled_from([0.0, 10.0, 300.0, 2e4])) for _ in range(3))
    return Finding(
        code,
        code,
        draw(st.sampled_from([Severity.WARNING, Severity.INFO])),
        RuleOutcome.FOUND,
        saving_ns=adds + more,
        adds_ns=adds,
        of_ns=draw(st.sampled_from([None, adds + more + rest])),
        at_most=draw(st.booleans()),
    )


starts = st.builds(
    Start,
    st.just("decode"),
    st.sampled_from([500.0, 1e4, 1e6]),
    st.sampled_from([None, 0.0, 400.0]),
    waits=st.booleans(),
    noise_ns=st.sampled_from([0.0, 1.0, 100.0, 1e5]),
    repeats=st.integers(1, 9),
)
CODES = ("TTP101", "TTP302", "TTP311", "TTP314", "TTP402", "TTP607")


@given(
    found=st.tuples(*map(findings, CODES)),
    start=starts,
    tried=tried,
    shuffled=st.permutations(CODES),
)
@settings(deadline=None)
def test_a_plan_of_any_findings_is_sound_and_in_one_order(
    found: tuple[Finding, ...],
    start: Start,
    tried: Mapping[str, list[float]],
    shuffled: list[str],
) -> None:
    made = plan_of(found, start, tried)
    assert_sound(made)
    again = sorted(found, key=lambda one: shuffled.index(one.code))
    assert plan_of(again, start, tried).steps == made.steps


@given(gained=ratios, more=st.floats(0.0, 5.0))
def test_an_estimate_moves_towards_what_was_gained(gained: list[float], more: float) -> None:
    told = [min(max(0.0, ratio), 2.0) for ratio in gained]
    mean = sum(told) / len(told) if told else 1.0
    now = corrected(gained)
    assert min(1.0, mean) - 1e-9 <= now <= max(1.0, mean) + 1e-9
    assert corrected([ratio + more for ratio in gained]) >= now - 1e-9
    assert abs(corrected(gained * 40) - mean) <= abs(now - mean) + 1e-9


@given(gained=ratios)
def test_what_was_gained_often_is_what_is_expected(gained: list[float]) -> None:
    often = spread_of("TTP314", tuple(gained * 100))
    if gained:
        assert max(0.0, min(gained)) <= often.low <= often.high <= max(0.0, *gained)
    else:
        assert often == spread_of("TTP314")
