"""Cores that do not finish together."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from pytest_ttnn_perf.analysis.checklist.runner import rule_of, run_rules
from pytest_ttnn_perf.analysis.readers.ttlang import KernelTime, ProgramPerf, Span
from tests.rules.answers import Ask, Evidence, limit, not_measured
from tests.rules.kernel_logs import printed, program

ask = Ask("TTP807")
LIMIT = limit(1.5, "x the quickest core")


def timed(**threads: tuple[int, int]) -> ProgramPerf:
    times = [
        KernelTime(thread, Span(low, low / 1000), Span(high, high / 1000))
        for thread, (low, high) in threads.items()
    ]
    return replace(program(cycles=2000), kernel_times=tuple(times))


def test_a_core_works_much_longer() -> None:
    subject = printed(timed(BRISC=(1000, 2000), NCRISC=(1000, 1600), TRISC_0=(1900, 1900)))
    assert ask(subject) == LIMIT.found(
        2.0,
        "BRISC of program 1024 (kernel) runs 2.00 x as long on the slowest core",
        [
            Evidence("BRISC of program 1024 (kernel)", 2.0, LIMIT.unit),
            Evidence("NCRISC of program 1024 (kernel)", 1.6, LIMIT.unit),
        ],
    )
    (finding,) = run_rules([rule_of("TTP807")], subject)
    assert finding.saving_ns == pytest.approx(500.0)


def test_even_work() -> None:
    assert ask(printed(timed(BRISC=(1000, 1500)))) == LIMIT.clean(1.5)


def test_times_that_are_not_told() -> None:
    told = "the output does not give kernel times of single cores"
    assert ask(printed(program())) == not_measured(told)
