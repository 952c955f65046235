"""Memory-bound kernels that use little of the bandwidth."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from pytest_ttnn_perf.analysis.checklist.runner import rule_of, run_rules
from pytest_ttnn_perf.analysis.readers.ttlang import ProgramPerf, Roofline
from pytest_ttnn_perf.core.finding import Severity
from tests.rules.answers import Ask, Evidence, Subject, limit, not_applicable, not_measured
from tests.rules.kernel_logs import printed, program

ask = Ask("TTP806")
LIMIT = limit(0.5, "of the DRAM bandwidth")
MEMORY = Roofline("memory", 18, 779, "NCRISC", 636, "TRISC_1")
#: 2 MiB in 100 us: 20.97 of 288 GB/s.
SLOW = program(cycles=100_000)


def on_wormhole(*programs: ProgramPerf, roofline: Roofline | None = MEMORY) -> Subject:
    log = printed(*programs, roofline=roofline).kernels
    assert log is not None
    summary = replace(log.perf_summaries[0], arch="wormhole_b0", clock_mhz=1000.0)
    return Subject(kernels=replace(log, perf_summaries=(summary,)))


def test_a_small_part_of_the_bandwidth() -> None:
    reached = 2**21 / 100_000
    assert ask(on_wormhole(SLOW)) == LIMIT.found(
        2**21 / (100_000 * 288),
        "programs move 7.3 % of what DRAM could move in that time",
        [Evidence("program 1024 (kernel): 7.3 % of 288 GB/s", reached, "GB/s")],
    )
    (finding,) = run_rules([rule_of("TTP806")], on_wormhole(SLOW))
    assert finding.saving_ns == pytest.approx(100_000 - 2**21 / (0.75 * 288))
    (finding,) = run_rules([rule_of("TTP806")], on_wormhole(SLOW, program(7, cycles=9)))
    assert finding.saving_ns is None  # which of them was profiled is not told


def test_without_a_roofline_it_is_information() -> None:
    (finding,) = run_rules([rule_of("TTP806")], on_wormhole(SLOW, roofline=None))
    assert (finding.severity, finding.saving_ns) == (Severity.INFO, None)


def test_most_of_the_bandwidth() -> None:
    assert ask(on_wormhole(program(cycles=10_000))) == LIMIT.clean(2**21 / (10_000 * 288))


def test_nothing_to_look_at() -> None:
    computing = replace(MEMORY, bound="compute")
    told = "the kernel is bound by compute (TTP804)"
    assert ask(on_wormhole(SLOW, roofline=computing)) == not_applicable(told)
    told = "the bandwidth of the chip is not known: the log names no chip"
    assert ask(printed(SLOW)) == not_measured(told)
