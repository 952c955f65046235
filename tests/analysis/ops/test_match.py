"""Ops matched: which of two sequences belong together."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.analysis.ops.align import (
    Attribution,
    ChangeKind,
    common_subsequence,
)
from tests.analysis.ops.tables import (
    NORM,
    RESHARD,
    changed,
    op,
    resized,
    retyped,
    table,
)

if TYPE_CHECKING:
    from pytest_ttnn_perf.core.ops import Op, Signature

SLOWER, FASTER = ChangeKind.SLOWER, ChangeKind.FASTER
ADDED, REMOVED = ChangeKind.ADDED, ChangeKind.REMOVED
CiReport = list[tuple[ChangeKind, str, int, list[str]]]


def compared(before: list[Op], after: list[Op]) -> Attribution:
    return changed(table(before), table(after))


def told(before: list[Op], after: list[Op]) -> CiReport:
    """Return what is said of each part: change, op, count and causes."""
    return [
        (part.change, part.op, part.count, [str(cause) for cause in part.causes])
        for part in compared(before, after).parts
    ]


def test_another_layout_pads_otherwise_and_is_the_same_op() -> None:
    tiled = resized(NORM, padded=(1, 1, 32, 1024), logical=(1, 1, 1, 1024))
    rows = resized(NORM, padded=(1, 1, 1, 1024), logical=(1, 1, 1, 1024))
    rows = rows._replace(inputs=(rows.inputs[0]._replace(layout="ROW_MAJOR"),))
    assert told([op(), op(tiled)], [op(), op(rows, 20_000)]) == [
        (SLOWER, NORM.op, 1, ["in0 layout TILE → ROW_MAJOR"])
    ]


def test_another_batch_is_the_same_op() -> None:
    batch = (1, 8, 32, 1024)
    assert told(
        [op(), op(NORM)], [op(), op(resized(NORM, padded=batch, logical=batch), 30_000)]
    ) == [
        (
            SLOWER,
            NORM.op,
            1,
            ["in0 shape 1x1x32x1024 → 1x8x32x1024", "out0 shape 1x1x32x1024 → 1x8x32x1024"],
        )
    ]


@pytest.mark.parametrize(
    "other",
    [
        resized(NORM, padded=(1, 8, 64, 1024), logical=(1, 8, 64, 1024)),
        resized(NORM, padded=(32, 1024), logical=(32, 1024)),
        retyped(resized(NORM, padded=(1, 8, 32, 1024), logical=(1, 8, 32, 1024)), "FLOAT32"),
        resized(NORM, padded=(1, 8, 32, 1024), logical=(1, 8, 32, 1024))._replace(outputs=()),
        NORM._replace(op="SoftmaxDeviceOperation"),
    ],
    ids=["two dimensions", "rank", "size and dtype", "size and outputs", "code"],
)
def test_what_differs_in_more_is_another_op(other: Signature) -> None:
    assert [change for change, *_ in told([op(), op(NORM)], [op(), op(other, 20_000)])] == [
        ADDED,
        REMOVED,
    ]


def test_an_op_that_moved_is_matched_and_said_to_have_moved() -> None:
    before = [op(RESHARD), op(), op(), op(NORM)]
    after = [op(), op(), op(NORM), op(RESHARD, 15_000)]
    (part,) = compared(before, after).parts
    assert (part.change, part.op, part.count, part.moved) == (SLOWER, RESHARD.op, 1, 1)


def test_releases_that_name_an_op_otherwise() -> None:
    old = NORM._replace(op="LayerNorm")
    assert told([op(old), op(RESHARD)], [op(NORM), op(RESHARD)]) == []
    conv, older = (
        NORM._replace(op="ttnn::Conv2dDeviceOperation"),
        NORM._replace(op="OptimizedConvNew"),
    )
    assert told([op(older), op(RESHARD)], [op(conv, 15_000), op(RESHARD)]) == [
        (SLOWER, "ttnn::Conv2dDeviceOperation", 1, [])
    ]


def test_elementwise_ops_are_told_apart_by_what_they_compute() -> None:
    add = op(NORM._replace(op="BinaryNgDeviceOperation"), attributes="{'binary_op_type': 'T::ADD'}")
    mul = add._replace(attributes="{'binary_op_type': 'T::MUL'}", kernel_ns=4_000.0)
    assert [change for change, *_ in told([add, mul], [mul, add])] == []
    assert told([op(), add, mul], [op(), mul]) == [(REMOVED, add.signature.op, 1, ["count 1 → 0"])]


def model(layers: int, layer: list[int]) -> list[int]:
    return layer * layers


def test_edits_of_more_layers_than_one_search_takes() -> None:
    chance = Random(1)
    layer = [chance.randrange(12) for _ in range(20)]
    edited = [*layer[:9], layer[3], *layer[9:15], *layer[16:]]
    before, after = model(700, layer), model(700, edited)
    # An item of each layer is lost, and all others are found, however far the sides drift apart.
    assert len(common_subsequence(before, after)) >= 700 * 19
    assert len(common_subsequence(before, [each for each in after if each != 5])) >= 700 * 15
