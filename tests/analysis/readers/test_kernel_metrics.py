"""What tt-lang says about kernels: what is gated of it, and what is not known."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from pytest_ttnn_perf.analysis.readers.device_csv import kernel_metrics
from pytest_ttnn_perf.analysis.readers.ttlang import (
    AutoProfile,
    PerfSummary,
    Pipe,
    Problem,
    ProblemKind,
    ProgramPerf,
    Signpost,
    SignpostProfile,
    Span,
    Transfers,
    TtlangLog,
)
from pytest_ttnn_perf.core.metric import Better, Kind, Metric, Source
from pytest_ttnn_perf.core.observation import MetricObservation

KERNEL_TIME = Metric("kernel_time", "ns", Better.LOWER, Kind.TIME, Source.DEVICE)
PROFILE = AutoProfile(1_500, (), None, complete=True)
ZONES = SignpostProfile(
    (
        Signpost("my zone", "TRISC_0", 2, 70, 35),
        Signpost("my zone", "TRISC_1", 2, 90, 45),
    ),
    complete=True,
)


def program(number: int = 1024, cycles: int = 2_000, *, name: str | None = None) -> ProgramPerf:
    return ProgramPerf(
        program_id=number,
        name=name,
        grid=(2, 2),
        cores=4,
        duration=Span(cycles, cycles / 500),
        dram_read=Transfers(4096, 3),
        dram_write=Transfers(2048, 2),
        read_barriers=5,
        write_barriers=6,
    )


def summary(*programs: ProgramPerf) -> PerfSummary:
    return PerfSummary(programs, "wormhole_b0", 500.0, 64)


def values(log: TtlangLog) -> dict[str, tuple[float, ...]]:
    return {found.metric.name: found.samples for found in kernel_metrics(log, file="log.txt")}


def nothing(why: str, name: str = "log.txt") -> list[MetricObservation]:
    return [MetricObservation(KERNEL_TIME, (), note=f"{name}: {why}")]


def test_the_only_program_has_metrics_with_bare_names() -> None:
    once = summary(program(name="__demo"))

    expected = [
        MetricObservation(KERNEL_TIME, (4_000,)),
        *(
            MetricObservation(Metric(name, unit, Better.LOWER, kind, Source.DEVICE), (value,))
            for name, unit, kind, value in [
                ("kernel_dram_read_bytes", "B", Kind.BYTES, 4096),
                ("kernel_dram_write_bytes", "B", Kind.BYTES, 2048),
                ("kernel_dram_transfers", "", Kind.COUNT, 5),
            ]
        ),
        # Fewer cores are worse, and a bandwidth is only recorded.
        MetricObservation(
            Metric("kernel_cores", "", Better.HIGHER, Kind.COUNT, Source.DEVICE), (4,)
        ),
        MetricObservation(
            Metric("kernel_barriers", "", Better.LOWER, Kind.COUNT, Source.DEVICE), (11,)
        ),
        MetricObservation(
            Metric("kernel_bandwidth", "GB/s", Better.HIGHER, Kind.THROUGHPUT, Source.DEVICE),
            (6144 / 4000,),
            gated=False,
        ),
    ]
    assert list(kernel_metrics(TtlangLog((once,)), file="log.txt")) == expected


FIRST, SECOND, THIRD = program(1024, 10), program(2048, 20), program(3072, 30)


@pytest.mark.parametrize(
    ("summaries", "expected"),
    [
        (
            # As tt-lang lists them, with the name at the first.
            [summary(program(10240, 30, name="last"), program(2048, 10), program(9216, 20))],
            {"kernel_time_1": (20,), "kernel_time_2": (40,), "kernel_time_3": (60,)},
        ),
        (
            [summary(FIRST), summary(FIRST, SECOND), summary(FIRST, SECOND, THIRD)],
            {"kernel_time": (20, 40, 60)},
        ),
        ([summary(program(1, 10)), summary(program(1, 11))], {"kernel_time": (20, 22)}),
        ([summary(FIRST), summary(FIRST)], {"kernel_time": (20,)}),
        (
            # The name of the second operation stands at the program of the first.
            [
                summary(program(1024, 10, name="add")),
                summary(program(1024, 10, name="mul"), SECOND),
                summary(program(1024, 10, name="add"), SECOND, THIRD),
            ],
            {"kernel_time_add": (20, 60), "kernel_time_mul": (40,)},
        ),
        (
            [summary(FIRST), summary(replace(FIRST, name="add"), SECOND, THIRD)],
            {"kernel_time_unnamed": (20,), "kernel_time_add_1": (40,), "kernel_time_add_2": (60,)},
        ),
    ],
    ids=["programs of a call", "a call more each time", "a second process", "a repetition",
         "two operations", "with and without a name"],
)  # fmt: skip
def test_which_programs_are_samples_of_which_metric(
    summaries: list[PerfSummary], expected: dict[str, tuple[float, ...]]
) -> None:
    found = values(TtlangLog(tuple(summaries)))
    times = {name: samples for name, samples in found.items() if name.startswith("kernel_time")}
    assert times == expected


def test_calls_that_ran_different_numbers_of_programs_cannot_be_compared() -> None:
    first, *others = program(1, 10), program(2, 20), program(3, 30)
    log = TtlangLog((summary(first), summary(first, *others)))

    why = "calls of one operation ran different numbers of programs"
    assert list(kernel_metrics(log, file="log.txt")) == nothing(why)


@pytest.mark.parametrize("kind", [ProblemKind.DROPPED, ProblemKind.STALE])
def test_numbers_that_are_not_whole_or_of_another_run_are_none(kind: ProblemKind) -> None:
    problem = Problem(7, kind, "tt-lang says so")
    log = TtlangLog((summary(program()),), (PROFILE,), problems=(problem,))

    note = "log.txt: line 7: tt-lang says so"
    cycles = Metric("auto_profile_cycles", "cycles", source=Source.DEVICE)
    assert list(kernel_metrics(log, file="log.txt")) == [
        MetricObservation(KERNEL_TIME, (), note=note),
        MetricObservation(cycles, (), gated=False, note=note),
    ]


def test_a_cut_summary_has_no_numbers_though_some_are_there() -> None:
    cut = replace(summary(program()), complete=False)

    log = TtlangLog((summary(program()), cut))
    assert list(kernel_metrics(log, file="log.txt")) == nothing(
        "a PERF SUMMARY is cut, or lacks lines"
    )


def test_a_made_up_clock_gives_no_time_and_all_else() -> None:
    unknown = PerfSummary((program(),))
    log = TtlangLog((unknown,), problems=(Problem(1, ProblemKind.UNKNOWN_CHIP, ""),))

    time, *others = kernel_metrics(log, file="f")
    assert [time] == nothing("the clock of the chip is not known", "f")
    assert [each.samples for each in others] == [(4096,), (2048,), (5,), (4,), (11,), ()]


@pytest.mark.parametrize(
    ("problems", "gated", "why"),
    [((), False, "ttnn 0.77 and newer do not count barriers"),
     ((Problem(9, ProblemKind.UNREAD, ""),), True, "it is unknown")],
    ids=["newer ttnn", "a line that was not understood"],
)  # fmt: skip
def test_no_line_of_barriers_is_not_none_of_them(
    problems: tuple[Problem, ...], gated: bool, why: str
) -> None:
    without = summary(replace(program(), read_barriers=None, write_barriers=None))

    found = kernel_metrics(TtlangLog((without,), problems=problems), file="f")
    (barriers,) = (each for each in found if each.metric.name == "kernel_barriers")
    assert (barriers.samples, barriers.gated, barriers.note) == ((), gated, f"f: {why}")


def test_a_time_beside_an_auto_profile_is_none() -> None:
    both = values(TtlangLog((summary(program()),), (PROFILE,)))

    assert (both["kernel_time"], both["kernel_bandwidth"]) == ((), ())
    assert (both["kernel_cores"], both["auto_profile_cycles"]) == ((4,), (1_500,))


def test_profiled_cycles_are_recorded_and_not_gated() -> None:
    log = TtlangLog(auto_profiles=(PROFILE,), signpost_profiles=(ZONES,))

    assert list(kernel_metrics(log, file="log.txt")) == [
        MetricObservation(
            Metric(name, "cycles", Better.LOWER, Kind.TIME, Source.DEVICE), (cycles,), gated=False
        )
        for name, cycles in [("auto_profile_cycles", 1_500), ("signpost_cycles_my zone", 90)]
    ]


@pytest.mark.parametrize(
    ("log", "why"),
    [
        (TtlangLog(auto_profiles=(replace(PROFILE, complete=False),)), "the profile is cut"),
        (TtlangLog(signpost_profiles=(ZONES._replace(complete=False),)), "the profile is cut"),
        (
            TtlangLog(auto_profiles=(PROFILE, PROFILE)),
            "several profiles, each of all calls until then",
        ),
        (
            TtlangLog(auto_profiles=(replace(PROFILE, longest_thread_cycles=None),)),
            "it is unknown",
        ),
    ],
    ids=["auto-profile cut", "signposts cut", "several", "untold"],
)
def test_profiles_that_are_not_whole_have_no_cycles(log: TtlangLog, why: str) -> None:
    (found,) = kernel_metrics(log, file="log.txt")
    assert (found.samples, found.gated, found.note) == ((), False, f"log.txt: {why}")


@pytest.mark.parametrize(
    "log",
    [
        TtlangLog(flow_graphs=((),), auto_profiles=(PROFILE,)),
        TtlangLog(pipe_graphs=((Pipe((0, 0), 0),),)),
        TtlangLog(signpost_profiles=(SignpostProfile((), complete=False),)),
        TtlangLog(problems=(Problem(1, ProblemKind.NO_PROFILE, "[Auto-profile] no"),)),
    ],
    ids=["flow graph", "pipe graph", "no signposts", "trouble"],
)
def test_a_summary_that_should_be_there_is_missed(log: TtlangLog) -> None:
    found, *_ = kernel_metrics(log, file="log.txt")
    alone = ", without TTLANG_AUTO_PROFILE" if log.auto_profiles else ""
    assert [found] == nothing(
        "no PERF SUMMARY: it takes TTLANG_PERF_DUMP=1 and TT_METAL_DEVICE_PROFILER_NOC_EVENTS=1"
        + alone
    )
