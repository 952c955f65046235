"""``ttnn-perf doctor``: what this machine can measure, and why not."""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.errors import InputError, UsageError
from pytest_ttnn_perf._base.text import counted
from pytest_ttnn_perf.analysis.captures.tt_smi import board_of, read_tt_smi
from pytest_ttnn_perf.cli.doctor_checks import Facts, checks_of
from pytest_ttnn_perf.cli.shared import project_settings
from pytest_ttnn_perf.device.build import Question, ask_ttnn, preflight
from pytest_ttnn_perf.device.chips import holder_of, is_simulated, lock_folder, take, visible_chips
from pytest_ttnn_perf.device.environment import conflicts
from pytest_ttnn_perf.device.host import host_hardware, machine, tt_smi_snapshot
from pytest_ttnn_perf.processes.worker import interpreter
from pytest_ttnn_perf.records.hardware import Diagnosis, Hardware, member_name
from pytest_ttnn_perf.records.settings import ProfilerKind
from pytest_ttnn_perf.report.numbers import Listing, Result
from pytest_ttnn_perf.run.preflight import choose, devices_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator, Mapping

    from pytest_ttnn_perf.records.hardware import Build
    from pytest_ttnn_perf.records.settings import Settings
    from pytest_ttnn_perf.records.ttnn_report import TtSmi


_HEADINGS: Final = ("name", "ok", "found", "remedy", "blocks")
_MARKS: Final = {True: "ok", False: "NO", None: "?"}


def doctor_listing(diagnosis: Diagnosis) -> Listing:
    """Lay out what was found."""
    rows = tuple(
        (check.name, check.ok, check.found, check.remedy, check.blocks)
        for check in diagnosis.checks
    )
    document = {
        "key": diagnosis.key,
        "ttnn": {"version": diagnosis.build.version, "tracy": diagnosis.build.tracy},
        "profiler": diagnosis.profiler,
        "checks": [dict(zip(_HEADINGS, row, strict=True)) for row in rows],
    }
    return Listing(tuple(_lines(diagnosis)), document, _HEADINGS, rows)


def _lines(diagnosis: Diagnosis) -> Iterator[str]:
    width = max(len(check.name) for check in diagnosis.checks)
    for check in diagnosis.checks:
        yield f"{_MARKS[check.ok]:<2}  {check.name:<{width}}  {check.found}"
        if check.ok is not True and check.remedy is not None:
            yield f"{'':{width + 6}}{check.remedy}"
    yield ""
    yield _verdict(diagnosis)


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


def locks_of(settings: Settings) -> Path:
    """Return the folder of locks that a run with these settings uses."""
    return settings.lock_folder or lock_folder()


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
    with _said(print_line, "asking ttnn what it can do"):
        # Not from what was kept: that it still works is what is asked here.
        build = preflight(interpreter(), environment, None, devices=around.devices)
    host = machine(environment, root=around.root, devices=around.devices)
    chips = visible_chips(environment, around.devices)
    with _said(print_line, "asking tt-smi"):
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
        with _said(print_line, "asking ttnn for the system"):
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
def _said(print_line: Callable[[str], None], what: str) -> Iterator[None]:
    """Say what is under way, if it takes more than a moment."""
    timer = Timer(_MOMENT_S, print_line, [f"{what} ..."])
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def run(options: argparse.Namespace) -> Result:
    """Return what was found, and whether a gate would fail."""
    settings = project_settings()
    around = Surroundings(dict(os.environ), locks_of(settings))
    return doctor(settings, around, shape=options.format, print_line=_say)


def _say(line: str) -> None:
    sys.stderr.write(f"ttnn-perf: {line}\n")
    sys.stderr.flush()
