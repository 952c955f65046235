"""Real captures: rules about host, queues and kernels, against what plain csv makes of them."""

from __future__ import annotations

import json
from collections import defaultdict

import pytest

from pytest_ttnn_perf.core.finding import RuleOutcome
from tests.harness.corpus import corpus
from tests.rules.answers import Ask, Subject, clean, not_applicable
from tests.rules.captures import KERNEL, log_of, ops_of, report_of, rows_of

GAP = "OP TO OP LATENCY [ns]"
REPLAY = ("DEVICE ID", "METAL TRACE ID", "METAL TRACE REPLAY SESSION ID")

Row = dict[str, str]


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
    answer = Ask("TTP401").with_limits(share=share * 1.01)(ops_of(name))
    assert answer.value == pytest.approx(share)
    assert answer == clean(answer.value, limit=share * 1.01, unit="of the time")
    assert Ask("TTP401").with_limits(share=share * 0.99)(ops_of(name)).outcome is RuleOutcome.FOUND


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
    slowest = max(
        window(name, signpost), key=lambda sequence: sum(float(row[KERNEL]) for row in sequence)
    )
    for rule, part in (("TTP401", share), ("TTP402", waiting([slowest]))):
        answer = Ask(rule)(ops_of(name))
        assert answer.value == pytest.approx(part)
        assert answer.outcome is (RuleOutcome.FOUND if share > 0.2 else RuleOutcome.CLEAN)


def test_host_fallbacks_keep_a_trace_out() -> None:
    name = "distilbert_2024_v1.csv"
    fallbacks = sum(row["OP TYPE"] == "python_fallback" for row in rows_of(name))
    reason = f"no trace can hold ops that run on the host: {fallbacks} ops"
    assert fallbacks == 8
    assert Ask("TTP402")(ops_of(name)) == not_applicable(reason)


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
    assert Ask("TTP403")(ops_of(name)) == clean(0, limit=0, unit="executions that differ")


def test_replays_that_lost_ops_are_not_compared() -> None:
    name = "qwen_27b_linear_incomplete_replays.csv"
    assert len({len(replay) for replay in replays(name)}) > 1
    answer = Ask("TTP403")(ops_of(name))
    assert answer.outcome is RuleOutcome.NOT_MEASURED
    assert (answer.reason or "").startswith("replays are not complete (TTP002): trace ")


def summary() -> tuple[Subject, list[dict[str, int]], int]:
    """Return the text of a perf summary, and what its JSON form says of the programs."""
    told = json.loads(corpus("ttlang/v1_1_1_perf_summary.json").read_text(encoding="utf-8"))
    return log_of("v1_1_1_perf_summary.txt"), told["programs"], told["max_compute_cores"]


def test_cores_of_a_real_summary() -> None:
    subject, programs, cores = summary()
    # The second moves 0.24 GB/s on two cores: it waits, and does not count.
    assert [program["num_cores"] for program in programs] == [4, 2]
    answer = Ask("TTP801")(subject)
    assert answer.outcome is RuleOutcome.FOUND
    assert answer.value == pytest.approx(4 / cores)


def test_transfers_and_barriers_of_a_real_summary() -> None:
    subject, programs, _ = summary()
    assert [program["read_barriers"] for program in programs] == [16, 8]
    reads = [program["dram_read_count"] + program["l1_read_count"] for program in programs]
    barriers = Ask("TTP805")(subject)
    assert barriers.outcome is RuleOutcome.CLEAN
    assert barriers.value == min(reads[0] / 16, reads[1] / 8)
    # 512 and 140 of one tile each, which are as large as a page, and 8 of 64 B.
    assert Ask("TTP803")(subject).value == pytest.approx(8 / (512 + 214))


@pytest.mark.parametrize("name", ["v1_1_1_auto_profile.ansi.txt", "v1_1_1_auto_profile.plain.txt"])
def test_the_bound_of_a_real_kernel(name: str) -> None:
    answer = Ask("TTP804").with_limits(waiting=0.6)(log_of(name))
    assert answer.reason == "memory-bound: computing takes 18.0 % fewer cycles than moving data"
    assert answer.value == pytest.approx((779 - 636) / 779, abs=0.005)
    assert Ask("TTP804")(log_of(name)).reason == (
        "every thread waits for 53.7 % or more of its cycles (TTP808): neither moving data nor "
        "computing binds"
    )


def test_padding_of_a_real_report() -> None:
    # Read by the host: 50 x 64 of bfloat16 in 64 x 64, and 50 x 100 of float32 in 64 x 128.
    data, sent = 50 * 64 * 2 + 50 * 100 * 4, 64 * 64 * 2 + 64 * 128 * 4
    subject = report_of("mlp_bf16/db.sqlite")
    answer = Ask("TTP504")(subject)
    assert answer.reason == "14.22 KiB in all: too little to matter in a transfer"
    assert answer.value == pytest.approx(1 - data / sent)
    found = Ask("TTP504", {"worth": 0.0})(subject)
    assert found.reason == "35.5 % of what is read in 2 transfers is padding"
    assert Ask("TTP505")(subject) == clean(sent, limit=2**20, unit="B")
