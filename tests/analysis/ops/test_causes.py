"""Why an op takes another time: every spelling of what it is set up by, and what is told first."""

from __future__ import annotations

import pytest

from pytest_ttnn_perf.analysis.ops.align import (
    Attribution,
    ChangeKind,
    Variant,
    attribute,
    attribute_groups,
    causes_between,
    group_ops,
)
from pytest_ttnn_perf.analysis.ops.names import condense_settings, settings_in
from pytest_ttnn_perf.analysis.ops.regions import middle_lane, regions_of
from pytest_ttnn_perf.analysis.readers.detect import op_table_of
from pytest_ttnn_perf.core.ops import Signature
from tests.analysis.ops.tables import ACTIVATION, MATMUL, NORM, OUTPUT, WEIGHT
from tests.harness.corpus import corpus

ROUND = (
    "{{'{key}': 'MemoryConfig(memory_layout=TensorMemoryLayout::WIDTH_SHARDED;buffer_type="
    "BufferType::L1;shard_spec=ShardSpec(grid={grid};shape={{32; 672}};orientation="
    "ShardOrientation::ROW_MAJOR);nd_shard_spec=std::nullopt;created_with_nd_shard_spec=0)'}}"
)
#: As TTNN prints it: the brace of the last range is not closed.
JSON = (
    "{'memory_config': 'MemoryConfig(memory_layout=TensorMemoryLayout::WIDTH_SHARDED;buffer_type="
    'BufferType::L1;shard_spec=ShardSpec{grid=[{"start":{"x":0;"y":0};"end":{"x":7;"y":0}]; '
    "shape=[32; 672]; orientation=ShardOrientation::ROW_MAJOR};nd_shard_spec=std::nullopt)'}"
)
TWO_RANGES = JSON.replace(
    '"end":{"x":7;"y":0}', '"end":{"x":10;"y":1}; {"start":{"x":0;"y":2};"end":{"x":1;"y":2}'
).replace("672", "224")
ND = (
    "{'output_mem_config': 'MemoryConfig(memory_layout=TensorMemoryLayout::WIDTH_SHARDED;"
    "buffer_type=BufferType::L1;shard_spec=std::nullopt;nd_shard_spec=NdShardSpec(shard_shape="
    "Shape([32; 672]);grid={[(x=0;y=0) - (x=7;y=0)]};orientation=ShardOrientation::ROW_MAJOR;"
    "shard_distribution_strategy=ShardDistributionStrategy::ROUND_ROBIN_1D))'}"
)
EIGHT = {
    "shards_grid": "8x1",
    "shards_shape": "32x672",
    "shards_orientation": "ROW_MAJOR",
}


def shards(text: str) -> dict[str, str]:
    return {key: value for key, value in settings_in(text) if key.startswith("shards")}


@pytest.mark.parametrize(
    "text",
    [
        *(
            ROUND.format(key=key, grid="{[(x=0;y=0) - (x=7;y=0)]}")
            for key in ("memory_config", "output_mem_config", "output_memory_config",
                        "memory_config_", "output_memory_config_", "m_output_mem_config")
        ),
        ROUND.format(key="memory_config", grid="{[0-0 - 7-0]}"),
        JSON,
        ND,
        "{'shard_spec': 'ShardSpec(grid={[0-0 - 7-0]};shape={32; 672};orientation=ROW_MAJOR)'}",
    ],
)  # fmt: skip
def test_shards_in_every_spelling(text: str) -> None:
    assert shards(text) == EIGHT
    assert shards(condense_settings(text)) == EIGHT


def told(before: str, after: str, *, cores: tuple[int, int] = (110, 110)) -> list[str]:
    ours, theirs = (
        Variant(NORM, count, "HiFi4", text)
        for count, text in zip(cores, (before, after), strict=True)
    )
    return [str(cause) for cause in causes_between(ours, theirs)]


def test_other_shards_are_a_cause() -> None:
    assert told(JSON, TWO_RANGES) == ["shard cores 8 → 24", "shard shape 32x672 → 32x224"]
    columns = JSON.replace("ROW_MAJOR", "COL_MAJOR")
    assert told(JSON, columns) == ["shard orientation ROW_MAJOR → COL_MAJOR"]
    upright = JSON.replace('"x":7;"y":0', '"x":0;"y":7')
    assert told(JSON, upright) == ["shard grid 8x1 → 1x8"]
    assert told(JSON, TWO_RANGES, cores=(8, 24))[0] == "cores 8 → 24"


@pytest.mark.parametrize(
    ("before", "after", "cause"),
    [
        ("'worker_grid': '{[0-0 - 7-7]}'", "'worker_grid': '{[0-0 - 10-9]}'",
         "worker_grid 8x8 → 11x10"),
        ("'sub_core_grids': 'std::nullopt'", "'sub_core_grids': '{[(x=1;y=0) - (x=3;y=9)]}'",
         "sub_core_grids none → 3x10@1-0"),
        ("sub_core_grids={[0-0 - 7-3]};in0_block_w=2", "sub_core_grid={[0-0 - 7-1]};in0_block_w=2",
         "sub_core_grids 8x4 → 8x2"),
        ("'compute_kernel_config': 'std::nullopt'",
         "'compute_kernel_config': 'WormholeComputeKernelConfig(math_fidelity=LoFi)'",
         "compute_kernel_config none → given"),
        ("'is_sfpu': 'false'", "'is_sfpu': 'true'", "is_sfpu off → on"),
        ("throttle_level=ThrottleLevel::NO_THROTTLE", "throttle_level=ThrottleLevel::LEVEL_1",
         "throttle_level NO_THROTTLE → LEVEL_1"),
        ("'program_config': 'std::nullopt'", "'program_config': 'SDPAProgramConfig(exp=0)'",
         "program_config none → SDPAProgramConfig"),
        ("'input_tensor_shape': '{1; 98; 1280; 3}'", "'input_tensor_shape': '{1; 99; 1280; 3}'",
         "input_tensor_shape 1x98x1280x3 → 1x99x1280x3"),
    ],
)  # fmt: skip
def test_other_settings(before: str, after: str, cause: str) -> None:
    assert told(before, after) == [cause]
    assert told(condense_settings(before), condense_settings(after)) == [cause]


def matmul(*, sharded: bool, program: str, block: int) -> Variant:
    weight = WEIGHT._replace(memory="DRAM_WIDTH_SHARDED") if sharded else WEIGHT
    given = ACTIVATION if sharded else ACTIVATION._replace(memory="DRAM_INTERLEAVED")
    fidelity = "LoFi" if sharded else "HiFi2"
    text = f"{{'program_config': 'Matmul{program}ProgramConfig(in0_block_w={block})'}}"
    signature = Signature(MATMUL.op, (given, weight), (OUTPUT,))
    return Variant(signature, 80 if sharded else 64, fidelity, text)


def test_cores_that_read_from_all_banks_are_told_last() -> None:
    plain = matmul(sharded=False, program="MultiCast1D", block=2)
    banks = matmul(sharded=True, program="MultiCastDRAMSharded", block=3)
    assert [cause.what for cause in causes_between(plain, banks)] == [
        "in1 memory", "in0 memory", "fidelity", "program_config", "in0_block_w", "cores",
    ]  # fmt: skip


def pair_of_gemma() -> tuple[Attribution, Attribution]:
    """Return the change of a decode step as two captures tell it, and as baselines do."""
    before, after = (
        op_table_of(
            corpus(f"ops_perf/gemma_sliding_decode_{name}.csv"),
            start="MC_sliding_attention_DECODE",
            end=None,
        )
        for name in ("replicated_v1", "final")
    )
    first, second = (regions_of(table).regions[0] for table in (before, after))
    grouped = attribute_groups(
        group_ops(before, middle_lane(before, first)), group_ops(after, middle_lane(after, second))
    )
    assert grouped is not None
    return attribute(before, after, (first, second)), grouped


def test_a_real_optimization_is_told_by_its_causes() -> None:
    attribution, grouped = pair_of_gemma()
    assert attribution.delta_ns / attribution.before_ns == pytest.approx(-0.104, abs=0.001)
    for change in (attribution, grouped):
        wide, narrow, multiply = change.parts[:3]
        for part in (wide, narrow):
            assert part.name.startswith("Matmul 1x1x1x")
            assert [str(cause) for cause in part.causes[:4]] == [
                "in1 memory DRAM_INTERLEAVED → DRAM_WIDTH_SHARDED",
                "in0 memory DRAM_INTERLEAVED → L1_WIDTH_SHARDED",
                "out0 memory DRAM_INTERLEAVED → L1_WIDTH_SHARDED",
                "fidelity HiFi2 → LoFi",
            ]
        assert multiply.name == "BinaryNg MUL 1x1x1x5376"
        assert list(map(str, multiply.causes)) == [
            "shard cores 8 → 24",
            "shard shape 32x672 → 32x224",
        ]
    came = {part.name: part.beside for part in attribution.parts if part.change is ChangeKind.ADDED}
    assert came["InterleavedToSharded 1x1x1x2048 DRAM → L1_WIDTH_SHARDED"] == (
        "between Slice and Matmul"
    )
    assert sum(abs(part.delta_ns) for part in attribution.parts if not part.causes) < 1_000
