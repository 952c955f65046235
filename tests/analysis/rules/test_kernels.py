"""Rules on kernels of tt-lang."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec.structs import replace

from pytest_ttnn_perf.analysis.readers.ttlang import (
    KernelCode,
    KernelTime,
    L1Overflow,
    ProgramPerf,
    Roofline,
    SimBuffer,
    SimCounters,
    SimOperation,
    SimTensor,
    SimUse,
    Span,
    ThreadWork,
    TtlangLog,
    parse_ttlang,
)
from pytest_ttnn_perf.core.finding import Evidence, Subject
from tests.analysis.rules.answers import Ask
from tests.analysis.rules.cases import CLEAN, FOUND, NOT_ASKED, UNKNOWN, Case, of_cases
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


def simulated(*operations: SimOperation, **facts: str) -> Subject:
    return Subject(kernels=TtlangLog(sim=SimCounters({}, operations=operations)), facts=facts)


def operation(nodes: int = 16, *, tiles: int = 16, blocks: int = 4, **other: Any) -> SimOperation:
    """Return an operation that takes each block out of three buffers."""
    held = SimBuffer(tiles, blocks, fullest=2)
    shape = {1: (1, 1), 16: (4, 4)}[tiles]
    declared = held._replace(name="a", shape=shape, block_count=2, bytes=2 * tiles * 2048)
    one = SimOperation(
        "add", (3 * tiles * blocks,) * nodes, 3 * blocks * nodes, 3 * tiles * blocks * nodes, 2,
        (held,) * 3, (declared,) * 3,
    )  # fmt: skip
    return replace(one, **other)


def use(identity: int, *, read: int = 0, written: int = 0, distinct: int = 0) -> SimUse:
    """Return a tensor of 1024 tiles."""
    return SimUse("x", identity, (1024, 1024), "bfloat16", 1024, distinct or read, read, written)


def coded(subject: Subject, tiles: int, **more: Any) -> Subject:
    """Return a log that has the C++ of a kernel with three buffers."""
    assert subject.kernels is not None
    code = KernelCode("read", dict.fromkeys(range(3), tiles), 2048)
    return Subject(kernels=replace(subject.kernels, codes=(code,), **more))


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


#: 64 waits of a core in 100 µs, for 4 tiles each.
SMALL = program(cores=4, reads=1024, cycles=100_000, read_barriers=256, write_barriers=256)
HANDED_ON = (
    operation(tensors=(use(0, read=1024), use(1, written=1024))),
    operation(tensors=(use(1, read=1024), use(2, written=1024))),
)
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
    Case("TTP803", printed(program(sizes={512: None})), FOUND, 1.0, told="of 512 B 512"),
    Case(
        "TTP804", printed(program(5, bandwidth=19.3), roofline=waiting((1400, 621), (2106, 1470))),
        FOUND, 0.18, told="computing takes 18.0 % fewer cycles than moving data",
    ),
    Case("TTP804", SIMULATED, UNKNOWN),
    Case("TTP805", printed(*BARRIERS), FOUND, 1.0, told="writes of program 1 (kernel) 1.5"),
    # Newer versions of ttnn do not count barriers: none is not known to be none.
    *(
        Case("TTP805", printed(program(read_barriers=none)), UNKNOWN, told="ttnn 0.77")
        for none in (None, 0)
    ),
    Case("TTP805", printed(program(cores=256, read_barriers=256)), NOT_ASKED),
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
    Case("TTP809", SIMULATED, FOUND, 17.0, told="tensor a 60.0 tiles read\ntensor b 8"),
    # The log has C++: its blocks of 4 tiles take at least 48 KiB, and four times that fit.
    Case(
        "TTP810", coded(printed(SMALL), 4), FOUND, 64 * 160 / 100_000, 64 * 160 * 15 / 16,
        "4 tiles a wait, 64 waits of a core cost 10.24 µs",
    ),
    Case(
        "TTP810", coded(printed(SMALL), 4, l1_overflow=L1Overflow(99_999, 50_000)), CLEAN,
        told="no larger block fits",
    ),
    Case("TTP810", printed(program()), UNKNOWN, told="ttnn 0.77"),
    Case(
        "TTP810", Subject(kernels=TtlangLog(l1_overflow=L1Overflow(4_194_304, 1_466_368))), FOUND,
        told="buffers ask for 4,194,304 B of a core, which has 1,466,368 B",
    ),
    Case("TTP810", simulated(operation()), CLEAN, told="larger ones save little"),
    Case("TTP810", simulated(operation(tiles=1, blocks=64)), FOUND, told="up to 8x8 tiles fit"),
    Case(
        "TTP810", simulated(operation(tiles=1, blocks=64, tensors=(use(0),)), target="n150",
                            production_shape="8192x8192"),
        FOUND, told="measured at 1/64 of the production tiles",
    ),
    Case("TTP801", simulated(operation(1)), FOUND, 1.0, told="add on 1 core"),
    Case("TTP801", simulated(operation(16)), UNKNOWN, told="state the fact target"),
    Case("TTP801", simulated(operation(16), target="n150"), FOUND, 0.25, told="of 64 cores"),
    Case("TTP801", simulated(operation(16, full=True), target="p150"), CLEAN),
    Case("TTP801", replace(printed(program(cores=64)), facts={"target": "p150"}), CLEAN, 64 / 110),
    Case("TTP805", simulated(operation(in_flight=1)), FOUND, 1.0, told="each copy is awaited"),
    Case("TTP807", simulated(operation(node_tiles=(768, 0, 0, 0) * 4)), FOUND, 4.0),
    Case(
        "TTP808", simulated(operation(buffers=(SimBuffer(16, 4, fullest=1),))), FOUND,
        told="block_count=2",
    ),
    Case(
        "TTP809", simulated(operation(tensors=(use(0, read=1024, distinct=128),))), FOUND, 8.0,
        told="only 128 of its 1024",
    ),
    Case("TTP809", simulated(operation(tensors=(use(0, read=1024),))), CLEAN),
    # Two kernels of equal bytes: the second may read what the first wrote.
    Case(
        "TTP811", on_wormhole(program(1), program(2, name="other", bytes_written=1 << 18)), FOUND,
        saving=2000 + 2**21 / 288, told="may read what the one before wrote",
    ),
    Case("TTP811", on_wormhole(program(1), program(2)), CLEAN),  # the same one called twice
    Case("TTP811", simulated(*HANDED_ON), FOUND, told="read by the next alone"),
    Case("TTP811", simulated(*HANDED_ON, HANDED_ON[1]), CLEAN),
    Case("TTP303", simulated(operation(tensors=(use(0),))), UNKNOWN, told="sizes of a test prove"),
    Case(
        "TTP303", simulated(operation(tensors=(use(0),)), production_shape="1024x1024"), FOUND,
        told="take 320 KiB of 1,432 KiB",
    ),
    Case(
        "TTP303", simulated(operation(tensors=(use(0),)), production_shape="8192x8192"), CLEAN
    ),
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
