"""The device's own report of ops."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.analysis.readers.ops_csv import read_cpp_report
from pytest_ttnn_perf.core.errors import InputError
from pytest_ttnn_perf.core.ops import Op, Signature, TraceReplays

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_ttnn_perf.core.ops import OpTable

HEADER = (
    "GLOBAL CALL COUNT,METAL TRACE ID,METAL TRACE REPLAY SESSION ID,DEVICE ID,DEVICE ARCH,OP NAME,"
    "CORE COUNT,AVAILABLE WORKER CORE COUNT,DEVICE FW DURATION [ns],DEVICE FW START CYCLE,"
    "DEVICE FW END CYCLE,DEVICE KERNEL DURATION [ns],OP TO OP LATENCY [ns],"
    "OP TO OP LATENCY BR/NRISC START [ns]\n"
)
ROW = "1024,,,0,wormhole_b0,Matmul,64,72,2000,5000,7000,1800,300,\n"


def read(tmp_path: Path, text: str) -> OpTable:
    file = tmp_path / "cpp_device_perf_report.csv"
    file.write_text(text, encoding="utf-8")
    return read_cpp_report(file)


def test_an_op(tmp_path: Path) -> None:
    table = read(tmp_path, HEADER + ROW)
    assert list(table) == [
        Op(
            signature=Signature("Matmul"),
            device=0,
            kernel_ns=1800.0,
            fw_ns=2000.0,
            gap_ns=300.0,
            ideal_ns=None,
            cores=64,
            fidelity=None,
            attributes="",
            trace=None,
            replay=None,
            start_cycle=5000,
            host=False,
            number=1,
            line=2,
            call=1024,
        )
    ]
    assert (table.arch, table.available_cores, table.rows) == ("wormhole_b0", 72, 1)


def test_replays_are_in_the_order_of_the_device(tmp_path: Path) -> None:
    ran = [(1, 1, "B", 20), (2, 1, "A", 10), (1, 2, "A", 30), (2, 2, "B", 40)]
    rows = "".join(
        f"{call},0,{replay},0,wormhole_b0,{op},64,72,9,{cycle},9,{replay},,\n"
        for call, replay, op, cycle in ran
    )
    table = read(tmp_path, HEADER + rows)
    assert [op.signature.op for op in table] == ["A", "B", "A", "B"]
    assert table.traces == (TraceReplays(0, 0, 2, alike=2),)


def test_an_op_without_time_is_counted(tmp_path: Path) -> None:
    table = read(tmp_path, HEADER + ROW + ROW.replace("1800", "") + ROW.replace("1800", "-4")
                 + ROW.replace(",0,worm", ",,worm"))  # fmt: skip
    assert len(table) == 1
    assert table.rows == 4
    assert table.dropped == {
        "no kernel duration": 1, "negative kernel duration": 1, "no device": 1,
    }  # fmt: skip
    assert [unread.line for unread in table.unread] == [3, 4, 5]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "the file is empty"),
        ("OP CODE,DEVICE ID\n1,2\n", "no device perf report"),
        (HEADER, "no rows below the header"),
        (HEADER + ROW + "1,2\n", "expected 14 values as in the header, found 2"),
        (HEADER + ROW.replace("1800", "long"), "DEVICE KERNEL DURATION .*: expected a number"),
    ],
)
def test_a_report_that_is_none(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        read(tmp_path, text)
