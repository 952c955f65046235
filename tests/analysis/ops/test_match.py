"""Ops matched: which of two sequences belong together."""

from __future__ import annotations

from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ttnn_perf.analysis.ops.align import (
    Attribution,
    ChangeKind,
    attribute,
    common_subsequence,
)
from pytest_ttnn_perf.core.ops import Op, Signature
from tests.analysis.ops.tables import (
    ACTIVATION,
    MATMUL,
    NORM,
    OUTPUT,
    RESHARD,
    op,
    resized,
    retyped,
    table,
)

if TYPE_CHECKING:
    from collections.abc import Callable


SLOWER, FASTER = ChangeKind.SLOWER, ChangeKind.FASTER
ADDED, REMOVED = ChangeKind.ADDED, ChangeKind.REMOVED
CiReport = list[tuple[ChangeKind, str, int, list[str]]]


def compared(before: list[Op], after: list[Op]) -> Attribution:
    return attribute(table(before), table(after))


def told(before: list[Op], after: list[Op]) -> CiReport:
    """Return what is said of each part: change, op, count and causes."""
    return [
        (part.change, part.op, part.count, [str(cause) for cause in part.causes])
        for part in compared(before, after).parts
    ]


def test_an_op_that_came() -> None:
    before, after = [op(), op(NORM)], [op(), op(RESHARD, 6_000), op(NORM)]
    assert told(before, after) == [(ADDED, RESHARD.op, 1, ["count 0 → 1"])]
    assert told(after, before) == [(REMOVED, RESHARD.op, 1, ["count 1 → 0"])]


def test_an_op_more_of_those_there_are() -> None:
    layer = [op(), op(RESHARD, 6_000), op(NORM)]
    more = [op(), op(RESHARD, 6_000), op(RESHARD, 6_000), op(NORM)]
    assert told(layer * 3, more * 3) == [(ADDED, RESHARD.op, 3, ["count 3 → 6"])]


def test_another_dtype_is_a_cause_not_another_op() -> None:
    smaller = retyped(MATMUL, "BFLOAT8_B")
    assert told([op(NORM), op()], [op(NORM), op(smaller, 6_000)]) == [
        (FASTER, MATMUL.op, 1, ["in1 dtype BFLOAT16 → BFLOAT8_B"])
    ]


def test_another_layout_pads_otherwise_and_is_the_same_op() -> None:
    tiled = resized(NORM, padded=(1, 1, 32, 1024), logical=(1, 1, 1, 1024))
    rows = resized(NORM, padded=(1, 1, 1, 1024), logical=(1, 1, 1, 1024))
    rows = rows._replace(inputs=(rows.inputs[0]._replace(layout="ROW_MAJOR"),))
    assert told([op(), op(tiled)], [op(), op(rows, 20_000)]) == [
        (SLOWER, NORM.op, 1, ["in0 layout TILE → ROW_MAJOR"])
    ]


def test_one_operand_more_is_the_same_op() -> None:
    with_bias = MATMUL._replace(inputs=(*MATMUL.inputs, OUTPUT))
    assert told([op(), op(NORM)], [op(with_bias, 12_000), op(NORM)]) == [
        (SLOWER, MATMUL.op, 1, ["inputs 2 → 3"])
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


def test_an_op_that_moved_is_not_taken_for_one_of_another_size() -> None:
    longer = resized(NORM, padded=(1, 1, 64, 1024), logical=(1, 1, 64, 1024))
    before = [op(NORM), op(), op(), op(RESHARD)]
    after = [op(longer, 20_000), op(), op(), op(RESHARD), op(NORM)]
    assert told(before, after) == [(ADDED, NORM.op, 1, ["count 0 → 1"])]


def test_of_two_alike_the_one_that_changed_nothing_stays() -> None:
    wide, narrow = op(cores=64), op(retyped(MATMUL, "BFLOAT8_B"), 4_000, cores=32)
    for before in ([wide, narrow], [narrow, wide]):
        for left, gone in ((wide, narrow), (narrow, wide)):
            (part,) = compared(
                [op(NORM), *before, op(RESHARD)], [op(NORM), left, op(RESHARD)]
            ).parts
            assert (part.change, part.delta_ns) == (REMOVED, -gone.kernel_ns)


def test_a_layer_slides_to_where_its_like_is_gone() -> None:
    def layer(cores: int) -> list[Op]:
        return [op(cores=cores), op(NORM, cores=cores)]

    before = layer(64) + layer(32) + layer(16)
    (first, second) = compared(before, layer(64) + layer(16)).parts
    assert {first.op, second.op} == {MATMUL.op, NORM.op}
    assert compared(before, layer(32) + layer(16)).parts == (first, second)
    assert compared(before, layer(64) + layer(32)).parts == (first, second)


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


def test_ops_without_operands_are_matched_by_code() -> None:
    bare = Signature("Fold")
    assert told([op(bare), op()], [op(bare, 14_000), op()]) == [(SLOWER, "Fold", 1, [])]


def test_what_one_capture_does_not_tell_is_no_difference() -> None:
    padded_only = tuple(each._replace(logical=None, memory="") for each in NORM.inputs)
    older = op(NORM._replace(inputs=padded_only), cores=None, fidelity=None)
    newer = op(NORM, 15_000, attributes="{'use_welford': 'false'}")
    assert told([op(), older], [op(), newer]) == [(SLOWER, NORM.op, 1, [])]


def test_all_operands_are_told() -> None:
    (part,) = compared([op(NORM)], [op(NORM), op()]).parts
    assert part.shape == "1x1x32x4096 @ 4096x1024"
    assert part.signature == (
        "1x1x32x4096 BFLOAT16 TILE L1_WIDTH_SHARDED, 1x1x4096x1024 BFLOAT16 TILE DRAM_INTERLEAVED"
        " -> 1x1x32x1024 BFLOAT16 TILE L1_WIDTH_SHARDED"
    )


def test_padding_stands_in_the_signature_and_not_in_the_name() -> None:
    token = ACTIVATION._replace(logical=(1, 1, 1, 4096))
    (part,) = compared([op()], [op(), op(Signature("Slice", (), (token,)))]).parts
    assert part.shape == "1x1x1x4096"
    assert part.signature == "1x1x32[1]x4096 BFLOAT16 TILE L1_WIDTH_SHARDED"
    (part,) = compared([op()], [op(), op(Signature("Barrier"))]).parts
    assert (part.shape, part.signature) == ("", "")


def longest(a: list[int], b: list[int]) -> int:
    """Return the length of the longest common subsequence, by the textbook."""
    row = [0] * (len(b) + 1)
    for item in a:
        last = row
        row = [0]
        for j, other in enumerate(b):
            row.append(last[j] + 1 if item == other else max(last[j + 1], row[j]))
    return row[-1]


def model(layers: int, layer: list[int]) -> list[int]:
    return layer * layers


def test_an_edit_in_every_layer_costs_that_edit_only() -> None:
    layer = [3, 1, 4, 1, 5, 9, 2, 6]
    edited = [3, 1, 4, 5, 1, 5, 9, 6]
    pairs = common_subsequence(model(300, layer), model(300, edited))
    assert len(pairs) == 300 * 7  # 600 edits


def test_a_long_stretch_far_away_is_found() -> None:
    first, second = list(range(1000)), list(range(1000, 2500))
    pairs = common_subsequence(first + second, second + first)
    assert len(pairs) == 1500


def test_edits_of_more_layers_than_one_search_takes() -> None:
    chance = Random(1)
    layer = [chance.randrange(12) for _ in range(20)]
    edited = [*layer[:9], layer[3], *layer[9:15], *layer[16:]]
    before, after = model(700, layer), model(700, edited)
    # An item of each layer is lost, and all others are found, however far the sides drift apart.
    assert len(common_subsequence(before, after)) >= 700 * 19
    assert len(common_subsequence(before, [each for each in after if each != 5])) >= 700 * 15


@pytest.mark.parametrize("kinds", [2, 40], ids=["much alike", "little alike"])
def test_long_sequences_are_searched_as_well_as_short_ones(kinds: int) -> None:
    chance = Random(kinds)
    a, b = ([chance.randrange(kinds) for _ in range(12_000)] for _ in range(2))
    pairs = common_subsequence(a, b)
    assert all(a[i] == b[j] for i, j in pairs)
    assert all(i < k and j < m for (i, j), (k, m) in pairwise(pairs))
    assert len(pairs) >= 6 * 0.98 * longest(a[:2000], b[:2000])


class Counted(int):
    """A number that counts how often it is compared."""

    compared = 0

    def __eq__(self, other: object) -> bool:
        Counted.compared += 1
        return int(self) == other

    __hash__ = int.__hash__


def _random(kinds: int) -> Callable[[Random, int], list[int]]:
    return lambda chance, length: [chance.randrange(kinds) for _ in range(length)]


@pytest.mark.parametrize(
    "draw",
    [
        pytest.param(_random(2), id="two kinds"),
        pytest.param(_random(40), id="forty kinds"),
        pytest.param(lambda chance, length: chance.sample(range(length), length), id="shuffled"),
        pytest.param(lambda _, length: [7] * length, id="all equal"),
        pytest.param(
            lambda chance, length: [each % 40 for each in range(length + chance.randrange(40))],
            id="layers",
        ),
    ],
)
def test_time_grows_with_the_length_and_no_faster(draw: Any) -> None:
    def comparisons(length: int) -> int:
        chance = Random(length)
        a, b = (list(map(Counted, draw(chance, length))) for _ in range(2))
        Counted.compared = 0
        common_subsequence(a, b)
        return Counted.compared

    few, many = comparisons(500), comparisons(4000)
    assert many <= 8 * few * 1.5
    assert many <= 4000 * 400
