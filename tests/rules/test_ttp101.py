from __future__ import annotations

from pytest_ttnn_perf.records.ttnn_report import ConvConfig
from tests.rules.answers import Ask, Evidence, Subject, clean, limit, not_applicable, not_measured
from tests.rules.reports import Operation, record, report
from tests.rules.tables import op, table, tensor

ask = Ask("TTP101")
LIMIT = limit(0.1, "of weight bytes")
MATMUL, CONV = "MatmulDeviceOperation", "Conv2dDeviceOperation"
ROWS = tensor(1, 1, 32, 1024, memory="L1_WIDTH_SHARDED")
WIDE = tensor(1, 1, 1024, 1024)
NARROW = tensor(1, 1, 1024, 2048, dtype="BFLOAT8_B")
#: What 1024 x 1024 elements save: from bfloat16, and from float32.
SAVED, SAVED_32 = 1024 * 1024 * 0.9375, 1024 * 1024 * 2.9375


def test_wide_weights_in_an_op_table() -> None:
    ops = table(
        op(MATMUL, [ROWS, WIDE]),
        op(MATMUL, [ROWS, WIDE], device=1),
        op(CONV, [ROWS, WIDE._replace(dtype="FLOAT32")]),
        op(MATMUL, [ROWS, NARROW]),
    )
    wide, narrow = 6 * 1024 * 1024, 2 * 1024 * 1024 * 1.0625
    share = wide / (wide + narrow)
    assert ask(ops=ops) == LIMIT.found(
        share,
        "73.8 % of the weight bytes are wider than bfloat8_b; "
        "as bfloat8_b they take at least 3.875 MiB less, 1.88 times less than bfloat16",
        [
            Evidence("1x1x1024x1024 FLOAT32", SAVED_32, "B saved"),
            Evidence("1x1x1024x1024 BFLOAT16", SAVED, "B saved"),
        ],
    )


def test_narrow_weights_are_clean() -> None:
    assert ask(ops=table(op(MATMUL, [ROWS, NARROW]))) == LIMIT.clean(0.0)


def test_a_share_at_the_limit_is_clean() -> None:
    ops = table(op(MATMUL, [ROWS, WIDE]), op(MATMUL, [ROWS, NARROW]))
    share = 2 / (2 + 2.125)
    answer = ask.with_limits(share=share)(ops=ops)
    assert answer == clean(share, limit=share, unit="of weight bytes")


def test_what_an_op_gives_is_an_activation() -> None:
    keys = tensor(1, 12, 64, 384)
    ops = table(
        op("TransposeDeviceOperation", [ROWS], [keys]), op(MATMUL, [tensor(1, 12, 384, 64), keys])
    )
    assert ask(ops=ops) == not_applicable("no weights lie in DRAM")


def test_what_has_a_batch_or_lies_in_l1_is_an_activation() -> None:
    state, cached = tensor(32, 48, 128, 128), WIDE._replace(memory="L1_INTERLEAVED")
    ops = table(op(MATMUL, [ROWS, state]), op(MATMUL, [ROWS, cached]))
    assert ask(ops=ops) == not_applicable("no weights lie in DRAM")


def test_without_products() -> None:
    ops = table(op("UnaryDeviceOperation", [ROWS, WIDE]))
    assert ask(ops=ops) == not_applicable("no matmul and no convolution ran")


def test_a_capture_without_second_operands() -> None:
    why = not_measured("no matmul or convolution tells its weights")
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
    assert ask(subject) == LIMIT.found(
        1.0,
        "100.0 % of the weight bytes are wider than bfloat8_b; "
        "as bfloat8_b they take 7.500 KiB less, 1.88 times less than bfloat16",
        [Evidence("64x128 BFLOAT16", saved, "B saved")],
    )


def test_a_report_tells_the_weights_of_a_convolution_by_its_arguments() -> None:
    config = ConvConfig("BFLOAT16", *[None] * 15)
    weights = "ttnn.Tensor(shape=Shape([64, 32, 3, 3]), dtype=DataType.BFLOAT16, tensor_id=6)"
    conv = Operation(1, "ttnn.conv2d", arguments={"weight_tensor": weights}, conv=config)
    answer = ask(report=report([conv]))
    assert answer.value == 1.0
    assert answer.evidence == (Evidence("1x1x288x64 BFLOAT16", 288 * 64 * 0.9375, "B saved"),)


def test_a_report_without_weights_leaves_it_to_the_op_table() -> None:
    subject = Subject(report=report([]), ops=table(op(MATMUL, [ROWS, NARROW])))
    assert ask(subject) == LIMIT.clean(0.0)
