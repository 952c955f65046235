"""What tt-lang says about kernels, as metrics that are gated like any other."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf.analysis.captures.device_metrics import recorded
from pytest_ttnn_perf.records.metric import Kind, Metric, Source
from pytest_ttnn_perf.records.observation import MetricObservation
from pytest_ttnn_perf.records.ttlang import ProblemKind

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from pytest_ttnn_perf.records.ttlang import (
        AutoProfile,
        PerfSummary,
        ProgramPerf,
        SignpostProfile,
        TtlangLog,
    )


class Measured(NamedTuple):
    """What one program did; None where that is not known."""

    time_ns: float | None
    read_bytes: float
    write_bytes: float
    transfers: float | None
    barriers: float | None


class Call(NamedTuple):
    """A call of an operation, and the programs that it ran, in the order of their ids."""

    name: str | None
    programs: tuple[Measured, ...]


def calls_of(summaries: Sequence[PerfSummary], doubts: Collection[ProblemKind]) -> Iterator[Call]:
    """Yield the calls that summaries were printed after; ``doubts`` is what is wrong with the log.

    Traces of earlier calls stay, so each summary repeats them; what it repeats is left out.
    """
    seen: set[ProgramPerf] = set()
    for summary in summaries:
        # The name of the operation stands at the program whose trace sorts first as text, 10240
        # before 2048: it names the call, and no program of it.
        names = {program.name for program in summary.programs if program.name is not None}
        nameless = [replace(program, name=None) for program in summary.programs]
        new = [program for program in nameless if program not in seen]
        seen.update(new)
        if new:
            new.sort(key=lambda program: program.program_id)
            measured = [_measured(program, summary.clock_mhz, doubts) for program in new]
            yield Call(names.pop() if len(names) == 1 else None, tuple(measured))


def _measured(
    program: ProgramPerf, clock_mhz: float | None, doubts: Collection[ProblemKind]
) -> Measured:
    read, write = program.dram_read, program.dram_write
    counts = (read.transfers, write.transfers)
    waits = (program.read_barriers, program.write_barriers)
    # A log has no line of barriers where there are none, or where it was not understood.
    known = ProblemKind.UNREAD not in doubts or None not in waits
    return Measured(
        _time_ns(program, clock_mhz, doubts),
        read.size.bytes,
        write.size.bytes,
        None if None in counts else sum(count or 0 for count in counts),
        sum(wait.barriers for wait in waits if wait is not None) if known else None,
    )


def _time_ns(
    program: ProgramPerf, clock_mhz: float | None, doubts: Collection[ProblemKind]
) -> float | None:
    if clock_mhz is not None:
        return program.duration.cycles * 1000 / clock_mhz
    # Of a log that begins below the line of the clock, the time as it was printed.
    return None if ProblemKind.UNKNOWN_CHIP in doubts else program.duration.us * 1000


def cycle_metrics(log: TtlangLog, *, file: str, lost: str | None) -> Iterator[MetricObservation]:
    """Yield the cycles of the slowest thread: in the auto-profile, and in each signpost's zone.

    Sums over cores and iterations, with the profiler's own cycles among them. ``lost`` is why no
    number of the log can be trusted.
    """
    for report in log.auto_profiles[:1]:
        cycles, flaw = report.longest_thread_cycles, lost or _flaw(log.auto_profiles)
        yield _observed_cycles("auto_profile_cycles", cycles, file, flaw)
    zones: dict[str, int] = {}
    for profile in log.signpost_profiles:
        for zone in profile.signposts:
            zones[zone.name] = max(zone.total_cycles, zones.get(zone.name, 0))
    for name, total in zones.items():
        flaw = lost or _flaw(log.signpost_profiles)
        yield _observed_cycles(f"signpost_cycles_{name}", total, file, flaw)


def _flaw(profiles: Sequence[AutoProfile | SignpostProfile]) -> str | None:
    if not all(profile.complete for profile in profiles):
        return "the profile is cut"
    return "several profiles, each of all calls until then" if len(profiles) > 1 else None


def _observed_cycles(
    name: str, cycles: int | None, file: str, flaw: str | None
) -> MetricObservation:
    metric = Metric(name, unit="cycles", source=Source.DEVICE)
    if cycles is None:
        flaw = flaw or "it is not told"
    samples = () if cycles is None or flaw is not None else (cycles,)
    note = None if flaw is None else f"{file}: {flaw}"
    return MetricObservation(metric, samples, gated=False, note=note)


_TIME: Final = "kernel_time"
#: What is gated of a program, in the order of its record.
_KINDS: Final = {
    _TIME: Kind.TIME,
    "kernel_dram_read_bytes": Kind.BYTES,
    "kernel_dram_write_bytes": Kind.BYTES,
    "kernel_dram_transfers": Kind.COUNT,
    "kernel_barriers": Kind.COUNT,
}
#: After these no number of a log is known to be whole, or of this run.
_LOSSES: Final = (ProblemKind.DROPPED, ProblemKind.STALE)
_NO_SUMMARY: Final = (
    "no PERF SUMMARY: it takes TTLANG_PERF_DUMP=1 and TT_METAL_DEVICE_PROFILER_NOC_EVENTS=1"
)


def kernel_metrics(log: TtlangLog, *, file: str) -> Iterator[MetricObservation]:
    """Yield what a log says of each kernel: time, DRAM traffic, barriers, profiled cycles.

    Text rounds: bytes are right within 5 %, and the same in every run that moves the same. A log
    that is cut, or whose data were dropped, gives the kernel time without samples, and says why.
    Traffic inside L1 is no metric: to fetch from a neighbour instead of DRAM is no regression.
    """
    lost = _lost(log)
    cycles = tuple(cycle_metrics(log, file=file, lost=lost))
    if lost is not None:
        yield _nothing(f"{file}: {lost}")
    elif log.perf_summaries:
        doubts = {problem.kind for problem in log.problems}
        yield from _of_calls(list(calls_of(log.perf_summaries, doubts)), file)
    elif log.flow_graphs or log.pipe_graphs or not cycles:
        # Graphs are printed with a summary, by one option; a log of profiles alone may have none.
        yield _nothing(f"{file}: {_NO_SUMMARY}")
    yield from cycles


def summary_metrics(summary: PerfSummary, *, file: str) -> Iterator[MetricObservation]:
    """Yield what the exact form of a summary says of each kernel: as a log, without profiles."""
    if summary.complete:
        # It has a clock unless tt-lang did not know the chip, and then its times are made up.
        yield from _of_calls(list(calls_of([summary], {ProblemKind.UNKNOWN_CHIP})), file)
    else:
        yield _nothing(f"{file}: the summary is not whole")


def _lost(log: TtlangLog) -> str | None:
    for problem in log.problems:
        if problem.kind in _LOSSES:
            return f"line {problem.line}: {problem.text}"
    whole = all(summary.complete for summary in log.perf_summaries)
    return None if whole else "a PERF SUMMARY is cut, or lacks lines"


def _of_calls(calls: list[Call], file: str) -> Iterator[MetricObservation]:
    lengths: dict[str | None, set[int]] = defaultdict(set)
    for call in calls:
        lengths[call.name].add(len(call.programs))
    if not calls:
        yield _nothing(f"{file}: no program ran")
    elif any(len(found) > 1 for found in lengths.values()):
        yield _nothing(f"{file}: calls of one operation ran different numbers of programs")
    else:
        for label, samples in _by_label(calls).items():
            columns = zip(*samples, strict=True)
            for (name, kind), values in zip(_KINDS.items(), columns, strict=True):
                yield _observed(recorded(name + label, kind), values, file)


def _by_label(calls: list[Call]) -> Mapping[str, list[Measured]]:
    """Return the samples of each kernel, by what is added to the names of its metrics.

    Nothing for the only one; else the name of its operation, where there are several, and its
    place in the call. Ids count all that the process ran before, so they would name another
    program as soon as an op is added; their order stays.
    """
    several = len({call.name for call in calls}) > 1
    samples: dict[str, list[Measured]] = defaultdict(list)
    for call in calls:
        name = f"_{call.name or 'unnamed'}" if several else ""
        for place, program in enumerate(call.programs, start=1):
            samples[name if len(call.programs) == 1 else f"{name}_{place}"].append(program)
    return samples


def _observed(metric: Metric, values: tuple[float | None, ...], file: str) -> MetricObservation:
    samples = tuple(value for value in values if value is not None)
    if len(samples) == len(values):
        return MetricObservation(metric, samples)
    missing = "the clock of the chip is not known" if metric.kind is Kind.TIME else "it is not told"
    return MetricObservation(metric, (), note=f"{file}: {missing}")


def _nothing(note: str) -> MetricObservation:
    return MetricObservation(recorded(_TIME, Kind.TIME), (), note=note)
