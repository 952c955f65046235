"""Rules on validity, formats, layouts and targets over real captures, and against plain csv."""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from math import prod
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.analysis.captures.ops_csv import read_ops_csv
from pytest_ttnn_perf.analysis.captures.report_db import read_report_db
from pytest_ttnn_perf.analysis.captures.ttlang_log import read_ttlang_log
from pytest_ttnn_perf.analysis.checklist.rules.ttp001_profiler_data_dropped import (
    profiler_data_dropped,
)
from pytest_ttnn_perf.analysis.checklist.rules.ttp002_incomplete_trace_replay import (
    incomplete_trace_replay,
)
from pytest_ttnn_perf.analysis.checklist.rules.ttp003_cold_samples import cold_samples
from pytest_ttnn_perf.analysis.checklist.rules.ttp004_conflicting_environment import (
    conflicting_environment,
)
from pytest_ttnn_perf.analysis.checklist.rules.ttp005_many_kernel_invocations import (
    many_kernel_invocations,
)
from pytest_ttnn_perf.analysis.checklist.rules.ttp006_busy_host import busy_host
from pytest_ttnn_perf.analysis.checklist.rules.ttp007_host_fallback import host_fallback
from pytest_ttnn_perf.analysis.checklist.rules.ttp101_weights_not_bfloat8 import weights_not_bfloat8
from pytest_ttnn_perf.analysis.checklist.rules.ttp102_float32_tensors import float32_tensors
from pytest_ttnn_perf.analysis.checklist.rules.ttp103_fidelity_above_need import fidelity_above_need
from pytest_ttnn_perf.analysis.checklist.rules.ttp104_activations_above_bfloat16 import (
    activations_above_bfloat16,
)
from pytest_ttnn_perf.analysis.checklist.rules.ttp105_bfp8_without_bfloat16_cast import (
    bfp8_without_bfloat16_cast,
)
from pytest_ttnn_perf.analysis.checklist.rules.ttp201_row_major_compute import row_major_compute
from pytest_ttnn_perf.analysis.checklist.rules.ttp202_tile_padding import tile_padding
from pytest_ttnn_perf.analysis.checklist.rules.ttp901_pcc_below_limit import pcc_below_limit
from pytest_ttnn_perf.analysis.checklist.rules.ttp902_pcc_not_checked import pcc_not_checked
from pytest_ttnn_perf.analysis.checklist.rules.ttp903_non_finite_output import non_finite_output
from pytest_ttnn_perf.analysis.checklist.rules.ttp904_pcc_dropped import pcc_dropped
from pytest_ttnn_perf.analysis.checklist.rules.ttp905_target_missed import target_missed
from pytest_ttnn_perf.analysis.checklist.rules.ttp906_pcc_limit_lowered import pcc_limit_lowered
from pytest_ttnn_perf.analysis.checklist.runner import run_rules
from pytest_ttnn_perf.records.finding import RuleOutcome, Subject
from tests.harness.corpus import corpus, corpus_folder
from tests.rules.answers import ask

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_ttnn_perf.analysis.checklist.rule import Rule

RULES: list[Rule] = [
    profiler_data_dropped, incomplete_trace_replay, cold_samples, conflicting_environment,
    many_kernel_invocations, busy_host, host_fallback, weights_not_bfloat8, float32_tensors,
    fidelity_above_need, activations_above_bfloat16, bfp8_without_bfloat16_cast, row_major_compute,
    tile_padding, pcc_below_limit, pcc_not_checked, non_finite_output, pcc_dropped,
    target_missed, pcc_limit_lowered,
]  # fmt: skip
CAPTURES = sorted(file.name for file in (corpus_folder() / "ops_perf").glob("*.csv"))
REPORTS = [
    *(f"{name}/db.sqlite" for name in ("cnn_small", "comparison", "mlp_bf16", "mlp_bfp8")),
    "linear_legacy.sqlite",
]
LOGS = sorted(file.name for file in (corpus_folder() / "ttlang").glob("*.txt"))
BYTES = {
    "FLOAT32": 4, "INT32": 4, "UINT32": 4, "BFLOAT16": 2, "UINT16": 2,
    "BFLOAT8_B": 1.0625, "BFLOAT4_B": 0.5625,
}  # fmt: skip
KERNEL = "DEVICE KERNEL DURATION [ns]"


def ops_of(name: str) -> Subject:
    """Return a capture."""
    return Subject(ops=read_ops_csv(corpus(f"ops_perf/{name}")))


def report_of(name: str) -> Subject:
    """Return a report."""
    return Subject(report=read_report_db(corpus(f"report_db/{name}")))


def rows_of(name: str) -> Iterator[dict[str, str]]:
    """Yield the rows of a capture that ran on a device, as the file has them."""
    with corpus(f"ops_perf/{name}").open(encoding="utf-8", newline="") as stream:
        yield from (row for row in csv.DictReader(stream) if row.get(KERNEL))


def operands_of(row: dict[str, str]) -> Iterator[tuple[str, list[int], list[int], str, str]]:
    """Yield the operands of a row: slot, padded and logical shape, layout, data type."""
    for column in [name for name in row if name.endswith("_DATATYPE") and row[name]]:
        slot = column.removesuffix("_DATATYPE")
        cells = [row[f"{slot}_{axis}_PAD[LOGICAL]"] for axis in "WZYX"]
        shapes = [[int(number) for number in re.findall(r"\d+", cell)] for cell in cells]
        padded, logical = [pair[0] for pair in shapes], [pair[1] for pair in shapes]
        yield slot, padded, logical, row[f"{slot}_LAYOUT"], row[column]


def told(subject: Subject) -> dict[str, RuleOutcome]:
    """Return the outcome of every rule; each must say why it cannot tell."""
    findings = run_rules(RULES, subject)
    for finding in findings:
        unclear = finding.outcome in {RuleOutcome.NOT_MEASURED, RuleOutcome.NOT_APPLICABLE}
        assert finding.reason or not (unclear or finding.outcome is RuleOutcome.FOUND)
    return {finding.code: finding.outcome for finding in findings}


@pytest.mark.parametrize("name", CAPTURES or ["blackhole_clip_encoder.csv"])
def test_every_rule_answers_on_every_capture(name: str) -> None:
    outcomes = told(ops_of(name))
    assert len(outcomes) == len(RULES)
    assert outcomes["TTP901"] is RuleOutcome.NOT_MEASURED


@pytest.mark.parametrize("name", REPORTS)
def test_every_rule_answers_on_every_report(name: str) -> None:
    assert told(report_of(name))["TTP103"] is RuleOutcome.NOT_MEASURED


@pytest.mark.parametrize("name", LOGS or ["demo-one.txt"])
def test_every_rule_answers_on_every_log(name: str) -> None:
    subject = Subject(kernels=read_ttlang_log(corpus(f"ttlang/{name}")))
    lost = name in {"demo-one.txt", "signpost_docs.txt"}
    assert told(subject)["TTP001"] is (RuleOutcome.FOUND if lost else RuleOutcome.CLEAN)


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
    for row in rows_of(name):
        for _, padded, logical, layout, _ in operands_of(row):
            if layout == "TILE":
                padded_elements += prod(padded)
                elements += prod(logical)
    answer = ask(tile_padding, ops_of(name))
    assert answer.value == pytest.approx(padded_elements / elements - 1)
    assert answer.value == pytest.approx(percent / 100, abs=0.0005)


@pytest.mark.parametrize(
    "name",
    ["gemma_31b_fused_final.csv", "qwen_27b_linear_incomplete_replays.csv", "falcon3_7b_tp4.csv"],
)
def test_share_of_float32(name: str) -> None:
    sizes: dict[tuple[str, str], float] = defaultdict(float)
    for row in rows_of(name):
        for slot, padded, _, _, dtype in operands_of(row):
            sizes[slot.partition("_")[0], dtype] += prod(padded) * BYTES[dtype]
    everything = sizes["INPUT", "FLOAT32"] + sizes["OUTPUT", "FLOAT32"]
    given = sum(size for (role, _), size in sizes.items() if role == "OUTPUT")
    subject = ops_of(name)
    assert ask(float32_tensors, subject).value == pytest.approx(everything / sum(sizes.values()))
    answer = ask(activations_above_bfloat16, subject)
    assert answer.value == pytest.approx(sizes["OUTPUT", "FLOAT32"] / given)


def test_fidelity_above_need() -> None:
    name = "oft_2025_09_v2.csv"
    above = total = 0.0
    for row in rows_of(name):
        if row["OP CODE"] in {"Matmul", "OptimizedConvNew"}:
            total += float(row[KERNEL])
            if row["INPUT_1_DATATYPE"] == "BFLOAT8_B" and row["MATH FIDELITY"] == "HiFi4":
                above += float(row[KERNEL])
    assert ask(fidelity_above_need, ops_of(name)).value == pytest.approx(above / total)
    assert ask(fidelity_above_need, ops_of("falcon3_7b_tp4.csv")).value == 0.0


def test_weights_of_an_encoder_are_told_from_its_attention() -> None:
    name = "blackhole_clip_encoder.csv"
    # The products of attention have twelve heads, in both operands.
    shapes = {
        tuple(padded)
        for row in rows_of(name)
        if "Matmul" in row["OP CODE"]
        for slot, padded, _, _, _ in operands_of(row)
        if slot == "INPUT_1" and padded[1] == 1
    }
    saved = sum(prod(shape) * (2 - 1.0625) for shape in shapes)
    answer = ask(weights_not_bfloat8, ops_of(name))
    assert answer.value == 1.0
    assert len(answer.evidence) == len(shapes) == 3
    assert sum(each.value or 0 for each in answer.evidence) == pytest.approx(saved)


@pytest.mark.parametrize(
    ("name", "share"),
    [("mlp_bf16/db.sqlite", 1.0), ("mlp_bfp8/db.sqlite", 0.0), ("comparison/db.sqlite", 0.5517)],
)
def test_weights_of_a_report(name: str, share: float) -> None:
    assert ask(weights_not_bfloat8, report_of(name)).value == pytest.approx(share, abs=0.0001)


def test_replays_and_fallbacks_that_are_known() -> None:
    broken = ask(incomplete_trace_replay, ops_of("qwen_27b_linear_incomplete_replays.csv"))
    assert [(each.subject, each.value) for each in broken.evidence] == [("trace 0 on device 3", 15)]
    fallbacks = ask(host_fallback, ops_of("distilbert_2024_v1.csv"))
    assert (fallbacks.outcome, fallbacks.value) == (RuleOutcome.FOUND, 8)


@pytest.mark.parametrize("name", ["distilbert_2024_v1.csv", "tiny_slice_fallback.csv"])
def test_captures_without_logical_shapes_tell_no_padding(name: str) -> None:
    answer = ask(tile_padding, ops_of(name))
    assert (answer.outcome, answer.value) == (RuleOutcome.NOT_MEASURED, None)
