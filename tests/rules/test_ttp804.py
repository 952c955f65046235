from __future__ import annotations

import pytest
from msgspec.structs import replace

from pytest_ttnn_perf.analysis.readers.ttlang import Roofline, ThreadWork, TtlangLog
from tests.rules.answers import Ask, Evidence, Subject, limit, not_applicable, not_measured
from tests.rules.kernel_logs import printed, program

ask = Ask("TTP804")
LIMIT = limit(0.1, "of the longer work")
THREADS = (ThreadWork("NCRISC", 1400, 621, 779), ThreadWork("TRISC_1", 2106, 1470, 636))


def roofline(side: str, percent: int) -> Roofline:
    return Roofline(side, percent, 779, "NCRISC", 636, "TRISC_1", THREADS)


def test_what_bounds_a_kernel_is_said() -> None:
    subject = printed(program(5, bandwidth=19.3), roofline=roofline("memory", 18))
    assert ask(subject) == LIMIT.found(
        0.18,
        "memory-bound: computing takes 18.0 % fewer cycles than moving data",
        [
            Evidence("memory (NCRISC)", 779, "cycles"),
            Evidence("compute (TRISC_1)", 636, "cycles"),
            Evidence("program 5 (kernel): bandwidth", 19.3, "GB/s"),
        ],
    )


def test_early_versions_count_waiting_as_work() -> None:
    assert ask(printed(roofline=Roofline("compute", 40, 100, None, 140))) == LIMIT.found(
        0.4,
        "compute-bound: moving data takes 40.0 % fewer cycles than computing; this version of "
        "tt-lang counts waiting as work",
        [Evidence("memory", 100, "cycles"), Evidence("compute", 140, "cycles")],
    )


def test_where_every_thread_waits_neither_side_binds() -> None:
    threads = (ThreadWork("NCRISC", 1906, 1127, 779), ThreadWork("TRISC_1", 2106, 1470, 636))
    line = replace(roofline("memory", 18), threads=threads)
    assert ask(printed(roofline=line)) == not_applicable(
        "every thread waits for 59.1 % or more of its cycles (TTP808): neither moving data nor "
        "computing binds"
    )
    assert ask.with_limits(waiting=0.6)(printed(roofline=line)).value == 0.18


@pytest.mark.parametrize(("side", "percent"), [("memory", 10), ("balanced", 0)])
def test_within_the_limit_a_kernel_is_balanced(side: str, percent: int) -> None:
    assert ask(printed(roofline=roofline(side, percent))) == LIMIT.clean(percent / 100)


@pytest.mark.parametrize(
    ("subject", "reason"),
    [
        (printed(), "the output has no ROOFLINE ANALYSIS: set TTLANG_AUTO_PROFILE=1"),
        (
            printed(program()),
            "the output has no ROOFLINE ANALYSIS: set TTLANG_AUTO_PROFILE=1, and unset "
            "TTLANG_PERF_DUMP",
        ),
        (
            printed(program(), roofline=Roofline()),
            "the auto-profile has no ROOFLINE ANALYSIS that names a bound",
        ),
    ],
)
def test_without_a_roofline_nothing_is_measured(subject: Subject, reason: str) -> None:
    assert ask(subject) == not_measured(reason)


@pytest.mark.parametrize("order", [1, -1])
def test_of_several_kernels_the_one_that_works_longest_counts(order: int) -> None:
    lines = [Roofline("memory", 90, 700, None, 70), Roofline("compute", 50, 400, None, 800)]
    logs = [printed(roofline=line).kernels for line in lines][::order]
    profiles = tuple(profile for log in logs if log for profile in log.auto_profiles)
    assert ask(kernels=TtlangLog(auto_profiles=profiles)).value == 0.5
