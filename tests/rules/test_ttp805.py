from __future__ import annotations

import pytest

from pytest_ttnn_perf.analysis.checklist.rule import Answer
from pytest_ttnn_perf.analysis.checklist.rules.ttp805_barrier_per_transfer import (
    barrier_per_transfer,
)
from pytest_ttnn_perf.records.finding import Evidence, RuleOutcome, Subject
from tests.rules.answers import ask
from tests.rules.kernel_logs import printed, program

UNIT = "transfers per barrier"


def test_a_barrier_after_each_transfer_is_found() -> None:
    subject = printed(
        program(1, cores=4, reads=256, writes=240, read_barriers=256, write_barriers=160),
        program(2, cores=4, read_barriers=128, write_barriers=16),
    )
    assert ask(barrier_per_transfer, subject) == Answer(
        RuleOutcome.FOUND,
        "reads of program 1 (kernel) have a barrier after every 1.0 transfers",
        1.0,
        2,
        UNIT,
        (
            Evidence("reads of program 1 (kernel)", 1.0, UNIT),
            Evidence("writes of program 1 (kernel)", 1.5, UNIT),
        ),
    )


def test_the_limit_itself_is_clean() -> None:
    subject = printed(program(cores=4, read_barriers=128, write_barriers=16))
    assert ask(barrier_per_transfer, subject) == Answer(RuleOutcome.CLEAN, None, 2.0, 2, UNIT)


@pytest.mark.parametrize("barriers", [None, 0, 256])
def test_one_barrier_on_each_core_raises_no_question(barriers: int | None) -> None:
    assert ask(barrier_per_transfer, printed(program(cores=256, read_barriers=barriers))) == Answer(
        RuleOutcome.NOT_APPLICABLE, "no program has more than one barrier on a core"
    )


@pytest.mark.parametrize(
    ("subject", "reason"),
    [
        (Subject(), "needs output of tt-lang"),
        (printed(), "the output has no PERF SUMMARY: set TTLANG_PERF_DUMP=1"),
    ],
)
def test_without_a_summary_nothing_is_measured(subject: Subject, reason: str) -> None:
    assert ask(barrier_per_transfer, subject) == Answer(RuleOutcome.NOT_MEASURED, reason)
