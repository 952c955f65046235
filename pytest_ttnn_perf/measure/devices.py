"""Instruments of devices: graph captures and profilers, next to the clock."""

from __future__ import annotations

import os
import secrets
import shutil
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from importlib import import_module
from statistics import median_low
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from pytest_ttnn_perf.core import wings
from pytest_ttnn_perf.core.assignment import signposts_of
from pytest_ttnn_perf.core.baseline import ops_path
from pytest_ttnn_perf.core.errors import EmptyReportError, TtnnPerfError
from pytest_ttnn_perf.core.metric import (
    CALL_COUNT,
    KERNEL_TIME,
    OP_COUNT,
    Kind,
    Source,
    recorded_metric,
)
from pytest_ttnn_perf.core.observation import NO_ARTIFACT, NOT_TIMED, Artifact, MetricObservation
from pytest_ttnn_perf.core.settings import PassChoice, ProfilerKind, left_out
from pytest_ttnn_perf.machine.environment import (
    kernels_cached,
    report_in,
    telemetry,
)
from pytest_ttnn_perf.measure.instruments import Instruments
from pytest_ttnn_perf.measure.profilers import (
    GRAPH_FILE,
    CapturedGraph,
    Chips,
    OpenDevices,
    ProfilerError,
    ProgramProfiler,
    RealtimeProfiler,
    captured_graph,
    keep,
    memory_report,
    ran_out_of_memory,
    trace_report,
)
from pytest_ttnn_perf.measure.timing import Timings, measure, warm_up

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from pytest_ttnn_perf.core.assignment import Assignment
    from pytest_ttnn_perf.core.hardware import Scalar
    from pytest_ttnn_perf.core.observation import Observation
    from pytest_ttnn_perf.core.ops import OpTable
    from pytest_ttnn_perf.core.settings import Settings
    from pytest_ttnn_perf.measure.instruments import Plan
    from pytest_ttnn_perf.measure.timing import Workload

#: A profiler slows a model down and fills up: few calls show what a device does.
PROFILED_ITERATIONS: Final = 3
_ONCE: Final = (0, 1, None)
#: How the profiler's report may round a time.
_ROUNDING_NS: Final = 1.0
#: The time of kernels that tt-lang tells.
_OF_KERNELS: Final = "kernel_time"
#: What tt-metal logs when its profiler ran out of room.
_DROPPED: Final = "markers were dropped"


def profile_calls(
    profiler: ProgramProfiler | RealtimeProfiler,
    workload: Workload,
    result: Any,
    source: Source,
    read_report: Callable[[], OpTable | None] | None = None,
) -> tuple[Any, Artifact]:
    """Profile some calls of a warm model; return the last result too.

    Of a model with a smaller part, that is called, and the result is the one from before.
    """
    iterations: list[Chips] = []
    timings = Timings()  # not used
    called, before = workload.part or workload, result
    try:
        profiler.begin()
        for _ in range(PROFILED_ITERATIONS):
            result = None
            result = measure(called, timings, warmup=0, iterations=1)
            iterations.append(profiler.take())
    except ProfilerError as error:
        if result is None:
            result = measure(called, timings, warmup=0, iterations=1)
        artifact = _no_data(str(error), source=source)
    else:
        report = None if read_report is None else read_report()
        artifact = profile_artifact(iterations, source, report, inputs=called.inputs)
    finally:
        profiler.end()
    return before if workload.part else result, artifact


def profile_artifact(
    iterations: Sequence[Chips], source: Source, report: OpTable | None = None, *, inputs: int = 1
) -> Artifact:
    """Return the metrics of profiled iterations, and their ops by a report.

    A sample per iteration, of the slowest chip. Iterations that ran different numbers of programs
    have no time: data was dropped, or the model does not do the same each time. What served
    several inputs is recorded per input, without ops: they come in no order of inputs.
    """
    counts = [max(map(len, chips.values())) for chips in iterations]
    if len(set(counts)) != 1:
        listed = ", ".join(map(str, counts))
        different = f"the iterations ran different numbers of programs: {listed}"
        return _no_data(different if counts else "no iteration was profiled", source=source)
    time = recorded_metric(KERNEL_TIME, Kind.TIME, source=source)
    times = tuple(_slowest_ns(chips) / inputs for chips in iterations)
    metrics = [MetricObservation(time, times)]
    ops, left_over = divmod(counts[-1], inputs)
    if not left_over:
        count = recorded_metric(OP_COUNT, Kind.COUNT, source=source)
        metrics.append(MetricObservation(count, (float(ops),)))
    named = _middle_iteration(iterations, report) if report is not None and inputs == 1 else None
    if named is None:
        return Artifact(tuple(metrics))
    checked = wings.captures.measured_ops(named, "the profiler's report")
    if checked.ops is None:
        why = checked.metrics[0].note
        return Artifact((MetricObservation(time, (), note=why),), table=named)
    # One step: TTNN numbers the traces of a process, whichever test they are of, and a region that
    # is named after a trace would have another name when the test runs alone.
    untraced: list[int | None] = [None] * len(named)
    whole = replace(named, columns=replace(named.columns, trace=untraced, replay=untraced))
    measured = wings.captures.measured_ops(whole, "the profiler's report")
    metrics += [  # the whole and the count are known from all iterations
        MetricObservation(replace(each.metric, source=source), each.samples)
        for each in measured.metrics
        if each.metric.is_part_of_kernel_time
    ]
    return Artifact(tuple(metrics), ops=measured.ops, table=named)


def _slowest_ns(chips: Chips) -> float:
    return max(map(sum, chips.values()))  # they run side by side


def _middle_iteration(iterations: Sequence[Chips], report: OpTable) -> OpTable | None:
    """Return the rows of the last iteration of median time.

    A report is of all that the process ran. Iterations are its last rows on each chip, if their
    times are those of the profiler; otherwise the report is of something else.
    """
    times_ns = [_slowest_ns(chips) for chips in iterations]
    chosen = len(times_ns) - 1 - times_ns[::-1].index(median_low(times_ns))
    later = iterations[chosen + 1 :]
    rows_of: dict[int, list[int]] = {}
    for row, device in enumerate(report.columns.device):
        rows_of.setdefault(device, []).append(row)
    kept: list[int] = []
    for chip, programs_ns in iterations[chosen].items():
        rows = rows_of.get(chip, [])
        end = max(len(rows) - sum(len(chips.get(chip, ())) for chips in later), 0)
        rows = rows[max(end - len(programs_ns), 0) : end]
        reported_ns = [report.columns.kernel_ns[row] for row in rows]
        if len(reported_ns) != len(programs_ns) or any(
            abs(ns - program_ns) > _ROUNDING_NS
            for ns, program_ns in zip(reported_ns, programs_ns, strict=True)
        ):
            return None
        kept += rows
    return replace(report.select(sorted(kept)), windowed=True)


def instruments_beside_devices(
    settings: Settings,
    profiler: ProfilerKind,
    assignment: Assignment | None,
    *,
    own: Path | None,
    opened: Callable[[], None] | None,
) -> BesideDevices:
    devices = OpenDevices(on_open=opened)
    devices.observe()
    folder = own or (assignment.folder if assignment else None)
    needed, reports = Source.DEVICE not in left_out(settings), settings.artifacts / "reports"
    if profiler is ProfilerKind.DEVICE and assignment is not None and folder is not None:
        only = settings.passes is PassChoice.DEVICE  # no other pass captures a graph then
        return Profiling(
            devices,
            reports=reports if only else None,
            drafts=folder,
            needed=needed,
            report=report_in(folder),
            log=assignment.folder / "worker.log",
        )
    if profiler is ProfilerKind.TTLANG:
        return Printing(devices)
    if profiler is ProfilerKind.TRACY:
        return Signposting(devices)
    return BesideDevices(
        devices,
        reports=reports,
        drafts=folder,
        needed=needed,
        realtime=profiler is ProfilerKind.REALTIME,
        required=settings.profiler is ProfilerKind.REALTIME,
        kernels_cached=kernels_cached(os.environ),
    )


@dataclass
class BesideDevices(Instruments):
    """The clock, while devices run undisturbed.

    The first call, which is not timed for the gate, is captured as a graph, in a folder of this
    very capture in ``drafts``; once it has been read it is kept in ``reports``, where another run
    may put its own at any time. A capture that fails is NO_DATA where it is ``needed``: nothing is
    to be stored without it. With ``realtime``, the real-time profiler is asked about some more
    calls after the samples; if it is ``required``, it must be there.
    """

    devices: OpenDevices
    reports: Path | None = None
    drafts: Path | None = None
    needed: bool = True
    realtime: bool = False
    required: bool = False
    kernels_cached: bool = False
    _test: str = ""
    _facts: dict[str, Scalar] = field(default_factory=dict)
    _captures: int = 0
    _draft: Path | None = None

    knows_devices = True

    @property
    def has_opened_device(self) -> bool:  # type: ignore[override]
        """True if a test, or what it needs, has opened one."""
        return self.devices.has_opened

    @property
    def by_the_clock(self) -> bool:  # type: ignore[override]
        used = self.devices.used
        return used is None or not used.hardware.simulated

    @property
    def sync(self) -> Callable[[], object] | None:  # type: ignore[override]
        return self.devices.synchronize if self.devices.handles else None

    def begin(self, test: str) -> None:
        Instruments.begin(self, test)
        self.devices.begin_test()
        self._test, self._captures = test, 0
        self._facts = {"kernel_cache": "warm" if self.kernels_cached else "cold"}

    def run(self, workload: Workload, timings: Timings, plan: Plan) -> tuple[Any, Artifact]:
        if not self.devices.handles:
            return Instruments.run(self, workload, timings, plan)
        warmup, iterations, depth = plan
        first = min(warmup, 1)
        part = workload.part
        with self._capture() if first else nullcontext(CapturedGraph()) as captured:
            warm_up(part or workload, Timings() if part else timings, count=first)
        warm_up(workload, timings, count=warmup - (0 if part else first))
        self._count("program_cache_entries_before")
        result, _ = Instruments.run(self, workload, timings, (0, iterations, depth))
        self._count("program_cache_entries_after")
        self._facts |= telemetry()  # at once: clocks fall when there is nothing to do
        call = self._read_capture(captured)
        if not self.realtime:
            return result, call
        profiler = RealtimeProfiler(self.devices)
        why = profiler.unavailable
        if why is not None and not self.required:
            self._facts["realtime_profiler"] = why
            return result, call
        result, profile = profile_calls(profiler, workload, result, Source.REALTIME)
        return result, call.completed_by(profile)

    def explanation(self, error: str) -> str | None:
        """Say how full devices or traces are, if out of memory."""
        runtime = self.devices.runtime
        if runtime is None or not ran_out_of_memory(error):
            return Instruments.explanation(self, error) or trace_report(error)
        return memory_report(runtime, self.devices.handles)

    def end(self, names: Sequence[str], region: str | None) -> Artifact:
        draft, self._draft = self._draft, None
        if draft is not None and draft.exists():
            try:
                keep(draft, self._place(names[0]))
            except OSError as error:
                self._facts["graph_capture"] = f"not kept: {error}"
                shutil.rmtree(draft, ignore_errors=True)
        return Instruments.end(self, names, region)

    def complete(self, observation: Observation, artifact: Artifact) -> Observation:
        used = self.devices.used
        if used is None:
            return Instruments.complete(self, observation, artifact)
        if artifact.arch or artifact.devices:
            from pytest_ttnn_perf.measure.hardware import other_hardware

            problem = other_hardware(used.hardware, artifact)
            if problem is not None:
                observation = replace(observation, problems=(*observation.problems, problem))
        metrics = observation.metrics
        if used.hardware.simulated:  # times by the clock are the host's
            metrics = {
                name: replace(observed, gated=False, why_ungated=NOT_TIMED)
                if observed.metric.source is Source.WALL and observed.metric.compared_by_ratio
                else observed
                for name, observed in metrics.items()
            }
        return replace(
            observation,
            metrics=metrics,
            hardware=used.hardware,
            configuration=used.configuration,
            environment={**observation.environment, **artifact.environment, **self._facts},
        )

    def _count(self, name: str) -> None:
        """Record the size of the program cache: a growing one was cold."""
        assert self.devices.runtime is not None
        entries = self.devices.runtime.program_cache_entries(self.devices.handles)
        if entries is not None:
            self._facts.setdefault(name, entries)

    def _capture(self) -> AbstractContextManager[CapturedGraph]:
        runtime = self.devices.runtime
        self._captures += 1
        if self.reports is None or runtime is None or self._captures > 1:
            return nullcontext(CapturedGraph())
        self._draft = (self.drafts or self.reports) / f".report-{secrets.token_hex(8)}"
        return captured_graph(runtime, self._draft)

    def _place(self, test: str) -> Path:
        assert self.reports is not None
        return self.reports / ops_path(test).with_suffix("")

    def _read_capture(self, captured: CapturedGraph) -> Artifact:
        if captured.unavailable is not None:
            self._facts["graph_capture"] = captured.unavailable
            return NO_ARTIFACT
        problem = captured.problem
        if captured.database is not None:
            graph = captured.database.with_name(GRAPH_FILE)
            try:
                artifact = wings.captures.read_captured_call(captured.database, graph)
            except TtnnPerfError as error:
                # It is going to be in its place when the user looks.
                problem = str(error).replace(str(self._draft), str(self._place(self._test)))
                if isinstance(error, EmptyReportError):  # a model that replays a trace calls no op
                    self._facts["graph_capture"] = problem
                    return NO_ARTIFACT
            else:
                return artifact
        if problem is None:
            return NO_ARTIFACT
        self._facts["graph_capture"] = problem
        if not self.needed:
            return NO_ARTIFACT
        why = f"the graph capture failed: {problem}; do without with --ttnn-perf-profiler off"
        count = recorded_metric(CALL_COUNT, Kind.COUNT)
        return Artifact((MetricObservation(count, (), note=why),))


class _ProfiledPass(BesideDevices):
    """A profiled pass: wall times are distorted, and not kept."""

    by_the_clock = False

    def complete(self, observation: Observation, artifact: Artifact) -> Observation:
        kept = {
            name: observed
            for name, observed in observation.metrics.items()
            if observed.metric.source is not Source.WALL
        }
        return BesideDevices.complete(self, replace(observation, metrics=kept), artifact)


@dataclass
class Profiling(_ProfiledPass):
    """The device profiler: few calls, and only the times of devices.

    ``report`` is the profiler's own, ``log`` where this process prints to.
    """

    report: Path | None = None
    log: Path | None = None
    _log_at: int = 0
    _dropped: bool = False

    def begin(self, test: str) -> None:
        BesideDevices.begin(self, test)
        self._log_at = self.log.stat().st_size if self.log and self.log.exists() else 0
        self._dropped = False

    def make_room(self) -> None:
        """Read the profiler out: it drops what it has no room for."""
        with suppress(ProfilerError):
            ProgramProfiler(self.devices).begin()

    def run(self, workload: Workload, timings: Timings, _: Plan) -> tuple[Any, Artifact]:
        with self._capture() as captured:
            warm_up(workload.part or workload, timings, count=1)
        if not self.devices.handles:
            why = "no device was open when the model was measured"
            return measure(workload, timings, warmup=0, iterations=1), _no_data(why)
        call = self._read_capture(captured)
        profiler = ProgramProfiler(self.devices)
        result, profile = profile_calls(profiler, workload, None, Source.DEVICE, self._report)
        return result, profile.completed_by(call)

    def read_output(self, text: str) -> Artifact:
        logged = b""
        if self.log is not None:
            with suppress(OSError), self.log.open("rb") as stream:
                stream.seek(self._log_at)
                logged = stream.read()
        if _DROPPED in text or _DROPPED.encode() in logged:
            self._dropped = True
            return _no_data("the profiler ran out of room and dropped markers")
        return Instruments.read_output(self, text)

    def complete(self, observation: Observation, artifact: Artifact) -> Observation:
        if self._dropped:  # what is left of the others is a part that looks whole
            lost = {n: m for n, m in observation.metrics.items() if n == KERNEL_TIME}
            observation = replace(observation, metrics=lost, ops=None, dropped=True)
        return _ProfiledPass.complete(self, observation, artifact)

    def _report(self) -> OpTable | None:
        if self.report is None or not self.report.exists():
            return None
        try:
            return wings.captures.op_table_of(self.report)
        except TtnnPerfError as error:
            self._facts["profiler_report"] = str(error)
            return None


class Printing(_ProfiledPass):
    """The profilers of tt-lang, which print after each call: there is one."""

    def read_output(self, text: str) -> Artifact:
        artifact = Instruments.read_output(self, text)
        why = "tt-lang printed no profile: no kernel of its own ran, or -s let its output through"
        return artifact if artifact.metrics else _no_data(why, _OF_KERNELS)

    def run(self, workload: Workload, timings: Timings, _: Plan) -> tuple[Any, Artifact]:
        return Instruments.run(self, workload, timings, _ONCE)


class Signposting(BesideDevices):
    """Tracy, which writes a report at its end: calls stand between signposts."""

    by_the_clock = False
    _runs = 0

    def run(self, workload: Workload, timings: Timings, _: Plan) -> tuple[Any, Artifact]:
        signpost = import_module("tracy").signpost  # it launched this process
        called = workload.part or workload
        warm_up(called, timings, count=1)
        self._captures += 1
        if self._captures > 1:  # a second model of the test: only the first is marked
            return Instruments.run(self, workload, timings, _ONCE)
        self._runs += 1
        result = None
        for number in range(PROFILED_ITERATIONS):
            before, after = signposts_of(self._test, run=self._runs, iteration=number)
            self.devices.synchronize()
            signpost(before)
            result = None
            result = measure(called, timings, warmup=0, iterations=1)
            self.devices.synchronize()
            signpost(after)
        return None if workload.part else result, NO_ARTIFACT


def _no_data(why: str, name: str = KERNEL_TIME, source: Source = Source.DEVICE) -> Artifact:
    metric = recorded_metric(name, Kind.TIME, source=source)
    return Artifact((MetricObservation(metric, (), note=why),))
