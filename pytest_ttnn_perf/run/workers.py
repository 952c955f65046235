"""The processes of a pass: how each is started, with which assignment and environment."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
from dataclasses import field, replace
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.errors import TtnnPerfError, UsageError
from pytest_ttnn_perf._base.files import new_folder
from pytest_ttnn_perf.device.ttnn import installed_ttnn
from pytest_ttnn_perf.processes.channel import ASSIGNMENT, ROLE, WORKER
from pytest_ttnn_perf.processes.worker import (
    LostWorker,
    WorkerProcess,
    finds_modules_in,
    interpreter,
    start,
)
from pytest_ttnn_perf.records.json import encode
from pytest_ttnn_perf.records.messages import (
    Assignment,
    PassKind,
)
from pytest_ttnn_perf.records.settings import PassChoice, ProfilerKind
from pytest_ttnn_perf.run.preflight import OWN_PASS
from pytest_ttnn_perf.run.record import ignore_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from pytest_ttnn_perf.processes.worker import Ending
    from pytest_ttnn_perf.records.messages import ComparedVersions
    from pytest_ttnn_perf.records.settings import Settings
    from pytest_ttnn_perf.run.gate_run import DeviceResults


_FILE: Final = "assignment.json"
#: The passes whose by-products are not the user's.
_OF_NOBODY: Final = frozenset({PassKind.DEVICE, PassKind.AB})


@dataclass(slots=True)
class WorkerLauncher:
    """How workers of this run are started.

    ``arguments`` returns what follows the interpreter, given a worker's own folder. ``folder``
    keeps these while they run, and for good where a worker did not come to its end. ``variables``
    returns what is added to the environment of a worker, given its folder.
    """

    arguments: Callable[[Path], Sequence[str]]
    cwd: Path
    folder: Path
    shown: bool = False
    environment: dict[str, str] = field(default_factory=lambda: dict(os.environ))
    profiler: ProfilerKind = ProfilerKind.OFF
    variables: Callable[[Path], Mapping[str, str]] = lambda _: {}
    #: Makes a device usable again after its worker was killed; returns why it cannot.
    reset: Callable[[LostWorker], str | None] = lambda _: None
    print_line: Callable[[str], None] = lambda _: None
    #: Where versions are compared: this one, and the other.
    versions: ComparedVersions | None = None
    #: Whether modules are found in the current folder; None for as in this process.
    cwd_on_path: bool | None = None
    #: The workers of tests that start a profiled process of their own; None for these.
    unprofiled: WorkerLauncher | None = None
    #: The passes of the workers so far, which all workers of a run are numbered by.
    _started: list[PassKind] = field(default_factory=list)
    #: The tests that are known to start a profiled process of their own, to all passes of a run.
    apart: dict[str, None] = field(default_factory=dict)

    def start(
        self, kind: PassKind, tests: Sequence[str] | None, *, alone: bool = False
    ) -> WorkerProcess:
        """Start a worker on ``tests``; None for all that it collects.

        ``alone``: it is a single one, which may start a profiled process.

        Raises:
            WriteError: it can have no folder of its own.
            UsageError: there can be no other process.
        """
        folder = self.next_folder(kind)

        def command(descriptor: int, notes: int) -> list[str]:
            # What it prints is shown in its place among what it says: then all is said aloud.
            told = None if self.shown else notes
            self._assign(folder, kind, descriptor, tests, notes=told, alone=alone)
            return [*interpreter(), *self.arguments(folder)]

        log, environment = folder / "worker.log", self._environment(folder)
        try:
            return start(command, cwd=self.cwd, environment=environment, log=log, shown=self.shown)
        except OSError as cause:
            self.discard(folder)
            message = f"a worker cannot be started: {cause}"
            raise UsageError(message) from cause

    def run_batch(
        self, folder: Path, kind: PassKind, launcher: Sequence[str], *, timeout_s: float
    ) -> Ending:
        """Run a worker to its end that another program launches, and that tells us nothing.

        Raises:
            UsageError: there can be no other process.
        """
        from pytest_ttnn_perf.processes.commands import run_batch

        self._assign(folder, kind, None, None)
        # Launchers join the words of what they launch for a shell.
        words = map(shlex.quote, self.arguments(folder))
        command = [*interpreter(), *launcher, *words]
        log, environment = folder / "worker.log", self._environment(folder)
        try:
            return run_batch(
                command, cwd=self.cwd, environment=environment, log=log, timeout_s=timeout_s
            )
        except OSError as cause:
            message = f"a worker cannot be started: {cause}"
            raise UsageError(message) from cause

    def next_folder(self, kind: PassKind) -> Path:
        """Make the folder of another worker.

        Raises:
            WriteError: it cannot be made.
        """
        self._started.append(kind)
        return new_folder(self.folder / f"{len(self._started)}-{kind.value}")

    def _assign(
        self,
        folder: Path,
        kind: PassKind,
        descriptor: int | None,
        tests: Sequence[str] | None,
        *,
        notes: int | None = None,
        alone: bool = False,
    ) -> None:
        # The by-products of the first worker are the user's; not those of a profiled one.
        others, given = set(self._started[:-1]), self.cwd_on_path
        assignment = Assignment(
            kind,
            descriptor,
            folder,
            None if tests is None else tuple(tests),
            first=kind not in _OF_NOBODY and others <= {PassKind.DEVICE},
            cwd_on_path=finds_modules_in(self.cwd) if given is None else given,
            profiler=self.profiler,
            versions=self.versions,
            notes=notes,
            apart=tuple(self.apart),
            alone=alone,
        )
        file = folder / _FILE
        file.write_text(json.dumps(encode(assignment)), encoding="utf-8")

    def _environment(self, folder: Path) -> dict[str, str]:
        ours = {ASSIGNMENT: str(folder / _FILE), ROLE: WORKER}
        environment = {**self.environment, **self.variables(folder), **ours}
        environment.pop("TTNN_PERF_HISTORY", None)  # may hold a password that no test needs
        return environment

    def keep(self) -> None:
        """Keep the folder of a worker that was lost, out of git's sight."""
        with contextlib.suppress(TtnnPerfError):  # what is wrong with it was wrong before
            ignore_folder(self.folder.parent.parent)

    def discard(self, folder: Path) -> None:
        """Remove the folder of a worker that came to its end, and those above once empty."""
        shutil.rmtree(folder, ignore_errors=True)
        with contextlib.suppress(OSError):  # not empty, or gone: other workers, other runs
            self.folder.rmdir()
            self.folder.parent.rmdir()


_RESET_TIMEOUT_S: Final = 600.0
_UNUSABLE: Final = "left a device in an unusable state"
_REMEDY: Final = "reset it, and let --ttnn-perf-reset 'tt-smi -r' do so next time"


@dataclass(frozen=True, slots=True)
class WorkerFactory:
    """Starts the workers of a run's passes; ``plain`` are those of a run without devices."""

    settings: Settings
    profiler: ProfilerKind
    plain: WorkerLauncher
    print_line: Callable[[str], None]

    @property
    def has_device_pass(self) -> bool:
        """Whether tests are profiled in a pass of their own before the wall pass."""
        return self.profiler in OWN_PASS and self.settings.passes is PassChoice.BOTH

    @property
    def first_kind(self) -> PassKind:
        """The pass whose reports the user sees."""
        only_device = self.settings.passes is PassChoice.DEVICE
        return PassKind.DEVICE if only_device else PassKind.WALL

    def first(self) -> WorkerLauncher:
        """Return those of that pass."""
        if self.first_kind is PassKind.DEVICE:
            return self.profiled(more_room=True)  # no other pass gives dropped markers more room
        # What needs a pass of its own is off in this one.
        profiler = ProfilerKind.OFF if self.profiler in OWN_PASS else self.profiler
        return self._workers(profiler, self._variables)

    def profiled(self, *, more_room: bool) -> WorkerLauncher:
        """Return those whose tests are profiled. What these print is in their log."""
        from pytest_ttnn_perf.device.environment import profiler_variables, program_room

        given = program_room(self.plain.environment)

        def variables(folder: Path) -> Mapping[str, str]:
            return {
                **self._variables(folder),
                **profiler_variables(self.profiler, folder, more_room=more_room, given=given),
            }

        unprofiled = self._workers(ProfilerKind.OFF, self._variables)
        workers = self._workers(self.profiler, variables)
        return replace(workers, shown=False, unprofiled=unprofiled)

    def run_device_pass(self) -> DeviceResults:
        """Profile the measured tests in a pass of their own."""
        from pytest_ttnn_perf.run.device_pass import profile_tests, profile_with_tracy

        if self.profiler is ProfilerKind.TRACY:
            workers = self.profiled(more_room=False)
            return profile_with_tracy(self.settings, workers, self.print_line)
        return profile_tests(self.settings, self.profiled, self.print_line)

    def _variables(self, folder: Path) -> Mapping[str, str]:
        if installed_ttnn().version is None:
            return {}
        from pytest_ttnn_perf.device.environment import worker_variables

        return worker_variables(self.plain.environment, folder)

    def _workers(
        self, profiler: ProfilerKind, variables: Callable[[Path], Mapping[str, str]]
    ) -> WorkerLauncher:
        return replace(
            self.plain,
            profiler=profiler,
            variables=variables,
            reset=self._reset,
            print_line=self.print_line,
        )

    def _reset(self, loss: LostWorker) -> str | None:
        """Make a device usable again whose worker was killed; return why it is not."""
        from pytest_ttnn_perf.device.sharing import find_broker

        command, remedy = self.settings.reset, _REMEDY
        broker = find_broker(self.plain.environment)
        if broker is not None:
            remedy = broker.instead
            if command is not None and not broker.allows(command):
                self.print_line(f"ttnn-perf: the device is not reset by hand: {remedy}")
                command = None
        if command is None:  # after a crash the next one mostly can
            return f"{_UNUSABLE}: {remedy}" if loss.hung else None
        from pytest_ttnn_perf.processes.commands import run_command

        self.print_line(f"ttnn-perf: resetting the device: {command}")
        problem = run_command(command, timeout_s=_RESET_TIMEOUT_S)
        return None if problem is None else f"left a device that is not usable: {command} {problem}"
