"""Op tables in few rows: what is gathered, what is told apart, and what can still be said."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from pytest_ttnn_perf.analysis.ops.align import (
    Attribution,
    Cause,
    ChangeKind,
    attribute,
    attribute_groups,
    group_ops,
)
from pytest_ttnn_perf.analysis.ops.names import condense_settings, function_in, settings_in
from pytest_ttnn_perf.analysis.ops.regions import middle_lanes, regions_of
from pytest_ttnn_perf.core.ops import HOST, Op, OpGroup, OpGroups, Signature
from tests.analysis.ops.tables import MATMUL, NORM, RESHARD, op, retyped, table

FOLD = Signature("Fold")
MATMUL_TEXT = (
    "{'bcast_batch': 'true'; 'compute_kernel_config': 'ComputeKernelConfig(math_fidelity=LoFi;"
    "math_approx_mode=0;fp32_dest_acc_en=0;packer_l1_acc=1;dst_full_sync_en=0)'; 'program_config': "
    "'MatmulMultiCoreReuseMultiCast1DProgramConfig(compute_with_storage_grid_size=(x=8;y=7);"
    "in0_block_w=2;out_subblock_h=1;out_subblock_w=4;per_core_M=1;per_core_N=4;fuse_batch=1;"
    "fused_activation=FUSED;mcast_in0=1)'; 'untilize_out': 'false'}"
)
GELU = "UnaryWithParam(op_type=UnaryOpType::GELU;param={1})"
ADD_TEXT = (
    "{{'binary_op_type': 'BinaryOpType::ADD'; 'dtype': 'DataType::BFLOAT16'; 'lhs_activations': "
    "'SmallVector([])'; 'post_activations': 'SmallVector([{post}])'; 'is_sfpu': 'false'}}"
)


def group(
    signature: Signature = MATMUL,
    count: int = 1,
    total_ns: float = 10_000.0,
    median_ns: float | None = None,
    *,
    cores: int | None = 64,
    fidelity: str | None = "HiFi4",
    settings: str = "",
) -> OpGroup:
    each = total_ns / count if median_ns is None else median_ns
    return OpGroup(signature, cores, fidelity, settings, count, total_ns, each)


def groups_of(*ops: Op) -> list[OpGroup]:
    return list(group_ops(table(ops)).groups)


def test_ops_that_are_set_up_alike_are_one_group() -> None:
    rows = [op(MATMUL, 10_000), op(NORM, 5_000), op(MATMUL, 12_000), op(MATMUL, 11_000)]
    assert group_ops(table(rows)) == OpGroups(
        "DEVICE KERNEL DURATION [ns]",
        (group(NORM, 1, 5_000), group(MATMUL, 3, 33_000, 11_000)),
    )


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (op(retyped(MATMUL, "BFLOAT8_B")), {"signature": retyped(MATMUL, "BFLOAT8_B")}),
        (op(cores=32), {"cores": 32}),
        (op(cores=None), {"cores": None}),
        (op(fidelity="LoFi"), {"fidelity": "LoFi"}),
        (op(fidelity=None), {"fidelity": None}),
        (op(attributes="in0_block_w=2"), {"settings": "activation=none in0_block_w=2"}),
    ],
    ids=["operands", "cores", "unknown cores", "fidelity", "unknown fidelity", "settings"],
)
def test_ops_that_differ_in_anything_are_two(other: Op, expected: dict[str, object]) -> None:
    found = groups_of(op(), other)
    assert len(found) == 2
    assert group() in found
    assert replace(group(), **expected) in found


def test_settings_that_do_not_matter_tell_nothing_apart() -> None:
    rows = [op(attributes="{'in0_block_w': '2'; 'dtype': 'BF16'}"), op(attributes="in0_block_w=2;")]
    (found,) = groups_of(*rows)
    assert (found.count, found.settings) == (2, "activation=none in0_block_w=2")


def test_of_several_devices_the_mean_time_and_the_largest_count() -> None:
    rows = [op(kernel_ns=ns, device=0) for ns in (100.0, 200.0, 300.0)]
    rows += [op(kernel_ns=400, device=3), op(NORM, 50, device=3)]
    assert groups_of(*rows) == [group(NORM, 1, 25, 50), group(MATMUL, 3, 500, 250)]


def test_means_are_kept_to_the_picosecond() -> None:
    rows = [op(kernel_ns=ns, device=device) for device, ns in enumerate((1.0, 0.0, 1.0))]
    assert groups_of(*rows) == [group(MATMUL, 1, 0.667, 1.0)]


def test_replays_of_a_trace_are_one() -> None:
    rows = [
        op(signature, ns + replay, replay=(1, replay))
        for replay in (0, 10, 50)
        for signature, ns in ((MATMUL, 100.0), (MATMUL, 200.0), (NORM, 30.0))
    ]
    assert groups_of(*rows, op(NORM, 7)) == [
        group(NORM, 2, 47, 23.5),
        group(MATMUL, 2, 320, 160),
    ]


def test_ops_on_the_host_are_counted_and_take_no_kernel_time() -> None:
    cat = Signature("(torch) cat")
    fallback = op(cat, 900, device=HOST, cores=None, fidelity=None)
    expected = group(cat, 2, 0, cores=None, fidelity=None)
    assert groups_of(fallback, op(device=0), op(device=1), fallback) == [expected, group()]
    assert groups_of(fallback, fallback) == [expected]


@pytest.mark.parametrize(
    ("times_ns", "expected"),
    [
        ([100, 80], [[100, 80]]),
        ([100, 79], [[100], [79]]),
        ([100, 81, 66, 53], [[100, 81, 66, 53]]),
        ([53, 1000, 100, 52, 990, 90], [[1000, 990], [100, 90], [53, 52]]),
        ([5, 0, 0], [[5], [0, 0]]),
        ([0, 0], [[0, 0]]),
        ([7], [[7]]),
    ],
    ids=["at the limit", "below it", "step by step", "three kinds", "zeros", "only zeros", "one"],
)
def test_ops_that_have_only_a_name_are_told_apart_by_time(
    times_ns: list[float], expected: list[list[float]]
) -> None:
    found = groups_of(*(op(FOLD, each) for each in times_ns))
    assert [(each.count, each.total_ns) for each in found] == [
        (len(times), sum(times)) for times in expected
    ]


def test_one_operand_is_enough_not_to_go_by_time() -> None:
    named = Signature("Fold", outputs=NORM.outputs)
    assert groups_of(op(named, 100), op(named, 1)) == [group(named, 2, 101, 50.5)]


def test_kinds_by_time_are_those_of_all_devices_together() -> None:
    rows = [op(FOLD, ns, device=device) for device, ns in ((0, 100), (0, 10), (1, 90), (1, 95))]
    assert groups_of(*rows) == [group(FOLD, 2, 142.5, 95), group(FOLD, 1, 5, 10)]


def test_the_two_middle_steps_of_one_program_are_one_whatever_device_is_slowest() -> None:
    def step(replay: int, device: int, cores: int, ns: float) -> list[Op]:
        ran = (1, replay)
        matmul = op(kernel_ns=100, device=device, replay=ran)
        return [matmul, op(RESHARD, ns, device=device, cores=cores, replay=ran)]

    rows = [*step(0, 0, 10, 20), *step(0, 1, 12, 19), *step(1, 0, 10, 21), *step(1, 1, 12, 22)]
    replays = table(rows)
    (region,) = regions_of(replays).regions

    groups = group_ops(replays, middle_lanes(replays, region)).groups

    assert [(each.signature.op, each.count, each.total_ns) for each in groups] == [
        (MATMUL.op, 1, 100),
        (RESHARD.op, 1, 21),
    ]


def test_groups_are_sorted_by_name_then_shape_then_time() -> None:
    small = replace_shape(NORM, (1, 1, 32, 64))
    rows = [
        op(RESHARD, 5), op(NORM, 5), op(NORM, 9, cores=32), op(small, 5), op(FOLD, 5),
        op(FOLD, 50), op(NORM, 5, attributes="block_h=1"), op(NORM, 5, attributes="block_h=2"),
    ]  # fmt: skip
    found = groups_of(*rows)
    assert [(each.signature, each.median_ns, each.settings) for each in found] == [
        (FOLD, 50, ""), (FOLD, 5, ""), (small, 5, ""), (NORM, 9, ""), (NORM, 5, ""),
        (NORM, 5, "activation=none block_h=1"), (NORM, 5, "activation=none block_h=2"),
        (RESHARD, 5, ""),
    ]  # fmt: skip
    assert groups_of(*rows[::-1]) == found


def replace_shape(signature: Signature, shape: tuple[int, ...]) -> Signature:
    first = signature.inputs[0]._replace(padded=shape, logical=shape)
    return signature._replace(inputs=(first,), outputs=(first,))


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("", ""),
        ("None", "activation=none"),
        ("{'dim': '2'; 'groups': '1'}", "activation=none"),
        (
            MATMUL_TEXT.replace("FUSED", "std::nullopt"),
            "activation=none program_config=MatmulMultiCoreReuseMultiCast1DProgramConfig "
            "in0_block_w=2 out_subblock_h=1 out_subblock_w=4 per_core_M=1 per_core_N=4 "
            "compute_with_storage_grid_size=8x7 compute_kernel_config=given mcast_in0=on "
            "fuse_batch=on math_approx_mode=off fp32_dest_acc_en=off packer_l1_acc=on "
            "dst_full_sync_en=off bcast_batch=on untilize_out=off",
        ),
        (ADD_TEXT.format(post=""), "activation=none binary_op_type=BinaryOpType::ADD is_sfpu=off"),
        (
            ADD_TEXT.format(post=GELU),
            "op_type=UnaryOpType::GELU binary_op_type=BinaryOpType::ADD is_sfpu=off",
        ),
        (
            "{'op_chain': '{BasicUnaryWithParam(op_type=UnaryOpType::SILU;param={}); BasicUnary"
            "WithParam(op_type=UnaryOpType::GELU;param={0}); X(op_type=UnaryOpType::SILU)}'}",
            "op_type=UnaryOpType::SILU op_type=UnaryOpType::GELU op_type=UnaryOpType::SILU",
        ),
        (
            "{'ternary_op_type': 'TernaryOpType::WHERE'; 'num_links': 'std::nullopt'; 'topology': "
            "'ttnn::ccl::Topology::Ring'; 'grid_size': '8-7'; 'use_multicore': 'true'}",
            "activation=none binary_op_type=BinaryOpType::WHERE grid_size=8x7 num_links=none "
            "topology=Ring use_multicore=on",
        ),
        (
            "binary_op_type=T::POWER op_type=UnaryOpType::POWER in0_block_w=3",
            "op_type=UnaryOpType::POWER in0_block_w=3",
        ),
    ],
    ids=["empty", "none", "nothing known", "matmul", "binary", "binary, fused", "unary chain",
         "ternary", "same name"],
)  # fmt: skip
def test_attributes_are_condensed_to_what_tells_the_same(text: str, short: str) -> None:
    assert condense_settings(text) == short
    assert settings_in(short) == settings_in(text)
    assert function_in(short) == function_in(text)
    assert condense_settings(short) == short


def test_a_setting_without_a_value_does_not_take_the_next_for_its_own() -> None:
    text = "topology=ccl::; use_multicore=1"
    known = [(name, value) for name, value in settings_in(text) if value]
    assert list(settings_in(condense_settings(text))) == known


def fused(text: str) -> str:
    return MATMUL_TEXT.replace("FUSED", text)


LAYER = [op(NORM, 5_000), op(MATMUL, 10_000, attributes=fused(GELU)), op(RESHARD, 2_000)]


@pytest.mark.parametrize(
    "after",
    [
        LAYER * 2,
        [*LAYER, op(NORM, 5_000)],
        [op(NORM, 5_000), op(MATMUL, 30_000, attributes=fused("std::nullopt"))] * 2,
        [op(NORM, 9_000, cores=32), *LAYER[1:]] * 2,
        [op(NORM, 5_000, fidelity="LoFi"), op(retyped(MATMUL, "BFLOAT8_B"), 6_000)],
        [],
    ],
    ids=["same", "fewer", "slower, without an op", "cores", "fidelity and dtype", "nothing"],
)
def test_of_uniform_groups_the_same_is_said_as_of_the_tables(after: list[Op]) -> None:
    before = sorted(LAYER * 2, key=lambda row: row.signature)
    then, now = table(before), table(sorted(after, key=lambda row: row.signature))
    assert attribute_groups(group_ops(then), group_ops(now)) == placeless(attribute(then, now))
    assert attribute_groups(group_ops(now), group_ops(then)) == placeless(attribute(now, then))


def placeless(attribution: Attribution) -> Attribution:
    """Leave out between which ops others stand: groups have no order."""
    return replace(attribution, parts=tuple(replace(part, beside="") for part in attribution.parts))


def test_the_cause_of_a_change_is_found_in_what_was_kept() -> None:
    before = OpGroups("ns", (group(MATMUL, 4, 40_000, settings="activation=none in0_block_w=4"),))
    after = OpGroups("ns", (group(MATMUL, 4, 80_000, settings="activation=none in0_block_w=2"),))
    attribution = attribute_groups(before, after)
    assert attribution is not None
    (part,) = attribution.parts
    assert (part.change, part.count, part.delta_ns) == (ChangeKind.SLOWER, 4, 40_000)
    assert part.causes == (Cause("in0_block_w", "4", "2"),)


def test_times_of_different_columns_cannot_be_compared() -> None:
    same = (group(),)
    assert attribute_groups(OpGroups("KERNEL [ns]", same), OpGroups("FW [ns]", same)) is None
