"""Ops that only rearrange data."""

from __future__ import annotations

import pytest

from tests.rules.answers import Ask, Evidence, limit, not_applicable
from tests.rules.tables import op, table, tensor

ask = Ask("TTP307")
LIMIT = limit(0.05, "of a step")
INPUT = tensor(1, 1, 32, 64)


def test_reshapes_and_slices() -> None:
    ops = table(
        op("ReshapeViewDeviceOperation", [INPUT], ns=60.0),
        op("SliceDeviceOperation", [INPUT], ns=20.0),
        op("SliceDeviceOperation", [INPUT], ns=20.0),
        op("Matmul", ns=900.0),
    )
    assert ask(ops=ops) == LIMIT.found(
        0.1,
        "10.0 % of a step only rearranges data, in 3 ops",
        [
            Evidence("ReshapeView 1x1x32x64", 60.0, "ns", 0.06),
            Evidence("2 x Slice 1x1x32x64", 40.0, "ns", 0.04),
        ],
    )
    assert ask.saving(ops=ops) == (100.0, "the time of 3 ops: 0.1 µs")


@pytest.mark.parametrize(
    "code",
    [
        *("ReshardDeviceOperation", "CopyDeviceOperation", "HaloDeviceOperation", "Tilize"),
        *("PaddedSliceDeviceOperation", "EmbeddingsDeviceOperation", "GridSample", "AllGather"),
        *("NlpCreateHeadsDeviceOperation", "BinaryNgDeviceOperation"),
    ],
)
def test_what_is_for_other_rules_or_has_to_be(code: str) -> None:
    assert ask(ops=table(op(code, ns=500.0), op("Matmul", ns=500.0))) == LIMIT.clean(0.0)


def test_up_to_the_limit_is_clean() -> None:
    ops = table(op("ConcatDeviceOperation", ns=5.0), op("Matmul", ns=95.0))
    assert ask(ops=ops) == LIMIT.clean(0.05)


def test_a_step_that_is_meant_to_rearrange() -> None:
    assert ask(ops=table(op("SliceDeviceOperation"))) == not_applicable(
        "a step that does nothing else"
    )
