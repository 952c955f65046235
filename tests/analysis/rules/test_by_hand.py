"""Rules on real captures, against sums over the plain rows of the same files."""

from __future__ import annotations

import re
from collections import defaultdict
from math import prod
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.analysis.ops.regions import step_of
from pytest_ttnn_perf.core.finding import RuleOutcome
from tests.analysis.rules.answers import Ask, clean
from tests.analysis.rules.captures import (
    KERNEL,
    device_rows,
    ops_of,
    region_of,
    report_of,
    rows_of,
    without_chip,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

Row = dict[str, str]
BYTES = {
    "FLOAT32": 4, "INT32": 4, "UINT32": 4, "BFLOAT16": 2, "UINT16": 2,
    "BFLOAT8_B": 1.0625, "BFLOAT4_B": 0.5625,
}  # fmt: skip
CONV = re.compile("Conv2dDeviceOperation|OptimizedConvNew")
EXCHANGES = re.compile("AllGather|ReduceScatter")
MOVES = re.compile("Reshard|InterleavedTo|ShardedTo")
CLIP, FALCON = "blackhole_clip_encoder.csv", "falcon3_7b_tp4.csv"
OFT, OLD_OFT = "blackhole_oft_conv.csv", "oft_2025_09_v2.csv"
GAP = "OP TO OP LATENCY [ns]"
REPLAY = ("DEVICE ID", "METAL TRACE ID", "METAL TRACE REPLAY SESSION ID")


def operands_of(row: Row) -> Iterator[tuple[str, list[int], str]]:
    """Yield the operands of a row: slot, padded shape, data type."""
    for column in [name for name in row if name.endswith("_DATATYPE") and row[name]]:
        slot = column.removesuffix("_DATATYPE")
        cells = [row[f"{slot}_{axis}_PAD[LOGICAL]"] for axis in "WZYX"]
        yield slot, [int(cell.partition("[")[0]) for cell in cells], row[column]


def times_of(name: str, code: str, cores: str) -> list[float]:
    rows = device_rows(name)[330:]
    chosen = [row for row in rows if row["OP CODE"].startswith(code)]
    return [float(row[KERNEL]) for row in chosen if row["CORE COUNT"] == cores]


def test_ops_on_one_core() -> None:
    # Products of 12 heads of 19 rows, and norms of 24 tiles, on one core each.
    products, norms = times_of(CLIP, "Matmul", "2"), times_of(CLIP, "LayerNorm", "1")
    evidence = {each.subject: each.value for each in Ask("TTP305")(ops_of(CLIP)).evidence}
    assert (len(products), len(norms)) == (12, 25)
    assert evidence["12 x Matmul 1x12x19x19 @ 19x64 on 2 of 24 cores"] == pytest.approx(
        sum(time - max(time / 12, 2_000) for time in products)
    )
    assert evidence["25 x LayerNorm 1x1x19x768 on 1 of 24 cores"] == pytest.approx(
        sum(time - 7_000 - 2_500 for time in norms)
    )


@pytest.mark.parametrize("name", ["gemma_31b_fused_final.csv", FALCON])
def test_share_of_float32(name: str) -> None:
    sizes: dict[str, float] = defaultdict(float)
    for row in device_rows(name):
        for _, padded, dtype in operands_of(row):
            sizes[dtype] += prod(padded) * BYTES[dtype]
    value = Ask("TTP102")(without_chip(name)).value
    assert value == pytest.approx(sizes["FLOAT32"] / sum(sizes.values()))


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


def _least_ns(row: Row) -> float:
    """Return PM IDEAL, or what the cores in use would take on a Blackhole at HiFi4."""
    rows, channels, inner = (
        int(row[name].partition("[")[0])
        for name in ("OUTPUT_0_Y_PAD[LOGICAL]", "OUTPUT_0_X_PAD[LOGICAL]", "INPUT_1_Y_PAD[LOGICAL]")
    )
    computing = 2 * rows * channels * inner / (int(row["CORE COUNT"]) * 5.5296 / 4 * 1000)
    return max(float(row["PM IDEAL [ns]"]), computing)


def test_efficiency_of_convolutions_without_an_architecture() -> None:
    convolutions = [row for row in device_rows(OLD_OFT) if CONV.search(row["OP CODE"])]
    lost = sum(  # of the first region, which is a window of signposts
        max(0.0, float(row[KERNEL]) - max(2 * _least_ns(row), 2_000)) for row in convolutions[:20]
    )
    free = Ask("TTP607", {"share": 0.0})
    assert (free(ops_of(OLD_OFT)).reason or "").endswith(" of the profiler's ideal")
    assert free.saving(ops_of(OLD_OFT))[0] == pytest.approx(lost)


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


def replays(name: str) -> list[list[Row]]:
    """Return the ops of every replay, as the device began them."""
    found: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in rows_of(name):
        if row[REPLAY[1]] and row[KERNEL]:
            found[tuple(row[part] for part in REPLAY)].append(row)
    return [
        sorted(each, key=lambda row: int(row["DEVICE FW START CYCLE"])) for each in found.values()
    ]


def window(name: str, signpost: str) -> list[list[Row]]:
    """Return the ops between two signposts, of each device."""
    found: dict[str, list[Row]] = defaultdict(list)
    inside = False
    for row in rows_of(name):
        if row["OP TYPE"] == "signpost":
            inside = row["OP CODE"] == signpost
        elif inside and row[KERNEL]:
            found[row["DEVICE ID"]].append(row)
    return list(found.values())


def waiting(sequences: list[list[Row]]) -> float:
    gaps = sum(float(row[GAP]) for sequence in sequences for row in sequence[1:])
    return gaps / (gaps + sum(float(row[KERNEL]) for sequence in sequences for row in sequence))


@pytest.mark.parametrize("name", ["gemma_31b_fused_final.csv", FALCON])
def test_gaps_inside_replays(name: str) -> None:
    share = waiting(replays(name))
    answer = Ask("TTP401").with_limits(share=share * 1.01)(ops_of(name))
    assert answer == clean(answer.value, limit=share * 1.01, unit="of the time")
    assert answer.value == pytest.approx(share)
    assert Ask("TTP401").with_limits(share=share * 0.99)(ops_of(name)).outcome is RuleOutcome.FOUND


@pytest.mark.parametrize(
    ("name", "signpost"),
    [
        ("gemma_31b_sliding_prefill_multichip.csv", "MC_sliding_attention_PREFILL"),
        ("llama_8b_final_decode.csv", "PERF_DECODE"),
    ],
)
def test_gaps_inside_windows(name: str, signpost: str) -> None:
    devices = window(name, signpost)
    slowest = max(devices, key=lambda rows: sum(float(row[KERNEL]) for row in rows))
    assert Ask("TTP401")(ops_of(name)).value == pytest.approx(waiting(devices))
    assert Ask("TTP402")(ops_of(name)).value == pytest.approx(waiting([slowest]))


def test_a_small_vision_model() -> None:
    # As the README of the corpus lists it, op by op.
    model = report_of("cnn_small/db.sqlite")
    assert [evidence.subject for evidence in Ask("TTP302")(model).evidence] == [
        "ttnn.to_memory_config (operation 7) 1x1x1024x32, HEIGHT → BLOCK",
        "ttnn.conv2d (operation 11) 1x1x1024x64, BLOCK → HEIGHT, by reshard_if_not_optimal",
    ]
    # Operation 12 ran as a matmul.
    off = {re.findall(r"operation (\d+)", e.subject)[0] for e in Ask("TTP603")(model).evidence}
    assert off == {"3", "9", "18"}
    # Both of its changes are reshards that TTP302 names.
    assert Ask("TTP601")(model).value == 0


def test_padding_of_a_real_report() -> None:
    # Read by the host: 50 x 64 of bfloat16 in 64 x 64, and 50 x 100 of float32 in 64 x 128.
    data, sent = 50 * 64 * 2 + 50 * 100 * 4, 64 * 64 * 2 + 64 * 128 * 4
    subject = report_of("mlp_bf16/db.sqlite")
    assert Ask("TTP504")(subject).value == pytest.approx(1 - data / sent)
    assert Ask("TTP505")(subject) == clean(sent, limit=2**20, unit="B")
