"""Captures of Quasar, whose profiler reports every time per type of processor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf.records.ops import Signpost
from tests.unit.captures.ops_text import FW, GAP, KERNEL, Row, op, read, signpost, text

if TYPE_CHECKING:
    from pathlib import Path

DM = "DEVICE QUASAR_DM KERNEL DURATION [ns]"
TRISC = "DEVICE QUASAR_NEO_TRISC KERNEL DURATION [ns]"
DM_FW = "DEVICE DM FW DURATION [ns]"
TRISC_FW = "DEVICE TRISC FW DURATION [ns]"
DM_GAP = "OP TO OP DM LATENCY [ns]"
LEAST = ("OP CODE", "OP TYPE", "DEVICE ID", "DEVICE ARCH")


def row(**times: str) -> Row:
    """Return an op with times of its own, by the names of the columns here."""
    plain = {k: v for k, v in op(device_arch="quasar").items() if k not in {KERNEL, FW, GAP}}
    columns = {"dm": DM, "trisc": TRISC, "dm_fw": DM_FW, "trisc_fw": TRISC_FW, "gap": DM_GAP}
    return plain | {columns[name]: cell for name, cell in times.items()}


def test_the_slower_processor_counts(tmp_path: Path) -> None:
    rows = [
        row(dm="300", trisc="1000", dm_fw="350", trisc_fw="1100"),
        row(dm="500", trisc="", dm_fw="600"),
        row(),
    ]
    table = read(tmp_path, text(rows, header=(*LEAST, DM, TRISC, DM_FW, TRISC_FW, "X")))
    assert table.columns.kernel_ns == [1000.0, 500.0]
    assert table.columns.fw_ns == [1100.0, 600.0]
    assert table.dropped == {"no kernel duration": 1}
    assert table.kernel_time == f"the longer of {DM} and {TRISC}"
    assert (table.format, table.arch) == ("v2.1, Quasar", "quasar")


def test_a_column_that_was_never_filled_is_passed_over(tmp_path: Path) -> None:
    rows = [row(dm="300", trisc="200", gap="44"), signpost("a")]
    table = read(tmp_path, text(rows, header=(*LEAST, KERNEL, DM, TRISC, DM_GAP, "X")))
    assert (table.columns.kernel_ns, table.columns.gap_ns) == ([300.0], [44.0])
    assert table.signposts == (Signpost("a", 1),)
    assert table.kernel_time == f"the longer of {DM} and {TRISC}"


def test_the_usual_column_comes_first(tmp_path: Path) -> None:
    rows = [row(dm="300") | {KERNEL: "250"}]
    table = read(tmp_path, text(rows, header=(*LEAST, KERNEL, DM, TRISC, "X")))
    assert (table.columns.kernel_ns, table.kernel_time) == ([250.0], KERNEL)


def test_firmware_times_alone_are_said_to_be_that(tmp_path: Path) -> None:
    rows = [row(dm_fw="500", trisc_fw="300")]
    table = read(tmp_path, text(rows, header=(*LEAST, DM_FW, TRISC_FW, "X")))
    assert table.columns.kernel_ns == [500.0]
    assert table.kernel_time == f"the longer of {DM_FW} and {TRISC_FW}"
    alone = read(tmp_path, text(rows, header=(*LEAST, DM_FW, "X")))
    assert alone.kernel_time == DM_FW


def test_no_time_in_any_column(tmp_path: Path) -> None:
    table = read(tmp_path, text([row()], header=(*LEAST, KERNEL, DM, "X")))
    assert table.dropped == {"no kernel duration": 1}
    assert table.kernel_time == KERNEL
