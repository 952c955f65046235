"""The JSON that ``tt-smi -s`` writes: the boards of a machine, their firmware and telemetry."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.files import parse_json
from pytest_ttnn_perf.analysis.captures.ttlang_lines import bounded_text
from pytest_ttnn_perf.records.json_value import Value
from pytest_ttnn_perf.records.ttnn_report import Board, BoardLimits, Firmware, Telemetry, TtSmi

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from pytest_ttnn_perf.records.hardware import Scalar


_LARGEST_FILE: Final = 2**26
_NOTHING: Final = frozenset({"", "n/a", "none", "null"})
_NUMBER: Final = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]{1,15})?")
_HEXADECIMAL: Final = re.compile(r"0[xX][0-9a-fA-F]{1,16}")


def is_tt_smi(head: str) -> bool:
    """Return whether a text begins as a snapshot does."""
    start = head.lstrip("\ufeff \t\r\n")
    return start.startswith("{") and ('"device_info"' in head or '"host_sw_vers"' in head)


def read_tt_smi(file: Path) -> TtSmi:
    """Read a snapshot. Whatever a release of tt-smi leaves out, or calls N/A, is None.

    Raises:
        InputError: with file, line and what was expected.
    """
    return parse_json(bounded_text(file, largest=_LARGEST_FILE), _snapshot, file=file)


def _snapshot(document: object) -> TtSmi:
    root = Value(document)
    host, versions = _part(root, "host_info"), _part(root, "host_sw_vers")
    processes = root.optional("processes")
    return TtSmi(
        tuple(_board(device) for device in root.field("device_info").array()),
        time=_text(root, "time"),
        driver=_text(host, "Driver"),
        tt_smi=_text(versions, "tt_smi"),
        pyluwen=_text(versions, "pyluwen"),
        umd=_text(versions, "tt_umd"),
        processes=None if processes is None else sum(1 for _ in processes.array()),
    )


def _board(device: Value) -> Board:
    info = _part(device, "board_info")
    return Board(
        board_type=_text(info, "board_type"),
        bus_id=_text(info, "bus_id"),
        board_id=_text(info, "board_id"),
        coordinates=_text(info, "coords"),
        dram_trained=_flag(info, "dram_status"),
        dram_speed=_text(info, "dram_speed"),
        pcie_speed=_text(info, "pcie_speed"),
        pcie_width=_text(info, "pcie_width"),
        firmware=_firmware(_part(device, "firmwares")),
        telemetry=_telemetry(_part(device, "telemetry"), _part(device, "smbus_telem")),
        limits=_limits(_part(device, "limits")),
    )


def _firmware(part: Value) -> Firmware:
    return Firmware(
        bundle=_text(part, "fw_bundle_version"),
        management=_text(part, "cm_fw"),
        management_date=_text(part, "cm_fw_date"),
        ethernet=_text(part, "eth_fw"),
        device_bootloader=_text(part, "dm_bl_fw"),
        device_application=_text(part, "dm_app_fw"),
        memory=_text(part, "gddr_fw"),
        flash_tool=_text(part, "tt_flash_version"),
    )


def _telemetry(part: Value, raw: Value) -> Telemetry:
    return Telemetry(
        clock_mhz=_number(part, "aiclk"),
        power_w=_number(part, "power"),
        temperature_c=_number(part, "asic_temperature"),
        voltage_v=_number(part, "voltage"),
        current_a=_number(part, "current"),
        board_power_w=_number(part, "board_power"),
        fan_speed=_number(part, "fan_speed"),
        throttler=_register(raw, "THROTTLER"),
        memory_speed=_register(raw, "DDR_SPEED"),
    )


def _limits(part: Value) -> BoardLimits:
    return BoardLimits(
        clock_mhz=_number(part, "asic_fmax"),
        power_w=_number(part, "tdp_limit"),
        current_a=_number(part, "tdc_limit"),
        temperature_c=_number(part, "thm_limit"),
    )


def _part(value: Value, name: str) -> Value:
    """Return an object; an empty one where it is missing."""
    found = value.optional(name)
    if found is None:
        return Value({}, value, name)
    found.members()
    return found


def _text(value: Value, name: str) -> str | None:
    """Read a text; tt-smi writes some numbers bare and others as text."""
    found = value.optional(name)
    if found is None:
        return None
    scalar = found.scalar()
    content = str(scalar).strip()
    return None if content.lower() in _NOTHING else content


def _flag(value: Value, name: str) -> bool | None:
    found = value.optional(name)
    return found.boolean() if found is not None and isinstance(found.raw, bool) else None


def _number(value: Value, name: str) -> float | None:
    """Read a number; most are texts with spaces before them."""
    content = _text(value, name)
    if content is None:
        return None
    found = Value(value.members()[name], value, name)
    if not isinstance(found.raw, str):
        return float(found.number())
    if not _NUMBER.fullmatch(content):
        raise found.refusal("a number, or N/A")
    return float(content)


def _register(value: Value, name: str) -> int | None:
    """Read a register: a hexadecimal text, or a number."""
    content = _text(value, name)
    if content is not None and _HEXADECIMAL.fullmatch(content):
        return int(content, 16)
    found = _number(value, name)
    return None if found is None else int(found)


def board_facts(snapshot: TtSmi) -> Mapping[str, Scalar]:
    """Return what the snapshot tells, and nothing that it does not.

    Of several boards, the fastest clock, the highest power and temperature; throttled if one is.
    """
    boards = snapshot.boards
    telemetry = [board.telemetry for board in boards]
    types = Counter(board.board_type for board in boards if board.board_type is not None)
    firmware = {board.firmware.bundle for board in boards if board.firmware.bundle is not None}
    throttlers = [chip.throttler for chip in telemetry if chip.throttler is not None]
    facts: dict[str, Scalar] = {
        "boards": ", ".join(f"{count} x {name}" for name, count in types.items()) or None,
        "firmware": ", ".join(sorted(firmware)) or None,
        "driver": snapshot.driver,
        "tt_smi": snapshot.tt_smi,
        "clock_mhz": _largest(chip.clock_mhz for chip in telemetry),
        "power_w": _largest(chip.power_w for chip in telemetry),
        "temperature_c": _largest(chip.temperature_c for chip in telemetry),
        "throttled": any(throttlers) if throttlers else None,
        "device_processes": snapshot.processes,
    }
    return {name: fact for name, fact in facts.items() if fact is not None}


def board_of(snapshot: TtSmi) -> str | None:
    """Return the system as hardware keys name it; None for one that has no name, or is not told.

    tt-smi lists chips: a card of two chips stands there twice, "n300 L" and "n300 R".
    """
    from pytest_ttnn_perf.records.systems import system_of_chips

    system = system_of_chips(board.board_type or "" for board in snapshot.boards)
    return None if system is None else system.board


def _largest(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)
