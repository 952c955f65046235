"""A log of tt-lang: what its profilers printed among other output, and the metrics of kernels."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from pytest_ttnn_perf._base.errors import DecodeError, InputError
from pytest_ttnn_perf._base.files import loads
from pytest_ttnn_perf.analysis.captures.device_metrics import recorded_metric
from pytest_ttnn_perf.analysis.captures.ttlang_lines import (
    AUTO_PROFILE,
    FLOW_GRAPHS,
    HEADINGS,
    OLD_PERF_SUMMARY,
    PERF_SUMMARY,
    PIPE_GRAPH,
    SIGNPOST_PROFILE,
    WHOLE,
    Lines,
    bounded_text,
    is_rule,
    plain_lines,
    whole,
)
from pytest_ttnn_perf.analysis.captures.ttlang_perf import is_program, read_perf_summary
from pytest_ttnn_perf.analysis.captures.ttlang_profile import read_auto_profile
from pytest_ttnn_perf.records.json_value import Value
from pytest_ttnn_perf.records.metric import Kind, Metric, Source
from pytest_ttnn_perf.records.observation import MetricObservation
from pytest_ttnn_perf.records.ttlang import (
    AutoProfile,
    CircularBuffer,
    FlowGraph,
    GraphOp,
    PerfSummary,
    Pipe,
    PipeGraph,
    Problem,
    ProblemKind,
    Signpost,
    SignpostProfile,
    TtlangLog,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from pytest_ttnn_perf.records.ttlang import ProgramPerf


_TITLE: Final = "SIGNPOST PROFILE"
_COLUMNS: Final = ("NAME", "THREAD", "COUNT", "TOTAL", "AVG", "MIN", "MAX")
#: The first releases had no more than this.
_EARLY_COLUMNS: Final = ("NAME", "THREAD", "CYCLES")
_THREAD: Final = re.compile(r"[A-Z][A-Z0-9]{0,20}(?:_[0-9]{1,3})?")
_NUMBER: Final = re.compile(WHOLE)


def read_signposts(lines: Lines) -> SignpostProfile:
    """Read a table from its title on; it is complete if its closing line is there."""
    start = lines.number
    columns: tuple[str, ...] | None = None
    found: list[Signpost] = []
    closed = False
    lines.begin()
    while not lines.ends() and not closed:
        line = lines.peek() or ""
        if is_rule(line):
            closed = columns is not None
        elif columns is None and tuple(line.split()) in {_COLUMNS, _EARLY_COLUMNS}:
            columns = tuple(line.split())
        elif line.strip("- "):
            signpost = _row(line, columns)
            if signpost is None:
                lines.skip_unread(_TITLE)
                continue
            found.append(signpost)
        lines.take()
    if not closed:
        lines.report(ProblemKind.CUT, f"{_TITLE}: no closing line", line=start)
    return SignpostProfile(tuple(found), closed)


def _row(line: str, columns: tuple[str, ...] | None) -> Signpost | None:
    """Read a row from its right end: a name may have spaces in it."""
    if columns is None:
        return None
    name, *cells = line.rsplit(None, len(columns) - 1)
    if len(cells) != len(columns) - 1 or not line.startswith("  "):
        return None
    thread, *numbers = cells
    if not _THREAD.fullmatch(thread) or not all(map(_NUMBER.fullmatch, numbers)):
        return None
    name = name.strip()
    values = [whole(number) for number in numbers]
    if columns == _EARLY_COLUMNS:
        return Signpost(name, thread, values[0])
    count, total, average, shortest, longest = values
    return Signpost(name, thread, total, count, average, shortest, longest)


G = TypeVar("G")
_FINDER: Final = json.JSONDecoder()


def _read_graph(lines: Lines, decode: Callable[[Value], G], *, what: str) -> G | None:
    """Read the graph below its heading; None, and a problem, where there is none."""
    start = lines.number
    lines.begin()
    while lines.peek() == "":
        lines.take()
    if not (lines.peek() or "").startswith("{"):
        lines.report(ProblemKind.CUT, f"{what}: expected JSON below the heading", line=start)
        return None
    # The document ends before the next line of output, or the next heading, wherever that is.
    text = "\n".join(lines.rest_of_section())
    try:
        _, end = _FINDER.raw_decode(text)
        graph = decode(Value(loads(text[:end])))
    except (ValueError, RecursionError, DecodeError) as cause:
        problem = cause.msg if isinstance(cause, json.JSONDecodeError) else str(cause)
        lines.report(ProblemKind.CUT, f"{what}: cannot be read: {problem}", line=start)
        lines.take()
        return None
    for _ in range(text.count("\n", 0, end) + 1):
        lines.take()
    return graph


def _flow_graph(root: Value) -> FlowGraph:
    buffers = [_buffer(buffer) for buffer in root.field("circular_buffers").array()]
    # The compiler's order changes from run to run.
    return FlowGraph(tuple(sorted(buffers, key=lambda buffer: buffer.number)))


def _buffer(value: Value) -> CircularBuffer:
    def ops(name: str) -> tuple[GraphOp, ...]:
        found = [_op(op) for op in value.field(name).array()]
        return tuple(sorted(found, key=lambda op: (op.kernel, op.line or -1, op.op)))

    index = value.field("cb_index").integer()
    return CircularBuffer(
        index, ops("producers"), ops("consumers"), ops("dma_ops"), ops("wait_ops")
    )


def _op(value: Value) -> GraphOp:
    line = value.field("line").integer(at_least=-1)
    direction = value.optional("direction")
    return GraphOp(
        value.field("kernel").string(),
        value.field("thread").string(),
        None if line < 0 else line,
        value.field("op").string(),
        None if direction is None else direction.string(),
    )


def _pipe_graph(root: Value) -> PipeGraph:
    pipes = tuple(_pipe(pipe) for pipe in root.field("pipes").array())
    return PipeGraph(root.field("numPipeRuntimeArgs").integer(), pipes)


def _pipe(value: Value) -> Pipe:
    def core(prefix: str) -> tuple[int, int]:
        return value.field(f"{prefix}X").integer(), value.field(f"{prefix}Y").integer()

    net = value.optional("pipeNetId")
    return Pipe(
        core("src"),
        core("dstStart"),
        core("dstEnd"),
        value.field("receiverCBIndex").integer(at_least=-1),
        value.field("runtimeArgSlot").integer(at_least=-1),
        None if net is None else net.integer(at_least=-1),
    )


_MOST_SHOWN: Final = 300
#: How the lines begin in which tt-lang admits a failure; no program fails for it.
_ADMISSIONS: Final = (
    ("[Auto-profile] ", ProblemKind.NO_PROFILE),
    ("[signpost_profile] ", ProblemKind.NO_PROFILE),
    ("[perf_dump] WARNING", ProblemKind.STALE),
    ("[perf_summary] WARNING", ProblemKind.WARNING),
)
#: These stand anywhere in a line, behind a time or a file name.
_DROPPED: Final = "Profiler DRAM buffers were full, markers were dropped!"
_IGNORED_SIGNPOST: Final = re.compile(r"\bsignpost\([^)]{0,200}\) ignored: ")


def is_ttlang_log(head: str) -> bool:
    """Return whether a text has a tt-lang section, or tt-lang's word that there is none."""
    return any(
        line in HEADINGS or is_program(line) or _admission(line) is not None
        for line in plain_lines(head)
    )


def read_ttlang_log(file: Path) -> TtlangLog:
    """Read a log.

    Raises:
        InputError: it cannot be read, or tt-lang left no trace in it.
    """
    log = parse_ttlang(bounded_text(file), file)
    if log.is_empty:
        problem = f"no output of tt-lang: expected a section such as {PERF_SUMMARY!r}"
        raise InputError(file, problem)
    return log


def parse_ttlang(text: str, file: Path) -> TtlangLog:
    """Read what a program printed. Sections that are cut or missing are among the problems.

    Raises:
        InputError: it is no text; ``file`` is where it came from.
    """
    if "\0" in text:
        raise InputError(file, "expected text, found a NUL byte")
    numbered: list[tuple[int, str]] = []
    admitted: list[Problem] = []
    # The line end of the last line begins no other.
    for number, line in enumerate(plain_lines(text.removesuffix("\n")), start=1):
        kind = _admission(line)
        if kind is None:
            numbered.append((number, line))
        else:
            admitted.append(Problem(number, kind, line.strip()[:_MOST_SHOWN]))
    last_is_whole = text.endswith("\n")
    if numbered and not last_is_whole and not numbered[-1][1]:
        del numbered[-1]  # the indentation of a line that is cut off, not an empty line
    lines = Lines(numbered, last_is_whole=last_is_whole)
    found = _Found()
    while lines.peek() is not None:
        found.read(lines)
    return found.log([*admitted, *lines.problems])


def _admission(line: str) -> ProblemKind | None:
    for start, kind in _ADMISSIONS:
        if line.startswith(start):
            return kind
    if _DROPPED in line:
        return ProblemKind.DROPPED
    return ProblemKind.NO_PROFILE if _IGNORED_SIGNPOST.search(line) else None


@dataclass
class _Found:
    """Collects the sections of a log."""

    perf_summaries: list[PerfSummary] = field(default_factory=list)
    auto_profiles: list[AutoProfile] = field(default_factory=list)
    signpost_profiles: list[SignpostProfile] = field(default_factory=list)
    flow_graphs: list[FlowGraph | None] = field(default_factory=list)
    pipe_graphs: list[PipeGraph | None] = field(default_factory=list)

    def read(self, lines: Lines) -> None:
        """Read the section that begins with the next line, or pass over the line."""
        line = lines.peek() or ""
        if line in {PERF_SUMMARY, OLD_PERF_SUMMARY} or is_program(line):
            self.perf_summaries.append(read_perf_summary(lines))
        elif line in FLOW_GRAPHS:
            self.flow_graphs.append(_read_graph(lines, _flow_graph, what="FLOW GRAPH"))
        elif line == PIPE_GRAPH:
            self.pipe_graphs.append(_read_graph(lines, _pipe_graph, what="PIPE GRAPH"))
        elif line == AUTO_PROFILE:
            self.auto_profiles.append(read_auto_profile(lines))
        elif line == SIGNPOST_PROFILE:
            self.signpost_profiles.append(read_signposts(lines))
        else:
            lines.take()

    def log(self, problems: list[Problem]) -> TtlangLog:
        return TtlangLog(
            tuple(self.perf_summaries),
            tuple(self.auto_profiles),
            tuple(self.signpost_profiles),
            tuple(graph for graph in self.flow_graphs if graph is not None),
            tuple(graph for graph in self.pipe_graphs if graph is not None),
            tuple(sorted(problems, key=lambda problem: problem.line)),
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
            measured = [_measure_program(program, summary.clock_mhz, doubts) for program in new]
            yield Call(names.pop() if len(names) == 1 else None, tuple(measured))


def _measure_program(
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
        flaw = flaw or "it is unknown"
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
        alone = ", without TTLANG_AUTO_PROFILE" if log.auto_profiles else ""
        yield _nothing(f"{file}: {_NO_SUMMARY}{alone}")
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
                yield _observed_values(recorded_metric(name + label, kind), values, file)


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


def _observed_values(
    metric: Metric, values: tuple[float | None, ...], file: str
) -> MetricObservation:
    samples = tuple(value for value in values if value is not None)
    if len(samples) == len(values):
        return MetricObservation(metric, samples)
    missing = "the clock of the chip is not known" if metric.kind is Kind.TIME else "it is unknown"
    return MetricObservation(metric, (), note=f"{file}: {missing}")


def _nothing(note: str) -> MetricObservation:
    return MetricObservation(recorded_metric(_TIME, Kind.TIME), (), note=note)
