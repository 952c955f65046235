"""Measuring beside devices: undisturbed in the wall pass, profiled in the device pass."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from pytest_ttnn_perf._support.errors import TtnnPerfError
from pytest_ttnn_perf.baselines.paths import ops_path
from pytest_ttnn_perf.device.graph import CapturedGraph, captured_graph
from pytest_ttnn_perf.device.memory import memory_report, ran_out_of_memory
from pytest_ttnn_perf.device.profilers import ProfilerError, ProgramProfiler, RealtimeProfiler
from pytest_ttnn_perf.device.telemetry import telemetry
from pytest_ttnn_perf.measure.sampling import Timings, measure, warm_up
from pytest_ttnn_perf.model.artifact import NO_ARTIFACT, Artifact
from pytest_ttnn_perf.model.hardware import Configuration
from pytest_ttnn_perf.model.metric import KERNEL_TIME, Kind, Source
from pytest_ttnn_perf.model.observation import MetricObservation
from pytest_ttnn_perf.model.profile import Profile
from pytest_ttnn_perf.workflow.instruments import Instruments, Plan
from pytest_ttnn_perf.workflow.profiles import profile_artifact
from pytest_ttnn_perf.workflow.recorded import recorded
from pytest_ttnn_perf.workflow.tracy_pass import signposts_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from pathlib import Path

    from pytest_ttnn_perf.device.opened import OpenDevices
    from pytest_ttnn_perf.device.profilers import Profiler
    from pytest_ttnn_perf.measure.sampling import Workload
    from pytest_ttnn_perf.model.hardware import Scalar
    from pytest_ttnn_perf.model.observation import Observation
    from pytest_ttnn_perf.model.ops import OpTable

#: A profiler slows a model down and fills up: few calls tell what a device does.
PROFILED_ITERATIONS: Final = 3
#: What tt-metal logs when its profiler ran out of room.
_DROPPED: Final = "markers were dropped"


@dataclass(slots=True)
class BesideDevices(Instruments):
    """The clock, while devices run undisturbed.

    The first call, which is not timed for the gate, is captured as a graph into ``reports``. With
    ``realtime``, some more calls follow the samples, told by the real-time profiler.
    """

    devices: OpenDevices
    reports: Path | None = None
    realtime: bool = False
    #: Whether the real-time profiler was asked for by its name: then it must be there.
    required: bool = False
    kernels_cached: bool = False
    _test: str = ""
    _artifact: Artifact = NO_ARTIFACT
    _facts: dict[str, Scalar] = field(default_factory=dict)
    _captures: int = 0

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
        result = Instruments.run(self, workload, timings, replace(plan, warmup=0))
        self._count("program_cache_entries_after")
        self._facts |= telemetry()  # at once: clocks fall when there is nothing to do
        self._artifact = self._captured(captured)
        return self._in_real_time(workload, result) if self.realtime else result

    def _in_real_time(self, workload: Workload, result: Any) -> Any:
        profiler = RealtimeProfiler(self.devices)
        why = profiler.unavailable
        if why is not None and not self.required:
            self._facts["realtime_profiler"] = why
            return result
        profile, result = profiled(profiler, workload, result)
        told = profile_artifact(profile, source=Source.REALTIME, report=None)
        self._artifact = self._artifact.completed_by(told)
        return result

    def measured(self) -> Artifact:
        """Return what the capture and the real-time profiler told."""
        return self._artifact

    def explanation(self, error: str) -> str | None:
        """Say how full the devices are, of an error that there was no memory left."""
        runtime = self.devices.runtime
        if runtime is None or not ran_out_of_memory(error):
            return None
        return memory_report(runtime, self.devices.handles)

    def completed(self, observation: Observation, artifact: Artifact) -> Observation:
        """Return the observation as one of the device that the test used."""
        used = self.devices.used
        if used is None:
            return observation
        return replace(
            observation,
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
        return captured_graph(runtime, self.reports / ops_path(self._test).with_suffix(""))

    def _captured(self, captured: CapturedGraph) -> Artifact:
        if captured.problem is not None:
            self._facts["graph_capture"] = captured.problem
        if captured.database is None:
            return NO_ARTIFACT
        from pytest_ttnn_perf.workflow.artifacts import read_artifact

        try:
            return read_artifact(captured.database)
        except TtnnPerfError as error:
            self._facts["graph_capture"] = str(error)
            return NO_ARTIFACT


@dataclass(slots=True)
class Profiling(BesideDevices):
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
        profile, result = profiled(ProgramProfiler(self.devices), workload, None)
        report = self._report() if profile.problem is None else None
        told = profile_artifact(profile, source=Source.DEVICE, report=report)
        self._artifact = told.completed_by(self._captured(captured))
        return result

    def printed(self, text: str) -> Artifact:
        """Look for what the profiler lost, in what pytest captured and in this process' log."""
        if _DROPPED in text or _DROPPED in self._logged():
            self._dropped = True
            return _no_data("the profiler ran out of room and dropped markers")
        return Instruments.printed(self, text)

    def completed(self, observation: Observation, artifact: Artifact) -> Observation:
        """Return only what the device told: times under a profiler are nobody's."""
        observation = _of_device(observation)
        if self._dropped:  # what is left of the others is a part that looks whole
            lost = {n: m for n, m in observation.metrics.items() if n == KERNEL_TIME}
            observation = replace(observation, metrics=lost, ops=None, dropped=True)
        return BesideDevices.completed(self, observation, artifact)

    def _report(self) -> OpTable | None:
        """Read the profiler's report; without one, programs have no names."""
        if self.report is None or not self.report.exists():
            return None
        from pytest_ttnn_perf.capture.cpp_report import read_cpp_report

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
class Printing(BesideDevices):
    """The profilers of tt-lang, which print after each call of a kernel: so there is one."""

    def run(self, workload: Workload, timings: Timings, plan: Plan) -> Any:  # noqa: ARG002
        """Call the model once."""
        self._artifact = NO_ARTIFACT
        return measure(workload, timings, warmup=0, iterations=1)

    def completed(self, observation: Observation, artifact: Artifact) -> Observation:
        """Return only what the kernels told."""
        return BesideDevices.completed(self, _of_device(observation), artifact)


@dataclass(slots=True)
class Signposting(BesideDevices):
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


def profiled(profiler: Profiler, workload: Workload, result: Any) -> tuple[Profile, Any]:
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


def _of_device(observation: Observation) -> Observation:
    kept = {
        name: observed
        for name, observed in observation.metrics.items()
        if observed.metric.source is not Source.WALL
    }
    return replace(observation, metrics=kept)


def _no_data(why: str) -> Artifact:
    return Artifact((MetricObservation(recorded(KERNEL_TIME, Kind.TIME), (), note=why),))
