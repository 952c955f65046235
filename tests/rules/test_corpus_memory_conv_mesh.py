"""Rules about memory, matmuls, convolutions and devices on real captures.

What they say is held against sums over the plain rows of the same files, and against what is known
of the programs.
"""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.analysis.checklist.products import flag, whole
from pytest_ttnn_perf.analysis.ops.regions import step_of
from pytest_ttnn_perf.analysis.readers.report_db import attribute_flag, attribute_int
from pytest_ttnn_perf.core.finding import RuleOutcome
from tests.rules.answers import Ask, clean
from tests.rules.captures import (
    KERNEL,
    TABLES,
    device_rows,
    ops_of,
    region_of,
    report_of,
    without_chip,
)

if TYPE_CHECKING:
    from tests.rules.tables import Op

CONV = re.compile("Conv2dDeviceOperation|OptimizedConvNew")
MOVES = re.compile("Reshard|InterleavedToSharded|ShardedToInterleaved")
CLIP, FALCON = "blackhole_clip_encoder.csv", "falcon3_7b_tp4.csv"
PREFILL = "gemma_31b_sliding_prefill_multichip.csv"
OFT, OLD_OFT, DEEPSEEK = (
    "blackhole_oft_conv.csv",
    "oft_2025_09_v2.csv",
    "blackhole_deepseek_8dev.csv",
)


def region_step(name: str, region: str) -> list[Op]:
    """Return the ops of one step on its slowest device."""
    table = region_of(name, region).ops
    assert table is not None
    step = step_of(table)
    by_device = [[op for op in step if op.device == device] for device in step.devices]
    return max(by_device, key=lambda ops: sum(op.kernel_ns for op in ops))


def time_of(chosen: list[dict[str, str]]) -> float:
    """Return their kernel time."""
    return sum(float(row[KERNEL]) for row in chosen)


@pytest.mark.parametrize("name", TABLES)
def test_attributes_read_as_the_capture_reads_them(name: str) -> None:
    table = ops_of(name).ops
    assert table is not None
    for text in table.attribute_texts:
        for key in ("act_block_h_ntiles", "per_core_out_matrix_height_ntile", "in0_block_w"):
            assert whole(text, key) == attribute_int(text, key)
        for key in ("enable_act_double_buffer", "enable_weights_double_buffer"):
            assert flag(text, key) == attribute_flag(text, key)


def test_ops_on_one_core() -> None:
    # Products of 12 heads of 19 rows, and norms of 24 tiles, on one core each.
    products = [
        float(row[KERNEL])
        for row in device_rows(CLIP)[330:]
        if row["OP CODE"].startswith("Matmul") and row["CORE COUNT"] == "2"
    ]
    evidence = {each.subject: each.value for each in Ask("TTP305")(ops_of(CLIP)).evidence}
    assert len(products) == 12
    saved = sum(time - max(time / 12, 2_000) for time in products)
    assert evidence["12 x Matmul 1x12x19x19 @ 19x64 on 2 of 24 cores"] == pytest.approx(saved)
    norms = [
        float(row[KERNEL])
        for row in device_rows(CLIP)[330:]
        if row["OP CODE"].startswith("LayerNorm") and row["CORE COUNT"] == "1"
    ]
    assert len(norms) == 25
    assert evidence["25 x LayerNorm 1x1x19x768 on 1 of 24 cores"] == pytest.approx(
        sum(time - 7_000 - 2_500 for time in norms)
    )


@pytest.mark.parametrize(
    ("name", "region", "count"), [(FALCON, "multichip_decode", 14), (OFT, "topdown", 0)]
)
def test_reshards(name: str, region: str, count: int) -> None:
    step = region_step(name, region)
    moves = [op for op in step[1:-1] if MOVES.search(op.signature.op)]
    copies = [
        op
        for op in step[1:-1]
        if "Copy" in op.signature.op
        and op.signature.inputs[0].memory != op.signature.outputs[0].memory
    ]
    assert len(moves) == count
    answer = Ask("TTP302").with_limits(share=0)(region_of(name, region))
    moved = sum(op.kernel_ns for op in (*moves, *copies))
    assert answer.value == pytest.approx(moved / sum(op.kernel_ns for op in step))


@pytest.mark.parametrize(("name", "count"), [(OFT, 90), (OLD_OFT, 54)])
def test_double_buffers(name: str, count: int) -> None:
    rows = [row for row in device_rows(name) if CONV.search(row["OP CODE"])]
    assert len(rows) == count
    # Height-sharded ones keep their weights in L1.
    others = sum("HEIGHT" not in row["INPUT_0_MEMORY"] for row in rows)
    for rule, buffered, key, counted in (
        ("TTP603", "activations", "enable_act_double_buffer", count),
        ("TTP604", "weights", "enable_weights_double_buffer", others),
    ):
        assert sum(f"'{key}': 'true'" in row["ATTRIBUTES"] for row in rows) == 0
        answer = Ask(rule)(without_chip(name))
        reason = f"{buffered} not double-buffered in {counted} of {counted} convolutions"
        if counted:
            assert (answer.reason, answer.value, answer.limit) == (reason, 1.0, 0.0)
        else:
            assert answer.reason == "height-sharded convolutions keep their weights in L1"


def _least_ns(row: dict[str, str]) -> float:
    """Return PM IDEAL, or what the cores in use would take on a Blackhole at HiFi4."""
    rows, channels, inner = (
        int(row[name].partition("[")[0])
        for name in ("OUTPUT_0_Y_PAD[LOGICAL]", "OUTPUT_0_X_PAD[LOGICAL]", "INPUT_1_Y_PAD[LOGICAL]")
    )
    assert row["MATH FIDELITY"] == "HiFi4"
    computing = 2 * rows * channels * inner / (int(row["CORE COUNT"]) * 5.5296 / 4 * 1000)
    return max(float(row["PM IDEAL [ns]"]), computing)


def test_efficiency_of_convolutions_without_an_architecture() -> None:
    modelled = [row for row in device_rows(OLD_OFT) if CONV.search(row["OP CODE"])]
    # Of the first region, which is a window of signposts.
    answer = Ask("TTP607")(ops_of(OLD_OFT))
    convolutions = modelled[:20]
    lost = sum(
        max(0.0, float(row[KERNEL]) - max(2 * _least_ns(row), 2_000)) for row in convolutions
    )
    whole = lost / (answer.value or 1.0)
    assert whole == pytest.approx(41_184_000, rel=0.001)
    assert answer.outcome is RuleOutcome.CLEAN  # 1.7 % of a step
    free = Ask("TTP607", {"share": 0.0})
    assert (free(ops_of(OLD_OFT)).reason or "").endswith(" of the profiler's ideal")
    assert free.saving(ops_of(OLD_OFT))[0] == pytest.approx(lost)


@pytest.mark.parametrize(("name", "changes", "largest"), [(OFT, 0, 5), (OLD_OFT, 4, 3)])
def test_shardings_and_blocks_of_convolutions(name: str, changes: int, largest: int) -> None:
    chosen = [row for row in device_rows(name) if CONV.search(row["OP CODE"])]
    memory = [re.sub(r"DEV_\d+_", "", row["INPUT_0_MEMORY"]) for row in chosen]
    assert sum(before != after for before, after in itertools.pairwise(memory)) == changes
    assert Ask("TTP601")(ops_of(name)).value == changes
    sizes = [
        re.findall(r"(?:act_block_h_ntiles|out_matrix_height_ntile)=(\d+)", row["ATTRIBUTES"])
        for row in chosen
    ]
    assert sum(block == most for block, most in sizes) == largest
    reason = Ask("TTP602")(ops_of(name)).reason
    assert reason is not None
    below = f"{len(chosen) - largest} of {len(chosen)} convolutions"
    assert reason.startswith(f"an act_block_h below the largest in {below}; ")


@pytest.mark.parametrize(
    ("name", "exchanged", "excess"), [(DEEPSEEK, 1_446_500, 1_706_800), (PREFILL, 153_100, 1_433)]
)
def test_devices(name: str, exchanged: float, excess: float) -> None:
    table = region_of(name).ops
    assert table is not None
    by_device = {device: [op for op in table if op.device == device] for device in table.devices}
    exchanging = re.compile("AllGather|ReduceScatter")
    fastest = sum(
        min(op.kernel_ns for op in same)
        for same in zip(*by_device.values(), strict=True)
        if exchanging.search(same[0].signature.op)
    )
    assert fastest == pytest.approx(exchanged, rel=1e-3)
    words = Ask("TTP703").saving(region_of(name)).arithmetic
    assert words is not None
    assert f" {fastest / 1000:,.1f} µs → " in words
    times = [
        sum(op.kernel_ns for op in ops if not exchanging.search(op.signature.op))
        for ops in by_device.values()
    ]
    above = max(times) - sum(times) / len(times)
    assert above == pytest.approx(excess, rel=0.1)
    answer = Ask("TTP704").with_limits(excess=0)(region_of(name))
    step = max(sum(op.kernel_ns for op in ops) for ops in by_device.values())
    assert answer.value == pytest.approx(above / step)


def test_matmuls_without_a_program_config() -> None:
    matmuls = [row for row in device_rows(CLIP)[330:] if "Matmul" in row["OP CODE"]]
    without = [row for row in matmuls if "'program_config': 'std::nullopt'" in row["ATTRIBUTES"]]
    assert (len(without), len(matmuls)) == (24, 96)
    # All of them run on one or two cores, which TTP305 says; so do 25 norms.
    assert Ask("TTP313")(ops_of(CLIP)).outcome is RuleOutcome.CLEAN
    assert (Ask("TTP305")(ops_of(CLIP)).reason or "").startswith("963.7 µs of a step in 49 ops")


@pytest.mark.parametrize(
    ("name", "waits"),
    [
        ("gemma_31b_fused_final.csv", False),  # bfloat16 at 79 to 81 % of the bandwidth
        ("north_mini_dense_decode_b1_trace.csv", False),  # DRAM-sharded
        ("gemma_sliding_decode_replicated_v1.csv", True),
        ("gemma_sliding_decode_final.csv", False),
    ],
)
def test_matmuls_that_read_weights_slowly(name: str, waits: bool) -> None:
    assert (Ask("TTP311")(ops_of(name)).outcome is RuleOutcome.FOUND) is waits


def test_a_small_vision_model() -> None:
    # As the README of the corpus lists it, op by op.
    model = report_of("cnn_small/db.sqlite")
    assert [evidence.subject for evidence in Ask("TTP302")(model).evidence] == [
        "ttnn.to_memory_config (operation 7) 1x1x1024x32, HEIGHT → BLOCK",
        "ttnn.conv2d (operation 11) 1x1x1024x64, BLOCK → HEIGHT, by reshard_if_not_optimal",
    ]
    assert [evidence.subject for evidence in Ask("TTP602")(model).evidence] == [
        "ttnn.conv2d (operation 1) 1x1x4096x16, act_block_h_override 32 → 64"
    ]
    # Operation 12 ran as a matmul.
    off = {re.findall(r"operation (\d+)", e.subject)[0] for e in Ask("TTP603")(model).evidence}
    assert off == {"3", "9", "18"}
    # Both of its changes are reshards that TTP302 names.
    assert Ask("TTP601")(model).value == 0


def test_room_in_l1() -> None:
    expected = clean(1 - 172_032 / 1_395_424, limit=0.1, unit="of L1")
    assert Ask("TTP304")(report_of("linear_legacy.sqlite")) == expected
