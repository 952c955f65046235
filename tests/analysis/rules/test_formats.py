"""Rules on data formats and fidelity."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.analysis.readers.report_db import ConvConfig
from pytest_ttnn_perf.core.text import percent
from tests.analysis.rules.answers import Ask, Evidence, found, limit
from tests.analysis.rules.reports import Operation, report
from tests.analysis.rules.tables import Op, op, table, tensor

if TYPE_CHECKING:
    from pytest_ttnn_perf.core.hardware import Scalar


ttp101 = Ask("TTP101")
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
    answer = ttp101(ops=ops)
    assert answer.reason == "73.8 % of the weight bytes that a step reads are wider than bfloat8_b"
    assert answer.value == pytest.approx((SAVED + SAVED_32) / 288 / 100_000)
    assert answer.evidence == (
        Evidence("Conv2d 1x1x32x1024", SAVED_32 / 288, "ns", SAVED_32 / 288 / 100_000),
        Evidence("Matmul 1x1x32x1024 @ 1024x1024", SAVED / 288, "ns", SAVED / 288 / 100_000),
    )
    assert ttp101.saving(ops=ops) == (
        pytest.approx((SAVED + SAVED_32) / 288),
        "3.875 MiB less ÷ 288 GB/s, where reading binds: 14.1 µs",
    )


def test_a_report_tells_the_weights_of_a_convolution_by_its_arguments() -> None:
    config = ConvConfig("BFLOAT16", *[None] * (len(ConvConfig._fields) - 1))
    weights = "ttnn.Tensor(shape=Shape([64, 32, 3, 3]), dtype=DataType.BFLOAT16, tensor_id=6)"
    conv = Operation(1, "ttnn.conv2d", arguments={"weight_tensor": weights}, conv=config)
    answer = ttp101.with_limits(worth=0.0)(report=report([conv]))
    assert answer.value == 1.0
    assert answer.evidence == (Evidence("1x1x288x64 BFLOAT16", 288 * 64 * 0.9375, "B saved"),)


ttp102 = Ask("TTP102")
#: Of 2048 bytes.
HALF = tensor(1, 1, 32, 32)
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


ttp103 = Ask("TTP103")
LIMIT_103 = limit(0.02, "of a step")
ROWS_103 = tensor(1, 1, 1024, 1024, memory="L1_BLOCK_SHARDED")
NAME = "Matmul 1x1x1024x1024 @ 1024x1024"
#: 2.1 GFLOP at HiFi4 on 64 cores of Wormhole: 32.6 µs; half of it at HiFi2.
HIFI4_NS = 2 * 1024**3 / (64 * 74 / 72 * 1000)


def product(fidelity: str | None, dtype: str, *, ns: float = HIFI4_NS / 0.8) -> Op:
    weight = tensor(1, 1, 1024, 1024, dtype=dtype)
    return op("MatmulDeviceOperation", [ROWS_103, weight], [ROWS_103], ns=ns, fidelity=fidelity)


def test_ops_that_compute_more_precisely_than_their_weights_are() -> None:
    ops = table(
        product("HiFi4", "BFLOAT8_B"),
        op("ReshardDeviceOperation", [ROWS_103], [ROWS_103], ns=HIFI4_NS / 0.8, fidelity="HiFi4"),
    )
    share = HIFI4_NS / 2 / (2 * HIFI4_NS / 0.8)
    assert ttp103(ops=ops) == LIMIT_103.found(
        share,
        "50.0 % of a step goes into 1 op bound by computing, with a higher fidelity than the "
        "weights need",
        [
            Evidence(
                f"{NAME}: HiFi4, HiFi2 is enough for BFLOAT8_B",
                pytest.approx(HIFI4_NS / 2),  # type: ignore[arg-type]
                "ns",
                pytest.approx(share),  # type: ignore[arg-type]
            )
        ],
    )
    assert ttp103.saving(ops=ops) == (
        pytest.approx(HIFI4_NS / 2),
        "computing in 16.3 µs instead of 32.6 µs at full speed",
    )


def test_an_op_that_waits_for_something_else_does_not_get_shorter() -> None:
    assert ttp103(ops=table(product("HiFi4", "BFLOAT8_B", ns=HIFI4_NS / 0.49))) == LIMIT_103.clean(
        0.0
    )


ttp105 = Ask("TTP105")


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("enable_bfp8_conversion", "true"),
        ("enable_bfp8_conversion", True),
        ("experimental_enable_weight_bfp8_conversion", True),
        ("experimental_weight_dtype", "bfp_bf8"),
    ],
)
def test_a_float32_model_that_is_converted(option: str, value: Scalar) -> None:
    assert ttp105(facts={option: value, "data_format": "torch.float32"}) == found(
        f"{option} is on, and the model is float32, not bfloat16",
        evidence=[Evidence(f"{option}={value}")],
    )
