"""``ttnn-perf doctor``: what this machine can measure, and why not."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf.analysis.readers.tt_smi import board_of, read_tt_smi
from pytest_ttnn_perf.cli.common import add_format
from pytest_ttnn_perf.core.errors import InputError, UsageError, WriteError
from pytest_ttnn_perf.core.files import check_writable
from pytest_ttnn_perf.core.hardware import Hardware, member_name
from pytest_ttnn_perf.core.settings import BrokerUse, ProfilerKind, project_settings
from pytest_ttnn_perf.core.text import counted, inert
from pytest_ttnn_perf.machine.chips import (
    DIRTY,
    LOCKED,
    RESET,
    held_by_another,
    holder_of,
    is_held,
    lock_folder,
    rank_of,
    take,
    visible_chips,
)
from pytest_ttnn_perf.machine.environment import (
    GOVERNOR_FILE,
    devices_of,
    entries,
    host_hardware,
    is_simulated,
    kernel_cache,
    kernels_cached,
    line_of,
    on_this_host,
)
from pytest_ttnn_perf.machine.inspection import (
    BROKER,
    BROKER_RESET,
    ask_ttnn,
    conflicts,
    find_broker,
    preflight,
    tt_smi_snapshot,
)
from pytest_ttnn_perf.machine.processes import interpreter, run_bounded
from pytest_ttnn_perf.plugin.preflight import choose
from pytest_ttnn_perf.report.tables import Listing, Result

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from pytest_ttnn_perf.analysis.readers.tt_smi import TtSmi
    from pytest_ttnn_perf.core.settings import Settings
    from pytest_ttnn_perf.machine.inspection import Broker, Build


def add_doctor(parser: argparse.ArgumentParser) -> None:
    add_format(parser)


def run_doctor(options: argparse.Namespace) -> Result:
    """Report what would keep a gate from working here, and its fix.

    A device that another process might be using is not opened.
    """
    settings = project_settings()
    around = Surroundings(dict(os.environ), settings.lock_folder or lock_folder())

    def print_line(line: str) -> None:
        sys.stderr.write(f"ttnn-perf: {inert(line)}\n")
        sys.stderr.flush()

    return doctor(settings, around, shape=options.format, print_line=print_line)


class Surroundings(NamedTuple):
    """Variables, the file system below ``root``, and the folder of locks."""

    environment: Mapping[str, str]
    locks: Path
    root: Path = Path("/")

    @property
    def devices(self) -> Path:
        return self.root / devices_of(self.environment).absolute().relative_to("/")


class Check(NamedTuple):
    """A fact with its remedy; ``ok`` may be unknown.

    ``blocks``: a gate would fail here for it; others only make it worse. ``absent``: it is not
    here, and a gate can run without it.
    """

    name: str
    ok: bool | None
    found: str
    remedy: str | None = None
    blocks: bool = False
    absent: bool = False


class Diagnosis(NamedTuple):
    """All facts, and why hardware is missing (``unknown``)."""

    settings: Settings
    around: Surroundings
    build: Build
    machine: Machine
    chips: tuple[int, ...]
    snapshot: TtSmi | None
    hardware: Hardware | None
    unknown: str | None
    held: Mapping[int, str]
    simulated: bool


_MARKS: Final = {True: "ok", False: "NO", None: "?"}


def doctor(
    settings: Settings, around: Surroundings, *, shape: str, print_line: Callable[[str], None]
) -> Result:
    """Lay out what this machine can measure; fail if a gate would."""
    diagnosis = diagnose(settings, around, print_line=print_line)
    build = diagnosis.build
    checks = checks_of(diagnosis)
    profiler = choose(ProfilerKind.AUTO, build, around.environment).kind.value
    blocking = [check for check in checks if check.blocks and check.ok is False]
    width = max(len(check.name) for check in checks)
    lines = []
    for check in checks:
        mark = "-" if check.absent else _MARKS[check.ok]
        lines.append(f"{mark:<2}  {check.name:<{width}}  {check.found}")
        if check.ok is not True and check.remedy is not None:
            lines.append(f"{'':{width + 6}}{check.remedy}")
    if blocking:
        named = ", ".join(dict.fromkeys(check.name for check in blocking))
        verdict = f"a gate would fail here: {counted(len(blocking), 'problem')}: {named}"
    elif build.version is None or profiler == "off":
        verdict = "a gate can run here, without device times"
    else:
        verdict = f"a gate can run here, with device times from the {profiler} profiler"
    document = {
        "key": diagnosis.hardware.key if diagnosis.hardware else None,
        "ttnn": {"version": build.version, "tracy": build.tracy},
        "profiler": profiler,
        "checks": [check._asdict() for check in checks],
    }
    listing = Listing((*lines, "", verdict), document, Check._fields, checks)
    return Result(listing.text(shape), failed=bool(blocking))


#: The mesh of a test that opens one device; only the test knows of a larger one.
_ONE_DEVICE: Final = "1x1"


def diagnose(
    settings: Settings, around: Surroundings, *, print_line: Callable[[str], None]
) -> Diagnosis:
    environment = around.environment
    print_line("asking ttnn what it can do ...")
    build = preflight(interpreter(), environment, timeout_s=settings.preflight_timeout)
    host = machine(environment, root=around.root, devices=around.devices)
    chips = visible_chips(environment, around.devices)
    snapshot = _snapshot(environment) if chips else None
    held = {chip: holder for chip in chips if (holder := holder_of(chip, around.locks))}
    # tt-smi sees all chips, ttnn only those that it may use.
    board = board_of(snapshot) if snapshot and chips == host.devices else None
    queued = host.broker is not None and not host.broker.runs_us
    occupied = bool(held or host.are_open or host.lock_holder or queued)
    hardware: Hardware | None
    simulated = is_simulated(environment)
    if build.location is None or not (chips or simulated):
        hardware, unknown = host_hardware(), None
    else:
        hardware, unknown = _device(build, around, chips, board=board, occupied=occupied)
    hardware = hardware and on_this_host(hardware, settings.key, environment)
    return Diagnosis(
        settings, around, build, host, chips, snapshot, hardware, unknown, held, simulated
    )


def _snapshot(environment: Mapping[str, str]) -> TtSmi | None:
    text = tt_smi_snapshot(environment)
    if text is None:
        return None
    with tempfile.TemporaryDirectory(prefix="ttnn-perf-") as folder:
        file = Path(folder) / "tt-smi.json"
        file.write_text(text, encoding="utf-8")
        try:
            return read_tt_smi(file)
        except InputError:
            return None


def _device(
    build: Build, around: Surroundings, chips: tuple[int, ...], *, board: str | None, occupied: bool
) -> tuple[Hardware | None, str | None]:
    if build.problem is not None:
        return None, "ttnn cannot be used"
    if build.arch is None:
        return None, "ttnn does not know the architecture"
    if board is not None:
        return Hardware(build.arch, board, _ONE_DEVICE), None
    if occupied:
        return None, "only ttnn knows, but another process is using the chips"
    try:
        # To ask is to take the chips: for as long as it takes, no other process may.
        with take(chips, around.locks, timeout_s=0, print_line=lambda _: None):
            answers = ask_ttnn(
                ("cluster",),
                interpreter(),
                around.environment,
                location=build.location or "",
            )
    except UsageError as error:
        return None, str(error)
    system = member_name(answers.says.get("cluster", "invalid"))
    if system == "invalid":
        return None, answers.errors.get("cluster") or answers.problem or "ttnn does not know"
    simulated = is_simulated(around.environment)
    return Hardware(build.arch, system, _ONE_DEVICE, simulated=simulated), None


def _ttnn(facts: Diagnosis) -> Iterator[Check]:
    build = facts.build
    if build.version is None:
        found = "not installed: what runs on the host can be gated"
        yield Check("ttnn", ok=True, found=found, absent=True)
        return
    found = f"{build.version} in {build.location}"
    if build.problem is None:
        yield Check("ttnn", ok=True, found=found)
        return
    command = 'python -c "import ttnn; ttnn.get_arch_name()"'
    remedy = f"see the whole error with: {command}"
    if build.timed_out:
        remedy = f"set preflight_timeout to more than this takes: {command}"
    yield Check("ttnn", ok=False, found=f"{found}: {build.problem}", remedy=remedy, blocks=True)


def _compiler(facts: Diagnosis) -> Iterator[Check]:
    if facts.build.location is None:
        return
    places = compiler_places(facts.build, facts.around.environment, facts.around.root)
    found = next(filter(has_compiler, places), None)
    missing = f"no sfpi in {' or '.join(map(str, places))}"
    releases = "https://github.com/tenstorrent/sfpi/releases"
    if found is not None:
        stated = _stated_compiler(places)
        version = compiler_version(found) if stated else None
        other = f"{found}: version {version or 'unknown'}, this ttnn is made for {stated}"
        if stated is None or version == stated:
            yield Check("compiler", ok=True, found=" ".join(filter(None, (str(found), version))))
        else:
            remedy = f"install {releases}/tag/{stated}"
            yield Check(
                "compiler", ok=None if version is None else False, found=other, remedy=remedy
            )
    elif facts.chips or facts.simulated:
        stated = _stated_compiler(places)
        remedy = (
            f"install {releases}/tag/{stated}" if stated else f"install the package of {releases}"
        )
        why = f"{missing}: no device opens without it"
        yield Check("compiler", ok=False, found=why, remedy=remedy, blocks=True)
    else:
        unneeded = f"{missing}; it is needed with a device"
        yield Check("compiler", ok=True, found=unneeded, absent=True)


def _devices(facts: Diagnosis) -> Iterator[Check]:
    present, chips, dirty = facts.machine.devices, facts.chips, facts.machine.dirty
    if facts.simulated:
        yield Check("devices", ok=True, found="a mock or simulator stands in for them")
    elif chips == present:
        yield Check("devices", ok=True, found=_chip_list(chips), absent=not chips)
    else:
        found = f"{_chip_list(chips)} of {_chip_list(present)}, as TT_VISIBLE_DEVICES says"
        remedy = f"unset TT_VISIBLE_DEVICES, or name {_chip_list(present)} in it"
        yield Check("devices", ok=bool(chips), found=found, remedy=remedy, blocks=True)
    # While it runs, the marker is there for the case that it is killed.
    if chips and dirty is not None and facts.machine.locked is None:
        found = f"{dirty}: a run with run_safe_pytest.sh was cut short"
        broker = facts.machine.broker
        remedy = f"{BROKER_RESET if broker else RESET} && rm {dirty}"
        yield Check("devices", ok=False, found=found, remedy=remedy, blocks=True)


def _chip_list(chips: tuple[int, ...]) -> str:
    if not chips:
        return "none"
    return f"{'chip' if len(chips) == 1 else 'chips'} {', '.join(map(str, chips))}"


_SMI_REMEDY: Final = "pip install tt-smi"


def _key(facts: Diagnosis) -> Iterator[Check]:
    if facts.hardware is not None:
        mesh = ", for a test that opens one device" if facts.hardware.mesh else ""
        yield Check("key", ok=True, found=f"{facts.hardware.key}{mesh}")
        return
    remedy = _SMI_REMEDY if facts.chips and facts.snapshot is None else None
    if facts.build.problem is not None:
        remedy = "see ttnn above"
    yield Check("key", ok=None, found=f"unknown: {facts.unknown}", remedy=remedy)


def _profiler(facts: Diagnosis) -> Iterator[Check]:
    choice = choose(ProfilerKind.AUTO, facts.build, facts.around.environment)
    off = choice.kind is ProfilerKind.OFF
    yield Check("profiler", ok=True, found=f"{choice.kind.value}: {choice.why}", absent=off)
    if facts.build.tracy is False and facts.chips:
        remedy = "for op tables, build tt-metal from source with ./build_metal.sh"
        found = "this ttnn is built without Tracy, so there are no op tables"
        yield Check("tracy", ok=False, found=found, remedy=remedy)


def _driver(facts: Diagnosis) -> Iterator[Check]:
    driver, chips, iommu = facts.machine.driver, facts.chips, facts.machine.iommu
    missing = "unknown: its module shows no version" if chips else "not loaded"
    ok, absent = True if driver or not chips else None, not driver and not chips
    yield Check("driver", ok=ok, found=driver or missing, absent=absent)
    pages, needed = facts.machine.hugepages, 0 if iommu else len(chips)
    if pages is None:
        found = "unknown: this kernel shows none of 1 GB"
        yield Check("hugepages", ok=None if needed else True, found=found, absent=not needed)
    elif pages < needed:
        found = f"{pages} of 1 GB, expected at least {needed} without an IOMMU"
        remedy = "sudo systemctl start tenstorrent-hugepages"
        yield Check("hugepages", ok=False, found=found, remedy=remedy, blocks=True)
    else:
        yield Check("hugepages", ok=True, found=f"{pages} of 1 GB", absent=not pages)


def _locks(facts: Diagnosis) -> Iterator[Check]:
    held = [f"chip {chip}: held by {holder}" for chip, holder in facts.held.items()]
    locked, by_whom = facts.machine.locked, facts.machine.lock_holder
    if facts.chips and by_whom is not None:
        held.append(f"{locked}, of run_safe_pytest.sh, is held {by_whom}")
    for found in held:
        yield Check("locks", ok=False, found=found, remedy="let it end", blocks=True)
    if not facts.held:
        yield _folder("locks", facts.around.locks, blocks=bool(facts.chips))


def _broker(facts: Diagnosis) -> Iterator[Check]:
    broker = facts.machine.broker
    if broker is None or not facts.chips:
        return
    found = f"{BROKER} is up ({broker.socket})"
    if broker.runs_us:
        yield Check("broker", ok=True, found=f"{found}, and this is one of its jobs")
    else:
        remedy = f"run tests through its queue: {BROKER} run 'pytest --ttnn-perf'"
        blocks = facts.settings.broker is BrokerUse.QUEUE
        yield Check("broker", ok=False, found=found, remedy=remedy, blocks=blocks)


def _untested(facts: Diagnosis) -> Iterator[Check]:
    """Name support that has not met the hardware that it is for."""
    found = {
        "a device broker": facts.machine.broker is not None and bool(facts.chips),
        "MPI": rank_of(facts.around.environment) is not None,
        "Quasar": facts.build.arch == "quasar",
    }
    names = [name for name, there in found.items() if there]
    if names:
        said = f"{' and '.join(names)}: supported, and not tried on hardware yet"
        yield Check("untested", ok=None, found=said)


def _governor(facts: Diagnosis) -> Iterator[Check]:
    governor = facts.machine.governor
    if governor is None:
        yield Check("governor", ok=None, found="unknown: this host does not say")
    elif governor == "performance":
        yield Check("governor", ok=True, found=governor)
    else:
        found = f"{governor}: the clock of the host changes between samples"
        remedy = "sudo cpupower frequency-set -g performance"
        yield Check("governor", ok=False, found=found, remedy=remedy)


def _environment(facts: Diagnosis) -> Iterator[Check]:
    environment = facts.around.environment
    found = conflicts(environment)
    for each in found:
        yield Check("environment", ok=False, found=each.sentence, remedy=each.remedy, blocks=True)
    if not found:
        yield Check("environment", ok=True, found="nothing is set that changes times")


def _folders(facts: Diagnosis) -> Iterator[Check]:
    host = facts.machine
    note = "" if host.kernels_cached else ", empty: the first run compiles its kernels"
    yield _folder("kernel cache", host.kernel_cache, note=note, blocks=bool(facts.chips))
    yield _folder("artifacts", facts.settings.artifacts)
    yield _folder("baselines", facts.settings.baselines)


def _folder(name: str, folder: Path, *, note: str = "", blocks: bool = True) -> Check:
    try:
        check_writable(folder)
    except WriteError as error:
        remedy = f"make {folder} writable for this user"
        return Check(name, ok=False, found=str(error), remedy=remedy, blocks=blocks)
    return Check(name, ok=True, found=f"{folder}{note}")


def checks_of(facts: Diagnosis) -> tuple[Check, ...]:
    return tuple(check for part in _CHECKS for check in part(facts))


_CHECKS: Final = (
    _ttnn, _compiler, _devices, _key, _profiler, _driver, _locks, _broker,
    _untested, _governor, _environment, _folders,
)  # fmt: skip


# The machine around ttnn, below the root of its files; no chip is opened for that.


class Machine(NamedTuple):
    """A host and its chips, with no chip touched; None is unknown.

    ``are_open``: another process has a chip open. ``locked`` and ``dirty`` are the files by which
    tt-metal's run_safe_pytest.sh says that it uses the devices, and that they were left in a state
    which needs a reset. ``lock_holder`` says who has the lock; None if it is this process' own.
    """

    devices: tuple[int, ...]
    governor: str | None
    iommu: bool | None
    hugepages: int | None
    driver: str | None
    are_open: bool
    kernel_cache: Path
    kernels_cached: bool
    locked: Path | None
    dirty: Path | None
    lock_holder: str | None
    broker: Broker | None


_DRIVER: Final = "sys/module/tenstorrent/version"
#: tt-metal maps pages of 1 GB.
_HUGEPAGES: Final = "sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages"
#: By chip where the driver has any, otherwise of the whole host.
_IOMMU: Final = (
    "sys/class/tenstorrent/*/device/iommu_group/type",
    "sys/kernel/iommu_groups/*/type",
)


def machine(
    environment: Mapping[str, str], *, root: Path = Path("/"), devices: Path | None = None
) -> Machine:
    """Look at the machine; nothing missing is an error."""
    nodes = [entry.name for entry in entries(devices or root / "dev/tenstorrent")]
    chips = tuple(sorted(int(name) for name in nodes if name.isdecimal()))
    locked, dirty = root / LOCKED, root / DIRTY
    is_locked = is_held(locked)
    pages = line_of(root / _HUGEPAGES)
    return Machine(
        devices=chips,
        governor=line_of(root / GOVERNOR_FILE),
        iommu=_iommu(root),
        hugepages=int(pages) if pages is not None and pages.isdecimal() else None,
        driver=line_of(root / _DRIVER),
        are_open=_are_open(chips, root / "proc"),
        kernel_cache=kernel_cache(environment),
        kernels_cached=kernels_cached(environment),
        locked=locked if is_locked else None,
        dirty=dirty if dirty.exists() else None,
        lock_holder=held_by_another(locked, root / "proc") if is_locked else None,
        broker=find_broker(environment, root),
    )


def _are_open(chips: Iterable[int], proc: Path) -> bool:
    """Return whether another process has chips open, by the driver's own lists."""
    lists = [line_of(proc / f"driver/tenstorrent/{chip}/pids") or "" for chip in chips]
    return any(pid != str(os.getpid()) for pids in lists for pid in pids.split())


def _iommu(root: Path) -> bool | None:
    """Return whether an IOMMU translates for the chips, not just exists."""
    for pattern in _IOMMU:
        types = [line_of(file) for file in sorted(root.glob(pattern))]
        if types:
            return all(kind is not None and kind.startswith("DMA") for kind in types)
    return False if (root / "sys/kernel").is_dir() else None


def compiler_places(
    build: Build, environment: Mapping[str, str], root: Path = Path("/")
) -> tuple[Path, ...]:
    """Return the places where TTNN looks for its compiler.

    Public wheels come without it.
    """
    homes = [environment.get("TT_METAL_HOME"), build.location]
    places = [Path(home, "runtime", "sfpi") for home in homes if home]
    return (*places, root / "opt" / "tenstorrent" / "sfpi")


_COMPILER: Final = Path("compiler", "bin", "riscv-tt-elf-g++")
_STATED: Final = re.compile(r"^sfpi_version='?([^'\s]+)", re.MULTILINE)
_VERSION: Final = re.compile(r"sfpi:([^\[\s)]+)")
_VERSION_TIMEOUT_S: Final = 10.0


def has_compiler(place: Path) -> bool:
    return (place / _COMPILER).is_file()


def _stated_compiler(places: Iterable[Path]) -> str | None:
    """Return the version of the compiler that TTNN states."""
    for place in places:
        file = place.parents[1] / "tt_metal" / "sfpi-version"
        found = _STATED.search(file.read_text(errors="replace")) if file.is_file() else None
        if found:
            return found[1]
    return None


def compiler_version(place: Path) -> str | None:
    """Ask a compiler for its version; None if it does not say."""
    with tempfile.TemporaryFile() as output:
        command = [str(place / _COMPILER), "--version"]
        try:
            run_bounded(command, timeout_s=_VERSION_TIMEOUT_S, stdout=output, stderr=output)
        except OSError:
            return None
        output.seek(0)
        found = _VERSION.search(output.read().decode(errors="replace"))
    return found[1] if found else None
