"""Rules on kernels of tt-lang."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

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
from pytest_ttnn_perf.core.finding import Evidence, Subject
from tests.analysis.rules.answers import Ask
from tests.analysis.rules.cases import FOUND, NOT_ASKED, UNKNOWN, Case, of_cases
from tests.analysis.rules.kernel_logs import printed, program
from tests.harness.corpus import corpus

WAITS = program(4, cores=2, cycles=2_000_000, bytes_read=262_144, bytes_written=262_144)
MEMORY = Roofline("memory", 18, 779, "NCRISC", 636, "TRISC_1")
#: 2 MiB in 100 us: 20.97 of 288 GB/s.
SLOW = program(cycles=100_000)
BARRIERS = (
    program(1, cores=4, reads=256, writes=240, read_barriers=256, write_barriers=160),
    program(2, cores=4, read_barriers=128, write_barriers=16),
)
READ = (program(1, bytes_read=12 << 20, bytes_written=1 << 20), program(2, bytes_read=4 << 20))
SIM = SimCounters(
    {"dram_read_tiles": 68, "dram_write_tiles": 4},
    tuple(SimTensor(n, {"dram_read_tiles": k}) for n, k in {"b": 8, "a": 60, "y": 0}.items()),
)
SIMULATED = Subject(kernels=TtlangLog(sim=SIM))


def on_wormhole(*programs: ProgramPerf) -> Subject:
    log = printed(*programs, roofline=MEMORY).kernels
    assert log is not None
    summary = replace(log.perf_summaries[0], arch="wormhole_b0", clock_mhz=1000.0)
    return Subject(kernels=replace(log, perf_summaries=(summary,)))


def timed(**threads: tuple[int, int]) -> ProgramPerf:
    times = [
        KernelTime(thread, Span(low, low / 1000), Span(high, high / 1000))
        for thread, (low, high) in threads.items()
    ]
    return replace(program(cycles=2000), kernel_times=tuple(times))


def waiting(*threads: tuple[int, int]) -> Roofline:
    """Return a roofline of threads that took and waited so many cycles."""
    works = [
        ThreadWork(f"TRISC_{at}", total, sync, total - sync)
        for at, (total, sync) in enumerate(threads)
    ]
    return replace(MEMORY, threads=tuple(works))


CASES = [
    Case(
        "TTP801",
        printed(
            program(1, name=None, cores=64, cycles=1000), program(2, cores=16, cycles=2000),
            program(3, cores=1, cycles=1000),
        ),
        FOUND, (64 * 1000 + 16 * 2000 + 1000) / (64 * 4000), told="(kernel) on 16 of 64 cores",
    ),
    # Programs that hardly move anything count nowhere.
    Case("TTP801", printed(WAITS, program(3, cores=16)), FOUND, 0.25, told="1 program below 1 GB"),
    Case("TTP801", printed(WAITS), NOT_ASKED, told="more would wait"),
    Case("TTP801", SIMULATED, UNKNOWN, told="a simulator counts what is moved"),
    Case("TTP803", printed(program(sizes={512: None})), FOUND, 1.0, told="of 512 B 512"),
    Case(
        "TTP804", printed(program(5, bandwidth=19.3), roofline=waiting((1400, 621), (2106, 1470))),
        FOUND, 0.18, told="computing takes 18.0 % fewer cycles than moving data",
    ),
    Case("TTP804", SIMULATED, UNKNOWN),
    Case("TTP805", printed(*BARRIERS), FOUND, 1.0, told="writes of program 1 (kernel) 1.5"),
    *(
        Case("TTP805", printed(program(cores=256, read_barriers=barriers)), NOT_ASKED)
        for barriers in (None, 0, 256)
    ),
    Case(
        "TTP806", on_wormhole(SLOW), FOUND, 2**21 / (100_000 * 288),
        100_000 - 2**21 / (0.75 * 288), "7.3 % of 288 GB/s",
    ),
    Case(
        "TTP807", printed(timed(BRISC=(1000, 2000), NCRISC=(1000, 1600), TRISC_0=(1900, 1900))),
        FOUND, 2.0, 500.0, "NCRISC of program 1024 (kernel) 1.6",
    ),
    Case(
        "TTP808", printed(program(cycles=1000), roofline=waiting((1000, 700), (800, 320))),
        FOUND, 0.4, 1000 * (1 - 480 / 1000), "even TRISC_1, which waits least",
    ),
    Case("TTP809", printed(*READ), FOUND, 12.0, told="program 1 (kernel) reads 12.0 bytes"),
    Case("TTP809", SIMULATED, FOUND, 17.0, told="tensor a 60 tiles read\ntensor b 8"),
]  # fmt: skip


@of_cases(CASES)
def test_answers(case: Case) -> None:
    case.check()


def test_a_buffer_that_a_pipe_fills() -> None:
    names = ("v1_1_1_auto_profile.plain.txt", "v1_1_1_cb_flow_graph.txt")
    text = "".join(corpus(f"ttlang/{name}").read_text() for name in names)
    pipes = corpus("ttlang/pipe_graph_inferred.txt").read_text()
    text += pipes.replace('"receiverCBIndex":2', '"receiverCBIndex":0')
    log = parse_ttlang(text, Path("log"))
    assert Ask("TTP808")(Subject(kernels=log)).evidence[1] == Evidence(
        "TRISC_1 line 107: CB[0] to be filled, by a pipe from core 0,0", 976, "cycles"
    )
