"""A change in words: what is named, what is summed up, and that it adds up as it is shown."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ttnn_perf.analysis.ops.align import (
    Attribution,
    Cause,
    ChangeKind,
    Part,
)
from pytest_ttnn_perf.analysis.show.attribution import (
    attribution_sentence,
    calls_sentence,
    causes_text,
    compare_captures,
    shown_sum,
)
from pytest_ttnn_perf.core.errors import UsageError
from pytest_ttnn_perf.core.ops import CALLS, OpGroup, OpGroups, Signature, Tensor
from tests.harness.corpus import corpus

if TYPE_CHECKING:
    from tests.harness.project import Project

SLOWER, FASTER = ChangeKind.SLOWER, ChangeKind.FASTER
ADDED, REMOVED = ChangeKind.ADDED, ChangeKind.REMOVED
CORES = Cause("cores", "64", "32")

CONV = Part(
    SLOWER,
    "ttnn::Conv2dDeviceOperation",
    "1x512x1024x3 BFLOAT16 -> 1x1x8x8 BFLOAT16",
    1,
    61_000.0,
    (CORES,),
    shape="1x512x1024x3",
    before_ns=100_000.0,
)
RESHARD = Part(
    ADDED, "ReshardDeviceOperation", "1x1x32x64", 3, 18_000.0, (Cause("count", "0", "3"),)
)


def of(
    *parts: Part, unexplained: float = 0.0, before: float = 2_220_000.0, others: int = 41
) -> Attribution:
    delta = sum(part.delta_ns for part in parts) + unexplained
    return Attribution(before, before + delta, parts, unexplained, unexplained_ops=others)


def test_the_sentence_of_a_verdict() -> None:
    assert attribution_sentence(of(CONV, RESHARD, unexplained=12_000.0)) == (
        "+4.1 % (+91.0 µs) = Conv2d 1x512x1024x3 +61.0 µs (64 → 32 cores), 3 new Reshard +18.0 µs;"
        " 41 other ops, each within its noise +12.0 µs"
    )


@pytest.mark.parametrize(
    ("part", "told"),
    [
        (
            Part(FASTER, "Matmul", "", 24, -61_000.0, (Cause("fidelity", "HiFi4", "HiFi2"),)),
            "24 x Matmul -61.0 µs (HiFi4 → HiFi2)",
        ),
        (Part(SLOWER, "Matmul", "", 24, 61_000.0, moved=2), "24 x Matmul, 2 moved +61.0 µs"),
        (
            Part(ADDED, "Copy", "", 2, 61_000.0, (Cause("count", "1", "3"),)),
            "2 more Copy +61.0 µs",
        ),
        (
            Part(REMOVED, "Copy", "", 3, -61_000.0, (Cause("count", "3", "0"),)),
            "3 Copy gone -61.0 µs",
        ),
        (
            Part(REMOVED, "Copy", "", 2, -61_000.0, (Cause("count", "3", "1"),)),
            "2 fewer Copy -61.0 µs",
        ),
    ],
)
def test_each_part_in_its_words(part: Part, told: str) -> None:
    assert attribution_sentence(of(part)).partition(" = ")[2] == told


def test_small_parts_are_summed_up() -> None:
    parts = [Part(SLOWER, f"Op{size}", "", 1, 1_000.0 * size) for size in range(9, 0, -1)]
    told = attribution_sentence(of(*parts)).partition(" = ")[2]
    assert told == "Op9 +9.0 µs, Op8 +8.0 µs, Op7 +7.0 µs, Op6 +6.0 µs, 5 smaller ones +15.0 µs"
    # One more is named before one is summed up.
    assert "smaller" not in attribution_sentence(of(*parts[:5]))


@pytest.mark.parametrize(
    ("terms", "total", "shown"),
    [
        ([400.4, 400.4, 400.4], "+1.20 µs", ("+0.40 µs",) * 3),
        ([1_000_000.0, -999_999.0], "0 ms", ("+1.00 ms", "-1.00 ms")),
        ([0.0], "0 ns", ("0 ns",)),
        ([], "0 ns", ()),
    ],
)
def test_figures_add_up_as_they_are_shown(
    terms: list[float], total: str, shown: tuple[str, ...]
) -> None:
    assert shown_sum(terms) == (total, shown)


def test_what_operands_have_in_common_is_told_once() -> None:
    causes = [
        Cause("in0 dtype", "BFLOAT16", "BFLOAT8_B"),
        Cause("in0 memory", "L1_INTERLEAVED", "DRAM_INTERLEAVED"),
        Cause("in1 dtype", "BFLOAT16", "BFLOAT8_B"),
        Cause("program_config", "MatmulMultiCoreProgramConfig", "MatmulProgramConfig"),
        Cause("inputs", "2", "3"),
    ]
    assert causes_text(causes, most=4) == (
        "in0/in1 BFLOAT16 → BFLOAT8_B, in0 L1_INTERLEAVED → DRAM_INTERLEAVED,"
        " program_config MatmulMultiCore → Matmul, inputs 2 → 3"
    )
    assert causes_text(causes, most=1) == "in0/in1 BFLOAT16 → BFLOAT8_B, 3 more"
    assert causes_text([], most=1) == ""


def test_shards_are_one_cause_and_their_cores_are_told_once() -> None:
    cores, shape = Cause("shard cores", "8", "109"), Cause("shard shape", "32x2176", "32x160")
    told = "shards 8 → 109 cores, 32x2176 → 32x160"
    assert causes_text([Cause("cores", "8", "109"), cores, shape], most=1) == told
    assert causes_text([cores, shape, Cause("cores", "80", "110")], most=2).endswith("110 cores")


def calls(**counts: int) -> OpGroups:
    """Return a list of calls; a shape may stand after the name, as in ``add_32x64``."""
    groups = []
    for name, count in counts.items():
        op, _, shape = name.partition("_")
        sizes = tuple(map(int, shape.split("x"))) if shape else ()
        inputs = (Tensor(sizes, sizes, "TILE", "BFLOAT16", "L1"),) if shape else ()
        groups.append(OpGroup(Signature(f"ttnn.{op}", inputs), None, None, "", count, 0.0, 0.0))
    return OpGroups(CALLS, tuple(groups))


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (calls(add=2), calls(add=2), None),
        (calls(add=2), calls(add=3, relu=1), "added: 1 ttnn.add, 1 ttnn.relu"),
        (
            calls(add_32x64=1, exp_8=1),
            calls(add_32x64=1, add_64x64=2),
            "added: 2 ttnn.add 64x64; removed: 1 ttnn.exp 8",
        ),
        # As many of each as before, on other operands, is no other number of ops.
        (calls(add_32x64=1), calls(add_64x64=1), None),
        # Of several shapes, none is named.
        (calls(), calls(add_32x64=1, add_64x64=1), "added: 2 ttnn.add"),
        (
            calls(),
            calls(a=9, b=8, c=7, d=6, e=5, f=4),
            "added: 9 ttnn.a, 8 ttnn.b, 7 ttnn.c, 6 ttnn.d, 2 other kinds",
        ),
    ],
)  # fmt: skip
def test_calls_that_came_and_went(before: OpGroups, after: OpGroups, said: str | None) -> None:
    assert calls_sentence(before, after) == said


def compared(project: Project, before: str, after: str) -> dict[str, Any]:
    files = (str(corpus(f"ops_perf/{name}.csv")) for name in (before, after))
    found: dict[str, Any] = json.loads(project.cli("compare", *files, "--format", "json").text)
    return found


def test_a_changed_setting_is_named_within_noise(project: Project) -> None:
    found = compared(project, "llama70b_pre_grid_tune", "llama70b_final")
    decode = next(each for each in found["regions"] if each["region"] == "decode")
    down = next(part for part in decode["parts"] if part["causes"])
    assert down["name"] == "Matmul 1x1x32x28672 @ 28672x8192"
    assert "shard cores 86 → 64" in down["causes"]
    assert down["within_noise"]
    total = sum(part["delta_ns"] for part in decode["parts"]) + decode["unexplained_ns"]
    assert total == decode["delta_ns"]


@pytest.mark.parametrize(
    ("captures", "name", "code", "times_us"),
    [
        (("segformer_encoder_2024_10", "segformer_encoder_2025_02"),
         "TilizeWithValPadding 1x256x5x32 ROW_MAJOR → TILE", "TTP203", (7878.0, 7878.0)),
        (("gemma_sliding_decode_replicated_v1", "gemma_sliding_decode_final"),
         "Matmul 1x1x1x5376 @ 5376x4096", "TTP311", (40.6, 39.3)),
    ],
)  # fmt: skip
def test_what_a_finding_predicted_stands_beside_what_came(
    project: Project, captures: tuple[str, str], name: str, code: str, times_us: tuple[float, float]
) -> None:
    parts = compared(project, *captures)["parts"]
    part = next(part for part in parts if part["name"] == name and part["predicted_by"])
    assert part["predicted_by"] == code
    # What rules estimate may become better; that they foresaw this change may not get lost.
    assert part["predicted_ns"] / 1000 == pytest.approx(times_us[0], rel=0.5)
    assert -part["delta_ns"] / 1000 == pytest.approx(times_us[1], rel=0.01)


def test_regions_pair_by_the_words_of_their_names(project: Project) -> None:
    found = compared(project, "llama70b_final", "llama70b_mc_final")
    assert [each["region"] for each in found["regions"]] == [
        "multichip_prefill", "multichip_trace_decode",
    ]  # fmt: skip
    assert "decode before is compared with multichip_trace_decode" in found["notes"]


def test_regions_of_other_names_are_paired_on_request() -> None:
    names = ("final_decode", "multichip")
    before, after = (corpus(f"ops_perf/llama_8b_{name}.csv") for name in names)
    with pytest.raises(UsageError, match="--region decode="):
        compare_captures(before, after)
    (change,) = compare_captures(before, after, region="decode=multi_decode").regions
    assert (change.before_ns, change.after_ns) == pytest.approx((1.198e6, 0.3887e6), rel=0.01)
