from __future__ import annotations

import pytest

from pytest_ttnn_perf.records.finding import RuleOutcome
from tests.rules.answers import Ask, Evidence, limit, not_applicable, not_measured
from tests.rules.tables import Op, op, table, tensor

ask = Ask("TTP103")
LIMIT = limit(0.05, "of matmul and conv time")
ROWS = tensor(1, 1, 32, 1024)


def product(fidelity: str | None, dtype: str, *, ns: float = 1000.0) -> Op:
    weight = tensor(1, 1, 1024, 1024, dtype=dtype)
    return op("MatmulDeviceOperation", [ROWS, weight], ns=ns, fidelity=fidelity)


def test_ops_more_precise_than_their_weights() -> None:
    ops = table(
        product("HiFi4", "BFLOAT8_B", ns=3000.0),
        product("HiFi2", "BFLOAT4_B", ns=6000.0),
        product("HiFi4", "BFLOAT16", ns=1000.0),
        op("ReshardDeviceOperation", [ROWS], ns=90_000.0, fidelity="HiFi4"),
    )
    name = "Matmul 1x1x32x1024 @ 1024x1024"
    assert ask(ops=ops) == LIMIT.found(
        0.9,
        "90.0 % of the matmul and conv time goes into 2 ops with a higher fidelity "
        "than the weights need",
        [
            Evidence(f"{name}: HiFi2, LoFi is enough for BFLOAT4_B", 6000.0, "ns", 0.6),
            Evidence(f"{name}: HiFi4, HiFi2 is enough for BFLOAT8_B", 3000.0, "ns", 0.3),
        ],
    )


@pytest.mark.parametrize(
    ("fidelity", "dtype", "is_above"),
    [
        ("LoFi", "BFLOAT4_B", False),
        ("HiFi2", "BFLOAT4_B", True),
        ("LoFi", "BFLOAT8_B", False),
        ("HiFi2", "BFLOAT8_B", False),
        ("HiFi3", "BFLOAT8_B", True),
        ("HiFi4", "BFLOAT16", False),
        ("HiFi4", "FLOAT32", False),
    ],
)
def test_what_each_format_needs(fidelity: str, dtype: str, is_above: bool) -> None:
    answer = ask(ops=table(product(fidelity, dtype)))
    assert answer.outcome is (RuleOutcome.FOUND if is_above else RuleOutcome.CLEAN)


def test_a_share_at_the_limit_is_clean() -> None:
    ops = table(product("HiFi4", "BFLOAT8_B", ns=50.0), product("HiFi2", "BFLOAT8_B", ns=950.0))
    assert ask(ops=ops) == LIMIT.clean(0.05)


def test_a_capture_without_fidelity_or_weights() -> None:
    why = "no matmul or convolution tells its fidelity and its weights"
    for row in (product(None, "BFLOAT8_B"), product("HiFi4", "INT32"), op("Matmul", [ROWS])):
        assert ask(ops=table(row)) == not_measured(why)


def test_without_products() -> None:
    ops = table(op("UnaryDeviceOperation", [ROWS], fidelity="HiFi4"))
    assert ask(ops=ops) == not_applicable("no matmul and no convolution ran")
