from __future__ import annotations

import pytest

from tests.rules.answers import Ask, Evidence, limit, not_applicable, not_measured
from tests.rules.tables import Op, op, table, tensor

ask = Ask("TTP103")
LIMIT = limit(0.02, "of a step")
ROWS = tensor(1, 1, 1024, 1024, memory="L1_BLOCK_SHARDED")
NAME = "Matmul 1x1x1024x1024 @ 1024x1024"
#: 2.1 GFLOP at HiFi4 on 64 cores of Wormhole: 32.6 µs; half of it at HiFi2.
HIFI4_NS = 2 * 1024**3 / (64 * 74 / 72 * 1000)


def product(fidelity: str | None, dtype: str, *, ns: float = HIFI4_NS / 0.8) -> Op:
    weight = tensor(1, 1, 1024, 1024, dtype=dtype)
    return op("MatmulDeviceOperation", [ROWS, weight], [ROWS], ns=ns, fidelity=fidelity)


def test_ops_that_compute_more_precisely_than_their_weights_are() -> None:
    ops = table(
        product("HiFi4", "BFLOAT8_B"),
        op("ReshardDeviceOperation", [ROWS], [ROWS], ns=HIFI4_NS / 0.8, fidelity="HiFi4"),
    )
    share = HIFI4_NS / 2 / (2 * HIFI4_NS / 0.8)
    assert ask(ops=ops) == LIMIT.found(
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
    assert ask.saving(ops=ops) == (
        pytest.approx(HIFI4_NS / 2),
        "computing in 16.3 µs instead of 32.6 µs at full speed",
    )


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
    assert bool(ask.saving(ops=table(product(fidelity, dtype, ns=ns)))[0]) is is_above


def test_an_op_that_waits_for_something_else_does_not_get_shorter() -> None:
    assert ask(ops=table(product("HiFi4", "BFLOAT8_B", ns=HIFI4_NS / 0.49))) == LIMIT.clean(0.0)


def test_what_cannot_be_told() -> None:
    assert ask(ops=table(op("Unary"))) == not_applicable("no matmul and no convolution ran")
    untold = not_measured("no matmul or convolution gives its fidelity and its weights")
    assert ask(ops=table(product(None, "BFLOAT8_B"))) == untold
    assert ask(ops=table(product("HiFi4", "FLOAT32"))) == untold
    assert ask(ops=table(op("Matmul", [ROWS], fidelity="HiFi4"))) == untold
    assert ask(ops=table(product("HiFi4", "BFLOAT8_B"), arch="quasar")) == not_measured(
        "the peaks of quasar are not known"
    )
