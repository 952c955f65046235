"""What ops move and compute, against figures worked out by hand."""

from __future__ import annotations

import pytest

from pytest_ttnn_perf.analysis.ops.roofline import Bound, Roofline, board_of, rooflines, work_of
from pytest_ttnn_perf.analysis.readers.ops_csv import read_ops_csv
from pytest_ttnn_perf.core.ops import Signature
from tests.analysis.rules.tables import Op, Tensor, op, table, tensor
from tests.harness.corpus import corpus

ROW = tensor(1, 1, 32, 4096, memory="L1_WIDTH_SHARDED")
DRAM_SHARDED = (
    "{'program_config': 'MatmulMultiCoreReuseMultiCastDRAMShardedProgramConfig(in0_block_w=2)'}"
)
SCALAR = "{'scalar': '1.5'; 'binary_op_type': 'BinaryOpType::MUL'}"


def weights(*shape: int, dtype: str = "BFLOAT8_B") -> Tensor:
    return tensor(*shape, dtype=dtype)


def of_one(row: Op, arch: str | None = "wormhole_b0") -> Roofline:
    (line,) = rooflines(table(row, arch=arch))
    return line


def matmul(ns: float, dtype: str = "BFLOAT8_B", *, cores: int = 64, attributes: str = "") -> Op:
    """4096 by 4096 weights from DRAM, all else in L1."""
    operands = [ROW, weights(1, 1, 4096, 4096, dtype=dtype)]
    return op(
        "MatmulDeviceOperation",
        operands,
        [ROW],
        ns=ns,
        cores=cores,
        fidelity="LoFi",
        attributes=attributes,
    )


@pytest.mark.parametrize(
    ("dtype", "size"),
    [("FLOAT32", 4.0), ("BFLOAT16", 2.0), ("BFLOAT8_B", 1.0625), ("BFLOAT4_B", 0.5625)],
)
def test_a_matmul_reads_its_weights_by_true_element_size(dtype: str, size: float) -> None:
    line = of_one(matmul(1e6, dtype))
    assert line.work.dram_bytes == 4096 * 4096 * size
    assert line.dram_ns == 4096 * 4096 * size / 288


@pytest.mark.parametrize(
    ("blocks", "times"),
    [
        ("per_core_M=128;per_core_N=7;out_block_h=4;out_block_w=7", 32),
        ("per_core_M=1;per_core_N=4;out_block_h=1;out_block_w=2", 1),  # the first input is in L1
    ],
)
def test_a_matmul_reads_its_weights_for_each_row_of_blocks(blocks: str, times: int) -> None:
    line = of_one(matmul(1e9, attributes=f"Matmul1DProgramConfig({blocks})"))
    once = 4096 * 4096 * 1.0625
    assert line.work.dram_bytes == once * times
    assert line.work.again_bytes == once * (times - 1)
    # What is read again need not be: the least time is without.
    assert line.least_ns == pytest.approx(max(once / 288, line.compute_ns or 0.0))


@pytest.mark.parametrize(
    ("batch", "of_weights", "attributes", "times"),
    [
        (32, 1, "fuse_batch=0", 32),
        (32, 1, "per_core_M=4;out_block_h=2;fuse_batch=0", 64),
        (32, 1, "fuse_batch=1", 1),
        (32, 32, "fuse_batch=0", 1),
        (1, 1, "fuse_batch=0", 1),
    ],
)
def test_a_matmul_of_batches_that_are_not_fused_reads_its_weights_for_each(
    batch: int, of_weights: int, attributes: str, times: int
) -> None:
    first = tensor(1, batch, 32, 4096, memory="L1_INTERLEAVED")
    second = weights(1, of_weights, 4096, 1024)
    work = work_of(Signature("MatmulDeviceOperation", (first, second), (first,)), attributes)
    assert work.passes == times
    assert work.dram_bytes == of_weights * 4096 * 1024 * 1.0625 * times


@pytest.mark.parametrize(
    ("first", "second", "flops"),
    [
        ((1, 8, 64, 128), (1, 8, 128, 96), 2 * 8 * 64 * 128 * 96),
        ((1, 8, 64, 128), (1, 8, 96, 128), 2 * 8 * 64 * 128 * 96),  # the second transposed
        ((1, 8, 128, 64), (1, 8, 128, 96), 2 * 8 * 64 * 128 * 96),  # the first transposed
        ((1, 1, 32, 1024), (1, 1, 4096, 96), None),  # gathered inside
    ],
)
def test_flops_of_matmuls(
    first: tuple[int, ...], second: tuple[int, ...], flops: float | None
) -> None:
    assert work_of(Signature("Matmul", (tensor(*first), tensor(*second)))).flops == flops


@pytest.mark.parametrize(
    ("ns", "dtype", "cores", "bound"),
    [
        (61_900 / 0.7, "BFLOAT8_B", 64, Bound.DRAM),  # 17.8 MB at 288 GB/s are 61.9 µs
        (1_000_000, "BFLOAT8_B", 64, Bound.NEITHER),
        (300_000, "BFLOAT4_B", 1, Bound.COMPUTE),  # 1.07 GFLOP on one core are 295 µs
        (75_000, "BFLOAT8_B", 5, Bound.BOTH),
    ],
)
def test_what_binds(ns: float, dtype: str, cores: int, bound: Bound) -> None:
    assert of_one(matmul(ns, dtype, cores=cores)).bound is bound


def test_a_dram_sharded_matmul_computes_on_a_core_per_bank_whatever_cores_are_told() -> None:
    line = of_one(matmul(60_000, "BFLOAT4_B", cores=64, attributes=DRAM_SHARDED))
    assert line.compute_ns == pytest.approx(2 * 32 * 4096 * 4096 / (12 * 262 / 72) / 1000)
    on_blackhole = of_one(matmul(60_000, "BFLOAT4_B", attributes=DRAM_SHARDED), "blackhole")
    assert on_blackhole.compute_ns == pytest.approx(2 * 32 * 4096 * 4096 / (8 * 5.5296) / 1000)


@pytest.mark.parametrize("arch", [None, "quasar", "grayskull"])
def test_nothing_is_guessed_of_an_unknown_chip(arch: str | None) -> None:
    made = table(matmul(60_000), arch=arch)
    line = rooflines(made)[0]
    assert board_of(made) is None
    assert (line.dram_ns, line.compute_ns, line.bound, line.least_ns) == (None, None, None, None)


def test_an_embedding_reads_rows_not_the_table() -> None:
    indices = tensor(1, 1, 1, 32, dtype="UINT32", layout="ROW_MAJOR")
    everything, found = tensor(1, 1, 128_000, 4096), tensor(1, 1, 32, 4096)
    work = work_of(Signature("EmbeddingsDeviceOperation", (indices, everything), (found,)))
    assert (work.dram_bytes, work.at_most) == (32 * 4 + 2 * 32 * 4096 * 2, False)


def test_a_slice_reads_what_it_gives() -> None:
    work = work_of(
        Signature("SliceDeviceOperation", (tensor(1, 1, 32, 4096),), (tensor(1, 1, 32, 64),))
    )
    assert (work.dram_bytes, work.at_most) == (2 * 32 * 64 * 2, False)


@pytest.mark.parametrize(
    "code",
    [
        "PagedUpdateCacheDeviceOperation",
        "SparseMatmulDeviceOperation",
    ],
)
def test_of_a_part_of_an_operand_shapes_tell_the_most(code: str) -> None:
    cache = tensor(128, 8, 32, 128)
    line = of_one(op(code, [cache, tensor(1, 8, 32, 128)], [cache], ns=1.0))
    assert line.work.at_most
    assert (line.dram_fraction, line.bound, line.stale) == (None, None, False)


@pytest.mark.parametrize(
    ("code", "taken", "attributes", "tensors"),
    [
        ("UnaryDeviceOperation", 2, "", 2),
        ("BinaryNgDeviceOperation", 3, "", 3),
        ("BinaryNgDeviceOperation", 2, SCALAR, 2),
    ],
)
def test_the_place_for_a_result_is_not_read(
    code: str, taken: int, attributes: str, tensors: int
) -> None:
    one = tensor(1, 1, 32, 32)
    work = work_of(Signature(code, (one,) * taken, (one,)), attributes)
    assert work.dram_bytes == tensors * 32 * 32 * 2


def test_only_what_would_be_faster_than_the_chip_is_stale() -> None:
    big, small = tensor(1, 1, 4096, 4096), tensor(1, 1, 32, 32)
    lines = rooflines(
        table(
            op("Unary", [big], [big], ns=500_000.0),
            op("Unary", [big], [big], ns=5_000.0),
            op("Unary", [small], [small], ns=5_000.0),
        )
    )
    assert [line.stale for line in lines] == [False, True, False]
    assert (lines[1].bound, lines[1].dram_fraction) == (None, None)


def test_attention_over_its_own_keys_and_over_the_pages_of_a_cache() -> None:
    query, key = tensor(1, 8, 128, 64), tensor(1, 2, 128, 64)
    code = "SDPAOperation"
    whole = work_of(Signature(code, (query, key, key), (query,)), "{'is_causal': 'false'}")
    causal = work_of(Signature(code, (query, key, key), (query,)), "{'is_causal': 'true'}")
    assert whole.flops == 2 * 8 * 128 * 128 * (64 + 64)
    assert causal.flops == whole.flops / 2
    paged = work_of(Signature(code, (query, tensor(16, 2, 32, 64), key), (query,)))
    assert (paged.at_most, paged.flops) == (True, None)


def test_a_convolution_computes_with_all_rows_of_its_weights() -> None:
    taken = tensor(1, 1, 1600, 64, memory="L1_HEIGHT_SHARDED")
    given = tensor(1, 1, 1600, 128, memory="L1_HEIGHT_SHARDED")
    kernel = weights(1, 1, 9 * 64, 128)
    work = work_of(Signature("Conv2dDeviceOperation", (taken, kernel), (given,)))
    assert (work.dram_bytes, work.flops) == (9 * 64 * 128 * 1.0625, 2 * 1600 * 128 * 9 * 64)


@pytest.mark.parametrize(
    ("name", "stale"),
    [
        ("rt_detr.csv", True),
        ("llama_8b_final_decode.csv", False),
        ("falcon3_full.csv", False),
        ("qwen3_32b_fused_decode.csv", False),  # with the weights read for each of 32 batches
        ("qwen3_32b_fused_prefill.csv", False),
    ],
)
def test_stale_shapes_of_real_captures(name: str, stale: bool) -> None:
    made = read_ops_csv(corpus(f"ops_perf/{name}"))
    assert any(line.stale for line in rooflines(made)) is stale
