from __future__ import annotations

import pytest

from pytest_ttnn_perf.analysis.checklist.operands import (
    Weight,
    weights_by_row,
    weights_in_report,
    weights_in_table,
)
from pytest_ttnn_perf.analysis.checklist.runner import rule_of, run_rules
from pytest_ttnn_perf.analysis.ops.regions import step_of
from pytest_ttnn_perf.analysis.ops.roofline import size_of
from pytest_ttnn_perf.analysis.readers.ops_csv import read_ops_csv
from pytest_ttnn_perf.analysis.readers.report_db import ConvConfig
from pytest_ttnn_perf.core.finding import Severity
from pytest_ttnn_perf.core.text import percent
from tests.harness.corpus import corpus
from tests.rules.answers import Ask, Evidence, Subject, clean, limit, not_applicable, not_measured
from tests.rules.reports import Operation, record, report
from tests.rules.tables import op, table, tensor

ask = Ask("TTP101")
LIMIT, STEP = limit(0.1, "of weight bytes"), limit(0.02, "of a step")
MATMUL, CONV = "MatmulDeviceOperation", "Conv2dDeviceOperation"
ROWS = tensor(1, 1, 32, 1024, memory="L1_WIDTH_SHARDED")
WIDE = tensor(1, 1, 1024, 1024)
NARROW = tensor(1, 1, 1024, 2048, dtype="BFLOAT8_B")
#: What 1024 x 1024 elements save: from bfloat16, and from float32.
SAVED, SAVED_32 = 1024 * 1024 * 0.9375, 1024 * 1024 * 2.9375


def test_what_wide_weights_take_of_a_step() -> None:
    out = tensor(1, 1, 32, 1024, memory="L1_WIDTH_SHARDED")
    ops = table(
        op(MATMUL, [ROWS, WIDE], [out], ns=40_000.0),
        op(MATMUL, [ROWS, WIDE], [out], ns=10_000.0, device=1),
        op(CONV, [ROWS, WIDE._replace(dtype="FLOAT32")], [out], ns=50_000.0),
        op(MATMUL, [ROWS, NARROW], [tensor(1, 1, 32, 2048, memory="L1_INTERLEAVED")], ns=10_000.0),
    )
    wide, narrow = 6 * 1024 * 1024, 2 * 1024 * 1024 * 1.0625
    assert percent(wide / (wide + narrow)) == "73.8 %"
    answer = ask(ops=ops)
    assert answer.reason == "73.8 % of the weight bytes that a step reads are wider than bfloat8_b"
    assert answer.value == pytest.approx((SAVED + SAVED_32) / 288 / 100_000)
    assert answer.evidence == (
        Evidence("Conv2d 1x1x32x1024", SAVED_32 / 288, "ns", SAVED_32 / 288 / 100_000),
        Evidence("Matmul 1x1x32x1024 @ 1024x1024", SAVED / 288, "ns", SAVED / 288 / 100_000),
    )
    assert ask.saving(ops=ops) == (
        pytest.approx((SAVED + SAVED_32) / 288),
        "3.875 MiB less ÷ 288 GB/s, where reading binds: 14.1 µs",
    )


def test_nothing_is_saved_of_what_computing_binds() -> None:
    rows = tensor(1, 1, 1024, 1024, memory="L1_BLOCK_SHARDED")
    computing = 2 * 1024**3 / (64 * 74 / 72 * 1000)
    row = op(MATMUL, [rows, WIDE], [rows], ns=computing * 1.1, fidelity="HiFi4")
    assert ask(ops=table(row)) == STEP.clean(0.0)


def test_what_other_costs_hide_is_told_for_information() -> None:
    out = tensor(1, 1, 32, 1024, memory="L1_WIDTH_SHARDED")
    slow = op(MATMUL, [ROWS, WIDE], [out], ns=1_000_000.0, fidelity="HiFi4")
    (finding,) = run_rules([rule_of("TTP101")], Subject(ops=table(slow)))
    assert finding.reason == (
        "100.0 % of the 2.000 MiB of weights that a step reads are wider than bfloat8_b; no gain "
        "until other costs are fixed"
    )
    assert (finding.severity, finding.saving_ns, finding.quiet) == (Severity.INFO, None, False)
    assert finding.evidence == (Evidence("Matmul 1x1x32x1024 @ 1024x1024", SAVED, "B saved"),)
    tall = tensor(1, 1, 4096, 1024, memory="L1_BLOCK_SHARDED")
    computes = op(MATMUL, [tall, WIDE], [tall], ns=1_000_000.0, fidelity="HiFi4")
    assert ask(ops=table(computes)).outcome.value == "CLEAN"
    apart = tensor(1, 32, 32, 1024, logical=(1, 32, 1, 1024), memory="L1_BLOCK_SHARDED")
    padded = op(MATMUL, [apart, WIDE], [apart], ns=1_000_000.0, fidelity="HiFi4")
    assert (ask(ops=table(padded)).reason or "").endswith("until other costs are fixed")
    few = ask.with_limits(wide=1.0)
    assert few(ops=table(slow)).outcome.value == "CLEAN"


def test_what_other_costs_hide_is_counted_and_its_total_is_that_of_all_weights() -> None:
    out = tensor(1, 1, 32, 1024, memory="L1_WIDTH_SHARDED")
    tall = tensor(1, 1, 4096, 1024, memory="L1_BLOCK_SHARDED")
    slow = op(MATMUL, [ROWS, WIDE], [out], ns=1_000_000.0, fidelity="HiFi4")
    computes = op(MATMUL, [tall, WIDE], [tall], ns=1_000_000.0, fidelity="HiFi4")
    answer = ask(ops=table(slow, slow, computes))
    assert (answer.reason or "").startswith("100.0 % of the 6.000 MiB of weights that a step reads")
    (evidence,) = answer.evidence
    assert evidence.subject == "2 x Matmul 1x1x32x1024 @ 1024x1024"


def test_weights_that_each_batch_reads_again_save_in_each() -> None:
    users = tensor(1, 32, 32, 1024, logical=(1, 32, 1, 1024), memory="L1_INTERLEAVED")
    apart = "MatmulMultiCoreReuseMultiCast1DProgramConfig(per_core_M=1;fuse_batch=0)"
    row = op(MATMUL, [users, WIDE], [users], ns=300_000.0, fidelity="HiFi2", attributes=apart)
    assert ask(ops=table(row)).reason == (
        "100.0 % of the weight bytes that a step reads, up to 32 times each, are wider than "
        "bfloat8_b"
    )
    assert ask.saving(ops=table(row)) == (
        pytest.approx(32 * SAVED / 288),
        "30.00 MiB less ÷ 288 GB/s, where reading binds: 109.2 µs",
    )


@pytest.mark.parametrize(
    ("rows", "arch", "sharded"),
    [(32, "blackhole", True), (64, "blackhole", False), (32, "wormhole_b0", False)],
)
def test_dram_sharding_is_advised_where_bfloat8_alone_gains_little(
    rows: int, arch: str, sharded: bool
) -> None:
    first = tensor(1, 1, rows, 1024, memory="L1_WIDTH_SHARDED")
    row = op(MATMUL, [first, WIDE], [first], ns=10_000.0, fidelity="LoFi")
    fix = rule_of("TTP101").check(Subject(ops=table(row, arch=arch))).fix or ""
    assert ("TTP311" in fix) is sharded
    assert "Conv2dConfig" not in fix


def test_weights_of_a_format_of_unknown_size() -> None:
    strange = WIDE._replace(dtype="FLOAT6_NEW")
    answer = ask(ops=table(op(MATMUL, [ROWS, strange], ns=50_000.0)))
    assert answer == not_applicable("no weights lie in DRAM")
    both = table(op(MATMUL, [ROWS, strange], ns=5e4), op(MATMUL, [ROWS, NARROW], ns=5e4))
    assert ask(ops=both) == STEP.clean(0.0)


def test_narrow_weights_are_clean() -> None:
    assert ask(ops=table(op(MATMUL, [ROWS, NARROW], ns=50_000.0))) == STEP.clean(0.0)


def test_on_a_chip_that_is_not_known_the_share_of_bytes_decides_for_information() -> None:
    ops = table(op(MATMUL, [ROWS, WIDE]), op(MATMUL, [ROWS, NARROW]), arch=None)
    share = 2 / (2 + 2.125)
    answer = rule_of("TTP101").check(Subject(ops=ops))
    assert (answer.value, answer.severity) == (share, Severity.INFO)
    assert answer.reason == (
        "48.5 % of the weight bytes are wider than bfloat8_b: as bfloat8_b, weights would take at "
        "least 960.0 KiB less"
    )
    at_limit = ask.with_limits(wide=share)(ops=ops)
    assert at_limit == clean(share, limit=share, unit="of weight bytes")


def test_what_an_op_gives_is_an_activation() -> None:
    keys = tensor(1, 12, 64, 384)
    ops = table(
        op("TransposeDeviceOperation", [ROWS], [keys]), op(MATMUL, [tensor(1, 12, 384, 64), keys])
    )
    assert ask(ops=ops) == not_applicable("no weights lie in DRAM")


def test_weights_that_are_tilized_converted_and_moved_on_the_device_are_weights() -> None:
    rows = WIDE._replace(layout="ROW_MAJOR", dtype="FLOAT32")
    tiles, sharded = rows._replace(layout="TILE"), WIDE._replace(memory="DRAM_WIDTH_SHARDED")
    hidden = tensor(1, 1, 32, 1024)
    ops = table(
        op("TilizeDeviceOperation", [rows], [tiles]),
        op("TypecastDeviceOperation", [tiles], [WIDE]),
        op("InterleavedToShardedDeviceOperation", [WIDE], [sharded]),
        op(MATMUL, [hidden, sharded], [hidden]),
        op(MATMUL, [hidden, WIDE], [hidden]),
    )
    assert weights_in_table(ops) == {Weight(sharded, sharded), Weight(WIDE, WIDE)}


def test_what_is_converted_of_something_computed_is_an_activation() -> None:
    hidden, keys = tensor(1, 1, 1024, 1024), tensor(1, 1, 1024, 1024, dtype="BFLOAT8_B")
    ops = table(
        op("LayerNormDeviceOperation", [ROWS], [hidden]),
        op("TypecastDeviceOperation", [hidden], [keys]),
        op(MATMUL, [ROWS, keys], [ROWS]),
    )
    assert ask(ops=ops) == not_applicable("no weights lie in DRAM")


def test_a_report_follows_weights_through_conversions() -> None:
    loaded = Operation(1, "ttnn.from_torch", outputs=(1,))
    tiled = Operation(2, "ttnn.to_layout", inputs=(1,), outputs=(2,))
    moved = Operation(3, "ttnn.to_memory_config", inputs=(2,), outputs=(3,))
    linear = Operation(4, "ttnn.linear", inputs=(9, 3), outputs=(4,), device_operations=(MATMUL,))
    turned = Operation(5, "ttnn.permute", inputs=(4,), outputs=(5,))
    scores = Operation(6, "ttnn.matmul", inputs=(4, 5), device_operations=(MATMUL,))
    tensors = [record(number, 64, 64) for number in (1, 2, 3, 4, 5, 9)]
    made = report([loaded, tiled, moved, linear, turned, scores], tensors)
    assert {weight.key for weight in weights_in_report(made)} == {3}


# Hand-checked: the products of one step, and the bytes of their second operands by format. rt_detr
# loads its weights as float32, tilizes and converts them on the device, in the same capture.
@pytest.mark.parametrize(
    ("name", "products", "shares"),
    [
        ("gemma_sliding_decode_final.csv", 5, {"BFLOAT8_B": 0.418, "BFLOAT4_B": 0.582}),
        ("north_mini_moe_rope_decode_b1_trace.csv", 6, {"BFLOAT8_B": 0.999, "BFLOAT16": 0.001}),
        ("qwen_27b_linear_incomplete_replays.csv", 5, {"BFLOAT4_B": 1.0}),
        ("blackhole_clip_encoder.csv", 72, {"BFLOAT16": 1.0}),
        ("rt_detr.csv", 136, {"BFLOAT16": 1.0}),
    ],
)
def test_weights_of_real_captures(name: str, products: int, shares: dict[str, float]) -> None:
    step = step_of(read_ops_csv(corpus(f"ops_perf/{name}")))
    found = [
        tensor
        for row, tensor in weights_by_row(step).items()
        if step.columns.device[row] == step.devices[0]
    ]
    assert len(found) == products
    total = sum(map(size_of, found))
    for dtype, share in shares.items():
        part = sum(size_of(each) for each in found if each.dtype == dtype)
        assert part / total == pytest.approx(share, abs=0.0005)


def test_what_has_a_batch_or_lies_in_l1_is_an_activation() -> None:
    state, cached = tensor(32, 48, 128, 128), WIDE._replace(memory="L1_INTERLEAVED")
    ops = table(op(MATMUL, [ROWS, state]), op(MATMUL, [ROWS, cached]))
    assert ask(ops=ops) == not_applicable("no weights lie in DRAM")


def test_without_products() -> None:
    ops = table(op("UnaryDeviceOperation", [ROWS, WIDE]))
    assert ask(ops=ops) == not_applicable("no matmul and no convolution ran")


def test_a_capture_without_second_operands() -> None:
    why = not_measured("no matmul or convolution gives its weights")
    assert ask(ops=table(op(MATMUL, [ROWS]))) == why
    assert ask(ops=table(op(MATMUL))) == why


def test_a_report_counts_each_weight_once_and_exactly() -> None:
    linear = Operation(2, "ttnn.linear", inputs=(1, 2), device_operations=(MATMUL,))
    again = Operation(3, "ttnn.matmul", inputs=(4, 2), outputs=(5,), device_operations=(MATMUL,))
    scores = Operation(4, "ttnn.matmul", inputs=(4, 5), device_operations=(MATMUL,))
    loaded = Operation(1, "ttnn.from_torch", outputs=(2,))
    tensors = [record(1, 32, 50), record(2, 50, 100), record(4, 32, 50), record(5, 50, 32)]
    edges = [(2, 1, 2), (2, 1, 3), (5, 3, 4)]
    saved = 64 * 128 * 0.9375
    subject = Subject(report=report([loaded, linear, again, scores], tensors, edges))
    assert ask(subject) == LIMIT.clean(1.0, reason="7.500 KiB in all: too little to matter in DRAM")
    assert ask.with_limits(worth=saved)(subject) == LIMIT.found(
        1.0,
        "100.0 % of the weight bytes are wider than bfloat8_b: as bfloat8_b, weights would take "
        "7.500 KiB less",
        [Evidence("64x128 BFLOAT16", saved, "B saved")],
    )


def test_a_report_tells_the_weights_of_a_convolution_by_its_arguments() -> None:
    config = ConvConfig("BFLOAT16", *[None] * 15)
    weights = "ttnn.Tensor(shape=Shape([64, 32, 3, 3]), dtype=DataType.BFLOAT16, tensor_id=6)"
    conv = Operation(1, "ttnn.conv2d", arguments={"weight_tensor": weights}, conv=config)
    answer = ask.with_limits(worth=0.0)(report=report([conv]))
    assert answer.value == 1.0
    assert answer.evidence == (Evidence("1x1x288x64 BFLOAT16", 288 * 64 * 0.9375, "B saved"),)


def test_a_report_without_weights_leaves_it_to_the_op_table() -> None:
    subject = Subject(report=report([]), ops=table(op(MATMUL, [ROWS, NARROW])))
    assert ask(subject) == STEP.clean(0.0)
