"""Rules on layouts and padding."""

from __future__ import annotations

import pytest

from tests.analysis.rules.answers import Ask, Evidence, limit
from tests.analysis.rules.tables import op, table, tensor

ttp201 = Ask("TTP201")
LIMIT = limit(0.02, "of a step")
TILES, ROWS = tensor(1, 1, 32, 64), tensor(1, 1, 32, 64, layout="ROW_MAJOR")
BINARY = "BinaryNgDeviceOperation"


def test_ops_on_rows() -> None:
    ops = table(
        op(BINARY, [ROWS, ROWS], ns=400.0),
        op("LayerNormDeviceOperation", [ROWS], ns=200.0),
        op(BINARY, [TILES, TILES], ns=400.0),
    )
    assert ttp201(ops=ops) == LIMIT.found(
        0.03,
        "60.0 % of a step goes into 2 ops on row-major tensors",
        [
            Evidence("BinaryNg 1x1x32x64", 20.0, "ns", 0.02),
            Evidence("LayerNorm 1x1x32x64", 10.0, "ns", 0.01),
        ],
    )
    assert ttp201.saving(ops=ops) == (30.0, "5.0 % of the 0.6 µs of 2 ops")


ttp202 = Ask("TTP202")
FULL = tensor(1, 1, 32, 64)
#: 32 users, each with a tile of its own for a single row.
APART = tensor(1, 32, 32, 64, logical=(1, 32, 1, 64))
STEP = limit(0.02, "of a step")


def test_what_is_brought_into_the_shape_that_experts_want_is_no_advice() -> None:
    experts = op("MatmulDeviceOperation", [APART, tensor(1, 32, 64, 64)], [APART])
    brought = op("TilizeWithValPaddingDeviceOperation", [FULL], [APART])
    assert ttp202(ops=table(brought)).value == pytest.approx(31 / 32)
    assert ttp202(ops=table(brought, experts)) == STEP.clean(0.0)


ttp203 = Ask("TTP203")
INPUT = tensor(1, 1, 32, 64)
MATMUL = op("Matmul", ns=45.0)
TILIZE, UNTILIZE = "TilizeDeviceOperation", "UntilizeDeviceOperation"


def test_conversions_of_two_kinds() -> None:
    rows = [op(UNTILIZE, [INPUT], ns=20.0)] * 2
    ops = table(MATMUL, op(TILIZE, [INPUT], ns=10.0), *rows, op("Matmul", ns=5.0))
    assert ttp203(ops=ops) == LIMIT.found(
        0.5,
        "50.0 % of a step goes into 3 layout conversions",
        [
            Evidence("2 x Untilize 1x1x32x64", 40.0, "ns", 0.4),
            Evidence("Tilize 1x1x32x64", 10.0, "ns", 0.1),
        ],
    )
    assert ttp203.saving(ops=ops) == (50.0, "at most the time of 3 layout conversions: 0.1 µs")
