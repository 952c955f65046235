"""Ops aligned: lanes of devices and replays, noise, and causes."""

from __future__ import annotations

from random import Random
from statistics import median

import pytest

from pytest_ttnn_perf.analysis.ops.align import (
    NOISE_FRACTION,
    NOISE_NS,
    Attribution,
    ChangeKind,
    Noise,
    Variant,
    attribute,
    causes_between,
)
from pytest_ttnn_perf.analysis.ops.names import function_in, settings_in
from pytest_ttnn_perf.core.ops import HOST, Op, Signature, short_code
from tests.analysis.ops.tables import ACTIVATION, MATMUL, NORM, RESHARD, op, retyped, table


def test_the_parts_are_the_largest_first_and_add_up() -> None:
    before = [op(MATMUL, 100_000), op(NORM, 30_000), op(NORM, 30_000)]
    after = [
        op(MATMUL, 161_000, cores=32),
        op(NORM, 31_000),
        *[op(RESHARD, 6_000)] * 3,
        op(NORM, 30_000),
    ]
    attribution = attribute(table(before), table(after))
    assert [(part.change, part.op, part.count, part.delta_ns) for part in attribution.parts] == [
        (ChangeKind.SLOWER, MATMUL.op, 1, 61_000),
        (ChangeKind.ADDED, RESHARD.op, 3, 18_000),
        (ChangeKind.SLOWER, NORM.op, 1, 1_000),
    ]
    assert (attribution.delta_ns, attribution.unexplained_ns) == (80_000, 0)
    assert attribution.op_list_changed


def test_parts_of_one_size_are_in_the_order_of_their_names() -> None:
    parts = attribute(table([op()]), table([op(), op(RESHARD), op(NORM)])).parts
    assert [part.op for part in parts] == [NORM.op, RESHARD.op]


def test_ops_that_got_slower_are_no_change_of_the_list() -> None:
    attribution = attribute(table([op(), op(NORM)]), table([op(MATMUL, 20_000), op(NORM)]))
    assert attribution.parts
    assert not attribution.op_list_changed


def test_short_codes() -> None:
    assert short_code("GridSampleOperation") == "GridSample"
    assert short_code("Matmul") == "Matmul"
    assert short_code("(torch) cat") == "(torch) cat"
    assert short_code("DeviceOperation") == "DeviceOperation"


def replayed(*replays: list[Op], trace: int = 1) -> list[Op]:
    return [
        row._replace(trace=trace, replay=number)
        for number, rows in enumerate(replays)
        for row in rows
    ]


def total(ops: list[Op]) -> float:
    return attribute(table(ops), table(ops)).before_ns


def test_one_replay_stands_for_all_with_the_median_of_each_op() -> None:
    replays = [[op(MATMUL, ns), op(NORM, 2 * ns)] for ns in (10_000, 12_000, 90_000)]
    ops = [op(RESHARD, 5_000), *replayed(*replays), op(RESHARD, 7_000)]
    attribution = attribute(table(ops), table(ops))
    assert attribution.before_ns == 5_000 + 12_000 + 24_000 + 7_000
    assert attribution.replayed


def test_the_number_of_replays_changes_nothing() -> None:
    replay = [op(), op(NORM)]
    attribution = attribute(table(replayed(replay)), table(replayed(*[replay] * 5)))
    assert (attribution.delta_ns, attribution.parts) == (0, ())


def test_a_replay_that_lost_ops_does_not_count() -> None:
    whole, cut = [op(MATMUL, 10_000), op(NORM, 4_000)], [op(NORM, 90_000)]
    assert total(replayed(cut, whole, cut, cut)) == 14_000


def test_of_replays_as_long_as_each_other_the_usual_ones_count() -> None:
    usual, odd = [op(MATMUL, 10_000), op(NORM, 4_000)], [op(MATMUL, 10_000), op(MATMUL, 9_000)]
    assert total(replayed(odd, usual, usual)) == 14_000


def test_traces_are_kept_apart_and_in_their_places() -> None:
    first, second = [op(MATMUL, 1_000)], [op(NORM, 100)]
    ops = replayed(first, first) + replayed(second, second, trace=2) + [op(RESHARD, 10)]
    assert total(ops) == 1_110


def test_replays_that_nobody_told_apart_are_all_taken() -> None:
    assert total([op()._replace(trace=1), op()._replace(trace=1)]) == 20_000


def test_a_trace_against_the_same_ops_without_one() -> None:
    ops = [op(), op(NORM)]
    attribution = attribute(table(ops), table(replayed(ops, ops)))
    assert (attribution.delta_ns, attribution.parts, attribution.replayed) == (0, (), True)


def on(device: int, *rows: Op) -> list[Op]:
    return [row._replace(device=device) for row in rows]


def test_devices_are_averaged() -> None:
    before = on(3, op(MATMUL, 10_000)) + on(4, op(MATMUL, 20_000))
    after = on(3, op(MATMUL, 10_000)) + on(4, op(MATMUL, 60_000))
    attribution = attribute(table(before), table(after))
    assert (attribution.before_ns, attribution.after_ns) == (15_000, 35_000)
    assert attribution.devices == (2, 2)
    (part,) = attribution.parts
    assert (part.change, part.count, part.delta_ns) == (ChangeKind.SLOWER, 1, 20_000)


def test_what_devices_do_to_each_other_cancels() -> None:
    # One waits for the other in a collective, and the other way round the next time.
    gather = NORM._replace(op="AllGatherDeviceOperation")
    before = on(0, op(), op(gather, 9_000)) + on(1, op(), op(gather, 1_000))
    after = on(0, op(), op(gather, 1_000)) + on(1, op(), op(gather, 9_000))
    assert attribute(table(before), table(after)).parts == ()


def test_an_op_on_one_device_of_two_counts_half() -> None:
    before = on(0, op()) + on(1, op())
    after = on(0, op(), op(RESHARD, 8_000)) + on(1, op())
    (part,) = attribute(table(before), table(after)).parts
    assert (part.change, part.count, part.delta_ns) == (ChangeKind.ADDED, 1, 4_000)


def test_like_changes_of_devices_that_run_differently_are_one_part() -> None:
    before = on(0, op(), op(NORM)) + on(1, op())
    after = on(0, op(cores=32, kernel_ns=30_000), op(NORM)) + on(1, op(cores=32, kernel_ns=30_000))
    (part,) = attribute(table(before), table(after)).parts
    assert (part.count, part.delta_ns) == (1, 20_000)


@pytest.mark.parametrize(("before", "after"), [(1, 4), (4, 1), (2, 3), (3, 2), (3, 3)])
def test_another_number_of_devices_keeps_the_means(before: int, after: int) -> None:
    def some(devices: int) -> list[Op]:
        times = [9_000 + 6_000 * device for device in range(devices)]
        return [op(MATMUL, ns, device=device) for device, ns in enumerate(times)]

    attribution = attribute(table(some(before)), table(some(after)))
    assert attribution.before_ns == 9_000 + 3_000 * (before - 1)
    assert attribution.after_ns == 9_000 + 3_000 * (after - 1)
    assert attribution.devices == (before, after)


def test_a_fallback_to_the_host_is_told_but_takes_no_kernel_time() -> None:
    fallback = op(Signature("(torch) cat"), 0, device=HOST, cores=None, fidelity=None)
    attribution = attribute(table([op()]), table([op(), fallback, fallback]))
    (part,) = attribution.parts
    assert (part.change, part.op, part.count) == (ChangeKind.ADDED, "(torch) cat", 2)
    assert (attribution.delta_ns, attribution.devices) == (0, (1, 1))
    assert attribution.op_list_changed


def test_a_table_without_ops() -> None:
    nothing, something = table([]), table([op(), op(), op(NORM)])
    assert attribute(nothing, nothing).parts == ()
    assert [part.count for part in attribute(nothing, something).parts] == [2, 1]
    assert attribute(something, nothing).after_ns == 0
    assert median([part.delta_ns for part in attribute(something, nothing).parts]) < 0


def compared(before: list[Op], after: list[Op]) -> Attribution:
    return attribute(table(before), table(after))


def jittered(ops: list[Op], seed: int, fraction: float = 0.01) -> list[Op]:
    chance = Random(seed)
    return [
        row._replace(kernel_ns=round(row.kernel_ns * (1 + chance.uniform(-fraction, fraction))))
        for row in ops
    ]


LAYERS = [op(MATMUL, 80_000), op(NORM, 9_000), op(RESHARD, 2_000)] * 24


def test_jitter_is_unexplained() -> None:
    attribution = compared(jittered(LAYERS, 1), jittered(LAYERS, 2))
    assert attribution.parts == ()
    assert attribution.unexplained_ns == attribution.delta_ns != 0


def test_the_one_op_that_changed_stands_out_of_the_jitter() -> None:
    after = jittered(LAYERS, 2)
    after[9] = after[9]._replace(kernel_ns=after[9].kernel_ns + 61_000)
    (part,) = compared(jittered(LAYERS, 1), after).parts
    assert (part.change, part.op, part.count) == (ChangeKind.SLOWER, MATMUL.op, 1)
    assert part.delta_ns == pytest.approx(61_000, abs=0.02 * 80_000)


def test_a_small_change_is_seen_where_all_else_keeps_still() -> None:
    after = list(LAYERS)
    after[9] = after[9]._replace(kernel_ns=80_100)
    (part,) = compared(LAYERS, after).parts
    assert (part.count, part.delta_ns) == (1, 100)


def test_like_changes_are_one_part() -> None:
    after = [
        row._replace(kernel_ns=row.kernel_ns * 0.88, fidelity="HiFi2")
        if row.signature is MATMUL
        else row
        for row in jittered(LAYERS, 2)
    ]
    (part,) = compared(jittered(LAYERS, 1), after).parts
    assert (part.change, part.count) == (ChangeKind.FASTER, 24)
    assert [str(cause) for cause in part.causes] == ["fidelity HiFi4 → HiFi2"]
    assert part.delta_ns / part.before_ns == pytest.approx(-0.12, abs=0.01)


def test_many_small_changes_of_one_cause_are_more_than_noise() -> None:
    faster = [
        row._replace(kernel_ns=row.kernel_ns * 0.985, cores=72) if row.signature is MATMUL else row
        for row in jittered(LAYERS, 2)
    ]
    (part,) = compared(jittered(LAYERS, 1), faster).parts
    assert (part.count, str(part.causes[0])) == (24, "cores 64 → 72")


def test_a_cause_that_changed_nothing_is_no_part() -> None:
    after = [row._replace(fidelity="HiFi3") for row in jittered(LAYERS, 2, 0.001)]
    assert compared(jittered(LAYERS, 1, 0.001), after).parts == ()


def test_ups_and_downs_of_one_kind_that_come_to_nothing_are_noise() -> None:
    wild = [op(MATMUL, 80_000 + 4_000 * (-1) ** place) for place in range(24)]
    tame = [op(MATMUL, 80_000) for _ in range(24)]
    attribution = compared(tame, wild)
    assert (attribution.parts, attribution.delta_ns) == ((), 0)


def test_ups_and_downs_that_do_not_cancel_are_two_parts() -> None:
    still = [op(NORM, 9_000) for _ in range(24)]
    before = [op(MATMUL, 80_000), op(MATMUL, 80_000), *still]
    after = [op(MATMUL, 140_000), op(MATMUL, 50_000), *still]
    parts = compared(before, after).parts
    assert [(part.change, part.delta_ns) for part in parts] == [
        (ChangeKind.SLOWER, 60_000),
        (ChangeKind.FASTER, -30_000),
    ]


@pytest.mark.parametrize("count", [1, 25])
def test_the_limit_from_both_sides(count: int) -> None:
    noise = Noise()
    before = 50_000.0 * count
    # What chance adds to 25 ops is five times what it adds to one.
    limit = count**0.5 * (NOISE_NS + NOISE_FRACTION * 50_000)
    assert noise.covers(before, before - 0.99 * limit, count=count)
    assert not noise.covers(before, before - 1.01 * limit, count=count)


def test_without_a_hint_the_noise_is_the_usual_one() -> None:
    assert Noise.between([]) == Noise(1.0)
    assert Noise.between([(1_000, 2_000)] * 3) == Noise(1.0)
    assert Noise.between([(1_000, 1_000), (1_000, 2_000), (1_000, 1_000)]) == Noise(0.0)


MATMUL_1D = (
    "{'bcast_batch': 'true'; 'compute_kernel_config': 'ComputeKernelConfig(math_fidelity=LoFi;"
    "math_approx_mode=0;fp32_dest_acc_en=0;packer_l1_acc=1)'; 'program_config': "
    "'MatmulMultiCoreReuseMultiCast1DProgramConfig(compute_with_storage_grid_size=8-8;"
    "in0_block_w=2;out_subblock_h=1;out_subblock_w=3;per_core_M=1;per_core_N=3;fuse_batch=0;"
    "fused_activation=std::nullopt;mcast_in0=1)'; 'untilize_out': 'false'}"
)
CONV = (
    "{'activation': 'std::nullopt'; 'block_config': 'Conv2dBlockConfig(act_block_h_ntiles=4;"
    "act_block_w_ntiles=2;out_subblock_h_ntiles=2)'; 'enable_act_double_buffer': 'false'; "
    "'parallelization_config': 'Conv2dParallelizationConfig(grid_size=(x=5;y=4);num_cores_nhw=20;"
    "per_core_out_matrix_height_ntile=48)'; 'sliding_window_config': 'SlidingWindowConfig("
    "num_cores_nhw=7; core_range_set_={[(x=0;y=0) - (x=4;y=3)]})'}"
)


def variant(**fields: object) -> Variant:
    plain = Variant(MATMUL, 64, "HiFi4", "")
    return plain._replace(**fields)  # type: ignore[arg-type]


def told(before: Variant, after: Variant) -> list[str]:
    return [str(cause) for cause in causes_between(before, after)]


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        ({"cores": 32}, "cores 64 → 32"),
        ({"fidelity": "LoFi"}, "fidelity HiFi4 → LoFi"),
        ({"signature": retyped(MATMUL, "BFLOAT4_B")}, "in1 dtype BFLOAT16 → BFLOAT4_B"),
        (
            {"signature": MATMUL._replace(outputs=(ACTIVATION,))},
            "out0 shape 1x1x32x1024 → 1x1x32x4096",
        ),
        ({"signature": MATMUL._replace(outputs=())}, "outputs 1 → 0"),
    ],
)
def test_one_cause(change: dict[str, object], cause: str) -> None:
    assert told(variant(), variant(**change)) == [cause]


def test_nothing_is_no_cause() -> None:
    assert told(variant(attributes=CONV), variant(attributes=CONV)) == []
    assert told(variant(cores=None, fidelity=None), variant(attributes=MATMUL_1D)) == []


@pytest.mark.parametrize(
    ("before", "change", "cause"),
    [
        (MATMUL_1D, ("in0_block_w=2", "in0_block_w=1"), "in0_block_w 2 → 1"),
        (MATMUL_1D, ("size=8-8", "size=(x=8; y=4)"), "compute_with_storage_grid_size 8x8 → 8x4"),
        (MATMUL_1D, ("per_core_N=3", "per_core_N=6"), "per_core_N 3 → 6"),
        (MATMUL_1D, ("packer_l1_acc=1", "packer_l1_acc=false"), "packer_l1_acc on → off"),
        (
            MATMUL_1D,
            (
                "fused_activation=std::nullopt",
                "fused_activation=UnaryWithParam(op_type=UnaryOpType::GELU;param={1})",
            ),
            "activation none → GELU",
        ),
        (
            MATMUL_1D,
            ("MatmulMultiCoreReuseMultiCast1DProgramConfig", "ttnn::Matmul2DProgramConfig"),
            "program_config MatmulMultiCoreReuseMultiCast1DProgramConfig → Matmul2DProgramConfig",
        ),
        (
            "{'program_config': 'std::nullopt'}",
            ("'std::nullopt'", "'MatmulProgramConfig(in0_block_w=2)'"),
            "program_config none → MatmulProgramConfig",
        ),
        (CONV, ("act_block_h_ntiles=4", "act_block_h_ntiles=1"), "act_block_h_ntiles 4 → 1"),
        (CONV, ("_buffer': 'false'", "_buffer': 'true'"), "enable_act_double_buffer off → on"),
        (CONV, ("(x=5;y=4)", "8-8"), "grid_size 5x4 → 8x8"),
        (CONV, ("num_cores_nhw=20", "num_cores_nhw=10"), "num_cores_nhw 20 → 10"),
    ],
)
def test_a_setting(before: str, change: tuple[str, str], cause: str) -> None:
    after = before.replace(*change, 1)
    assert after != before
    assert told(variant(attributes=before), variant(attributes=after)) == [cause]


def test_what_no_op_is_slower_for_is_left_out() -> None:
    after = CONV.replace("num_cores_nhw=7", "num_cores_nhw=9").replace("'std::nullopt'", "''")
    assert told(variant(attributes=CONV), variant(attributes=after)) == []


@pytest.mark.parametrize(
    ("attributes", "function"),
    [
        ("{'binary_op_type': 'BinaryOpType::ADD'; 'dtype': 'DataType::BFLOAT16'}", "ADD"),
        ("{'op_chain': '{UnaryWithParam(op_type=UnaryOpType::SILU;param={})}'}", "SILU"),
        ("op_type=UnaryOpType::NEG;op_type=UnaryOpType::EXP", "NEG+EXP"),
        ("{'ternary_op_type': 'TernaryOpType::WHERE'}", "WHERE"),
        ("", ""),
    ],
)
def test_what_an_elementwise_op_computes(attributes: str, function: str) -> None:
    assert function_in(attributes) == function


@pytest.mark.parametrize(
    "hostile",
    ["", "'" * 50_000, "a=" * 50_000, "in0_block_w" + " " * 100_000, "(x=1;" * 20_000],
    ids=["empty", "quotes", "keys", "spaces", "grids"],
)
def test_any_text_is_read_quickly(hostile: str) -> None:
    assert dict(settings_in(hostile)).get("in0_block_w") is None
