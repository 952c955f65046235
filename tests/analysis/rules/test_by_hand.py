"""Rules on real captures, against sums over the plain rows of the same files."""

from __future__ import annotations

import re
from math import prod
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.analysis.ops.regions import step_of
from tests.analysis.rules.answers import Ask
from tests.analysis.rules.captures import (
    device_rows,
    region_of,
    report_of,
    without_chip,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

Row = dict[str, str]
BYTES = {
    "FLOAT32": 4, "INT32": 4, "UINT32": 4, "BFLOAT16": 2, "UINT16": 2,
    "BFLOAT8_B": 1.0625, "BFLOAT4_B": 0.5625,
}  # fmt: skip
EXCHANGES = re.compile("AllGather|ReduceScatter")
MOVES = re.compile("Reshard|InterleavedTo|ShardedTo")
CLIP, FALCON = "blackhole_clip_encoder.csv", "falcon3_7b_tp4.csv"
REPLAY = ("DEVICE ID", "METAL TRACE ID", "METAL TRACE REPLAY SESSION ID")


def operands_of(row: Row) -> Iterator[tuple[str, list[int], str]]:
    """Yield the operands of a row: slot, padded shape, data type."""
    for column in [name for name in row if name.endswith("_DATATYPE") and row[name]]:
        slot = column.removesuffix("_DATATYPE")
        cells = [row[f"{slot}_{axis}_PAD[LOGICAL]"] for axis in "WZYX"]
        yield slot, [int(cell.partition("[")[0]) for cell in cells], row[column]


def test_weights_of_an_encoder_are_told_from_its_attention() -> None:
    # The products of attention have twelve heads, in both operands.
    shapes = {
        tuple(padded)
        for row in device_rows(CLIP)
        if "Matmul" in row["OP CODE"]
        for slot, padded, _ in operands_of(row)
        if slot == "INPUT_1" and padded[1] == 1
    }
    answer = Ask("TTP101")(without_chip(CLIP))
    assert len(answer.evidence) == len(shapes) == 3
    saved = sum(prod(shape) * (2 - 1.0625) for shape in shapes)
    assert sum(each.value or 0 for each in answer.evidence) == pytest.approx(saved)


@pytest.mark.parametrize(
    "name", ["blackhole_deepseek_8dev.csv", "gemma_31b_sliding_prefill_multichip.csv"]
)
def test_devices(name: str) -> None:
    table = region_of(name).ops
    assert table is not None
    by_device = [[op for op in table if op.device == device] for device in table.devices]
    fastest = sum(
        min(op.kernel_ns for op in same)
        for same in zip(*by_device, strict=True)
        if EXCHANGES.search(same[0].signature.op)
    )
    words = Ask("TTP703").saving(region_of(name)).arithmetic
    assert f" {fastest / 1000:,.1f} µs → " in (words or "")
    times = [
        sum(op.kernel_ns for op in ops if not EXCHANGES.search(op.signature.op))
        for ops in by_device
    ]
    step = max(sum(op.kernel_ns for op in ops) for ops in by_device)
    answer = Ask("TTP704").with_limits(excess=0)(region_of(name))
    assert answer.value == pytest.approx((max(times) - sum(times) / len(times)) / step)


def test_reshards() -> None:
    table = region_of(FALCON, "multichip_decode").ops
    assert table is not None
    step = step_of(table)
    ops = max(
        ([op for op in step if op.device == device] for device in step.devices),
        key=lambda ops: sum(op.kernel_ns for op in ops),
    )
    moves = [op for op in ops[1:-1] if MOVES.search(op.signature.op)]
    copies = [
        op
        for op in ops[1:-1]
        if "Copy" in op.signature.op
        and op.signature.inputs[0].memory != op.signature.outputs[0].memory
    ]
    assert len(moves) == 14
    moved = sum(op.kernel_ns for op in (*moves, *copies))
    answer = Ask("TTP302").with_limits(share=0)(region_of(FALCON, "multichip_decode"))
    assert answer.value == pytest.approx(moved / sum(op.kernel_ns for op in ops))


def test_a_small_vision_model() -> None:
    # As the README of the corpus lists it, op by op.
    model = report_of("cnn_small/db.sqlite")
    assert [evidence.subject for evidence in Ask("TTP302")(model).evidence] == [
        "ttnn.to_memory_config (operation 7) 1x1x1024x32, HEIGHT → BLOCK",
        "ttnn.conv2d (operation 11) 1x1x1024x64, BLOCK → HEIGHT, by reshard_if_not_optimal",
    ]
