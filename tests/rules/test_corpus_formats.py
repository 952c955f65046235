"""Rules on validity, formats, layouts and targets over real captures, and against plain csv."""

from __future__ import annotations

import re
from collections import defaultdict
from math import prod
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.analysis.show.groups import ANALYSES
from pytest_ttnn_perf.core.finding import RuleOutcome
from tests.rules.answers import Ask
from tests.rules.captures import device_rows, ops_of, report_of, without_chip

if TYPE_CHECKING:
    from collections.abc import Iterator


BYTES = {
    "FLOAT32": 4, "INT32": 4, "UINT32": 4, "BFLOAT16": 2, "UINT16": 2,
    "BFLOAT8_B": 1.0625, "BFLOAT4_B": 0.5625,
}  # fmt: skip


def operands_of(row: dict[str, str]) -> Iterator[tuple[str, list[int], list[int], str, str]]:
    """Yield the operands of a row: slot, padded and logical shape, layout, data type."""
    for column in [name for name in row if name.endswith("_DATATYPE") and row[name]]:
        slot = column.removesuffix("_DATATYPE")
        cells = [row[f"{slot}_{axis}_PAD[LOGICAL]"] for axis in "WZYX"]
        shapes = [[int(number) for number in re.findall(r"\d+", cell)] for cell in cells]
        padded, logical = [pair[0] for pair in shapes], [pair[1] for pair in shapes]
        yield slot, padded, logical, row[f"{slot}_LAYOUT"], row[column]


@pytest.mark.parametrize(
    ("name", "percent"),
    [
        ("blackhole_oft_conv.csv", 2.7),
        ("blackhole_clip_encoder.csv", 15.0),
        ("qwen3_32b_fused_decode.csv", 27.4),
        ("llama_8b_multichip.csv", 2.8),
    ],
)
def test_padding(name: str, percent: float) -> None:
    padded_elements = elements = 0
    for row in device_rows(name):
        for _, padded, logical, layout, _ in operands_of(row):
            if layout == "TILE":
                padded_elements += prod(padded)
                elements += prod(logical)
    found = ANALYSES["padding"].analysis(ops_of(name)).figures[0]
    assert found.label == "padding adds"
    assert found.value == pytest.approx(padded_elements / elements - 1)
    assert found.value == pytest.approx(percent / 100, abs=0.0005)


def test_rows_of_users_that_fill_a_tile_each() -> None:
    # 32 users with a row each: all matmuls of the step, and more, work on 31 rows of padding.
    answer = Ask("TTP202")(ops_of("qwen3_32b_fused_decode.csv"))
    assert answer.value == pytest.approx(0.96, abs=0.005)
    decode = Ask("TTP202")(ops_of("gemma_sliding_decode_final.csv"))
    assert decode.outcome is RuleOutcome.CLEAN


@pytest.mark.parametrize(
    "name",
    ["gemma_31b_fused_final.csv", "qwen_27b_linear_incomplete_replays.csv", "falcon3_7b_tp4.csv"],
)
def test_share_of_float32(name: str) -> None:
    sizes: dict[tuple[str, str], float] = defaultdict(float)
    for row in device_rows(name):
        for slot, padded, _, _, dtype in operands_of(row):
            sizes[slot.partition("_")[0], dtype] += prod(padded) * BYTES[dtype]
    everything = sizes["INPUT", "FLOAT32"] + sizes["OUTPUT", "FLOAT32"]
    value = Ask("TTP102")(without_chip(name)).value
    assert value == pytest.approx(everything / sum(sizes.values()))


def test_fidelity_above_need() -> None:
    # Matmuls of long prompts compute most of the time, at the fidelity that bfloat8_b needs.
    for name in ("falcon3_7b_tp4.csv", "blackhole_deepseek_8dev.csv"):
        assert Ask("TTP103")(ops_of(name)).value == 0.0


def test_weights_of_an_encoder_are_told_from_its_attention() -> None:
    name = "blackhole_clip_encoder.csv"
    # The products of attention have twelve heads, in both operands.
    shapes = {
        tuple(padded)
        for row in device_rows(name)
        if "Matmul" in row["OP CODE"]
        for slot, padded, _, _, _ in operands_of(row)
        if slot == "INPUT_1" and padded[1] == 1
    }
    saved = sum(prod(shape) * (2 - 1.0625) for shape in shapes)
    answer = Ask("TTP101")(without_chip(name))
    assert answer.value == 1.0
    assert len(answer.evidence) == len(shapes) == 3
    assert sum(each.value or 0 for each in answer.evidence) == pytest.approx(saved)


@pytest.mark.parametrize(
    ("name", "share"),
    [("mlp_bf16/db.sqlite", 1.0), ("mlp_bfp8/db.sqlite", 0.0), ("comparison/db.sqlite", 0.5517)],
)
def test_weights_of_a_report(name: str, share: float) -> None:
    assert Ask("TTP101")(report_of(name)).value == pytest.approx(share, abs=0.0001)


def test_replays_and_fallbacks_that_are_known() -> None:
    broken = Ask("TTP002")(ops_of("qwen_27b_linear_incomplete_replays.csv"))
    assert [(each.subject, each.value) for each in broken.evidence] == [("trace 0 on device 3", 15)]
    # Its eight ops of torch run after the last op on the device.
    fallbacks = Ask("TTP007")(ops_of("distilbert_2024_v1.csv"))
    assert (fallbacks.outcome, fallbacks.value) == (RuleOutcome.CLEAN, 0)


@pytest.mark.parametrize("name", ["distilbert_2024_v1.csv", "tiny_slice_fallback.csv"])
def test_captures_without_logical_shapes_tell_no_padding(name: str) -> None:
    answer = Ask("TTP202")(ops_of(name))
    assert (answer.outcome, answer.value) == (RuleOutcome.NOT_MEASURED, None)
