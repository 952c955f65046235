"""Single values out of the attributes of an op, in the spellings a profiler has."""

from __future__ import annotations

import pytest

from pytest_ttnn_perf.analysis.readers.report_db import attribute, attribute_flag, attribute_int

CONV = (
    "{'activation': 'std::nullopt'; 'block_config': 'Conv2dBlockConfig(act_block_h_ntiles=4;"
    "act_block_w_ntiles=2)'; 'weights_dtype': 'DataType::BFLOAT8_B'; "
    "'dtype': 'DataType::BFLOAT16'; "
    "'enable_act_double_buffer': 'false'; 'groups': '1'; 'input_tensor_shape': '{1; 98; 1280; 3}'; "
    "'sliding_window_config': 'SlidingWindowConfig(input_hw=(98;1280); padding=((3; 0); (3; 3)); "
    "output_padding = (0; 0); core_range_set_={[(x=0;y=0) - (x=4;y=3)]}; is_transpose=false)'}"
)
NEW = (
    '{\'memory_config\': \'MemoryConfig(shard_spec=ShardSpec{grid=[{"start":{"x":0;"y":0};'
    '"end":{"x":7;"y":3}]; shape=[32; 96]; orientation=ShardOrientation::ROW_MAJOR};'
    "created_with_nd_shard_spec=0)'; 'program_config': 'Config1D(grid_size=8-8;in0_block_w=2;"
    "fuse_batch=1;fused_activation=Unary(op_type=RELU;param={});allowed={[0-0 - 7-7]})'}"
)


@pytest.mark.parametrize(
    ("text", "key", "expected"),
    [
        (CONV, "activation", "std::nullopt"),
        (CONV, "act_block_h_ntiles", "4"),
        (CONV, "input_tensor_shape", "{1; 98; 1280; 3}"),
        (CONV, "input_hw", "(98;1280)"),
        (CONV, "padding", "((3; 0); (3; 3))"),
        (CONV, "output_padding", "(0; 0)"),
        (CONV, "core_range_set_", "{[(x=0;y=0) - (x=4;y=3)]}"),
        (CONV, "transpose", None),
        (CONV, "Conv2dBlockConfig", None),
        (NEW, "grid", '[{"start":{"x":0;"y":0};"end":{"x":7;"y":3}]'),
        (NEW, "orientation", "ShardOrientation::ROW_MAJOR"),
        (NEW, "fused_activation", "Unary(op_type=RELU;param={})"),
        ("{'a': \"it's\"}", "a", "it's"),
        ("a.b=1;b=2", "b", "2"),
        ("{'config': 'Config(out=0)'; 'out': 'true'}", "out", "true"),
        ('{"a":"b";"c":1}', "a", "b"),
        ("a=", "a", ""),
        ("a(b", "a", None),
    ],
)
def test_a_value_is_found_by_its_key(text: str, key: str, expected: str | None) -> None:
    assert attribute(text, key) == expected


def test_whole_numbers() -> None:
    assert attribute_int(CONV, "act_block_h_ntiles") == 4
    assert attribute_int(CONV, "groups") == 1
    assert attribute_int(CONV, "activation") is None
    assert attribute_int(CONV, "none") is None
    assert attribute_int("a=" + "9" * 5000, "a") is None


def test_flags() -> None:
    assert attribute_flag(CONV, "enable_act_double_buffer") is False
    assert attribute_flag(NEW, "fuse_batch") is True
    assert attribute_flag(NEW, "created_with_nd_shard_spec") is False
    assert attribute_flag("{'a': 'true'}", "a") is True
    assert attribute_flag(CONV, "activation") is None
    assert attribute_flag(CONV, "none") is None
