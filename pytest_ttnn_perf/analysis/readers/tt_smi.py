"""Snapshots of ``tt-smi -s``: the boards of a machine."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from pytest_ttnn_perf.core.codec import Value
from pytest_ttnn_perf.core.files import parse_json, read_text
from pytest_ttnn_perf.core.hardware import system_of_chips

if TYPE_CHECKING:
    from collections.abc import Mapping
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
    throttler: float | None = None


class TtSmi(Struct, frozen=True):
    """A snapshot of tt-smi; ``processes`` counts those using a device."""

    boards: tuple[Board, ...]
    driver: str | None = None
    tt_smi: str | None = None
    processes: int | None = None


_LARGEST_FILE: Final = 2**26
_MEASURED: Final = ("clock_mhz", "power_w", "temperature_c")
_NOTHING: Final = frozenset({"", "n/a", "none", "null"})
_NUMBER: Final = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]{1,15})?")
_HEXADECIMAL: Final = re.compile(r"0[xX][0-9a-fA-F]{1,16}")


def is_tt_smi(head: str) -> bool:
    start = head.lstrip("\ufeff \t\r\n")
    return start.startswith("{") and ('"device_info"' in head or '"host_sw_vers"' in head)


def read_tt_smi(file: Path) -> TtSmi:
    """Read a snapshot; missing values and N/A are None."""
    return parse_json(read_text(file, most_bytes=_LARGEST_FILE), _snapshot, file=file)


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
        throttler=_number(_part(device, "smbus_telem"), "THROTTLER"),
    )


def _part(value: Value, name: str) -> Value:
    """Return an object; an empty one where it is missing."""
    found = value.optional(name) or Value({}, value, name)
    found.members()
    return found


def _text(value: Value, name: str) -> str | None:
    """Read a text; tt-smi writes some numbers bare and others as text."""
    found = value.optional(name)
    content = "" if found is None else str(found.scalar()).strip()
    return None if content.lower() in _NOTHING else content


def _number(value: Value, name: str) -> float | None:
    """Read a number: bare, as padded text, or in hexadecimal."""
    content = _text(value, name)
    if content is None:
        return None
    found = value.field(name)
    if not isinstance(found.raw, str):
        return float(found.number())
    if _HEXADECIMAL.fullmatch(content):
        return int(content, 16)
    if not _NUMBER.fullmatch(content):
        raise found.refusal("a number, or N/A")
    return float(content)


def board_facts(snapshot: TtSmi) -> Mapping[str, Scalar]:
    """Return the known facts of a snapshot.

    Of several boards, the fastest clock, the highest power and temperature; throttled if one is.
    """

    def known(name: str) -> list[Any]:
        values = (getattr(board, name) for board in snapshot.boards)
        return [value for value in values if value is not None]

    types = Counter(known("board_type"))
    facts: dict[str, Scalar] = {
        "boards": ", ".join(f"{count} x {name}" for name, count in types.items()) or None,
        "firmware": ", ".join(sorted(set(known("firmware")))) or None,
        "driver": snapshot.driver,
        "tt_smi": snapshot.tt_smi,
        **{name: max(known(name), default=None) for name in _MEASURED},
        "throttled": any(known("throttler")) if known("throttler") else None,
        "device_processes": snapshot.processes,
    }
    return {name: fact for name, fact in facts.items() if fact is not None}


def board_of(snapshot: TtSmi) -> str | None:
    """Return the system as in hardware keys; None if unknown.

    tt-smi lists chips: a card of two chips stands there twice, "n300 L" and "n300 R".
    """
    system = system_of_chips(board.board_type or "" for board in snapshot.boards)
    return None if system is None else system[1]
