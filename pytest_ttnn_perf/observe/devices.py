"""Instruments beside devices: captures and profilers while a model is measured.

In a pass of its own, a profiler is in the way of the clock, and only what it tells is kept.
"""

from __future__ import annotations

import secrets
import shutil
from contextlib import nullcontext
from dataclasses import field, replace
from importlib import import_module
from statistics import median_low
from typing import TYPE_CHECKING, Any, Final

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.errors import TtnnPerfError
from pytest_ttnn_perf.analysis.captures.device_metrics import (
    CALL_COUNT,
    OP_COUNT,
    device_metrics,
    gated_ops,
    recorded_metric,
)
from pytest_ttnn_perf.analysis.captures.validity import why_invalid
from pytest_ttnn_perf.device.host import telemetry
from pytest_ttnn_perf.device.profilers import (
    CapturedGraph,
    Profile,
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
from pytest_ttnn_perf.observe.instruments import Instruments, Plan
from pytest_ttnn_perf.records.baseline import ops_path
from pytest_ttnn_perf.records.hardware import Configuration
from pytest_ttnn_perf.records.metric import KERNEL_TIME, Kind, Source
from pytest_ttnn_perf.records.observation import NO_ARTIFACT, Artifact, MetricObservation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from pytest_ttnn_perf.device.profilers import Profiler
    from pytest_ttnn_perf.device.ttnn import OpenDevices
    from pytest_ttnn_perf.measure.timing import Workload
    from pytest_ttnn_perf.records.hardware import Scalar
    from pytest_ttnn_perf.records.observation import Observation
    from pytest_ttnn_perf.records.ops import OpTable


#: A profiler slows a model down and fills up: few calls tell what a device does.
PROFILED_ITERATIONS: Final = 3


def profile_calls(profiler: Profiler, workload: Workload, result: Any) -> tuple[Profile, Any]:
    """Call a warm model some times and profile each call; return the last result as well."""
    iterations = []
    timings = Timings()  # nobody asks for them
    try:
        profiler.begin()
        for _ in range(PROFILED_ITERATIONS):
            result = None
            result = measure(workload, timings, warmup=0, iterations=1)
            iterations.append(profiler.take())
    except ProfilerError as error:
        if result is None:
            result = measure(workload, timings, warmup=0, iterations=1)
        return Profile(problem=str(error)), result
    finally:
        profiler.end()
    return Profile(tuple(iterations)), result


#: How the profiler's report may round a time.
_ROUNDING_NS: Final = 1.0


def profile_artifact(profile: Profile, *, source: Source, report: OpTable | None) -> Artifact:
    """Return the metrics of a profile; with the profiler's own report, also the op table.

    A sample per iteration, of the slowest chip. Iterations that ran different numbers of programs
    are told as such: data was dropped, or the model does not do the same each time.
    """
    time = recorded_metric(KERNEL_TIME, Kind.TIME, source=source)
    problem = profile.problem or _uneven(profile)
    if problem is not None:
        return Artifact((MetricObservation(time, (), note=problem),))
    metrics = [
        MetricObservation(time, tuple(iteration.kernel_ns for iteration in profile.iterations)),
        MetricObservation(
            recorded_metric(OP_COUNT, Kind.COUNT, source=source),
            (float(profile.iterations[-1].op_count),),
        ),
    ]
    named = _middle_iteration(profile, report) if report is not None else None
    if named is None:
        return Artifact(tuple(metrics))
    invalid = why_invalid(named, "the profiler's report")
    if invalid is not None:
        return Artifact((MetricObservation(time, (), note=invalid),), table=named)
    metrics += _categories(named, source)
    return Artifact(tuple(metrics), ops=gated_ops(named), table=named)


def _uneven(profile: Profile) -> str | None:
    counts = [iteration.op_count for iteration in profile.iterations]
    if len(set(counts)) <= 1:
        return None if counts else "no iteration was profiled"
    listed = ", ".join(map(str, counts))
    return f"the iterations ran different numbers of programs: {listed}"


def _middle_iteration(profile: Profile, report: OpTable) -> OpTable | None:
    """Return the rows of an iteration that took the median time, the last of them if several did.

    A report is of all that the process ran. Iterations are its last rows on each chip, if their
    times are those that the profiler told; otherwise the report is of something else.
    """
    times_ns = [iteration.kernel_ns for iteration in profile.iterations]
    chosen = len(times_ns) - 1 - times_ns[::-1].index(median_low(times_ns))
    later = profile.iterations[chosen + 1 :]
    rows_of: dict[int, list[int]] = {}
    for row, device in enumerate(report.columns.device):
        rows_of.setdefault(device, []).append(row)
    kept: list[int] = []
    for chip, programs in profile.iterations[chosen].by_chip.items():
        rows = rows_of.get(chip, [])
        end = max(len(rows) - sum(len(iteration.by_chip.get(chip, ())) for iteration in later), 0)
        rows = rows[max(end - len(programs), 0) : end]
        times = [report.columns.kernel_ns[row] for row in rows]
        if len(times) != len(programs) or any(
            abs(ns - program.kernel_ns) > _ROUNDING_NS
            for ns, program in zip(times, programs, strict=True)
        ):
            return None
        kept += rows
    return replace(report.select(sorted(kept)), windowed=True)


def _categories(table: OpTable, source: Source) -> Iterator[MetricObservation]:
    """Yield the times by category; the whole and the count are known from all iterations."""
    for observed in device_metrics(table, file="report"):
        if observed.metric.is_part_of_kernel_time:
            metric = recorded_metric(observed.metric.name, Kind.TIME, source=source)
            yield MetricObservation(metric, observed.samples)


@dataclass(slots=True)
class BesideDevices(Instruments):
    """The clock, while devices run undisturbed.

    The first call, which is not timed for the gate, is captured as a graph, in a folder of this
    very capture in ``drafts``; once it has been read it is kept in ``reports``, where another run
    may put its own at any time. A capture that fails is NO_DATA where it is ``needed``: nothing is
    to be stored without it. With ``realtime``, some more calls follow the samples, told by the
    real-time profiler.
    """

    devices: OpenDevices
    reports: Path | None = None
    drafts: Path | None = None
    needed: bool = True
    realtime: bool = False
    #: Whether the real-time profiler was asked for by its name: then it must be there.
    required: bool = False
    kernels_cached: bool = False
    _test: str = ""
    _artifact: Artifact = NO_ARTIFACT
    _facts: dict[str, Scalar] = field(default_factory=dict)
    _captures: int = 0
    _draft: Path | None = None

    @property
    def knows_devices(self) -> bool:  # type: ignore[override]
        """There may be some."""
        return True

    @property
    def has_opened_device(self) -> bool:
        """Whether a test, or what it needs, has opened one."""
        return self.devices.has_opened

    @property
    def by_the_clock(self) -> bool:  # type: ignore[override]
        """Whether times count: not those of a simulated device."""
        used = self.devices.used
        return used is None or not used.hardware.simulated

    @property
    def sync(self) -> Callable[[], object] | None:
        """Waits for the open devices."""
        return self.devices.synchronize if self.devices.handles else None

    def begin(self, test: str) -> None:
        """Remember which devices are open from earlier tests."""
        self.devices.begin_test()
        self._test, self._captures = test, 0
        self._facts = {"kernel_cache": "warm" if self.kernels_cached else "cold"}

    def run(self, workload: Workload, timings: Timings, plan: Plan) -> Any:
        """Time the model; what is not to be timed comes before and after."""
        if not self.devices.handles:
            self._artifact = NO_ARTIFACT
            return Instruments.run(self, workload, timings, plan)
        first = min(plan.warmup, 1)
        with self._capture() if first else nullcontext(CapturedGraph()) as captured:
            warm_up(workload, timings, count=first)
        warm_up(workload, timings, count=plan.warmup - first)
        self._count("program_cache_entries_before")
        result = Instruments.run(self, workload, timings, plan._replace(warmup=0))
        self._count("program_cache_entries_after")
        self._facts |= telemetry()  # at once: clocks fall when there is nothing to do
        self._artifact = self._read_capture(captured)
        return self._in_real_time(workload, result) if self.realtime else result

    def _in_real_time(self, workload: Workload, result: Any) -> Any:
        profiler = RealtimeProfiler(self.devices)
        why = profiler.unavailable
        if why is not None and not self.required:
            self._facts["realtime_profiler"] = why
            return result
        profile, result = profile_calls(profiler, workload, result)
        artifact = profile_artifact(profile, source=Source.REALTIME, report=None)
        self._artifact = self._artifact.completed_by(artifact)
        return result

    def last_measurement(self) -> Artifact:
        """Return what the capture and the real-time profiler told."""
        return self._artifact

    def explanation(self, error: str) -> str | None:
        """Say how full the devices are, or a trace is, of an error that there was no room left."""
        runtime = self.devices.runtime
        if runtime is None or not ran_out_of_memory(error):
            return trace_report(error)
        return memory_report(runtime, self.devices.handles)

    def end(self, test: str, region: str | None) -> Artifact:
        """Keep the capture, also of a test that raised later."""
        draft, self._draft = self._draft, None
        if draft is not None and draft.exists():
            try:
                keep(draft, self._place(test))
            except OSError as error:
                self._facts["graph_capture"] = f"not kept: {error}"
                shutil.rmtree(draft, ignore_errors=True)
        return Instruments.end(self, test, region)

    def complete(self, observation: Observation, artifact: Artifact) -> Observation:
        """Return the observation as one of the device that the test used."""
        used = self.devices.used
        if used is None:
            return Instruments.complete(self, observation, artifact)
        if artifact.arch or artifact.devices:
            from pytest_ttnn_perf.observe.artifacts import other_hardware

            problem = other_hardware(used.hardware, artifact)
            if problem is not None:
                observation = replace(observation, problems=(*observation.problems, problem))
        return replace(
            _without_gated_times(observation) if used.hardware.simulated else observation,
            hardware=used.hardware,
            configuration=Configuration(used.configuration),
            environment={**observation.environment, **artifact.environment, **self._facts},
        )

    def _count(self, name: str) -> None:
        """Record the size of the program cache: one that grows while samples are taken was cold."""
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
        if captured.problem is not None:
            return self._failed_capture(captured.problem)
        if captured.database is None:
            return NO_ARTIFACT
        from pytest_ttnn_perf.analysis.captures.report_db import EmptyReportError
        from pytest_ttnn_perf.observe.artifacts import read_captured_call

        # Where it is going to be, for who looks.
        place = str(self._place(self._test))
        try:
            return read_captured_call(captured.database)
        except EmptyReportError as error:  # a model may call no op: it replays a trace
            self._facts["graph_capture"] = str(error).replace(str(self._draft), place)
            return NO_ARTIFACT
        except TtnnPerfError as error:
            return self._failed_capture(str(error).replace(str(self._draft), place))

    def _failed_capture(self, problem: str) -> Artifact:
        self._facts["graph_capture"] = problem
        if not self.needed:
            return NO_ARTIFACT
        why = f"the graph capture failed: {problem}; do without with --ttnn-perf-profiler off"
        count = recorded_metric(CALL_COUNT, Kind.COUNT)
        return Artifact((MetricObservation(count, (), note=why),))


#: The time of kernels that tt-lang tells.
_OF_KERNELS: Final = "kernel_time"
#: What tt-metal logs when its profiler ran out of room.
_DROPPED: Final = "markers were dropped"
#: Before and after each measured call under Tracy.
SIGNPOST_BEGIN: Final = "ttnn-perf begin"
SIGNPOST_END: Final = "ttnn-perf end"


def signposts_of(test: str, *, run: int, iteration: int) -> tuple[str, str]:
    """Return the signposts around a measured call; ``run`` tells a test that runs again apart."""
    return tuple(f"{mark} {run}.{iteration} {test}" for mark in (SIGNPOST_BEGIN, SIGNPOST_END))  # type: ignore[return-value]


class _Profiled(BesideDevices):
    """Instruments of a profiled pass: its wall times are not kept, so nothing checks them."""

    __slots__ = ()

    by_the_clock = False


@dataclass(slots=True)
class Profiling(_Profiled):
    """The device profiler: few calls, and only what the devices say of them.

    ``report`` is the profiler's own, ``log`` where this process prints to.
    """

    report: Path | None = None
    log: Path | None = None
    _log_at: int = 0
    _dropped: bool = False

    def begin(self, test: str) -> None:
        """Remember where the log of this test begins."""
        BesideDevices.begin(self, test)
        self._log_at = self.log.stat().st_size if self.log and self.log.exists() else 0
        self._dropped = False

    def run(self, workload: Workload, timings: Timings, plan: Plan) -> Any:  # noqa: ARG002
        """Call the model once, then profile some calls."""
        with self._capture() as captured:
            warm_up(workload, timings, count=1)
        if not self.devices.handles:
            self._artifact = _no_data("no device was open when the model was measured")
            return measure(workload, timings, warmup=0, iterations=1)
        profile, result = profile_calls(ProgramProfiler(self.devices), workload, None)
        report = self._report() if profile.problem is None else None
        artifact = profile_artifact(profile, source=Source.DEVICE, report=report)
        self._artifact = artifact.completed_by(self._read_capture(captured))
        return result

    def read_output(self, text: str) -> Artifact:
        """Look for what the profiler lost, in what pytest captured and in this process' log."""
        if _DROPPED in text or _DROPPED in self._logged():
            self._dropped = True
            return _no_data("the profiler ran out of room and dropped markers")
        return Instruments.read_output(self, text)

    def complete(self, observation: Observation, artifact: Artifact) -> Observation:
        """Return the device's metrics only: a profiler distorts wall times."""
        observation = _of_device(observation)
        if self._dropped:  # what is left of the others is a part that looks whole
            lost = {n: m for n, m in observation.metrics.items() if n == KERNEL_TIME}
            observation = replace(observation, metrics=lost, ops=None, dropped=True)
        return BesideDevices.complete(self, observation, artifact)

    def _report(self) -> OpTable | None:
        """Read the profiler's report; without one, programs have no names."""
        if self.report is None or not self.report.exists():
            return None
        from pytest_ttnn_perf.analysis.captures.cpp_report import read_cpp_report

        try:
            return read_cpp_report(self.report)
        except TtnnPerfError as error:
            self._facts["profiler_report"] = str(error)
            return None

    def _logged(self) -> str:
        if self.log is None:
            return ""
        try:
            with self.log.open("rb") as stream:
                stream.seek(self._log_at)
                return stream.read().decode(errors="replace")
        except OSError:
            return ""


@dataclass(slots=True)
class Printing(_Profiled):
    """The profilers of tt-lang, which print after each call of a kernel: so there is one."""

    def read_output(self, text: str) -> Artifact:
        """Return what they printed; that they printed nothing is no data."""
        artifact = Instruments.read_output(self, text)
        if artifact.metrics:
            return artifact
        time = recorded_metric(_OF_KERNELS, Kind.TIME)
        why = "tt-lang printed no profile: no kernel of its own ran"
        return Artifact((MetricObservation(time, (), note=why),))

    def run(self, workload: Workload, timings: Timings, plan: Plan) -> Any:  # noqa: ARG002
        """Call the model once."""
        self._artifact = NO_ARTIFACT
        return measure(workload, timings, warmup=0, iterations=1)

    def complete(self, observation: Observation, artifact: Artifact) -> Observation:
        """Return only what the kernels told."""
        return BesideDevices.complete(self, _of_device(observation), artifact)


@dataclass(slots=True)
class Signposting(_Profiled):
    """Tracy, which writes a report at its end: each call stands between two signposts."""

    _runs: int = 0

    def run(self, workload: Workload, timings: Timings, plan: Plan) -> Any:  # noqa: ARG002
        """Call the model once, then some times between signposts."""
        signpost = import_module("tracy").signpost  # what launched this process

        warm_up(workload, timings, count=1)
        self._artifact, result = NO_ARTIFACT, None
        self._captures += 1
        if self._captures > 1:  # a second model of the test: only the first is told
            return measure(workload, timings, warmup=0, iterations=1)
        self._runs += 1
        for number in range(PROFILED_ITERATIONS):
            before, after = signposts_of(self._test, run=self._runs, iteration=number)
            self.devices.synchronize()
            signpost(before)
            result = None
            result = measure(workload, timings, warmup=0, iterations=1)
            self.devices.synchronize()
            signpost(after)
        return result


def _without_gated_times(observation: Observation) -> Observation:
    """Return an observation whose times by the clock are recorded only: they are the host's."""
    metrics = {
        name: replace(observed, gated=False)
        if observed.metric.source is Source.WALL and observed.metric.compared_by_ratio
        else observed
        for name, observed in observation.metrics.items()
    }
    return replace(observation, metrics=metrics)


def _of_device(observation: Observation) -> Observation:
    kept = {
        name: observed
        for name, observed in observation.metrics.items()
        if observed.metric.source is not Source.WALL
    }
    return replace(observation, metrics=kept)


def _no_data(why: str) -> Artifact:
    return Artifact((MetricObservation(recorded_metric(KERNEL_TIME, Kind.TIME), (), note=why),))
