"""``ttnn-perf doctor``: what this machine can measure, and why not."""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import asdict, astuple
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.errors import InputError, UsageError
from pytest_ttnn_perf._base.text import counted, inert
from pytest_ttnn_perf.analysis.captures.tt_smi import board_of, read_tt_smi
from pytest_ttnn_perf.cli.doctor_checks import Check, Facts, checks_of
from pytest_ttnn_perf.device.build import Question, ask_ttnn, compiler_places, preflight
from pytest_ttnn_perf.device.chips import holder_of, lock_folder, take, visible_chips
from pytest_ttnn_perf.device.environment import (
    conflicts,
    devices_of,
    is_simulated,
    missing_paths,
)
from pytest_ttnn_perf.device.host import host_hardware, machine, on_this_host, tt_smi_snapshot
from pytest_ttnn_perf.processes.worker import interpreter
from pytest_ttnn_perf.records.hardware import Hardware, member_name
from pytest_ttnn_perf.records.settings import ProfilerKind
from pytest_ttnn_perf.report.numbers import Listing, Result
from pytest_ttnn_perf.run.preflight import choose
from pytest_ttnn_perf.run.settings import project_settings

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator, Mapping

    from pytest_ttnn_perf.records.hardware import Build
    from pytest_ttnn_perf.records.settings import Settings
    from pytest_ttnn_perf.records.ttnn_report import TtSmi


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """``key`` is None where the hardware is not known; ``profiler`` is what auto chooses."""

    key: str | None
    build: Build
    profiler: str
    checks: tuple[Check, ...]

    @property
    def fit(self) -> bool:
        """Whether a gate could run here."""
        return not any(check.blocks and check.ok is False for check in self.checks)


_FIELDS: Final = ("name", "ok", "found", "remedy", "blocks")
_MARKS: Final = {True: "ok", False: "NO", None: "?"}


def doctor_listing(diagnosis: Diagnosis) -> Listing:
    """Lay out what was found."""
    rows = tuple(astuple(check) for check in diagnosis.checks)
    document = {
        "key": diagnosis.key,
        "ttnn": {"version": diagnosis.build.version, "tracy": diagnosis.build.tracy},
        "profiler": diagnosis.profiler,
        "checks": [asdict(check) for check in diagnosis.checks],
    }
    width = max(len(check.name) for check in diagnosis.checks)
    lines = []
    for check in diagnosis.checks:
        lines.append(f"{_MARKS[check.ok]:<2}  {check.name:<{width}}  {check.found}")
        if check.ok is not True and check.remedy is not None:
            lines.append(f"{'':{width + 6}}{check.remedy}")
    return Listing((*lines, "", _verdict(diagnosis)), document, _FIELDS, rows)


def _verdict(diagnosis: Diagnosis) -> str:
    blocking = [check for check in diagnosis.checks if check.blocks and check.ok is False]
    if blocking:
        named = ", ".join(dict.fromkeys(check.name for check in blocking))
        return f"a gate would fail here: {counted(len(blocking), 'problem')}: {named}"
    if diagnosis.build.version is None or diagnosis.profiler == "off":
        return "a gate can run here, without device times"
    return f"a gate can run here, with device times from the {diagnosis.profiler} profiler"


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


def doctor(
    settings: Settings, around: Surroundings, *, shape: str, print_line: Callable[[str], None]
) -> Result:
    """Print what this machine can measure; fails where a gate could not run."""
    diagnosis = diagnose(settings, around, print_line=print_line)
    return Result(doctor_listing(diagnosis).text(shape), failed=not diagnosis.fit)


def diagnose(
    settings: Settings, around: Surroundings, *, print_line: Callable[[str], None]
) -> Diagnosis:
    """Look at everything. Nothing is opened while another process might be using it."""
    environment = around.environment
    with _announce(print_line, "asking ttnn what it can do"):
        # Not from what was kept: that it still works is what is asked here.
        build = preflight(
            interpreter(),
            environment,
            None,
            devices=around.devices,
            timeout_s=settings.preflight_timeout,
        )
    host = machine(environment, root=around.root, devices=around.devices)
    chips = visible_chips(environment, around.devices)
    with _announce(print_line, "asking tt-smi"):
        snapshot, mute = _snapshot(environment) if chips else (None, "there is no device")
    held = {chip: holder for chip in chips if (holder := holder_of(chip, around.locks))}
    # tt-smi sees all chips, ttnn only those that it may use.
    board = board_of(snapshot) if snapshot and chips == host.devices else None
    queued = host.broker is not None and not host.broker.runs_us
    occupied = bool(held or host.tenants or host.lock_holder or queued)
    simulated = is_simulated(environment)
    hardware: Hardware | None
    if build.location is None or not (chips or simulated):
        hardware, unknown = host_hardware(), None
    else:
        with _announce(print_line, "asking ttnn for the system"):
            hardware, unknown = _device(build, around, chips, board=board, occupied=occupied)
    hardware = hardware and on_this_host(hardware, settings.key, environment)
    choice = choose(ProfilerKind.AUTO, build, environment)
    wrong = (*(missing_paths(environment) if chips or simulated else ()), *conflicts(environment))
    facts = Facts(
        build, host, chips, snapshot, mute, hardware, unknown, choice, wrong,
        held, around.locks, simulated, settings.artifacts, settings.baselines,
        compiler_places(build, environment, around.root), settings.broker,
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
        return None, "only ttnn knows, but another process is using the chips"
    try:
        # To ask is to take the chips: for as long as it takes, nobody else may.
        with take(chips, around.locks, timeout_s=0, print_line=lambda _: None):
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
    simulated = is_simulated(around.environment)
    return Hardware(build.arch, system, _ONE_DEVICE, simulated=simulated), None


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
def _announce(print_line: Callable[[str], None], what: str) -> Iterator[None]:
    """Print what is under way, if it takes more than a moment."""
    timer = Timer(_MOMENT_S, print_line, [f"{what} ..."])
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def run(options: argparse.Namespace) -> Result:
    """Return what was found, and whether a gate would fail."""
    settings = project_settings()
    around = Surroundings(dict(os.environ), settings.lock_folder or lock_folder())

    def print_line(line: str) -> None:
        sys.stderr.write(f"ttnn-perf: {inert(line)}\n")
        sys.stderr.flush()

    return doctor(settings, around, shape=options.format, print_line=print_line)
