"""Ops as people call them."""

from __future__ import annotations

import pytest

from pytest_ttnn_perf.analysis.ops.names import (
    condense_settings,
    neighbours,
    op_name,
    producers,
    without_producer,
)
from pytest_ttnn_perf.core.ops import Signature
from tests.analysis.ops.tables import ACTIVATION, MATMUL, NORM, OUTPUT

DRAM = OUTPUT._replace(memory="DRAM_INTERLEAVED")
FLAT = ACTIVATION._replace(padded=(1, 1, 125440, 3), logical=(1, 1, 125440, 3))
WINDOW = (
    "'SlidingWindowConfig(batch_size=2; input_hw=(99;1280); window_hw=(7;7); stride_hw=(2;2); "
    "padding=((0; 3); (3; 3)); num_cores_nhw=20; core_range_set_={[(x=0;y=0) - (x=4;y=3)]})'"
)
UNARY = "{'op_chain': '{BasicUnaryWithParam<float>(op_type=UnaryOpType::FILL;param={0})}'}"


@pytest.mark.parametrize(
    ("signature", "attributes", "name"),
    [
        (MATMUL, "", "Matmul 1x1x32x4096 @ 4096x1024"),
        (MATMUL._replace(inputs=(MATMUL.inputs[0], OUTPUT._replace(padded=(1, 1, 1024, 4096),
                                                                   logical=None))),
         "'transpose_b': 'true'", "Matmul 1x1x32x4096 @ 4096x1024"),
        (NORM, "", "LayerNorm 1x1x32x1024"),
        (Signature("(torch) cat"), "", "(torch) cat"),
        (NORM._replace(op="BinaryNgDeviceOperation"), "'binary_op_type': 'BinaryOpType::MUL'",
         "BinaryNg MUL 1x1x32x1024"),
        (NORM._replace(op="UnaryDeviceOperation"), UNARY, "Unary FILL 1x1x32x1024"),
        (NORM._replace(op="ReduceDeviceOperation"), "'math_op': 'ReduceOpMath::MAX'",
         "Reduce MAX 1x1x32x1024"),
        (Signature("Conv2dDeviceOperation", (FLAT,)), "'input_tensor_shape': '{1; 98; 1280; 3}'",
         "Conv2d 1x98x1280x3"),
        (Signature("Pool2D", (FLAT,)), f"{{'pool_type_': 'Pool2DType::MAX_POOL2D'; 'x': {WINDOW}}}",
         "Pool2D MAX_POOL2D 2x99x1280x3"),
        (Signature("InterleavedToShardedDeviceOperation", (DRAM,), (OUTPUT,)), "",
         "InterleavedToSharded 1x1x32x1024 DRAM → L1_WIDTH_SHARDED"),
        (Signature("UntilizeDeviceOperation", (DRAM,), (DRAM._replace(layout="ROW_MAJOR"),)), "",
         "Untilize 1x1x32x1024 TILE → ROW_MAJOR"),
        (Signature("TypecastDeviceOperation", (DRAM,), (OUTPUT._replace(dtype="BFLOAT8_B"),)), "",
         "Typecast 1x1x32x1024 BFLOAT16 → BFLOAT8_B, DRAM → L1_WIDTH_SHARDED"),
        (Signature("ReshardDeviceOperation", (OUTPUT,), (OUTPUT,)),
         "'shard_spec': 'ShardSpec(grid={[0-0 - 7-1]};shape={32; 64};orientation=ROW_MAJOR)'",
         "Reshard 1x1x32x1024 L1_WIDTH_SHARDED → 16 cores of 32x64"),
        (Signature("ReshardDeviceOperation", (OUTPUT,), (OUTPUT,)), "", "Reshard 1x1x32x1024"),
    ],
)  # fmt: skip
def test_a_name(signature: Signature, attributes: str, name: str) -> None:
    assert op_name(signature, attributes) == name
    assert op_name(signature, condense_settings(attributes)) == name


def test_a_conversion_stands_between_what_made_its_input_and_what_takes_its_output() -> None:
    shard = Signature("InterleavedToSharded", (DRAM,), (OUTPUT,))
    other = Signature("Slice", (ACTIVATION,), (ACTIVATION,))
    ops = [Signature("Copy", (DRAM,), (DRAM,)), other, shard, other, NORM]
    assert neighbours(2, len(ops), ops.__getitem__) == (0, 4)
    assert neighbours(0, 2, [shard, other].__getitem__) == (None, None)
    bare = Signature("Reshard")
    assert neighbours(1, 3, [NORM, bare, NORM].__getitem__) == (None, None)


def test_what_no_op_before_made() -> None:
    made, other = (NORM.inputs[0], NORM.inputs[0]._replace(dtype="UINT32"))
    first = Signature("Unary", (made,), (made,))
    reads = Signature("Unary", (other,), (made,))
    assert without_producer([first, first, reads]) == [True, False, True]
    silent = Signature("Unary", (other,))
    assert without_producer([silent, silent]) == [True, False]
    assert producers(2, [first, reads, Signature("Concat", (made, other))].__getitem__) == [1]
