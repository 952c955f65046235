"""Instruments beside devices: the clock, captures, and the real-time profiler."""

from __future__ import annotations

import secrets
import shutil
from contextlib import nullcontext
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.errors import TtnnPerfError
from pytest_ttnn_perf.analysis.captures.device_metrics import CALL_COUNT, recorded_metric
from pytest_ttnn_perf.device.host import telemetry
from pytest_ttnn_perf.device.profilers import (
    GRAPH_FILE,
    CapturedGraph,
    RealtimeProfiler,
    captured_graph,
    keep,
    memory_report,
    ran_out_of_memory,
    trace_report,
)
from pytest_ttnn_perf.measure.timing import Timings, warm_up
from pytest_ttnn_perf.observe.device_profile import profile_artifact, profile_calls
from pytest_ttnn_perf.observe.instruments import Instruments, Plan
from pytest_ttnn_perf.records.baseline import ops_path
from pytest_ttnn_perf.records.hardware import Configuration
from pytest_ttnn_perf.records.metric import Kind, Source
from pytest_ttnn_perf.records.observation import NO_ARTIFACT, Artifact, MetricObservation

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from pytest_ttnn_perf.device.ttnn import OpenDevices
    from pytest_ttnn_perf.measure.timing import Workload
    from pytest_ttnn_perf.records.hardware import Scalar
    from pytest_ttnn_perf.records.observation import Observation


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
        Instruments.begin(self, test)
        self.devices.begin_test()
        self._test, self._captures = test, 0
        self._facts = {"kernel_cache": "warm" if self.kernels_cached else "cold"}

    def run(self, workload: Workload, timings: Timings, plan: Plan) -> Any:
        """Time the model; what is not to be timed comes before and after."""
        if not self.devices.handles:
            self._artifact = NO_ARTIFACT
            return Instruments.run(self, workload, timings, plan)
        first = min(plan.warmup, 1)
        part = workload.part
        with self._capture() if first else nullcontext(CapturedGraph()) as captured:
            warm_up(part or workload, Timings() if part else timings, count=first)
        warm_up(workload, timings, count=plan.warmup - (0 if part else first))
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

    def end(self, names: Sequence[str], region: str | None) -> Artifact:
        """Keep the capture, also of a test that raised later."""
        draft, self._draft = self._draft, None
        if draft is not None and draft.exists():
            try:
                keep(draft, self._place(names[0]))
            except OSError as error:
                self._facts["graph_capture"] = f"not kept: {error}"
                shutil.rmtree(draft, ignore_errors=True)
        return Instruments.end(self, names, region)

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
            return read_captured_call(captured.database, captured.database.with_name(GRAPH_FILE))
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


def _without_gated_times(observation: Observation) -> Observation:
    """Return an observation whose times by the clock are recorded only: they are the host's."""
    metrics = {
        name: replace(observed, gated=False)
        if observed.metric.source is Source.WALL and observed.metric.compared_by_ratio
        else observed
        for name, observed in observation.metrics.items()
    }
    return replace(observation, metrics=metrics)
