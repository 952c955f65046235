"""Instruments of a measurement: a clock, devices, profilers, or a replay."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from msgspec.structs import replace

from pytest_ttnn_perf.core import wings
from pytest_ttnn_perf.core.observation import NO_ARTIFACT, SET_LATE, Artifact
from pytest_ttnn_perf.measure.timing import measure

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pytest_ttnn_perf.core.assignment import Assignment
    from pytest_ttnn_perf.core.observation import Observation
    from pytest_ttnn_perf.core.settings import ProfilerKind, Settings
    from pytest_ttnn_perf.measure.frameworks import Compiler
    from pytest_ttnn_perf.measure.timing import Timings, Workload

#: Either of them is there wherever tt-xla is.
_OF_TT_XLA: Final = ("pjrt_plugin_tt", "torch_xla")


#: Calls before the samples, samples, and how many calls make one; None for a call each.
Plan: TypeAlias = "tuple[int, int, int | None]"


class Instruments:
    """A clock alone. Others know more."""

    #: Whether what a test attaches, or prints, is taken.
    takes_artifacts = True
    #: Whether the times of this machine's clock are results: then it matters what else it does.
    by_the_clock = True
    #: The compiler of tt-xla; None where that is not installed.
    compiler: Compiler | None = None
    #: Whether there can be devices at all.
    knows_devices = False
    #: Whether this process has opened a device, whose chips are then its own until it exits.
    has_opened_device = False
    #: Waits for the devices in use; None without any.
    sync: Callable[[], object] | None = None

    def make_room(self) -> None:
        """Empty a profiler between calls that it is not asked about."""

    def begin(self, test: str) -> None:  # noqa: ARG002 (what others ask for)
        if self.compiler is not None:
            self.compiler.begin_test()

    def run(self, workload: Workload, timings: Timings, plan: Plan) -> tuple[Any, Artifact]:
        """Call a model as planned and time it.

        Return the last result, and the artifact of its devices. The result is None where a profiler
        was shown a part of each call, and none was whole.
        """
        warmup, iterations, depth = plan
        result = measure(workload, timings, warmup=warmup, iterations=iterations, depth=depth)
        return result, NO_ARTIFACT

    def read_output(self, text: str) -> Artifact:
        if not text or not self.takes_artifacts:
            return NO_ARTIFACT
        return wings.captures.printed_artifact(text)

    def end(self, names: Sequence[str], region: str | None) -> Artifact:  # noqa: ARG002
        """Return the artifact of a test that has ended.

        ``names`` are its id, and what it is filed under if that is not the same.
        """
        return NO_ARTIFACT

    def explanation(self, error: str) -> str | None:
        return None if self.compiler is None else self.compiler.explanation(error)

    def complete(self, observation: Observation, artifact: Artifact) -> Observation:
        compiled = self.compiler.configuration if self.compiler is not None else {}
        if compiled:
            late = {SET_LATE: late} if self.compiler and (late := self.compiler.set_late) else {}
            environment = {**observation.environment, **late}
            observation = replace(observation, configuration=compiled, environment=environment)
        if artifact.arch is None:
            return observation
        from pytest_ttnn_perf.measure.hardware import on_hardware_of_capture

        return on_hardware_of_capture(observation, artifact)


class Replaying(Instruments):
    """Artifacts recorded elsewhere, in the folder ``root``, in place of devices."""

    takes_artifacts = False
    by_the_clock = False

    def __init__(self, root: Path) -> None:
        self.root = root

    def end(self, names: Sequence[str], region: str | None) -> Artifact:
        return wings.captures.read_recorded(self.root, names, region)

    def complete(self, observation: Observation, artifact: Artifact) -> Observation:
        from pytest_ttnn_perf.measure.hardware import without_own_times

        return without_own_times(observation, artifact)


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

    ``profiler`` is the one that this process has been given variables for; ``own`` is its folder if
    it shares that of the assignment with others; ``opened`` is called before tests open a device.
    """
    if settings.replay is not None:
        return Replaying(settings.replay)
    instruments = Instruments()
    if _has("ttnn"):
        from pytest_ttnn_perf.measure.devices import instruments_beside_devices

        instruments = instruments_beside_devices(
            settings, profiler, assignment, own=own, opened=opened
        )
    if any(map(_has, _OF_TT_XLA)):
        from pytest_ttnn_perf.measure.frameworks import Compiler

        instruments.compiler = Compiler()
        instruments.compiler.observe()
    return instruments
