"""The workers of a run: which of them are profiled, and what becomes of a device they leave."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.device.variables import profiler_variables, worker_variables
from pytest_ttnn_perf.model.assignment import PassKind
from pytest_ttnn_perf.model.profile import PassChoice, ProfilerKind
from pytest_ttnn_perf.processes.command import run_command
from pytest_ttnn_perf.workflow.device_pass import DevicePass
from pytest_ttnn_perf.workflow.profiler_choice import OWN_PASS
from pytest_ttnn_perf.workflow.tracy_pass import TracyPass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from pytest_ttnn_perf.model.settings import Settings
    from pytest_ttnn_perf.workflow.passes import Loss, Workers

_RESET_TIMEOUT_S: Final = 600.0
_UNUSABLE: Final = (
    "left a device that is not usable as it is: reset it, and let --ttnn-perf-reset 'tt-smi -r' do "
    "so next time"
)


@dataclass(frozen=True, slots=True)
class Crew:
    """Starts the workers of a run's passes; ``plain`` are those of a run without devices."""

    settings: Settings
    profiler: ProfilerKind
    plain: Workers
    say: Callable[[str], None]

    @property
    def has_device_pass(self) -> bool:
        """Whether tests are profiled in a pass of their own before the wall pass."""
        return self.profiler in OWN_PASS and self.settings.passes is PassChoice.BOTH

    @property
    def first_kind(self) -> PassKind:
        """The pass whose reports the user sees."""
        only_device = self.settings.passes is PassChoice.DEVICE
        return PassKind.DEVICE if only_device else PassKind.WALL

    def first(self) -> Workers:
        """Return those of that pass."""
        if self.first_kind is PassKind.DEVICE:
            return self.profiled(more_room=True)  # no other pass gives dropped markers more room
        # What needs a pass of its own is off in this one.
        profiler = ProfilerKind.OFF if self.profiler in OWN_PASS else self.profiler
        return self._workers(profiler, partial(worker_variables, self.plain.environment))

    def profiled(self, *, more_room: bool) -> Workers:
        """Return those whose tests are profiled. What these print is in their log."""

        def variables(folder: Path) -> Mapping[str, str]:
            return {
                **worker_variables(self.plain.environment, folder),
                **profiler_variables(self.profiler, folder, more_room=more_room),
            }

        return replace(self._workers(self.profiler, variables), shown=False)

    def device_pass(self) -> DevicePass | TracyPass:
        """Return the pass in which tests are profiled."""
        if self.profiler is ProfilerKind.TRACY:
            return TracyPass(self.settings, self.profiled(more_room=False), self.say)
        return DevicePass(self.settings, self.profiled, self.say)

    def _workers(
        self, profiler: ProfilerKind, variables: Callable[[Path], Mapping[str, str]]
    ) -> Workers:
        return replace(self.plain, profiler=profiler, variables=variables, reset=self._reset)

    def _reset(self, loss: Loss) -> str | None:
        """Make a device usable again whose worker was killed; return why it is not."""
        command = self.settings.reset
        if command is None:
            return _UNUSABLE if loss.hung else None  # after a crash the next one mostly can
        self.say(f"ttnn-perf: resetting the device: {command}")
        problem = run_command(command, timeout_s=_RESET_TIMEOUT_S)
        return None if problem is None else f"left a device that is not usable: {command} {problem}"
