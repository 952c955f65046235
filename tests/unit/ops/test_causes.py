"""What may explain the time of an op, from its row and from its attributes."""

from __future__ import annotations

import pytest

from pytest_ttnn_perf.analysis.ops.align import causes_between
from pytest_ttnn_perf.analysis.ops.catalogue import Variant, function_in, settings_in
from tests.unit.ops.tables import ACTIVATION, MATMUL, retyped

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
