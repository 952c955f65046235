"""Rules about memory, matmuls, convolutions and devices on real captures.

What they say is held against sums over the plain rows of the same files, and against what is known
of the programs.
"""

from __future__ import annotations

import csv
import itertools
import re
from collections import defaultdict
from functools import cache
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf._base.text import percent
from pytest_ttnn_perf.analysis.captures.ops_csv import read_ops_csv
from pytest_ttnn_perf.analysis.captures.report_db import read_report_db
from pytest_ttnn_perf.analysis.captures.report_db_text import attribute_flag, attribute_int
from pytest_ttnn_perf.analysis.checklist.matmul_and_conv import flag, whole
from pytest_ttnn_perf.analysis.checklist.rule import clean
from pytest_ttnn_perf.analysis.checklist.rules.ttp301_interleaved_activations import (
    interleaved_activations,
)
from pytest_ttnn_perf.analysis.checklist.rules.ttp302_resharding import resharding
from pytest_ttnn_perf.analysis.checklist.rules.ttp303_hot_data_in_dram import hot_data_in_dram
from pytest_ttnn_perf.analysis.checklist.rules.ttp304_low_l1_headroom import low_l1_headroom
from pytest_ttnn_perf.analysis.checklist.rules.ttp305_unused_cores import unused_cores
from pytest_ttnn_perf.analysis.checklist.rules.ttp306_core_skew import core_skew
from pytest_ttnn_perf.analysis.checklist.rules.ttp311_matmul_not_dram_sharded import (
    matmul_not_dram_sharded,
)
from pytest_ttnn_perf.analysis.checklist.rules.ttp312_small_matmul_blocks import small_matmul_blocks
from pytest_ttnn_perf.analysis.checklist.rules.ttp313_matmul_without_program_config import (
    matmul_without_program_config,
)
from pytest_ttnn_perf.analysis.checklist.rules.ttp314_low_matmul_efficiency import (
    low_matmul_efficiency,
)
from pytest_ttnn_perf.analysis.checklist.rules.ttp601_conv_sharding_changes import (
    conv_sharding_changes,
)
from pytest_ttnn_perf.analysis.checklist.rules.ttp602_act_block_h_below_max import (
    act_block_h_below_max,
)
from pytest_ttnn_perf.analysis.checklist.rules.ttp603_act_double_buffer_off import (
    act_double_buffer_off,
)
from pytest_ttnn_perf.analysis.checklist.rules.ttp604_weights_double_buffer_off import (
    weights_double_buffer_off,
)
from pytest_ttnn_perf.analysis.checklist.rules.ttp605_batchnorm_not_folded import (
    batchnorm_not_folded,
)
from pytest_ttnn_perf.analysis.checklist.rules.ttp606_conv_sharding_unsuited import (
    conv_sharding_unsuited,
)
from pytest_ttnn_perf.analysis.checklist.rules.ttp607_low_conv_efficiency import low_conv_efficiency
from pytest_ttnn_perf.analysis.checklist.rules.ttp701_batch_not_divisible import batch_not_divisible
from pytest_ttnn_perf.analysis.checklist.rules.ttp702_weights_not_replicated import (
    weights_not_replicated,
)
from pytest_ttnn_perf.analysis.checklist.rules.ttp703_collective_share import collective_share
from pytest_ttnn_perf.analysis.checklist.rules.ttp704_device_imbalance import device_imbalance
from pytest_ttnn_perf.analysis.checklist.runner import run_rules
from pytest_ttnn_perf.records.finding import RuleOutcome, Subject
from tests.harness.corpus import corpus, corpus_folder
from tests.rules.answers import ask

if TYPE_CHECKING:
    from pytest_ttnn_perf.analysis.checklist.rule import Rule

RULES: tuple[Rule, ...] = (
    interleaved_activations, resharding, hot_data_in_dram, low_l1_headroom, unused_cores, core_skew,
    matmul_not_dram_sharded, small_matmul_blocks, matmul_without_program_config,
    low_matmul_efficiency, conv_sharding_changes, act_block_h_below_max, act_double_buffer_off,
    weights_double_buffer_off, batchnorm_not_folded, conv_sharding_unsuited, low_conv_efficiency,
    batch_not_divisible, weights_not_replicated, collective_share, device_imbalance,
)  # fmt: skip
TABLES = sorted(file.name for file in (corpus_folder() / "ops_perf").glob("*.csv"))
REPORTS = [
    *(f"{name}/db.sqlite" for name in ("cnn_small", "comparison", "mlp_bf16", "mlp_bfp8")),
    "linear_legacy.sqlite",
]
KERNEL = "DEVICE KERNEL DURATION [ns]"
CONV = re.compile("Conv2dDeviceOperation|OptimizedConvNew")
MOVES = re.compile("Reshard|InterleavedToSharded|ShardedToInterleaved")
CLIP, FALCON = "blackhole_clip_encoder.csv", "falcon3_7b_tp4.csv"
OFT, OLD_OFT, DEEPSEEK = (
    "blackhole_oft_conv.csv",
    "oft_2025_09_v2.csv",
    "blackhole_deepseek_8dev.csv",
)


@cache
def of_table(name: str) -> Subject:
    """Return a capture as the checklist looks at it."""
    return Subject(ops=read_ops_csv(corpus(f"ops_perf/{name}")))


def of_report(name: str) -> Subject:
    """Return a report as the checklist looks at it."""
    return Subject(report=read_report_db(corpus(f"report_db/{name}")))


@cache
def rows(name: str) -> list[dict[str, str]]:
    """Return the rows of a capture that have a kernel time, as they stand."""
    with corpus(f"ops_perf/{name}").open(encoding="utf-8", newline="") as stream:
        return [row for row in csv.DictReader(stream) if row[KERNEL]]


def time_of(chosen: list[dict[str, str]]) -> float:
    """Return their kernel time."""
    return sum(float(row[KERNEL]) for row in chosen)


@pytest.mark.parametrize("name", TABLES or [CLIP])
def test_every_rule_answers_on_every_table(name: str) -> None:
    answered(of_table(name))


@pytest.mark.parametrize("name", REPORTS)
def test_every_rule_answers_on_every_report(name: str) -> None:
    answered(of_report(name))


def answered(subject: Subject) -> None:
    """Check that every rule gives an outcome with what belongs to it."""
    findings = run_rules(RULES, subject)
    assert len(findings) == len(RULES) == 21
    for finding in findings:
        tells = finding.value is not None and finding.limit is not None and finding.unit != ""
        is_told = finding.outcome in {RuleOutcome.CLEAN, RuleOutcome.FOUND}
        assert tells is is_told, finding
        assert finding.reason or finding.outcome is RuleOutcome.CLEAN
        assert bool(finding.evidence) is (finding.outcome is RuleOutcome.FOUND), finding


@pytest.mark.parametrize("name", TABLES or [CLIP])
def test_attributes_read_as_the_capture_reads_them(name: str) -> None:
    table = of_table(name).ops
    assert table is not None
    for text in table.attribute_texts:
        for key in ("act_block_h_ntiles", "per_core_out_matrix_height_ntile", "in0_block_w"):
            assert whole(text, key) == attribute_int(text, key)
        for key in ("enable_act_double_buffer", "enable_weights_double_buffer"):
            assert flag(text, key) == attribute_flag(text, key)


@pytest.mark.parametrize(
    ("name", "all_ops", "counted"), [(CLIP, 0.659, 0.617), (FALCON, 0.301, 0.165)]
)
def test_cores_in_use(name: str, all_ops: float, counted: float) -> None:
    def share(chosen: list[dict[str, str]]) -> float:
        used = sum(float(row["CORE COUNT"]) * float(row[KERNEL]) for row in chosen)
        return used / (float(chosen[0]["AVAILABLE WORKER CORE COUNT"]) * time_of(chosen))

    left = [
        row
        for row in rows(name)
        if float(row[KERNEL]) >= 5000
        and "DRAMSharded" not in row["ATTRIBUTES"]
        and not re.search("AllGather|ReduceScatter", row["OP CODE"])
    ]
    assert share(rows(name)) == pytest.approx(all_ops, abs=5e-4)
    assert share(left) == pytest.approx(counted, abs=5e-4)
    assert ask(unused_cores, of_table(name)).value == pytest.approx(share(left))


def test_cores_in_use_by_all_ops() -> None:
    # It has neither collectives nor DRAM-sharded matmuls, so that only short ops are left out.
    assert ask(unused_cores.with_limits(shortest_us=0), of_table(CLIP)).value == pytest.approx(
        0.659, abs=5e-4
    )


@pytest.mark.parametrize(("name", "count"), [(OFT, 117), (FALCON, 240), (CLIP, 0)])
def test_reshards(name: str, count: int) -> None:
    moves = [row for row in rows(name) if MOVES.search(row["OP CODE"])]
    share = time_of(moves) / time_of(rows(name))
    assert len(moves) == count
    answer = ask(resharding.with_limits(share=0.001), of_table(name))
    assert answer.value == pytest.approx(share)
    if count:
        told = f"{percent(share)} of the kernel time only moves tensors, in {count} ops"
        assert answer.reason == told


@pytest.mark.parametrize(("name", "count"), [(OFT, 90), (OLD_OFT, 54)])
def test_double_buffers(name: str, count: int) -> None:
    convolutions = [row["ATTRIBUTES"] for row in rows(name) if CONV.search(row["OP CODE"])]
    assert len(convolutions) == count
    for rule, buffered, key in (
        (act_double_buffer_off, "activations", "enable_act_double_buffer"),
        (weights_double_buffer_off, "weights", "enable_weights_double_buffer"),
    ):
        assert sum(f"'{key}': 'true'" in text for text in convolutions) == 0
        answer = ask(rule, of_table(name))
        reason = f"{buffered} not double-buffered in {count} of {count} convolutions"
        assert (answer.reason, answer.value, answer.limit) == (reason, 1.0, 0.0)


@pytest.mark.parametrize(("name", "ideal"), [(OFT, 0.683), (OLD_OFT, 0.094)])
def test_efficiency_of_convolutions(name: str, ideal: float) -> None:
    modelled = [
        row
        for row in rows(name)
        if CONV.search(row["OP CODE"]) and float(row["PM IDEAL [ns]"] or 1) > 1
    ]
    reached = sum(float(row["PM IDEAL [ns]"]) for row in modelled) / time_of(modelled)
    assert reached == pytest.approx(ideal, abs=5e-4)
    answer = ask(low_conv_efficiency, of_table(name))
    assert answer.value == pytest.approx(reached)
    assert (answer.outcome is RuleOutcome.FOUND) is (ideal < 0.5)


@pytest.mark.parametrize(("name", "changes", "largest"), [(OFT, 0, 5), (OLD_OFT, 4, 3)])
def test_shardings_and_blocks_of_convolutions(name: str, changes: int, largest: int) -> None:
    chosen = [row for row in rows(name) if CONV.search(row["OP CODE"])]
    memory = [re.sub(r"DEV_\d+_", "", row["INPUT_0_MEMORY"]) for row in chosen]
    counted = sum(before != after for before, after in itertools.pairwise(memory))
    assert counted == changes
    assert ask(conv_sharding_changes, of_table(name)).value == changes
    sizes = [
        re.findall(r"(?:act_block_h_ntiles|out_matrix_height_ntile)=(\d+)", row["ATTRIBUTES"])
        for row in chosen
    ]
    assert sum(block == most for block, most in sizes) == largest
    reason = ask(act_block_h_below_max, of_table(name)).reason
    assert reason is not None
    below = f"{len(chosen) - largest} of {len(chosen)} convolutions"
    assert reason.startswith(f"an act_block_h below the largest in {below}; ")


@pytest.mark.parametrize(
    ("name", "share", "excess"), [(DEEPSEEK, 0.153, 0.203), (FALCON, 0.202, 0.001)]
)
def test_devices(name: str, share: float, excess: float) -> None:
    exchanging = re.compile("AllGather|ReduceScatter")
    collectives = [row for row in rows(name) if exchanging.search(row["OP CODE"])]
    answer = ask(collective_share, of_table(name))
    assert answer.value == pytest.approx(time_of(collectives) / time_of(rows(name)))
    assert answer.value == pytest.approx(share, abs=5e-4)
    times: dict[str, float] = defaultdict(float)
    for row in rows(name):
        if not exchanging.search(row["OP CODE"]):
            times[row["DEVICE ID"]] += float(row[KERNEL])
    longest = max(times.values()) * len(times) / sum(times.values()) - 1
    assert ask(device_imbalance, of_table(name)).value == pytest.approx(longest)
    assert longest == pytest.approx(excess, abs=5e-4)


def test_matmuls_without_a_program_config() -> None:
    matmuls = [row for row in rows(CLIP) if "Matmul" in row["OP CODE"]]
    without = [row for row in matmuls if "'program_config': 'std::nullopt'" in row["ATTRIBUTES"]]
    answer = ask(matmul_without_program_config, of_table(CLIP))
    assert (len(without), len(matmuls)) == (48, 192)
    assert answer.value == pytest.approx(time_of(without) / time_of(rows(CLIP)))


@pytest.mark.parametrize(
    ("name", "waits"),
    [("gemma_31b_fused_final.csv", 20), ("north_mini_dense_decode_b1_trace.csv", 0)],
)
def test_matmuls_that_wait_for_dram(name: str, waits: int) -> None:
    size = {"BFLOAT16": 2.0, "BFLOAT8_B": 1.0625, "BFLOAT4_B": 0.5625}
    waiting = []
    for row in rows(name):
        if "Matmul" in row["OP CODE"] and "DRAMSharded" not in row["ATTRIBUTES"]:
            elements = 1
            for axis in "WZYX":
                elements *= int(row[f"INPUT_1_{axis}_PAD[LOGICAL]"].partition("[")[0])
            rate = elements * size[row["INPUT_1_DATATYPE"]] / float(row[KERNEL])
            waiting += [row] if rate >= 0.65 * 512 else []
    assert len(waiting) == waits
    answer = ask(matmul_not_dram_sharded, of_table(name))
    assert answer.value == pytest.approx(time_of(waiting) / time_of(rows(name)))


def test_a_prompt_is_told_from_a_decode_step() -> None:
    prompts = {
        name
        for name in TABLES
        if ask(hot_data_in_dram, of_table(name)).outcome is RuleOutcome.NOT_APPLICABLE
    }
    if not TABLES:
        pytest.skip("the corpus has no captures: set TTNN_PERF_CORPUS to its folder")
    assert prompts == {
        DEEPSEEK,
        "gemma_31b_sliding_prefill_multichip.csv",
        "north_mini_dense_prefill_b1.csv",
        "qwen3_32b_fused_prefill.csv",
    }


def test_a_small_vision_model() -> None:
    # As the README of the corpus lists it, op by op.
    model = of_report("cnn_small/db.sqlite")
    assert [evidence.subject for evidence in ask(resharding, model).evidence] == [
        "ttnn.to_memory_config (operation 7) 1x1x1024x32, HEIGHT → BLOCK",
        "ttnn.conv2d (operation 11) 1x1x1024x64, BLOCK → HEIGHT",
    ]
    assert [evidence.subject for evidence in ask(act_block_h_below_max, model).evidence] == [
        "ttnn.conv2d (operation 1) 1x1x4096x16, act_block_h_override 32 → 64"
    ]
    # Operation 12 ran as a matmul.
    off = {
        re.findall(r"operation (\d+)", e.subject)[0]
        for e in ask(act_double_buffer_off, model).evidence
    }
    assert off == {"3", "9", "18"}
    assert ask(conv_sharding_changes, model).value == 2


def test_room_in_l1() -> None:
    expected = clean(1 - 172_032 / 1_395_424, limit=0.1, unit="of L1")
    assert ask(low_l1_headroom, of_report("linear_legacy.sqlite")) == expected
