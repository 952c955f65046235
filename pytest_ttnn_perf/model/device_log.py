"""What a device and its tools say themselves: raw profiler logs, and the state of the boards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class RiscTime(NamedTuple):
    """The longest run of a processor's kernel, over the cores of a program."""

    risc: str
    kernel_ns: float


@dataclass(frozen=True, slots=True)
class ProgramTime:
    """One execution of a program on one device, from its first kernel's start to the last's end.

    ``execution`` counts from 0 where a log tells executions apart by nothing else. Times are None
    where a marker is missing: the profiler dropped it, or the log is cut.
    """

    device: int
    run_host_id: int
    trace: int | None
    replay: int | None
    execution: int
    start_cycle: int | None
    kernel_ns: float | None
    cores: int
    longest_core_ns: float | None
    shortest_core_ns: float | None
    riscs: tuple[RiscTime, ...]

    @property
    def complete(self) -> bool:
        """Whether every kernel has its start and its end."""
        return self.kernel_ns is not None

    @property
    def skew(self) -> float | None:
        """How much longer the slowest core took than the quickest; None where that is unknown."""
        if not self.shortest_core_ns or self.longest_core_ns is None:
            return None
        return self.longest_core_ns / self.shortest_core_ns


@dataclass(frozen=True, slots=True)
class DeviceLog:
    """A raw device log. Programs are by device, and in the order in which they began."""

    arch: str
    clock_mhz: float
    max_compute_cores: int | None
    rows: int
    programs: tuple[ProgramTime, ...]

    @property
    def complete(self) -> bool:
        """Whether no program lacks a marker."""
        return all(program.complete for program in self.programs)


@dataclass(frozen=True, slots=True)
class Firmware:
    """The versions of a board's firmware, as tt-smi spells them."""

    bundle: str | None = None
    management: str | None = None
    management_date: str | None = None
    ethernet: str | None = None
    device_bootloader: str | None = None
    device_application: str | None = None
    memory: str | None = None
    flash_tool: str | None = None


@dataclass(frozen=True, slots=True)
class Telemetry:
    """What a board measured at that moment. ``throttler`` is not 0 where it held itself back."""

    clock_mhz: float | None = None
    power_w: float | None = None
    temperature_c: float | None = None
    voltage_v: float | None = None
    current_a: float | None = None
    board_power_w: float | None = None
    fan_speed: float | None = None
    throttler: int | None = None
    memory_speed: int | None = None


@dataclass(frozen=True, slots=True)
class BoardLimits:
    """What a board holds itself to."""

    clock_mhz: float | None = None
    power_w: float | None = None
    current_a: float | None = None
    temperature_c: float | None = None


@dataclass(frozen=True, slots=True)
class Board:
    """A board as tt-smi sees it; None where it says nothing, or ``N/A``."""

    board_type: str | None
    bus_id: str | None
    board_id: str | None
    coordinates: str | None
    dram_trained: bool | None
    dram_speed: str | None
    pcie_speed: str | None
    pcie_width: str | None
    firmware: Firmware
    telemetry: Telemetry
    limits: BoardLimits


@dataclass(frozen=True, slots=True)
class TtSmi:
    """A snapshot of tt-smi. ``processes`` counts those that hold a device; None where unknown."""

    boards: tuple[Board, ...]
    time: str | None = None
    driver: str | None = None
    tt_smi: str | None = None
    pyluwen: str | None = None
    umd: str | None = None
    processes: int | None = None
