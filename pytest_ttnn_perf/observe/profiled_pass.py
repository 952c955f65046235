"""Instruments of a pass of its own, in which a profiler is in the way of the clock.

Only what it tells is kept.
"""

from __future__ import annotations

from contextlib import nullcontext, suppress
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.errors import TtnnPerfError
from pytest_ttnn_perf.analysis.captures.device_metrics import recorded_metric
from pytest_ttnn_perf.device.environment import MORE_PROGRAMS, PROGRAMS
from pytest_ttnn_perf.device.profilers import (
    ProfilerError,
    ProgramCount,
    ProgramProfiler,
    count_programs,
)
from pytest_ttnn_perf.measure.timing import measure, warm_up
from pytest_ttnn_perf.observe.device_profile import (
    PROFILED_ITERATIONS,
    profile_artifact,
    profile_calls,
)
from pytest_ttnn_perf.observe.devices import BesideDevices
from pytest_ttnn_perf.observe.instruments import Instruments
from pytest_ttnn_perf.records.metric import KERNEL_TIME, Kind, Source
from pytest_ttnn_perf.records.observation import NO_ARTIFACT, Artifact, MetricObservation

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    from pytest_ttnn_perf.measure.timing import Timings, Workload
    from pytest_ttnn_perf.observe.instruments import Plan
    from pytest_ttnn_perf.records.observation import Observation
    from pytest_ttnn_perf.records.ops import OpTable


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

    ``report`` is the profiler's own, ``log`` where this process prints to. ``room`` is how many
    programs the profiler keeps until it is read. A call that runs more is not profiled: most of it
    would be lost, and in a profiler that has more room as well if it is too large for that.
    """

    report: Path | None = None
    log: Path | None = None
    room: int = PROGRAMS
    _log_at: int = 0
    _dropped: bool = False
    _too_large: bool = False

    def begin(self, test: str) -> None:
        """Remember where the log of this test begins."""
        BesideDevices.begin(self, test)
        self._log_at = self.log.stat().st_size if self.log and self.log.exists() else 0
        self._dropped = self._too_large = False

    def make_room(self) -> None:
        """Read the profiler out: it drops what it has no room for."""
        with suppress(ProfilerError):
            ProgramProfiler(self.devices).begin()

    def run(self, workload: Workload, timings: Timings, plan: Plan) -> Any:  # noqa: ARG002
        """Call the model once, then profile some calls."""
        with self._counting() as counted, self._capture() as captured:
            warm_up(workload.part or workload, timings, count=1)
        if not self.devices.handles:
            self._artifact = _no_data("no device was open when the model was measured")
            return measure(workload, timings, warmup=0, iterations=1)
        call = self._read_capture(captured)
        programs = counted.programs if call.report is None else call.report.program_count
        if programs is not None and programs > self.room:
            self._artifact = self._refuse(programs).completed_by(call)
            return measure(workload, timings, warmup=0, iterations=1)
        profile, result = profile_calls(ProgramProfiler(self.devices), workload, None)
        report = self._report() if profile.problem is None else None
        artifact = profile_artifact(profile, source=Source.DEVICE, report=report)
        self._artifact = artifact.completed_by(call)
        return result

    def _counting(self) -> AbstractContextManager[ProgramCount]:
        """Count the programs of the first call, unless a capture of it tells them anyway."""
        runtime = self.devices.runtime
        if runtime is None or self.reports is not None:
            return nullcontext(ProgramCount())
        return count_programs(runtime)

    def _refuse(self, programs: int) -> Artifact:
        """Say that a call is too large; where a profiler with more room may do, that is next."""
        self._too_large = True
        self._dropped = self._dropped or programs <= MORE_PROGRAMS
        room = max(self.room, MORE_PROGRAMS)
        return _no_data(
            f"one call runs about {programs:,} programs, and the profiler has room for {room:,}: "
            "measure fewer layers, or parts of the model by themselves, or do without: "
            "--ttnn-perf-passes=wall"
        )

    def read_output(self, text: str) -> Artifact:
        """Look for what the profiler lost, in what pytest captured and in this process' log."""
        if not self._too_large and (_DROPPED in text or _DROPPED in self._logged()):
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

        called = workload.part or workload
        warm_up(called, timings, count=1)
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
            result = measure(called, timings, warmup=0, iterations=1)
            self.devices.synchronize()
            signpost(after)
        return None if workload.part else result


def _of_device(observation: Observation) -> Observation:
    kept = {
        name: observed
        for name, observed in observation.metrics.items()
        if observed.metric.source is not Source.WALL
    }
    return replace(observation, metrics=kept)


def _no_data(why: str) -> Artifact:
    return Artifact((MetricObservation(recorded_metric(KERNEL_TIME, Kind.TIME), (), note=why),))
