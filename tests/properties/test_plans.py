"""Whatever a step holds: a plan never saves more than the step has beyond its roofline."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given, settings

from pytest_ttnn_perf.analysis.checklist.plan import Plan, plan_of
from pytest_ttnn_perf.analysis.checklist.plan_start import start_of
from pytest_ttnn_perf.analysis.checklist.runner import all_rules, run_rules
from pytest_ttnn_perf.records.finding import Subject
from tests.properties.test_savings_of_any_step import tables
from tests.rules.test_plan import assert_sound

if TYPE_CHECKING:
    from pytest_ttnn_perf.records.ops import OpTable

RULES = [rule.with_limits(share=-1.0) if "share" in rule.limits else rule for rule in all_rules()]


def planned(ops: OpTable) -> Plan | None:
    subject = Subject(ops=ops)
    start = start_of(subject, {})
    return None if start is None else plan_of(run_rules(RULES, subject), start)


@given(ops=tables())
@settings(deadline=None, max_examples=50)
def test_a_plan_is_sound(ops: OpTable) -> None:
    made = planned(ops)
    if made is None:
        assert not sum(ops.columns.kernel_ns)
    else:
        assert_sound(made)
