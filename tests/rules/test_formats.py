"""Rules on data formats and fidelity."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.analysis.checklist.operands import Weight, weights_in_report, weights_in_table
from pytest_ttnn_perf.analysis.checklist.runner import rule_of, run_rules
from pytest_ttnn_perf.analysis.readers.report_db import ConvConfig
from pytest_ttnn_perf.core.finding import Severity
from tests.rules.answers import Ask, Evidence, Subject, clean, limit, not_applicable
from tests.rules.reports import Operation, record, report
from tests.rules.tables import Op, op, table, tensor

if TYPE_CHECKING:
    from pytest_ttnn_perf.core.hardware import Scalar


ttp101 = Ask("TTP101")


LIMIT, STEP = limit(0.1, "of weight bytes"), limit(0.02, "of a step")


MATMUL, CONV = "MatmulDeviceOperation", "Conv2dDeviceOperation"


ROWS = tensor(1, 1, 32, 1024, memory="L1_WIDTH_SHARDED")


WIDE = tensor(1, 1, 1024, 1024)


NARROW = tensor(1, 1, 1024, 2048, dtype="BFLOAT8_B")


#: What 1024 x 1024 elements save: from bfloat16, and from float32.
SAVED, SAVED_32 = 1024 * 1024 * 0.9375, 1024 * 1024 * 2.9375


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
    assert ttp101(ops=table(computes)).outcome.value == "CLEAN"
    apart = tensor(1, 32, 32, 1024, logical=(1, 32, 1, 1024), memory="L1_BLOCK_SHARDED")
    padded = op(MATMUL, [apart, WIDE], [apart], ns=1_000_000.0, fidelity="HiFi4")
    assert (ttp101(ops=table(padded)).reason or "").endswith("until other costs are fixed")
    few = ttp101.with_limits(wide=1.0)
    assert few(ops=table(slow)).outcome.value == "CLEAN"


def test_what_other_costs_hide_is_counted_and_its_total_is_that_of_all_weights() -> None:
    out = tensor(1, 1, 32, 1024, memory="L1_WIDTH_SHARDED")
    tall = tensor(1, 1, 4096, 1024, memory="L1_BLOCK_SHARDED")
    slow = op(MATMUL, [ROWS, WIDE], [out], ns=1_000_000.0, fidelity="HiFi4")
    computes = op(MATMUL, [tall, WIDE], [tall], ns=1_000_000.0, fidelity="HiFi4")
    answer = ttp101(ops=table(slow, slow, computes))
    assert (answer.reason or "").startswith("100.0 % of the 6.000 MiB of weights that a step reads")
    (evidence,) = answer.evidence
    assert evidence.subject == "2 x Matmul 1x1x32x1024 @ 1024x1024"


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


def test_narrow_weights_are_clean() -> None:
    assert ttp101(ops=table(op(MATMUL, [ROWS, NARROW], ns=50_000.0))) == STEP.clean(0.0)


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


def test_what_has_a_batch_or_lies_in_l1_is_an_activation() -> None:
    state, cached = tensor(32, 48, 128, 128), WIDE._replace(memory="L1_INTERLEAVED")
    ops = table(op(MATMUL, [ROWS, state]), op(MATMUL, [ROWS, cached]))
    assert ttp101(ops=ops) == not_applicable("no weights lie in DRAM")


def test_a_report_tells_the_weights_of_a_convolution_by_its_arguments() -> None:
    config = ConvConfig("BFLOAT16", *[None] * 15)
    weights = "ttnn.Tensor(shape=Shape([64, 32, 3, 3]), dtype=DataType.BFLOAT16, tensor_id=6)"
    conv = Operation(1, "ttnn.conv2d", arguments={"weight_tensor": weights}, conv=config)
    answer = ttp101.with_limits(worth=0.0)(report=report([conv]))
    assert answer.value == 1.0
    assert answer.evidence == (Evidence("1x1x288x64 BFLOAT16", 288 * 64 * 0.9375, "B saved"),)


#: Whatever it weighs.
ttp102 = Ask("TTP102", {"worth": 0.0})


STEP_102, OF_OPERANDS = limit(0.02, "of a step"), limit(0.01, "of operand bytes")


#: Of 2048 and 8192 bytes.
HALF, FULL = tensor(1, 1, 32, 32), tensor(1, 1, 32, 64, dtype="FLOAT32")


#: 4 MiB: 14.6 µs at the bandwidth of Wormhole.
LARGE = tensor(1, 1, 1024, 1024, dtype="FLOAT32")


BESIDE = op("UnaryDeviceOperation", [HALF], [HALF], ns=40_000.0)


def test_half_of_the_bytes_in_dram() -> None:
    moved = op("UnaryDeviceOperation", [LARGE], [LARGE], ns=60_000.0)
    ops = table(moved, BESIDE)
    half = 4 * 1024 * 1024 / 288
    answer = ttp102(ops=ops)
    assert answer.reason == "100.0 % of the bytes that ops of a step take and give are float32"
    assert answer.value == pytest.approx(half / 100_000)
    assert ttp102.saving(ops=ops) == (pytest.approx(half), "4.000 MiB less ÷ 288 GB/s")


def test_a_little_float32_in_a_report_is_clean() -> None:
    relu = Operation(1, "ttnn.relu", inputs=(1,), device_operations=("Unary",))
    answer = Ask("TTP102")(report=report([relu], [record(1, 32, 32, dtype="FLOAT32")]))
    assert answer == OF_OPERANDS.clean(1.0, reason="2.000 KiB in all: too little to matter in DRAM")


ttp103 = Ask("TTP103")


LIMIT_103 = limit(0.02, "of a step")


ROWS_103 = tensor(1, 1, 1024, 1024, memory="L1_BLOCK_SHARDED")


#: 2.1 GFLOP at HiFi4 on 64 cores of Wormhole: 32.6 µs; half of it at HiFi2.
HIFI4_NS = 2 * 1024**3 / (64 * 74 / 72 * 1000)


def product(fidelity: str | None, dtype: str, *, ns: float = HIFI4_NS / 0.8) -> Op:
    weight = tensor(1, 1, 1024, 1024, dtype=dtype)
    return op("MatmulDeviceOperation", [ROWS_103, weight], [ROWS_103], ns=ns, fidelity=fidelity)


@pytest.mark.parametrize(
    ("fidelity", "dtype", "is_above"),
    [
        ("LoFi", "BFLOAT4_B", False),
        ("HiFi2", "BFLOAT4_B", True),
        ("HiFi2", "BFLOAT8_B", False),
        ("HiFi4", "BFLOAT8_B", True),
        ("HiFi2", "BFLOAT16", False),
        ("HiFi4", "BFLOAT16", True),
    ],
)
def test_what_is_enough(fidelity: str, dtype: str, is_above: bool) -> None:
    passes = {"LoFi": 262, "HiFi2": 148, "HiFi4": 74}[fidelity]
    ns = HIFI4_NS * 74 / passes / 0.9
    assert bool(ttp103.saving(ops=table(product(fidelity, dtype, ns=ns)))[0]) is is_above


def test_an_op_that_waits_for_something_else_does_not_get_shorter() -> None:
    assert ttp103(ops=table(product("HiFi4", "BFLOAT8_B", ns=HIFI4_NS / 0.49))) == LIMIT_103.clean(
        0.0
    )


ttp104 = Ask("TTP104")


STEP_104 = limit(0.02, "of a step")


#: 2 MiB: in and out, 14.6 µs at the bandwidth of Wormhole.
LARGE_104 = tensor(1, 1, 1024, 1024)


def test_weights_are_left_to_another_rule() -> None:
    row = tensor(1, 1, 32, 1024, memory="L1_WIDTH_SHARDED")
    ops = table(op("Matmul", [row, LARGE_104], [row], ns=8_000.0, fidelity="HiFi2"))
    assert ttp104(ops=ops) == STEP_104.clean(0.0)


ttp105 = Ask("TTP105")


@pytest.mark.parametrize("fact", ["data_format", "dtype", "torch_dtype"])
def test_a_bfloat16_model_is_clean(fact: str) -> None:
    facts: dict[str, Scalar] = {"enable_bfp8_conversion": True, fact: "torch.bfloat16"}
    assert ttp105(facts=facts) == clean()
