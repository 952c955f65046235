from __future__ import annotations

import pytest
from msgspec.structs import replace

from pytest_ttnn_perf.analysis.checklist.runner import rule_of, run_rules
from pytest_ttnn_perf.analysis.readers.ttlang import ProblemKind, ProgramPerf, Roofline
from tests.rules.answers import Ask, Evidence, Subject, limit, not_applicable, not_measured
from tests.rules.kernel_logs import printed, program

ask = Ask("TTP801")
LIMIT = limit(0.5, "of the cores")


def test_kernels_on_few_cores_are_found() -> None:
    subject = printed(
        program(1, name=None, cores=64, cycles=1000),
        program(2, cores=16, cycles=2000),
        program(3, cores=1, cycles=1000),
    )
    assert ask(subject) == LIMIT.found(
        (64 * 1000 + 16 * 2000 + 1000) / (64 * 4000),
        "programs run on 37.9 % of the cores, weighted by their time",
        [
            Evidence("program 2 (kernel) on 16 of 64 cores", 2000.0, "ns"),
            Evidence("program 3 (kernel) on 1 of 64 cores", 1000.0, "ns"),
            Evidence("program 1 on 64 of 64 cores", 1000.0, "ns"),
        ],
    )


def test_the_limit_itself_is_clean() -> None:
    assert ask(printed(program(cores=32))) == LIMIT.clean(0.5)


WAITS = program(4, cores=2, cycles=2_000_000, bytes_read=262_144, bytes_written=262_144)


def test_programs_that_hardly_move_anything_count_nowhere() -> None:
    answer = ask(printed(WAITS, program(3, cores=16)))
    assert answer == LIMIT.found(
        0.25,
        "programs run on 25.0 % of the cores, weighted by their time; 1 program below 1 GB/s per "
        "core not counted",
        [Evidence("program 3 (kernel) on 16 of 64 cores", 1000.0, "ns")],
    )
    assert ask(printed(WAITS)) == not_applicable(
        "no program moves 1 GB/s on each of its cores: more would wait"
    )


def test_the_last_summary_of_a_program_counts() -> None:
    first, last = printed(program(7, cores=1)), printed(program(7, cores=64))
    assert first.kernels is not None
    assert last.kernels is not None
    summaries = (*first.kernels.perf_summaries, *last.kernels.perf_summaries)
    assert ask(Subject(kernels=type(first.kernels)(summaries))) == LIMIT.clean(1.0)


NO_CORES = "tt-lang did not know the chip: the PERF SUMMARY does not say how many cores it has"


@pytest.mark.parametrize(
    ("subject", "reason"),
    [
        (printed(), "the output has no PERF SUMMARY: set TTLANG_PERF_DUMP=1"),
        (
            printed(roofline=Roofline()),
            "the output has no PERF SUMMARY: set TTLANG_PERF_DUMP=1, and unset TTLANG_AUTO_PROFILE",
        ),
        (printed(program(cores=2), cores=0), NO_CORES),
        (printed(program(cores=2), cores=None), NO_CORES),
        (printed(program(cores=1, cycles=0)), "no program has a duration"),
        (
            printed(program(cores=1), problem=ProblemKind.DROPPED),
            "the profiler dropped data: no number of this output can be trusted",
        ),
        (
            printed(program(cores=1), problem=ProblemKind.STALE),
            "the numbers may be of an earlier run",
        ),
    ],
)
def test_what_is_not_known_is_not_measured(subject: Subject, reason: str) -> None:
    assert ask(subject) == not_measured(reason)


ONE_CORE = limit(0.1, "of the time")


@pytest.mark.parametrize("there", [0, None])
def test_a_grid_of_one_core_is_found_on_a_chip_that_is_not_known(there: int | None) -> None:
    assert ask(printed(program(cores=1), cores=there)) == ONE_CORE.found(
        1.0,
        "100.0 % of the time goes into 1 program on a grid of 1x1",
        [Evidence("program 1024 (kernel) on 1 core", 1000.0, "ns")],
    )


def test_a_grid_of_one_core_is_found_beside_others_that_use_all() -> None:
    subject = printed(program(1, cores=64, cycles=8000), program(2, cores=1, cycles=2000))
    assert ask(subject) == ONE_CORE.found(
        0.2,
        "20.0 % of the time goes into 1 program on a grid of 1x1",
        [Evidence("program 2 (kernel) on 1 of 64 cores", 2000.0, "ns")],
    )
    short = printed(program(1, cores=64, cycles=9000), program(2, cores=1, cycles=1000))
    assert ask(short).outcome.value == "CLEAN"


def test_all_cores_save_what_dram_does_not_take() -> None:
    """64 cores instead of 16: a quarter of the time, or what 2 MiB take at 288 GB/s."""
    log = printed(program(cores=16, cycles=100_000)).kernels
    assert log is not None
    summaries = (replace(log.perf_summaries[0], arch="wormhole_b0", clock_mhz=1000.0),)
    (finding,) = run_rules(
        [rule_of("TTP801")], Subject(kernels=replace(log, perf_summaries=summaries))
    )
    assert finding.saving_ns == pytest.approx(75_000.0)
    quick = replace(summaries[0], programs=(program(cores=16, cycles=10_000),))
    (finding,) = run_rules(
        [rule_of("TTP801")], Subject(kernels=replace(log, perf_summaries=(quick,)))
    )
    assert finding.saving_ns == pytest.approx(10_000 - 2**21 / 288)


@pytest.mark.parametrize(
    ("made", "saved"),
    [
        (program(cores=16, cycles=100_000, writes=32), 50_000.0),
        (program(cores=16, cycles=1_500, bytes_read=1 << 15, bytes_written=1 << 15), None),
    ],
    ids=["work for 32 cores", "no shorter than a launch"],
)
def test_no_saving_is_said_that_more_cores_do_not_bring(
    made: ProgramPerf, saved: float | None
) -> None:
    log = printed(made).kernels
    assert log is not None
    summaries = (replace(log.perf_summaries[0], arch="wormhole_b0", clock_mhz=1000.0),)
    (finding,) = run_rules(
        [rule_of("TTP801")], Subject(kernels=replace(log, perf_summaries=summaries))
    )
    assert finding.outcome.value == "FOUND"
    assert finding.saving_ns == saved
