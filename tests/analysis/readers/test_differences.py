"""What two captures of one kind differ in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf.analysis.readers.detect import op_table_of
from pytest_ttnn_perf.analysis.readers.ttlang import parse_ttlang, read_ttlang_log
from pytest_ttnn_perf.analysis.show.kernels import (
    LineChange,
    Platform,
    hardware_changes,
    line_changes,
    platform_of_log,
    platform_of_ops,
    program_changes,
)
from tests.analysis.rules.tables import op, table
from tests.harness.corpus import corpus

if TYPE_CHECKING:
    from pathlib import Path


def test_what_captures_tell_of_their_hardware() -> None:
    first = platform_of_ops(table(op("Matmul"), op("Matmul", device=1)))
    second = platform_of_ops(table(op("Matmul"), arch="blackhole", available_cores=110))
    assert hardware_changes(first, first) == ()
    assert hardware_changes(first, second) == (
        "architecture wormhole_b0 → blackhole",
        "devices 2 → 1",
        "cores 64 → 110",
    )
    clocks = Platform(clock_mhz=1000.0), Platform(clock_mhz=1350.0)
    assert hardware_changes(*clocks) == ("clock 1000 → 1350 MHz",)
    assert hardware_changes(Platform(clock_mhz=1350.0), Platform(clock_mhz=1349.0)) == ()
    assert hardware_changes(Platform(), Platform("blackhole")) == ()


def test_real_op_tables_tell_their_clock() -> None:
    names = ("gemma_sliding_decode_final.csv", "llama_8b_final_decode.csv")
    told = [platform_of_ops(op_table_of(corpus(f"ops_perf/{name}"))) for name in names]
    assert told == [
        Platform("blackhole", None, 4, 110, 1350.0),
        Platform("wormhole_b0", None, 1, 64, 1000.0),
    ]


def test_a_real_log_against_itself_with_a_slower_line(tmp_path: Path) -> None:
    file = corpus("ttlang/v1_1_1_auto_profile.plain.txt")
    before = read_ttlang_log(file)
    assert line_changes(before, before) == ()
    slower = file.read_text().replace("(x4, avg=80.2, total=321)", "(x4, avg=90.2, total=361)")
    after = parse_ttlang(slower.replace("18% memory bound", "9% compute bound"), tmp_path)
    assert line_changes(before, after) == (
        LineChange("NCRISC demo_read", "tx = ttl.copy(a[r, 0], a_blk)", 321, 361),
    )
    assert program_changes(before, after) == ("bound: memory (18 %) → compute (9 %)",)


def test_programs_of_real_logs(tmp_path: Path) -> None:
    file = corpus("ttlang/v1_1_1_perf_summary.txt")
    before = read_ttlang_log(file)
    changed = file.read_text().replace("grid: 2x2 (4 cores)", "grid: 8x8 (64 cores)")
    changed = changed.replace("freq: 1000 MHz", "freq: 1350 MHz").replace(
        "2.0 KB (un", "4.0 KB (un"
    )
    after = parse_ttlang(changed, tmp_path)
    assert program_changes(before, after) == (
        "__demo_kernel: grid 2x2 → 8x8",
        "__demo_kernel: transfers of 2048 B → 4096 B",
    )
    assert hardware_changes(platform_of_log(before), platform_of_log(after)) == (
        "clock 1000 → 1350 MHz",
    )
