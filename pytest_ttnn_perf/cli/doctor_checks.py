"""What was found on a machine, item by item: whether it is as it should be, and what to do."""

from __future__ import annotations

import importlib.util
from importlib import metadata
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.errors import WriteError
from pytest_ttnn_perf._base.files import check_writable
from pytest_ttnn_perf.analysis.captures.tt_smi import board_facts
from pytest_ttnn_perf.records.hardware import Check

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pytest_ttnn_perf.records.hardware import Build, Conflict, Hardware, Machine, Scalar
    from pytest_ttnn_perf.records.ttnn_report import TtSmi
    from pytest_ttnn_perf.run.preflight import ProfilerChoice


_STEADY: Final = frozenset({"performance"})
_SMI_REMEDY: Final = "pip install tt-smi"


@dataclass(frozen=True, slots=True)
class Facts:
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


def checks_of(facts: Facts) -> Iterator[Check]:
    """Judge what was found: first the software, then the hardware, the host, and the folders."""
    yield _ttnn(facts.build)
    yield _torch()
    yield _tracy(facts)
    yield from _devices(facts)
    yield _key(facts)
    yield Check("profiler", ok=True, found=f"{facts.choice.kind.value}: {facts.choice.why}")
    yield from _boards(facts)
    yield from _driver(facts)
    yield from _tenants(facts)
    yield from _locks(facts)
    yield _governor(facts.machine)
    yield from _environment(facts.conflicts)
    yield from _folders(facts)


def _ttnn(build: Build) -> Check:
    if build.version is None:
        return Check("ttnn", ok=True, found="not installed: what runs on the host can be gated")
    found = f"{build.version} in {build.location}"
    if build.problem is None:
        return Check("ttnn", ok=True, found=found)
    remedy = 'see the whole error with: python -c "import ttnn; ttnn.get_arch_name()"'
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


def _devices(facts: Facts) -> Iterator[Check]:
    present, chips, dirty = facts.machine.devices, facts.chips, facts.machine.dirty
    if facts.simulated:
        yield Check("devices", ok=True, found="a mock or simulator stands in for them")
    elif chips == present:
        yield Check("devices", ok=True, found=_listed(chips))
    else:
        found = f"{_listed(chips)} of {_listed(present)}, as TT_VISIBLE_DEVICES says"
        remedy = f"unset TT_VISIBLE_DEVICES, or name {_listed(present)} in it"
        yield Check("devices", ok=bool(chips), found=found, remedy=remedy, blocks=True)
    # While it runs, the marker is there for the case that it is killed.
    if chips and dirty is not None and facts.machine.locked is None:
        found = f"{dirty}: a run with run_safe_pytest.sh was cut short"
        remedy = f"tt-smi -r && rm {dirty}"
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
    told = board_facts(facts.snapshot)
    yield _told("firmware", told, "firmware")
    clock = _told("clock", told, "clock_mhz", unit=" MHz")
    if told.get("throttled"):
        remedy = "let the boards cool down, and look at their power supply"
        clock = Check("clock", ok=False, found=f"{clock.found}, throttled", remedy=remedy)
    yield clock


def _told(name: str, told: Mapping[str, Scalar], fact: str, *, unit: str = "") -> Check:
    value = told.get(fact)
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
    locked = facts.machine.locked
    if facts.chips and locked is not None:
        found = f"{locked}: held by run_safe_pytest.sh"
        yield Check("locks", ok=False, found=found, remedy="let it end", blocks=True)
    if not facts.held:
        yield _folder("locks", facts.locks, blocks=bool(facts.chips))


def _governor(host: Machine) -> Check:
    if host.governor is None:
        return Check("governor", ok=None, found="could not tell: this host does not say")
    if host.governor in _STEADY:
        return Check("governor", ok=True, found=host.governor)
    found = f"{host.governor}: the clock of the host changes between samples"
    remedy = "sudo cpupower frequency-set -g performance"
    return Check("governor", ok=False, found=found, remedy=remedy)


def _environment(conflicts: tuple[Conflict, ...]) -> Iterator[Check]:
    for each in conflicts:
        remedy = each.remedy
        yield Check("environment", ok=False, found=each.sentence, remedy=remedy, blocks=True)
    if not conflicts:
        yield Check("environment", ok=True, found="nothing is set that changes times")


def _folders(facts: Facts) -> Iterator[Check]:
    host = facts.machine
    note = "" if host.kernels_cached else ", empty: the first run compiles its kernels"
    yield _folder("kernel cache", host.kernel_cache, note=note, blocks=bool(facts.chips))
    yield _folder("artifacts", facts.artifacts)
    yield _folder("baselines", facts.baselines)


def _folder(name: str, folder: Path, *, note: str = "", blocks: bool = True) -> Check:
    try:
        check_writable(folder)
    except WriteError as error:
        remedy = f"make {folder} writable for this user"
        return Check(name, ok=False, found=str(error), remedy=remedy, blocks=blocks)
    return Check(name, ok=True, found=f"{folder}{note}")


def _listed(chips: tuple[int, ...]) -> str:
    if not chips:
        return "none"
    return f"{'chip' if len(chips) == 1 else 'chips'} {', '.join(map(str, chips))}"
