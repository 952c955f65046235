"""Kernel durations without a kernel of any processor."""

from __future__ import annotations

from dataclasses import replace

from tests.rules.answers import Ask, clean, found, not_measured
from tests.rules.tables import op, table

ask = Ask("TTP009")
OPS = table(op("Matmul", fw_ns=1100))


def test_no_processor_ran_a_kernel() -> None:
    told = "no processor ran a kernel, though ops have kernel durations"
    assert ask(ops=replace(OPS, processors=False)) == found(told)


def test_processors_have_times() -> None:
    assert ask(ops=replace(OPS, processors=True)) == clean()


def test_a_capture_that_cannot_tell() -> None:
    assert ask(ops=OPS) == not_measured("the capture has no columns for single processors")
    kernel_time_only = replace(table(op("Matmul")), processors=False)
    assert ask(ops=kernel_time_only) == not_measured(
        "the report has kernel durations and no other times"
    )
