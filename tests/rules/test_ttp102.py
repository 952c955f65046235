"""Tensors in float32."""

from __future__ import annotations

import pytest

from pytest_ttnn_perf.analysis.checklist.operands import NO_OPERANDS
from tests.rules.answers import Ask, Evidence, clean, limit, not_measured
from tests.rules.reports import Operation, record, report
from tests.rules.tables import on_host, op, table, tensor

#: Whatever it weighs.
ask = Ask("TTP102", {"worth": 0.0})
STEP, OF_OPERANDS = limit(0.02, "of a step"), limit(0.01, "of operand bytes")
#: Of 2048 and 8192 bytes.
HALF, FULL = tensor(1, 1, 32, 32), tensor(1, 1, 32, 64, dtype="FLOAT32")
#: 4 MiB: 14.6 µs at the bandwidth of Wormhole.
LARGE = tensor(1, 1, 1024, 1024, dtype="FLOAT32")
BESIDE = op("UnaryDeviceOperation", [HALF], [HALF], ns=40_000.0)


def test_half_of_the_bytes_in_dram() -> None:
    moved = op("UnaryDeviceOperation", [LARGE], [LARGE], ns=60_000.0)
    ops = table(moved, BESIDE)
    half = 4 * 1024 * 1024 / 288
    answer = ask(ops=ops)
    assert answer.reason == "100.0 % of the bytes that ops of a step take and give are float32"
    assert answer.value == pytest.approx(half / 100_000)
    assert ask.saving(ops=ops) == (pytest.approx(half), "4.000 MiB less ÷ 288 GB/s")


def test_float32_in_l1_and_integers_are_clean() -> None:
    indices = tensor(1, 1, 32, 32, dtype="UINT32", layout="ROW_MAJOR")
    near = LARGE._replace(memory="L1_BLOCK_SHARDED")
    ops = table(
        op("EmbeddingsDeviceOperation", [indices, HALF], [HALF]),
        op("UnaryDeviceOperation", [near], [near]),
    )
    assert ask(ops=ops) == STEP.clean(0.0)


def test_on_a_chip_that_is_not_known_the_share_of_bytes_decides() -> None:
    unary = op("UnaryDeviceOperation", [FULL], [HALF])
    assert ask(ops=table(unary, unary, arch=None)) == OF_OPERANDS.found(
        0.8,
        "80.0 % of the bytes that ops take and give are float32",
        [Evidence("Unary 1x1x32x64", 2 * 8192, "B")],
    )
    at_limit = ask.with_limits(wide=0.8)(ops=table(unary, arch=None))
    assert at_limit == clean(0.8, limit=0.8, unit="of operand bytes")


def test_what_only_the_host_reads_does_not_count() -> None:
    made = Operation(1, "ttnn.typecast", inputs=(2,), outputs=(1,), device_operations=("Typecast",))
    reads = Operation(2, "ttnn.to_torch", inputs=(1,))
    tensors = [record(1, 50, 100, dtype="FLOAT32"), record(2, 50, 100)]
    assert ask(report=report([made, reads], tensors)) == OF_OPERANDS.clean(0.0)
    relu = Operation(3, "ttnn.relu", inputs=(1,), device_operations=("Unary",))
    assert ask(report=report([made, reads, relu], tensors)).value == pytest.approx(12 / 14)


def test_a_little_float32_in_a_report_is_clean() -> None:
    relu = Operation(1, "ttnn.relu", inputs=(1,), device_operations=("Unary",))
    answer = Ask("TTP102")(report=report([relu], [record(1, 32, 32, dtype="FLOAT32")]))
    assert answer == OF_OPERANDS.clean(1.0, reason="2.000 KiB in all: too little to matter in DRAM")


def test_a_report_counts_tensors_on_the_device() -> None:
    call = Operation(1, "ttnn.add", inputs=(1, 2), outputs=(3,))
    tensors = [
        record(1, 50, 100, dtype="FLOAT32"),
        record(2, 50, 100, layout="ROW_MAJOR"),
        record(3, 50, 100, dtype="FLOAT32", memory=None),
    ]
    wide, narrow = 64 * 128 * 4, 50 * 100 * 2
    assert ask(report=report([call], tensors)) == OF_OPERANDS.found(
        wide / (wide + narrow),
        "76.6 % of the bytes that ops take and give are float32",
        [Evidence("ttnn.add 64x128", wide, "B")],
    )


def test_a_capture_without_operands() -> None:
    ops = table(op("UnaryDeviceOperation"), on_host("(torch) cat"))
    assert ask(ops=ops) == not_measured(NO_OPERANDS)
