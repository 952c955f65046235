"""What a model is measured with: a clock alone, recorded artifacts, or a clock beside devices."""

from __future__ import annotations

import os
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pytest_ttnn_perf.measure.timing import measure, measure_pipelined
from pytest_ttnn_perf.records.hardware import Configuration
from pytest_ttnn_perf.records.metric import Source
from pytest_ttnn_perf.records.observation import NO_ARTIFACT
from pytest_ttnn_perf.records.settings import PassChoice, ProfilerKind, left_out

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pytest_ttnn_perf.device.tt_xla import Compiler
    from pytest_ttnn_perf.measure.timing import Timings, Workload
    from pytest_ttnn_perf.records.messages import Assignment
    from pytest_ttnn_perf.records.observation import Artifact, Observation
    from pytest_ttnn_perf.records.settings import Settings


class Plan(NamedTuple):
    """How often a model is called: for samples of ``depth`` calls each, if that is given."""

    warmup: int
    iterations: int
    depth: int | None = None


class Instruments:
    """A clock alone. Those beside devices, or in place of them, know more."""

    #: Whether what a test attaches, or prints, is taken.
    takes_artifacts = True
    #: Whether the times of this machine's clock are results: then it matters what else it does.
    by_the_clock = True
    #: What tells how tt-xla compiles models; None where that is not installed.
    compiler: Compiler | None = None
    #: Whether there can be devices at all.
    knows_devices = False

    @property
    def has_opened_device(self) -> bool:
        """Whether this process has opened a device, whose chips are then its own until it exits."""
        return False

    def make_room(self) -> None:
        """Empty what a profiler fills, between calls that nobody asks it about."""

    @property
    def sync(self) -> Callable[[], object] | None:
        """Waits for the devices in use; None without any."""
        return None

    def begin(self, test: str) -> None:  # noqa: ARG002 (what others ask for)
        """A test begins, with its set-up."""
        if self.compiler is not None:
            self.compiler.begin_test()

    def run(self, workload: Workload, timings: Timings, plan: Plan) -> Any:
        """Call a model as planned and time it; return the last result.

        None where a profiler was shown a part of each call, and no whole call was made.
        """
        if plan.depth is None:
            return measure(workload, timings, warmup=plan.warmup, iterations=plan.iterations)
        return measure_pipelined(
            workload, timings, warmup=plan.warmup, iterations=plan.iterations, depth=plan.depth
        )

    def last_measurement(self) -> Artifact:
        """Return what else is known of the model that was run last."""
        return NO_ARTIFACT

    def read_output(self, text: str) -> Artifact:
        """Return what the output of the test tells."""
        if not text:
            return NO_ARTIFACT
        from pytest_ttnn_perf.observe.artifacts import printed_artifact

        return printed_artifact(text)

    def end(self, names: Sequence[str], region: str | None) -> Artifact:  # noqa: ARG002 (what others ask for)
        """Return what is known of a test, or a region of it, once it has ended.

        ``names`` are its id, and what it is filed under if that is not the same.
        """
        return NO_ARTIFACT

    def explanation(self, error: str) -> str | None:  # noqa: ARG002
        """Return what is known of an error that ended a test; None for nothing."""
        return None

    def complete(self, observation: Observation, artifact: Artifact) -> Observation:
        """Return an observation with what is known of the hardware, and how tt-xla compiles."""
        compiled = self.compiler.configuration if self.compiler is not None else {}
        if compiled:
            observation = replace(observation, configuration=Configuration(compiled))
        if artifact.arch is None:
            return observation
        from pytest_ttnn_perf.observe.artifacts import on_hardware_told

        return on_hardware_told(observation, artifact)


class Replaying(Instruments):
    """Artifacts recorded elsewhere, in the folder ``root``, in place of devices."""

    takes_artifacts = False
    by_the_clock = False

    def __init__(self, root: Path) -> None:
        self.root = root

    def read_output(self, text: str) -> Artifact:  # noqa: ARG002
        """Return nothing: what tells of this machine is not wanted."""
        return NO_ARTIFACT

    def end(self, names: Sequence[str], region: str | None) -> Artifact:
        """Return what was recorded of a test."""
        from pytest_ttnn_perf.observe.artifacts import read_recorded

        return read_recorded(self.root, names, region)

    def complete(self, observation: Observation, artifact: Artifact) -> Observation:
        """Return the observation as one of the recorded hardware."""
        from pytest_ttnn_perf.observe.artifacts import without_own_times

        return without_own_times(observation, artifact)


def error_text(kind: str, text: str) -> str:
    """Return an error in one line; of one of tt-metal's, the cause without the backtrace."""
    from pytest_ttnn_perf.device.ttnn import cause_of

    lines = cause_of(text).strip().splitlines()
    return f"{kind}: {lines[0]}" if lines else kind


#: Either of them is there wherever tt-xla is.
_OF_TT_XLA: Final = ("pjrt_plugin_tt", "torch_xla")


def _has(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ValueError:  # something that is no package stands in for it, such as a simulator
        return False


def instruments_for(
    settings: Settings,
    profiler: ProfilerKind,
    assignment: Assignment | None = None,
    *,
    own: Path | None = None,
    opened: Callable[[], None] | None = None,
) -> Instruments:
    """Return the instruments of a process.

    ``profiler`` is what this process has been given variables for; ``own`` is its folder if it
    shares that of the assignment with others; ``opened`` is called before tests open a device.
    """
    if settings.replay is not None:
        return Replaying(settings.replay)
    instruments = Instruments()
    if _has("ttnn"):
        instruments = _with_devices(settings, profiler, assignment, own=own, opened=opened)
    if any(map(_has, _OF_TT_XLA)):
        from pytest_ttnn_perf.device.tt_xla import Compiler

        instruments.compiler = Compiler()
        instruments.compiler.observe()
    return instruments


def _with_devices(
    settings: Settings,
    profiler: ProfilerKind,
    assignment: Assignment | None,
    *,
    own: Path | None,
    opened: Callable[[], None] | None,
) -> Instruments:
    from pytest_ttnn_perf.device.environment import program_room, report_in
    from pytest_ttnn_perf.device.host import kernels_cached
    from pytest_ttnn_perf.device.ttnn import OpenDevices
    from pytest_ttnn_perf.observe.devices import BesideDevices
    from pytest_ttnn_perf.observe.profiled_pass import Printing, Profiling, Signposting

    reports = settings.artifacts / "reports"
    needed = Source.DEVICE not in left_out(settings)
    drafts = own or (assignment.folder if assignment else None)
    devices = OpenDevices(on_open=opened)
    devices.observe()
    if profiler is ProfilerKind.DEVICE and assignment is not None:
        only = settings.passes is PassChoice.DEVICE  # nobody else captures a graph then
        return Profiling(
            devices,
            reports=reports if only else None,
            drafts=drafts,
            needed=needed,
            report=report_in(own or assignment.folder),
            log=assignment.folder / "worker.log",
            room=program_room(os.environ),
        )
    if profiler is ProfilerKind.TTLANG:
        return Printing(devices)
    if profiler is ProfilerKind.TRACY:
        return Signposting(devices)
    return BesideDevices(
        devices,
        reports=reports,
        drafts=drafts,
        needed=needed,
        realtime=profiler is ProfilerKind.REALTIME,
        required=settings.profiler is ProfilerKind.REALTIME,
        kernels_cached=kernels_cached(os.environ),
    )
