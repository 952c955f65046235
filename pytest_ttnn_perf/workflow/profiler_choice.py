"""Which profiler a run uses, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._support.errors import UsageError
from pytest_ttnn_perf.device.leases import is_simulated
from pytest_ttnn_perf.model.profile import PassChoice, ProfilerKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_ttnn_perf.model.build import Build
    from pytest_ttnn_perf.model.settings import Settings

#: Those that need a pass of their own, and a build with Tracy: they slow down what they look at.
OWN_PASS: Final = frozenset({ProfilerKind.DEVICE, ProfilerKind.TRACY, ProfilerKind.TTLANG})


@dataclass(frozen=True, slots=True)
class ProfilerChoice:
    """A profiler that is not AUTO, and the reason in a few words."""

    kind: ProfilerKind
    why: str

    def __str__(self) -> str:
        return f"profiler {self.kind.value} ({self.why})"


def choose(asked: ProfilerKind, build: Build, environment: Mapping[str, str]) -> ProfilerChoice:
    """Return the profiler for a run.

    Raises:
        UsageError: the one that was asked for cannot work here.
    """
    if asked is ProfilerKind.OFF:
        return ProfilerChoice(asked, "as asked")
    why_not = _why_not(build, environment)
    if why_not is not None and asked is ProfilerKind.AUTO:
        return ProfilerChoice(ProfilerKind.OFF, why_not)
    if why_not is not None:
        message = f"--ttnn-perf-profiler {asked.value}: {why_not}; use auto, or off"
        raise UsageError(message)
    if asked in OWN_PASS and not build.tracy:
        message = (
            f"--ttnn-perf-profiler {asked.value}: ttnn {build.version} is built without Tracy; use "
            "realtime, or a Tracy-enabled build"
        )
        raise UsageError(message)
    if asked is not ProfilerKind.AUTO:
        return ProfilerChoice(asked, "as asked")
    if build.tracy:
        return ProfilerChoice(ProfilerKind.DEVICE, f"ttnn {build.version} is Tracy-enabled")
    return ProfilerChoice(ProfilerKind.REALTIME, f"ttnn {build.version} is built without Tracy")


def fitted(choice: ProfilerChoice, settings: Settings, *, isolated: bool) -> ProfilerChoice:
    """Return a choice as the passes of a run, and the processes that it may start, allow.

    Raises:
        UsageError: the device pass alone was asked for, and there is none.
    """
    alone = settings.passes is PassChoice.DEVICE
    if alone and isolated and choice.kind is ProfilerKind.TRACY:
        message = "--ttnn-perf-passes device: tracy reports beside a wall pass only; use device"
        raise UsageError(message)
    if choice.kind in OWN_PASS and (not isolated or settings.passes is PassChoice.WALL):
        why = "the wall pass alone" if isolated else f"{choice.kind.value} needs a worker"
        choice = ProfilerChoice(ProfilerKind.OFF, why)
    if alone and choice.kind not in OWN_PASS:
        message = f"--ttnn-perf-passes device: there is no device pass: {choice}"
        raise UsageError(message)
    return choice


def _why_not(build: Build, environment: Mapping[str, str]) -> str | None:
    if build.version is None:
        return "no ttnn is installed"
    if build.problem is not None:
        return f"ttnn cannot be used: {build.problem}"
    if is_simulated(environment):
        return "a simulated device has no times"
    return "no device was found" if build.arch is None else None
