"""Real captures: rules about host, queues and kernels, against what plain csv makes of them."""

from __future__ import annotations

import csv
import json
from collections import defaultdict

import pytest

from pytest_ttnn_perf.analysis.captures.ops_csv import read_ops_csv
from pytest_ttnn_perf.analysis.captures.report_db import read_report_db
from pytest_ttnn_perf.analysis.captures.ttlang_log import read_ttlang_log
from pytest_ttnn_perf.analysis.checklist.rule import Answer
from pytest_ttnn_perf.analysis.checklist.rules.ttp401_host_bound import host_bound
from pytest_ttnn_perf.analysis.checklist.rules.ttp402_trace_not_used import trace_not_used
from pytest_ttnn_perf.analysis.checklist.rules.ttp403_dynamic_shapes import dynamic_shapes
from pytest_ttnn_perf.analysis.checklist.rules.ttp404_device_behind_e2e import device_behind_e2e
from pytest_ttnn_perf.analysis.checklist.rules.ttp405_trace_region_missing import (
    trace_region_missing,
)
from pytest_ttnn_perf.analysis.checklist.rules.ttp406_program_cache_off import program_cache_off
from pytest_ttnn_perf.analysis.checklist.rules.ttp407_optimization_level_zero import (
    optimization_level_zero,
)
from pytest_ttnn_perf.analysis.checklist.rules.ttp501_one_command_queue import one_command_queue
from pytest_ttnn_perf.analysis.checklist.rules.ttp502_low_io_overlap import low_io_overlap
from pytest_ttnn_perf.analysis.checklist.rules.ttp503_transfer_bound import transfer_bound
from pytest_ttnn_perf.analysis.checklist.rules.ttp504_padded_host_transfer import (
    padded_host_transfer,
)
from pytest_ttnn_perf.analysis.checklist.rules.ttp505_output_on_compute_queue import (
    output_on_compute_queue,
)
from pytest_ttnn_perf.analysis.checklist.rules.ttp801_grid_underused import grid_underused
from pytest_ttnn_perf.analysis.checklist.rules.ttp803_small_transfers import small_transfers
from pytest_ttnn_perf.analysis.checklist.rules.ttp804_bound import bound
from pytest_ttnn_perf.analysis.checklist.rules.ttp805_barrier_per_transfer import (
    barrier_per_transfer,
)
from pytest_ttnn_perf.analysis.checklist.runner import run_rules
from pytest_ttnn_perf.records.finding import RuleOutcome, Subject
from tests.harness.corpus import corpus, corpus_folder
from tests.rules.answers import ask

RULES = (
    host_bound, trace_not_used, dynamic_shapes, device_behind_e2e, trace_region_missing,
    program_cache_off, optimization_level_zero, one_command_queue, low_io_overlap, transfer_bound,
    padded_host_transfer, output_on_compute_queue, grid_underused, small_transfers, bound,
    barrier_per_transfer,
)  # fmt: skip
CSV = sorted(file.name for file in (corpus_folder() / "ops_perf").glob("*.csv"))
LOGS = sorted(file.name for file in (corpus_folder() / "ttlang").glob("*.txt"))
DATABASES = ("cnn_small/db.sqlite", "comparison/db.sqlite", "mlp_bf16/db.sqlite")
KERNEL, GAP = "DEVICE KERNEL DURATION [ns]", "OP TO OP LATENCY [ns]"
REPLAY = ("DEVICE ID", "METAL TRACE ID", "METAL TRACE REPLAY SESSION ID")

Row = dict[str, str]


def rows_of(name: str) -> list[Row]:
    with corpus(f"ops_perf/{name}").open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def ops_of(name: str) -> Subject:
    return Subject(ops=read_ops_csv(corpus(f"ops_perf/{name}")))


def replays(name: str) -> list[list[Row]]:
    """Return the ops of every replay, as the device began them."""
    found: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in rows_of(name):
        if row[REPLAY[1]] and row[KERNEL]:
            found[tuple(row[part] for part in REPLAY)].append(row)
    return [
        sorted(each, key=lambda row: int(row["DEVICE FW START CYCLE"])) for each in found.values()
    ]


def window(name: str, signpost: str) -> list[list[Row]]:
    """Return the ops between two signposts, of each device."""
    found: dict[str, list[Row]] = defaultdict(list)
    inside = False
    for row in rows_of(name):
        if row["OP TYPE"] == "signpost":
            inside = row["OP CODE"] == signpost
        elif inside and row[KERNEL]:
            found[row["DEVICE ID"]].append(row)
    return list(found.values())


def waiting(sequences: list[list[Row]]) -> float:
    gaps = sum(float(row[GAP]) for sequence in sequences for row in sequence[1:])
    return gaps / (gaps + sum(float(row[KERNEL]) for sequence in sequences for row in sequence))


@pytest.mark.parametrize("name", CSV or ["falcon3_7b_tp4.csv"])
def test_every_rule_answers_on_every_capture(name: str) -> None:
    findings = run_rules(RULES, ops_of(name))
    assert [finding.code for finding in findings] == [rule.code for rule in RULES]
    assert all(finding.reason for finding in findings if finding.outcome is not RuleOutcome.CLEAN)


@pytest.mark.parametrize("name", LOGS or ["v1_1_1_perf_summary.txt"])
def test_every_rule_answers_on_every_log(name: str) -> None:
    subject = Subject(kernels=read_ttlang_log(corpus(f"ttlang/{name}")))
    findings = run_rules(RULES, subject)
    assert all(finding.reason for finding in findings if finding.outcome is not RuleOutcome.CLEAN)


@pytest.mark.parametrize("name", DATABASES)
def test_every_rule_answers_on_every_report(name: str) -> None:
    subject = Subject(report=read_report_db(corpus(f"report_db/{name}")))
    findings = run_rules(RULES, subject)
    assert all(finding.reason for finding in findings if finding.outcome is not RuleOutcome.CLEAN)


@pytest.mark.parametrize(
    ("name", "percent"),
    [
        ("qwen3_32b_fused_decode.csv", 0.02),
        ("gemma_31b_fused_final.csv", 2.0),
        ("falcon3_7b_tp4.csv", 12.2),
        ("north_mini_dense_decode_b1_trace.csv", 13.5),
    ],
)
def test_gaps_inside_replays(name: str, percent: float) -> None:
    share = waiting(replays(name))
    assert share * 100 == pytest.approx(percent, abs=0.05 if percent > 1 else 0.005)
    answer = ask(host_bound.with_limits(share=share * 1.01), ops_of(name))
    assert answer.value == pytest.approx(share)
    assert answer == Answer(RuleOutcome.CLEAN, None, answer.value, share * 1.01, "of the time")
    assert (
        ask(host_bound.with_limits(share=share * 0.99), ops_of(name)).outcome is RuleOutcome.FOUND
    )


@pytest.mark.parametrize(
    ("name", "signpost", "percent"),
    [
        ("gemma_31b_sliding_prefill_multichip.csv", "MC_sliding_attention_PREFILL", 63.75),
        ("llama_8b_final_decode.csv", "PERF_DECODE", 26.65),
        ("gpt_oss_20b_fused_decode.csv", "FUSED_DECODE", 7.56),
        ("qwen3_32b_fused_prefill.csv", "FUSED_PREFILL", 0.27),
    ],
)
def test_gaps_inside_windows(name: str, signpost: str, percent: float) -> None:
    share = waiting(window(name, signpost))
    assert share * 100 == pytest.approx(percent, abs=0.005)
    for rule in (host_bound, trace_not_used):
        answer = ask(rule, ops_of(name))
        assert answer.value == pytest.approx(share)
        assert answer.outcome is (RuleOutcome.FOUND if share > 0.2 else RuleOutcome.CLEAN)


def test_host_fallbacks_keep_a_trace_out() -> None:
    name = "distilbert_2024_v1.csv"
    fallbacks = sum(row["OP TYPE"] == "python_fallback" for row in rows_of(name))
    reason = f"no trace can hold ops that run on the host: {fallbacks} ops"
    assert fallbacks == 8
    assert ask(trace_not_used, ops_of(name)) == Answer(RuleOutcome.NOT_APPLICABLE, reason)


@pytest.mark.parametrize(
    ("name", "executions"),
    [
        ("falcon3_7b_tp4.csv", 12),
        ("gemma_31b_fused_final.csv", 2),
        ("qwen3_32b_fused_decode.csv", 2),
    ],
)
def test_replays_that_are_alike(name: str, executions: int) -> None:
    ran = [[row["OP CODE"] for row in replay] for replay in replays(name)]
    assert len(ran) == executions
    assert all(codes == ran[0] for codes in ran)
    assert ask(dynamic_shapes, ops_of(name)) == Answer(
        RuleOutcome.CLEAN, None, 0, 0, "executions that differ"
    )


def test_replays_that_lost_ops_are_not_compared() -> None:
    name = "qwen_27b_linear_incomplete_replays.csv"
    assert len({len(replay) for replay in replays(name)}) > 1
    answer = ask(dynamic_shapes, ops_of(name))
    assert answer.outcome is RuleOutcome.NOT_MEASURED
    assert (answer.reason or "").startswith("replays are not complete (TTP002): trace ")


def summary() -> tuple[Subject, list[dict[str, int]], int]:
    """Return the text of a perf summary, and what its JSON form says of the programs."""
    told = json.loads(corpus("ttlang/v1_1_1_perf_summary.json").read_text(encoding="utf-8"))
    log = read_ttlang_log(corpus("ttlang/v1_1_1_perf_summary.txt"))
    return Subject(kernels=log), told["programs"], told["max_compute_cores"]


def test_cores_of_a_real_summary() -> None:
    subject, programs, cores = summary()
    cycles = sum(program["duration_cycles"] for program in programs)
    used = sum(program["num_cores"] * program["duration_cycles"] for program in programs)
    answer = ask(grid_underused, subject)
    assert answer.outcome is RuleOutcome.FOUND
    assert answer.value == pytest.approx(used / cores / cycles)


def test_transfers_and_barriers_of_a_real_summary() -> None:
    subject, programs, _ = summary()
    assert [program["read_barriers"] for program in programs] == [16, 8]
    reads = [program["dram_read_count"] + program["l1_read_count"] for program in programs]
    barriers = ask(barrier_per_transfer, subject)
    assert barriers.outcome is RuleOutcome.CLEAN
    assert barriers.value == min(reads[0] / 16, reads[1] / 8)
    # 512 of one tile each, and 8 + 140 of 214 that are no larger.
    assert ask(small_transfers, subject).value == pytest.approx((512 + 148) / (512 + 214))


@pytest.mark.parametrize("name", ["v1_1_1_auto_profile.ansi.txt", "v1_1_1_auto_profile.plain.txt"])
def test_the_bound_of_a_real_kernel(name: str) -> None:
    answer = ask(bound, Subject(kernels=read_ttlang_log(corpus(f"ttlang/{name}"))))
    assert answer.reason == "memory-bound: 18.0 % of moving data has no computing beside it"
    assert answer.value == pytest.approx((779 - 636) / 779, abs=0.005)


def test_padding_of_a_real_report() -> None:
    # Read by the host: 50 x 64 of bfloat16 in 64 x 64, and 50 x 100 of float32 in 64 x 128.
    data, sent = 50 * 64 * 2 + 50 * 100 * 4, 64 * 64 * 2 + 64 * 128 * 4
    subject = Subject(report=read_report_db(corpus("report_db/mlp_bf16/db.sqlite")))
    answer = ask(padded_host_transfer, subject)
    assert answer.outcome is RuleOutcome.FOUND
    assert answer.value == pytest.approx(1 - data / sent)
    outputs = Answer(RuleOutcome.CLEAN, None, sent, 2**20, "B")
    assert ask(output_on_compute_queue, subject) == outputs
