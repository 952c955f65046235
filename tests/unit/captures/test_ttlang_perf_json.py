"""The exact form of a perf summary."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ttnn_perf._base.errors import InputError
from pytest_ttnn_perf.analysis.captures.ttlang_perf import (
    is_perf_summary_json,
    read_perf_summary_json,
)
from pytest_ttnn_perf.records.ttlang import Barriers, Bytes, Span, Transfers, TransferSize

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_ttnn_perf.records.ttlang import PerfSummary

PROGRAM: dict[str, Any] = {
    "program_id": 7, "grid": [3, 2], "num_cores": 6, "duration_cycles": 1500, "duration_us": 1.11,
    "dram_bytes_read": 98_305, "dram_bytes_written": 11, "l1_bytes_read": 12,
    "l1_bytes_written": 13, "multicast_bytes": 14, "dram_read_count": 48, "dram_write_count": 16,
    "l1_read_count": 17, "l1_write_count": 18, "read_barriers": 6, "write_barriers": 4,
    "dram_channels": 12, "transfer_sizes": {"2048": 47, "64": 1}, "name": "scale",
}  # fmt: skip


def read(tmp_path: Path, program: dict[str, Any], **more: object) -> PerfSummary:
    head = {"arch": "blackhole", "freq_mhz": 1350, "max_compute_cores": 110}
    file = tmp_path / "summary.json"
    file.write_text(json.dumps({**head, "programs": [program], **more}), encoding="utf-8")
    assert is_perf_summary_json(file.read_text(encoding="utf-8"))
    return read_perf_summary_json(file)


def test_all_it_says(tmp_path: Path) -> None:
    summary = read(tmp_path, PROGRAM)
    assert summary.exact
    assert summary.complete
    assert (summary.arch, summary.clock_mhz, summary.max_compute_cores) == ("blackhole", 1350, 110)
    (program,) = summary.programs
    assert (program.program_id, program.name, program.grid, program.cores) == (
        7,
        "scale",
        (3, 2),
        6,
    )
    assert program.duration == Span(1500, 1.11)
    assert program.dram_read == Transfers(Bytes(98_305), 48)
    assert program.dram_write == Transfers(Bytes(11), 16)
    assert program.l1_read == Transfers(Bytes(12), 17)
    assert program.l1_write == Transfers(Bytes(13), 18)
    assert program.multicast == Transfers(Bytes(14), None)
    assert (program.read_barriers, program.write_barriers) == (Barriers(6), Barriers(4))
    assert program.dram_channels == 12
    assert program.transfer_sizes == (TransferSize(Bytes(64), 1), TransferSize(Bytes(2048), 47))


def test_a_chip_that_tt_lang_did_not_know(tmp_path: Path) -> None:
    summary = read(tmp_path, PROGRAM, arch="unknown", freq_mhz=1000, max_compute_cores=0)
    assert (summary.arch, summary.clock_mhz, summary.max_compute_cores) == (None, None, None)


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        ("grid", [1], "two extents of the grid"),
        ("num_cores", "6", "a whole number"),
        ("duration_us", None, "a number, found null"),
        ("transfer_sizes", {"2 KB": 1}, "a size in bytes"),
        ("dram_bytes_read", -1, "a whole number of at least 0"),
        ("dram_bytes_read", 10**30, "a whole number of at least 0"),
    ],
)
def test_what_it_cannot_say(tmp_path: Path, field: str, value: object, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        read(tmp_path, {**PROGRAM, field: value})


@pytest.mark.parametrize("field", sorted(set(PROGRAM) - {"name"}))
def test_a_field_that_is_missing(tmp_path: Path, field: str) -> None:
    program = {name: value for name, value in PROGRAM.items() if name != field}
    with pytest.raises(InputError, match="the field is missing"):
        read(tmp_path, program)


def test_a_nameless_program(tmp_path: Path) -> None:
    nameless = {name: value for name, value in PROGRAM.items() if name != "name"}
    assert read(tmp_path, nameless).programs[0].name is None
