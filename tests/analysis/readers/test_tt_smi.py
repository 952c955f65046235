"""A snapshot of tt-smi, in the spellings of its releases."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ttnn_perf.analysis.readers.tt_smi import Board, read_tt_smi
from pytest_ttnn_perf.core.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_ttnn_perf.analysis.readers.tt_smi import TtSmi

DEVICE: dict[str, Any] = {
    "smbus_telem": {"THROTTLER": "0x2"},
    "board_info": {"bus_id": "0000:04:00.0", "board_type": "n300 L", "dram_status": True},
    "telemetry": {
        "voltage": "0.72", "current": " 23.0", "power": " 16.0", "aiclk": " 800",
        "asic_temperature": "34.8", "fan_speed": "N/A", "heartbeat": "1",
    },
    "firmwares": {"fw_bundle_version": "19.9.0", "tt_flash_version": "N/A"},
    "limits": {"asic_fmax": "1350", "tdp_limit": 125.0},
}  # fmt: skip


def read(tmp_path: Path, document: object) -> TtSmi:
    file = tmp_path / "smi.json"
    file.write_text(json.dumps(document), encoding="utf-8")
    return read_tt_smi(file)


def test_a_snapshot_with_all_it_says(tmp_path: Path) -> None:
    snapshot = read(
        tmp_path,
        {
            "time": "2026-01-01T00:00:00",
            "host_info": {"Driver": "TT-KMD 2.0.0", "Hostname": "h"},
            "host_sw_vers": {"tt_smi": "3.1", "pyluwen": "0.7", "tt_umd": "0.1"},
            "device_info": [DEVICE],
            "processes": [{"pid": 1}, {"pid": 2}],
        },
    )
    assert (snapshot.driver, snapshot.tt_smi, snapshot.processes) == ("TT-KMD 2.0.0", "3.1", 2)
    assert snapshot.boards == (Board("n300 L", "19.9.0", 800, 16, 34.8, 2),)


def test_whatever_is_missing_is_none(tmp_path: Path) -> None:
    snapshot = read(tmp_path, {"device_info": [{}, {"telemetry": None}]})
    assert snapshot.boards == (Board(), Board())
    assert (snapshot.driver, snapshot.processes) == (None, None)


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ([], "expected an object"),
        ({}, "the field is missing"),
        ({"device_info": [{"telemetry": [1]}]}, "expected an object"),
        ({"device_info": [{"telemetry": {"aiclk": "fast"}}]}, "a number, or N/A, found 'fast'"),
        ({"device_info": [{"telemetry": {"aiclk": True}}]}, "expected a number"),
    ],
)
def test_a_snapshot_that_is_none(tmp_path: Path, document: object, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        read(tmp_path, document)
