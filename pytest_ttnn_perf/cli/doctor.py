"""``ttnn-perf doctor``: what this machine can measure, and why not."""

from __future__ import annotations

import importlib.util
import os
import shlex
import sys
import tempfile
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import asdict, astuple

from pytest_ttnn_perf.analysis.readers.tt_smi import board_facts, board_of, read_tt_smi
from pytest_ttnn_perf.core.errors import InputError, UsageError, WriteError
from pytest_ttnn_perf.core.files import check_writable
from pytest_ttnn_perf.core.hardware import Hardware, member_name
from pytest_ttnn_perf.core.settings import BrokerUse, ProfilerKind, project_settings
from pytest_ttnn_perf.core.text import counted, inert
from pytest_ttnn_perf.gate.store import BaselineStore
from pytest_ttnn_perf.machine.build import (
    Question,
    ask_ttnn,
    compiler_places,
    has_compiler,
    preflight,
)
from pytest_ttnn_perf.machine.chips import (
    BROKER,
    RESET,
    holder_of,
    lock_folder,
    take,
    visible_chips,
)
from pytest_ttnn_perf.machine.environment import conflicts, devices_of, is_simulated, missing_paths
from pytest_ttnn_perf.machine.host import host_hardware, machine, on_this_host, tt_smi_snapshot
from pytest_ttnn_perf.machine.processes import interpreter
from pytest_ttnn_perf.plugin.preflight import choose
from pytest_ttnn_perf.report.tables import Listing, Result

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator, Mapping

    from pytest_ttnn_perf.analysis.readers.report_db import TtSmi
    from pytest_ttnn_perf.core.hardware import Build, Conflict, Scalar
    from pytest_ttnn_perf.core.settings import Settings
    from pytest_ttnn_perf.machine.host import Machine
    from pytest_ttnn_perf.plugin.preflight import ProfilerChoice


# The checks of ``ttnn-perf doctor``: what was found out is judged, each fact with its remedy.


class Check(Struct, frozen=True):
    """One thing that was looked at. ``ok`` is None where it is not known.

    ``blocks`` says that a gate would fail here for it; others only make it worse.
    """

    name: str
    ok: bool | None
    found: str
    remedy: str | None = None
    blocks: bool = False


_STEADY: Final = frozenset({"performance"})
_SMI_REMEDY: Final = "pip install tt-smi"


class Facts(Struct, frozen=True):
    """All that was found out. ``mute`` and ``unknown`` say why snapshot or hardware is None."""

    build: Build
    machine: Machine
    chips: tuple[int, ...]
    snapshot: TtSmi | None
    mute: str | None
    hardware: Hardware | None
    unknown: str | None
    choice: ProfilerChoice
    conflicts: tuple[Conflict, ...]
    held: Mapping[int, str]
    locks: Path
    simulated: bool
    artifacts: Path
    baselines: Path
    compilers: tuple[Path, ...]
    broker_use: BrokerUse = BrokerUse.QUEUE


def checks_of(facts: Facts) -> Iterator[Check]:
    """Judge what was found: first the software, then the hardware, the host, and the folders."""
    yield _ttnn(facts.build)
    yield _torch()
    yield _tracy(facts)
    yield from _compiler(facts)
    yield from _devices(facts)
    yield _key(facts)
    yield Check("profiler", ok=True, found=f"{facts.choice.kind.value}: {facts.choice.why}")
    yield from _boards(facts)
    yield from _driver(facts)
    yield from _tenants(facts)
    yield from _locks(facts)
    yield from _broker(facts)
    yield _governor(facts.machine)
    yield from _environment(facts.conflicts)
    yield from _folders(facts)


def _ttnn(build: Build) -> Check:
    if build.version is None:
        return Check("ttnn", ok=True, found="not installed: what runs on the host can be gated")
    found = f"{build.version} in {build.location}"
    if build.problem is None:
        return Check("ttnn", ok=True, found=found)
    command = 'python -c "import ttnn; ttnn.get_arch_name()"'
    remedy = f"see the whole error with: {command}"
    if build.timed_out:
        remedy = f"set preflight_timeout to more than this takes: {command}"
    return Check("ttnn", ok=False, found=f"{found}: {build.problem}", remedy=remedy, blocks=True)


def _torch() -> Check:
    try:
        there = importlib.util.find_spec("torch") is not None
    except ValueError:
        there = False
    try:
        found = metadata.version("torch") if there else "not installed, and not needed"
    except metadata.PackageNotFoundError:
        found = "of unknown version"
    return Check("torch", ok=True, found=found)


def _tracy(facts: Facts) -> Check:
    build = facts.build
    if build.version is None:
        return Check("tracy", ok=True, found="ttnn is not installed")
    if build.tracy is None:
        return Check("tracy", ok=None, found="could not tell", remedy="see ttnn above")
    if build.tracy:
        return Check("tracy", ok=True, found="this ttnn is built with Tracy")
    found = "this ttnn is built without Tracy"
    if not facts.chips:
        return Check("tracy", ok=True, found=found)
    remedy = "for op tables, build tt-metal from source with ./build_metal.sh"
    return Check("tracy", ok=False, found=f"{found}, so there are no op tables", remedy=remedy)


def _compiler(facts: Facts) -> Iterator[Check]:
    if facts.build.location is None:
        return
    found = next(filter(has_compiler, facts.compilers), None)
    missing = f"no sfpi in {' or '.join(map(str, facts.compilers))}"
    if found is not None:
        yield Check("compiler", ok=True, found=str(found))
    elif facts.chips or facts.simulated:
        remedy = "install the package of https://github.com/tenstorrent/sfpi/releases"
        why = f"{missing}: no device opens without it"
        yield Check("compiler", ok=False, found=why, remedy=remedy, blocks=True)
    else:
        yield Check("compiler", ok=True, found=f"{missing}; it is needed with a device")


def _devices(facts: Facts) -> Iterator[Check]:
    present, chips, dirty = facts.machine.devices, facts.chips, facts.machine.dirty
    if facts.simulated:
        yield Check("devices", ok=True, found="a mock or simulator stands in for them")
    elif chips == present:
        yield Check("devices", ok=True, found=_chip_list(chips))
    else:
        found = f"{_chip_list(chips)} of {_chip_list(present)}, as TT_VISIBLE_DEVICES says"
        remedy = f"unset TT_VISIBLE_DEVICES, or name {_chip_list(present)} in it"
        yield Check("devices", ok=bool(chips), found=found, remedy=remedy, blocks=True)
    # While it runs, the marker is there for the case that it is killed.
    if chips and dirty is not None and facts.machine.locked is None:
        found = f"{dirty}: a run with run_safe_pytest.sh was cut short"
        broker = facts.machine.broker
        remedy = f"{broker.reset if broker else RESET} && rm {dirty}"
        yield Check("devices", ok=False, found=found, remedy=remedy, blocks=True)


def _key(facts: Facts) -> Check:
    if facts.hardware is not None:
        mesh = ", for a test that opens one device" if facts.hardware.mesh else ""
        return Check("key", ok=True, found=f"{facts.hardware.key}{mesh}")
    remedy = _SMI_REMEDY if facts.chips and facts.snapshot is None else None
    if facts.build.problem is not None:
        remedy = "see ttnn above"
    return Check("key", ok=None, found=f"could not tell: {facts.unknown}", remedy=remedy)


def _boards(facts: Facts) -> Iterator[Check]:
    if facts.snapshot is None:
        remedy = _SMI_REMEDY if facts.chips else None
        for name in ("firmware", "clock"):
            yield Check(name, ok=None, found=f"could not tell: {facts.mute}", remedy=remedy)
        return
    board = board_facts(facts.snapshot)
    yield _board_fact("firmware", board, "firmware")
    clock = _board_fact("clock", board, "clock_mhz", unit=" MHz")
    if board.get("throttled"):
        remedy = "let the boards cool down, and look at their power supply"
        clock = Check("clock", ok=False, found=f"{clock.found}, throttled", remedy=remedy)
    yield clock


def _board_fact(name: str, board: Mapping[str, Scalar], fact: str, *, unit: str = "") -> Check:
    value = board.get(fact)
    if value is None:
        return Check(name, ok=None, found="could not tell: tt-smi does not say")
    shown = f"{value:g}" if isinstance(value, float) else str(value)
    return Check(name, ok=True, found=shown + unit)


def _driver(facts: Facts) -> Iterator[Check]:
    driver, chips = facts.machine.driver, facts.chips
    missing = "could not tell: its module shows no version" if chips else "not loaded"
    yield Check("driver", ok=True if driver or not chips else None, found=driver or missing)
    yield _iommu(facts)
    pages, needed = facts.machine.hugepages, 0 if facts.machine.iommu else len(chips)
    if pages is None:
        found = "could not tell: this kernel shows none of 1 GB"
        yield Check("hugepages", ok=None if needed else True, found=found)
    elif pages < needed:
        found = f"{pages} of 1 GB, expected at least {needed} without an IOMMU"
        remedy = "sudo systemctl start tenstorrent-hugepages"
        yield Check("hugepages", ok=False, found=found, remedy=remedy, blocks=True)
    else:
        yield Check("hugepages", ok=True, found=f"{pages} of 1 GB")


def _iommu(facts: Facts) -> Check:
    iommu = facts.machine.iommu
    if iommu is None:
        return Check("iommu", ok=None, found="could not tell: this host does not say")
    if iommu or not facts.chips or facts.build.arch != "blackhole" or facts.build.tracy:
        return Check("iommu", ok=True, found="on" if iommu else "off")
    found = "off: on Blackhole the real-time profiler does not work without it"
    remedy = "turn it on in the firmware setup, and on the kernel's command line"
    return Check("iommu", ok=False, found=found, remedy=remedy)


def _tenants(facts: Facts) -> Iterator[Check]:
    host = facts.machine
    mine = [tenant for tenant in host.tenants if tenant.chip in facts.chips]
    for tenant in mine:
        found = f"chip {tenant.chip} is open in pid {tenant.pid} ({tenant.command})"
        remedy = f"let it end, or: kill {tenant.pid}"
        yield Check("co-tenants", ok=False, found=found, remedy=remedy, blocks=True)
    if not mine:
        known = host.tenants_known or not facts.chips
        found = "none" if known else "none seen; those of other users are hidden"
        yield Check("co-tenants", ok=True if known else None, found=found)


def _locks(facts: Facts) -> Iterator[Check]:
    for chip, holder in facts.held.items():
        found = f"chip {chip}: held by {holder}"
        yield Check("locks", ok=False, found=found, remedy="let it end", blocks=True)
    locked, by_whom = facts.machine.locked, facts.machine.lock_holder
    if facts.chips and by_whom is not None:
        found = f"{locked}, of run_safe_pytest.sh, is held {by_whom}"
        yield Check("locks", ok=False, found=found, remedy="let it end", blocks=True)
    if not facts.held:
        yield _folder("locks", facts.locks, blocks=bool(facts.chips))


def _broker(facts: Facts) -> Iterator[Check]:
    broker = facts.machine.broker
    if broker is None or not facts.chips:
        return
    found = f"{BROKER} is up ({broker.socket})"
    if broker.runs_us:
        yield Check("broker", ok=True, found=f"{found}, and this is one of its jobs")
    else:
        remedy = f"run tests through its queue: {BROKER} run 'pytest --ttnn-perf'"
        blocks = facts.broker_use is BrokerUse.QUEUE
        yield Check("broker", ok=False, found=found, remedy=remedy, blocks=blocks)


def _governor(host: Machine) -> Check:
    if host.governor is None:
        return Check("governor", ok=None, found="could not tell: this host does not say")
    if host.governor in _STEADY:
        return Check("governor", ok=True, found=host.governor)
    found = f"{host.governor}: the clock of the host changes between samples"
    remedy = "sudo cpupower frequency-set -g performance"
    return Check("governor", ok=False, found=found, remedy=remedy)


def _environment(conflicts: tuple[Conflict, ...]) -> Iterator[Check]:
    for conflict in conflicts:
        found, remedy = conflict.sentence, conflict.remedy
        yield Check("environment", ok=False, found=found, remedy=remedy, blocks=True)
    if not conflicts:
        yield Check("environment", ok=True, found="nothing is set that changes times")


def _folders(facts: Facts) -> Iterator[Check]:
    host = facts.machine
    note = "" if host.kernels_cached else ", empty: the first run compiles its kernels"
    yield _folder("kernel cache", host.kernel_cache, note=note, blocks=bool(facts.chips))
    yield _folder("artifacts", facts.artifacts)
    yield _folder("baselines", facts.baselines)
    yield from _baselines(facts.baselines)


def _baselines(folder: Path) -> Iterator[Check]:
    """Read every baseline: a test whose own is damaged cannot be gated."""
    store = BaselineStore(folder)
    for file in sorted(folder.glob("*/**/*.json")):
        error = _damage(store, file)
        if error is not None:
            remedy = f"restore it: git checkout -- {shlex.quote(str(error.file))}"
            yield Check("baselines", ok=False, found=str(error), remedy=remedy, blocks=True)


def _damage(store: BaselineStore, file: Path) -> InputError | None:
    """Return what is wrong with a baseline file, or with an op table beside it."""
    try:
        stored = store.read(file)
        for name in stored.content.tests:
            store.ops_of(stored.content.hardware, f"{stored.test_file}::{name}")
    except InputError as error:
        return error
    return None


def _folder(name: str, folder: Path, *, note: str = "", blocks: bool = True) -> Check:
    try:
        check_writable(folder)
    except WriteError as error:
        remedy = f"make {folder} writable for this user"
        return Check(name, ok=False, found=str(error), remedy=remedy, blocks=blocks)
    return Check(name, ok=True, found=f"{folder}{note}")


def _chip_list(chips: tuple[int, ...]) -> str:
    if not chips:
        return "none"
    return f"{'chip' if len(chips) == 1 else 'chips'} {', '.join(map(str, chips))}"


class Diagnosis(Struct, frozen=True):
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


class Surroundings(Struct, frozen=True):
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


def run_doctor(options: argparse.Namespace) -> Result:
    """Return what was found, and whether a gate would fail."""
    settings = project_settings()
    around = Surroundings(dict(os.environ), settings.lock_folder or lock_folder())

    def print_line(line: str) -> None:
        sys.stderr.write(f"ttnn-perf: {inert(line)}\n")
        sys.stderr.flush()

    return doctor(settings, around, shape=options.format, print_line=print_line)
