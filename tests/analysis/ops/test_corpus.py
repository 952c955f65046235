"""Real captures, and changes made to them on purpose."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from pytest_ttnn_perf.analysis.ops.align import ChangeKind
from pytest_ttnn_perf.analysis.ops.regions import middle_steps, regions_of, slowest_rows
from pytest_ttnn_perf.analysis.readers.ops_csv import read_ops_csv
from tests.analysis.ops.tables import changed
from tests.harness.corpus import corpus

if TYPE_CHECKING:
    from pytest_ttnn_perf.core.ops import OpTable

CAPTURES = [
    "blackhole_clip_encoder", "blackhole_deepseek_8dev", "blackhole_oft_conv", "falcon3_7b_tp4",
    "gemma_31b_full_decode_multichip", "gemma_31b_fused_final", "gpt_oss_20b_fused_decode",
    "llama_8b_multichip", "north_mini_dense_decode_b1_trace", "north_mini_dense_decode_b32_trace",
    "oft_2025_09_v2", "qwen3_32b_fused_decode",
]  # fmt: skip


def capture(name: str) -> OpTable:
    return read_ops_csv(corpus(f"ops_perf/{name}.csv"))


@pytest.mark.parametrize("name", CAPTURES)
def test_the_op_that_was_made_slower_is_found(name: str) -> None:
    whole = capture(name)
    step = middle_steps(whole, regions_of(whole).regions[0])[0]
    table = whole.select(slowest_rows(whole, step))
    place = next(row for row in range(len(table)) if table.op(row).cores)
    op = table.op(place)
    columns = table.columns
    slower = replace(
        columns,
        kernel_ns=[*columns.kernel_ns[:place], op.kernel_ns * 2, *columns.kernel_ns[place + 1 :]],
        cores=[*columns.cores[:place], 999, *columns.cores[place + 1 :]],
    )
    attribution = changed(table, replace(table, columns=slower))
    (part,) = attribution.parts
    assert (part.change, part.op, part.count) == (ChangeKind.SLOWER, op.signature.op, 1)
    assert [str(cause) for cause in part.causes] == [f"cores {op.cores} → 999"]
    assert part.delta_ns == attribution.delta_ns == pytest.approx(op.kernel_ns)


def test_an_activation_that_was_fused_into_a_matmul() -> None:
    table = capture("gemma_31b_fused_f4")
    at = {post.name: post.position for post in table.signposts}
    apart = table.select(range(at["LONG_GELU_B0"], at["LONG_GELU_B0_END"]))
    fused = table.select(range(at["LONG_GELU_F4"], at["LONG_GELU_F4_END"]))
    slower, gone = changed(apart, fused).parts
    assert (slower.change, slower.op) == (ChangeKind.SLOWER, "MatmulDeviceOperation")
    assert "activation none → GELU" in map(str, slower.causes)
    assert (gone.change, gone.op) == (ChangeKind.REMOVED, "UnaryDeviceOperation")
