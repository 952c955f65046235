"""Finds out what this machine can measure, and why not."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._support.errors import InputError, UsageError
from pytest_ttnn_perf.capture.tt_smi import read_tt_smi
from pytest_ttnn_perf.device.conflicts import conflicts
from pytest_ttnn_perf.device.host import host_hardware
from pytest_ttnn_perf.device.leases import (
    holder_of,
    is_simulated,
    lock_folder,
    take,
    visible_chips,
)
from pytest_ttnn_perf.device.machine import machine, tt_smi_snapshot
from pytest_ttnn_perf.device.preflight import preflight
from pytest_ttnn_perf.device.throwaway import Question, ask_ttnn
from pytest_ttnn_perf.model.doctor import Diagnosis
from pytest_ttnn_perf.model.hardware import Hardware, member_name
from pytest_ttnn_perf.model.profile import ProfilerKind
from pytest_ttnn_perf.model.result import Result
from pytest_ttnn_perf.processes.child import interpreter
from pytest_ttnn_perf.report.doctor import doctor_listing
from pytest_ttnn_perf.workflow.board_facts import board_of
from pytest_ttnn_perf.workflow.doctor_checks import Facts, checks_of
from pytest_ttnn_perf.workflow.profiler_choice import choose
from pytest_ttnn_perf.workflow.readiness import devices_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pytest_ttnn_perf.model.build import Build
    from pytest_ttnn_perf.model.device_log import TtSmi
    from pytest_ttnn_perf.model.settings import Settings

#: What takes longer is said while it is under way.
_MOMENT_S: Final = 1.0
#: The mesh of a test that opens one device; only the test knows of a larger one.
_ONE_DEVICE: Final = "1x1"
_NO_SYSTEM: Final = frozenset({"invalid"})


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What is looked at: variables, the file system below ``root``, and the folder of locks."""

    environment: Mapping[str, str]
    locks: Path
    root: Path = Path("/")

    @property
    def devices(self) -> Path:
        """Where the driver has its devices."""
        return self.root / devices_of(self.environment).absolute().relative_to("/")


def locks_of(settings: Settings) -> Path:
    """Return the folder of locks that a run with these settings uses."""
    return settings.lock_folder or lock_folder()


def doctor(
    settings: Settings, around: Surroundings, *, shape: str, say: Callable[[str], None]
) -> Result:
    """Print what this machine can measure; fails where a gate could not run."""
    diagnosis = diagnose(settings, around, say=say)
    return Result(doctor_listing(diagnosis).text(shape), failed=not diagnosis.fit)


def diagnose(settings: Settings, around: Surroundings, *, say: Callable[[str], None]) -> Diagnosis:
    """Look at everything. Nothing is opened while another process might be using it."""
    environment = around.environment
    with _said(say, "asking ttnn what it can do"):
        # Not from what was kept: that it still works is what is asked here.
        build = preflight(interpreter(), environment, None, devices=around.devices)
    host = machine(environment, root=around.root, devices=around.devices)
    chips = visible_chips(environment, around.devices)
    with _said(say, "asking tt-smi"):
        snapshot, mute = _snapshot(environment) if chips else (None, "there is no device")
    held = {chip: holder for chip in chips if (holder := holder_of(chip, around.locks))}
    # tt-smi sees all chips, ttnn only those that it may use.
    board = board_of(snapshot) if snapshot and chips == host.devices else None
    occupied = bool(held or host.tenants or host.locked)
    simulated = is_simulated(environment)
    hardware: Hardware | None
    if build.location is None or not (chips or simulated):
        hardware, unknown = host_hardware(), None
    else:
        with _said(say, "asking ttnn for the system"):
            hardware, unknown = _device(build, around, chips, board=board, occupied=occupied)
    choice = choose(ProfilerKind.AUTO, build, environment)
    facts = Facts(
        build, host, chips, snapshot, mute, hardware, unknown, choice, conflicts(environment),
        held, around.locks, simulated, settings.artifacts, settings.baselines,
    )  # fmt: skip
    key = hardware.key if hardware is not None else None
    return Diagnosis(key, build, choice.kind.value, tuple(checks_of(facts)))


def _device(
    build: Build, around: Surroundings, chips: tuple[int, ...], *, board: str | None, occupied: bool
) -> tuple[Hardware | None, str | None]:
    """Return what a test that opens one device runs on, and why that is not known."""
    if build.problem is not None:
        return None, "ttnn cannot be used"
    if build.arch is None:
        return None, "ttnn does not know the architecture"
    if board is not None:
        return Hardware(build.arch, board, _ONE_DEVICE), None
    if occupied:
        return None, "only ttnn could tell, and another process is using the chips"
    try:
        # To ask is to take the chips: for as long as it takes, nobody else may.
        with take(chips, around.locks, timeout_s=0, say=lambda _: None):
            answers = ask_ttnn(
                (Question.CLUSTER,),
                interpreter(),
                around.environment,
                location=build.location or "",
            )
    except UsageError as error:
        return None, str(error)
    system = member_name(answers.says.get(Question.CLUSTER, "invalid"))
    if system in _NO_SYSTEM:
        return None, answers.errors.get(Question.CLUSTER) or answers.problem or "ttnn cannot tell"
    return Hardware(build.arch, system, _ONE_DEVICE), None


def _snapshot(environment: Mapping[str, str]) -> tuple[TtSmi | None, str | None]:
    text, problem = tt_smi_snapshot(environment)
    if text is None:
        return None, problem
    with tempfile.TemporaryDirectory(prefix="ttnn-perf-") as folder:
        file = Path(folder) / "tt-smi.json"
        file.write_text(text, encoding="utf-8")
        try:
            return read_tt_smi(file), None
        except InputError as error:
            return None, f"tt-smi -s: {error.problem}"


@contextmanager
def _said(say: Callable[[str], None], what: str) -> Iterator[None]:
    """Say what is under way, if it takes more than a moment."""
    timer = Timer(_MOMENT_S, say, [f"{what} ..."])
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
