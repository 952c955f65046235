"""Kernel durations without a kernel of any processor."""

from __future__ import annotations

from msgspec.structs import replace

from pytest_ttnn_perf.analysis.checklist.bottleneck import held_back
from pytest_ttnn_perf.analysis.checklist.runner import all_rules, run_in_regions
from pytest_ttnn_perf.core.finding import RuleOutcome, Subject
from tests.rules.answers import Ask, clean, found, not_measured
from tests.rules.tables import op, table

ask = Ask("TTP009")
OPS = table(op("Matmul", fw_ns=1100))


def test_no_processor_ran_a_kernel() -> None:
    told = "no processor ran a kernel, though ops have kernel durations"
    assert ask(ops=replace(OPS, processors=False)) == found(told)


def test_nothing_else_is_said_of_such_a_capture() -> None:
    subject = Subject(ops=replace(OPS, processors=False))
    findings = run_in_regions(all_rules(), subject)
    others = [one for one in findings if one.saving_ns is not None or one.fails]
    assert [one.code for one in others] == ["TTP009"]
    (movement,) = (one for one in findings if one.code == "TTP307")
    assert movement.outcome is RuleOutcome.NOT_MEASURED
    assert (movement.reason or "").endswith(
        "trusted: no processor ran a kernel, though ops have kernel durations"
    )
    assert held_back(subject, {})[0] is None


def test_processors_have_times() -> None:
    assert ask(ops=replace(OPS, processors=True)) == clean()


def test_a_capture_that_cannot_tell() -> None:
    assert ask(ops=OPS) == not_measured("the capture has no columns for single processors")
    kernel_time_only = replace(table(op("Matmul")), processors=False)
    assert ask(ops=kernel_time_only) == not_measured(
        "the report has kernel durations and no other times"
    )
