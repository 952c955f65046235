"""Snapshots of ``tt-smi -s``: the boards of a machine."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from pytest_ttnn_perf.analysis.readers.ttlang import bounded_text
from pytest_ttnn_perf.core.codec import Value
from pytest_ttnn_perf.core.files import parse_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from pytest_ttnn_perf.core.hardware import Scalar


class Board(Struct, frozen=True):
    """A board as tt-smi sees it; None for unknown values.

    ``firmware`` is the version of the bundle. ``throttler`` is not 0 where it held itself back.
    """

    board_type: str | None = None
    firmware: str | None = None
    clock_mhz: float | None = None
    power_w: float | None = None
    temperature_c: float | None = None
    throttler: int | None = None


class TtSmi(Struct, frozen=True):
    """A snapshot of tt-smi; ``processes`` counts those using a device."""

    boards: tuple[Board, ...]
    driver: str | None = None
    tt_smi: str | None = None
    processes: int | None = None


_LARGEST_FILE: Final = 2**26
_NOTHING: Final = frozenset({"", "n/a", "none", "null"})
_NUMBER: Final = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]{1,15})?")
_HEXADECIMAL: Final = re.compile(r"0[xX][0-9a-fA-F]{1,16}")


def is_tt_smi(head: str) -> bool:
    """Return whether a text begins as a snapshot does."""
    start = head.lstrip("\ufeff \t\r\n")
    return start.startswith("{") and ('"device_info"' in head or '"host_sw_vers"' in head)


def read_tt_smi(file: Path) -> TtSmi:
    """Read a snapshot; missing values and N/A are None."""
    return parse_json(bounded_text(file, largest=_LARGEST_FILE), _snapshot, file=file)


def _snapshot(document: object) -> TtSmi:
    root = Value(document)
    host, versions = _part(root, "host_info"), _part(root, "host_sw_vers")
    processes = root.optional("processes")
    return TtSmi(
        tuple(_board(device) for device in root.field("device_info").array()),
        driver=_text(host, "Driver"),
        tt_smi=_text(versions, "tt_smi"),
        processes=None if processes is None else sum(1 for _ in processes.array()),
    )


def _board(device: Value) -> Board:
    telemetry = _part(device, "telemetry")
    return Board(
        board_type=_text(_part(device, "board_info"), "board_type"),
        firmware=_text(_part(device, "firmwares"), "fw_bundle_version"),
        clock_mhz=_number(telemetry, "aiclk"),
        power_w=_number(telemetry, "power"),
        temperature_c=_number(telemetry, "asic_temperature"),
        throttler=_register(_part(device, "smbus_telem"), "THROTTLER"),
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
    """Return the known facts of a snapshot.

    Of several boards, the fastest clock, the highest power and temperature; throttled if one is.
    """
    boards = snapshot.boards
    types = Counter(board.board_type for board in boards if board.board_type is not None)
    firmware = {board.firmware for board in boards if board.firmware is not None}
    throttlers = [board.throttler for board in boards if board.throttler is not None]
    facts: dict[str, Scalar] = {
        "boards": ", ".join(f"{count} x {name}" for name, count in types.items()) or None,
        "firmware": ", ".join(sorted(firmware)) or None,
        "driver": snapshot.driver,
        "tt_smi": snapshot.tt_smi,
        "clock_mhz": _largest(board.clock_mhz for board in boards),
        "power_w": _largest(board.power_w for board in boards),
        "temperature_c": _largest(board.temperature_c for board in boards),
        "throttled": any(throttlers) if throttlers else None,
        "device_processes": snapshot.processes,
    }
    return {name: fact for name, fact in facts.items() if fact is not None}


def board_of(snapshot: TtSmi) -> str | None:
    """Return the system as in hardware keys; None if unknown.

    tt-smi lists chips: a card of two chips stands there twice, "n300 L" and "n300 R".
    """
    from pytest_ttnn_perf.core.hardware import system_of_chips

    system = system_of_chips(board.board_type or "" for board in snapshot.boards)
    return None if system is None else system.board


def _largest(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)
