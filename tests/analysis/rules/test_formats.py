"""Rules on data formats and fidelity."""

from __future__ import annotations

from pytest_ttnn_perf.analysis.readers.report_db import ConvConfig
from pytest_ttnn_perf.core.finding import Subject
from tests.analysis.rules.answers import Ask
from tests.analysis.rules.cases import CLEAN, FOUND, Case, of_cases, of_ops
from tests.analysis.rules.reports import Operation, report
from tests.analysis.rules.tables import Op, op, tensor

MATMUL, CONV = "MatmulDeviceOperation", "Conv2dDeviceOperation"
ROWS = tensor(1, 1, 32, 1024, memory="L1_WIDTH_SHARDED")
WIDE = tensor(1, 1, 1024, 1024)
NARROW = tensor(1, 1, 1024, 2048, dtype="BFLOAT8_B")
#: What 1024 x 1024 elements save: from bfloat16, and from float32.
SAVED, SAVED_32 = 1024 * 1024 * 0.9375, 1024 * 1024 * 2.9375
OF_WEIGHTS = (
    op(MATMUL, [ROWS, WIDE], [ROWS], ns=40_000.0),
    op(MATMUL, [ROWS, WIDE], [ROWS], ns=10_000.0, device=1),
    op(CONV, [ROWS, WIDE._replace(dtype="FLOAT32")], [ROWS], ns=50_000.0),
    op(MATMUL, [ROWS, NARROW], [tensor(1, 1, 32, 2048, memory="L1_INTERLEAVED")], ns=10_000.0),
)
#: 4 MiB: 14.6 µs at the bandwidth of Wormhole.
LARGE = tensor(1, 1, 1024, 1024, dtype="FLOAT32")
LESS = 1024 * 1024 * 2.9375 / 288
OF_FLOAT32 = (
    op("UnaryDeviceOperation", [LARGE], [LARGE], ns=40_000.0),
    op("UnaryDeviceOperation", [PICKED := tensor(1, 1, 32, 32)], [PICKED], ns=40_000.0),
)
#: 2.1 GFLOP at HiFi4 on 64 cores of Wormhole: 32.6 µs; half of it at HiFi2.
HIFI4_NS = 2 * 1024**3 / (64 * 74 / 72 * 1000)
MANY = tensor(1, 1, 1024, 1024, memory="L1_BLOCK_SHARDED")
OPTIONS = (
    ("enable_bfp8_conversion", "true"),
    ("enable_bfp8_conversion", True),
    ("experimental_enable_weight_bfp8_conversion", True),
    ("experimental_weight_dtype", "bfp_bf8"),
)


def product(busy: float) -> Op:
    """Return a matmul at HiFi4 that computes for this part of its time."""
    weights = tensor(1, 1, 1024, 1024, dtype="BFLOAT8_B")
    return op(MATMUL, [MANY, weights], [MANY], ns=HIFI4_NS / busy, fidelity="HiFi4")


CASES = [
    Case(
        "TTP101", of_ops(*OF_WEIGHTS), FOUND, (SAVED + SAVED_32) / 288 / 100_000,
        (SAVED + SAVED_32) / 288, "73.8 % of the weight bytes",
    ),
    Case("TTP104", of_ops(*OF_FLOAT32), FOUND, 2 * LESS / 80_000, 2 * LESS),
    Case(
        "TTP103", of_ops(product(0.8), op("Reshard", [MANY], [MANY], ns=HIFI4_NS / 0.8)), FOUND,
        0.2, HIFI4_NS / 2, "HiFi4, HiFi2 is enough for BFLOAT8_B",
    ),
    Case("TTP103", of_ops(product(0.49)), CLEAN),
    *(
        Case(
            "TTP105", Subject(facts={option: value, "data_format": "torch.float32"}), FOUND,
            told=f"{option} is on, and the model is float32, not bfloat16",
        )
        for option, value in OPTIONS
    ),
]  # fmt: skip


@of_cases(CASES)
def test_answers(case: Case) -> None:
    case.check()


def test_a_report_tells_the_weights_of_a_convolution_by_its_arguments() -> None:
    config = ConvConfig("BFLOAT16", *[None] * (len(ConvConfig._fields) - 1))
    weights = "ttnn.Tensor(shape=Shape([64, 32, 3, 3]), dtype=DataType.BFLOAT16, tensor_id=6)"
    conv = Operation(1, "ttnn.conv2d", arguments={"weight_tensor": weights}, conv=config)
    answer = Ask("TTP101").with_limits(worth=0.0)(report=report([conv]))
    (evidence,) = answer.evidence
    assert (answer.value, evidence.value) == (1.0, 288 * 64 * 0.9375)
