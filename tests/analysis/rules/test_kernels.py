"""Rules on kernels of tt-lang."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from pytest_ttnn_perf.analysis.checklist.runner import rule_of, run_rules
from pytest_ttnn_perf.analysis.readers.ttlang import (
    KernelTime,
    ProgramPerf,
    Roofline,
    SimCounters,
    SimTensor,
    Span,
    ThreadWork,
    TtlangLog,
    parse_ttlang,
)
from tests.analysis.rules.answers import Ask, Evidence, Subject, limit, not_applicable, not_measured
from tests.analysis.rules.kernel_logs import printed, program
from tests.harness.corpus import corpus

ttp801 = Ask("TTP801")
LIMIT = limit(0.5, "of the cores")


def test_kernels_on_few_cores_are_found() -> None:
    subject = printed(
        program(1, name=None, cores=64, cycles=1000),
        program(2, cores=16, cycles=2000),
        program(3, cores=1, cycles=1000),
    )
    assert ttp801(subject) == LIMIT.found(
        (64 * 1000 + 16 * 2000 + 1000) / (64 * 4000),
        "programs run on 37.9 % of the cores, weighted by their time",
        [
            Evidence("program 2 (kernel) on 16 of 64 cores", 2000.0, "ns"),
            Evidence("program 3 (kernel) on 1 of 64 cores", 1000.0, "ns"),
            Evidence("program 1 on 64 of 64 cores", 1000.0, "ns"),
        ],
    )


WAITS = program(4, cores=2, cycles=2_000_000, bytes_read=262_144, bytes_written=262_144)


def test_programs_that_hardly_move_anything_count_nowhere() -> None:
    answer = ttp801(printed(WAITS, program(3, cores=16)))
    assert answer == LIMIT.found(
        0.25,
        "programs run on 25.0 % of the cores, weighted by their time; 1 program below 1 GB/s per "
        "core not counted",
        [Evidence("program 3 (kernel) on 16 of 64 cores", 1000.0, "ns")],
    )
    assert ttp801(printed(WAITS)) == not_applicable(
        "no program moves 1 GB/s on each of its cores: more would wait"
    )


ttp804 = Ask("TTP804")
LIMIT_804 = limit(0.1, "of the longer work")
THREADS = (ThreadWork("NCRISC", 1400, 621, 779), ThreadWork("TRISC_1", 2106, 1470, 636))


def roofline(side: str, percent: int) -> Roofline:
    return Roofline(side, percent, 779, "NCRISC", 636, "TRISC_1", THREADS)


def test_what_bounds_a_kernel_is_said() -> None:
    subject = printed(program(5, bandwidth=19.3), roofline=roofline("memory", 18))
    assert ttp804(subject) == LIMIT_804.found(
        0.18,
        "memory-bound: computing takes 18.0 % fewer cycles than moving data",
        [
            Evidence("memory (NCRISC)", 779, "cycles"),
            Evidence("compute (TRISC_1)", 636, "cycles"),
            Evidence("program 5 (kernel): bandwidth", 19.3, "GB/s"),
        ],
    )


ttp805 = Ask("TTP805")
LIMIT_805 = limit(2, "transfers per barrier")


def test_a_barrier_after_each_transfer_is_found() -> None:
    subject = printed(
        program(1, cores=4, reads=256, writes=240, read_barriers=256, write_barriers=160),
        program(2, cores=4, read_barriers=128, write_barriers=16),
    )
    assert ttp805(subject) == LIMIT_805.found(
        1.0,
        "reads of program 1 (kernel) have a barrier after every 1.0 transfers",
        [
            Evidence("reads of program 1 (kernel)", 1.0, LIMIT_805.unit),
            Evidence("writes of program 1 (kernel)", 1.5, LIMIT_805.unit),
        ],
    )


@pytest.mark.parametrize("barriers", [None, 0, 256])
def test_one_barrier_on_each_core_raises_no_question(barriers: int | None) -> None:
    assert ttp805(printed(program(cores=256, read_barriers=barriers))) == not_applicable(
        "no program has more than one barrier on a core"
    )


ttp806 = Ask("TTP806")
LIMIT_806 = limit(0.5, "of the DRAM bandwidth")
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
    assert ttp806(on_wormhole(SLOW)) == LIMIT_806.found(
        2**21 / (100_000 * 288),
        "programs move 7.3 % of what DRAM could move in that time",
        [Evidence("program 1024 (kernel): 7.3 % of 288 GB/s", reached, "GB/s")],
    )
    (finding,) = run_rules([rule_of("TTP806")], on_wormhole(SLOW))
    assert finding.saving_ns == pytest.approx(100_000 - 2**21 / (0.75 * 288))
    (finding,) = run_rules([rule_of("TTP806")], on_wormhole(SLOW, program(7, cycles=9)))
    assert finding.saving_ns is None  # which of them was profiled is not told


ttp807 = Ask("TTP807")
LIMIT_807 = limit(1.5, "x the quickest core")


def timed(**threads: tuple[int, int]) -> ProgramPerf:
    times = [
        KernelTime(thread, Span(low, low / 1000), Span(high, high / 1000))
        for thread, (low, high) in threads.items()
    ]
    return replace(program(cycles=2000), kernel_times=tuple(times))


def test_a_core_works_much_longer() -> None:
    subject = printed(timed(BRISC=(1000, 2000), NCRISC=(1000, 1600), TRISC_0=(1900, 1900)))
    assert ttp807(subject) == LIMIT_807.found(
        2.0,
        "BRISC of program 1024 (kernel) runs 2.00 x as long on the slowest core",
        [
            Evidence("BRISC of program 1024 (kernel)", 2.0, LIMIT_807.unit),
            Evidence("NCRISC of program 1024 (kernel)", 1.6, LIMIT_807.unit),
        ],
    )
    (finding,) = run_rules([rule_of("TTP807")], subject)
    assert finding.saving_ns == pytest.approx(500.0)


ttp808 = Ask("TTP808")
LIMIT_808 = limit(0.3, "of its cycles")


def waiting(*threads: tuple[int, int]) -> Roofline:
    """Return a roofline of threads that took and waited so many cycles."""
    works = [
        ThreadWork(f"TRISC_{at}", total, sync, total - sync)
        for at, (total, sync) in enumerate(threads)
    ]
    return Roofline("memory", 18, 779, "NCRISC", 636, "TRISC_1", tuple(works))


def test_every_thread_waits() -> None:
    subject = printed(program(cycles=1000), roofline=waiting((1000, 700), (800, 320)))
    assert ttp808(subject) == LIMIT_808.found(
        0.4, "even TRISC_1, which waits least, waits for 40.0 % of its cycles"
    )
    (finding,) = run_rules([rule_of("TTP808")], subject)
    assert finding.saving_ns == pytest.approx(1000 * (1 - 480 / 1000))


def real_log(*more: str) -> Subject:
    names = ("v1_1_1_auto_profile.plain.txt", *more)
    text = "".join(corpus(f"ttlang/{name}").read_text() for name in names)
    return Subject(kernels=parse_ttlang(text, Path("log")))


def test_a_buffer_that_a_pipe_fills() -> None:
    pipes = corpus("ttlang/pipe_graph_inferred.txt").read_text()
    subject = real_log("v1_1_1_cb_flow_graph.txt")
    assert subject.kernels is not None
    graph = parse_ttlang(pipes.replace('"receiverCBIndex":2', '"receiverCBIndex":0'), Path("log"))
    log = replace(subject.kernels, pipe_graphs=graph.pipe_graphs)
    assert ttp808(Subject(kernels=log)).evidence[1] == Evidence(
        "TRISC_1 line 107: CB[0] to be filled, by a pipe from core 0,0", 976, "cycles"
    )


ttp809 = Ask("TTP809")
LIMIT_809 = limit(4, "read per written")


def test_a_program_that_reads_again_and_again() -> None:
    subject = printed(
        program(1, bytes_read=12 << 20, bytes_written=1 << 20), program(2, bytes_read=4 << 20)
    )
    assert ttp809(subject) == LIMIT_809.found(
        12.0,
        "program 1 (kernel) reads 12.0 bytes from DRAM for each that it writes",
        [Evidence("program 1 (kernel)", 12.0, "read per written")],
    )
    assert ttp809.with_limits(reads=12)(subject).evidence == ()


def test_what_a_simulator_counted() -> None:
    tensors = tuple(
        SimTensor(name, {"dram_read_tiles": tiles})
        for name, tiles in {"b": 8, "a": 60, "y": 0}.items()
    )
    sim = SimCounters({"dram_read_tiles": 68, "dram_write_tiles": 4}, tensors)
    assert ttp809(kernels=TtlangLog(sim=sim)) == LIMIT_809.found(
        17.0,
        "the simulated program reads 17.0 tiles from DRAM for each that it writes",
        [Evidence("tensor a", 60, "tiles read"), Evidence("tensor b", 8, "tiles read")],
    )
    without_times = "a simulator counts what is moved, and has no times"
    assert Ask("TTP801")(kernels=TtlangLog(sim=sim)) == not_measured(without_times)
    assert Ask("TTP804")(kernels=TtlangLog(sim=sim)) == not_measured(without_times)
