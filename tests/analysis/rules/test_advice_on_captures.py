"""Advice on real captures against what was done next, and what that gave."""

from __future__ import annotations

import re
from typing import NamedTuple

import pytest

from pytest_ttnn_perf.analysis.checklist.bottleneck import bottleneck_of
from pytest_ttnn_perf.analysis.checklist.plan import plan_of, start_of
from pytest_ttnn_perf.analysis.checklist.products import matmuls_of
from pytest_ttnn_perf.analysis.checklist.runner import all_rules, run_rules
from pytest_ttnn_perf.analysis.checklist.savings import step_ns
from pytest_ttnn_perf.analysis.ops.names import op_rows
from pytest_ttnn_perf.analysis.ops.regions import step_of
from pytest_ttnn_perf.analysis.ops.roofline import Bound, rooflines
from pytest_ttnn_perf.core.finding import RuleOutcome
from tests.analysis.rules.answers import Ask
from tests.analysis.rules.captures import ops_of, region_of
from tests.analysis.rules.tables import op, table, tensor

NUMBER = re.compile(r"to ([\d.,]+) µs")


class Step(NamedTuple):
    """A step of the tuning of one layer: what the rule says before it, and what it gave."""

    before: str
    after: str
    region: str
    code: str
    told: str
    within: float


CHAIN = [
    # Rows of a batch as one matrix, with the weights in bfloat4_b and other fidelities.
    Step("functional", "pre_down_tune", "decode", "TTP202", "1x32x1x28672 to 1x1x32x28672", 0.03),
    Step("functional", "pre_down_tune", "prefill", "TTP314", "reshape it to rows", 0.06),
]


@pytest.mark.parametrize("step", CHAIN, ids=[f"{step.region}-{step.code}" for step in CHAIN])
def test_what_was_done_is_what_was_advised_and_gave_what_was_predicted(step: Step) -> None:
    before, after = (
        region_of(f"llama70b_{name}.csv", step.region) for name in (step.before, step.after)
    )
    finding = Ask(step.code)(before)
    assert step.told in (finding.fix or "")
    took, now = (step_ns(step_of(each.ops)) for each in (before, after) if each.ops is not None)
    assert finding.saving_ns == pytest.approx(took - now, rel=step.within)


@pytest.mark.parametrize(
    ("before", "after", "advised"),
    [
        ("pre_down_tune", "pre_grid_tune", "`in0_block_w=4`"),
        # 86 to 64 cores gave 9 µs more: blocks were large enough before it.
        ("pre_grid_tune", "final", None),
    ],
)
def test_blocks_of_one_matmul(before: str, after: str, advised: str | None) -> None:
    name = "Matmul 1x1x32x28672 @ 28672x8192"
    fix = Ask("TTP311")(region_of(f"llama70b_{before}.csv", "decode")).fix or ""
    assert (f"{advised} takes {name}" in fix) is (advised is not None), fix
    if advised:
        table_after = region_of(f"llama70b_{after}.csv", "decode").ops
        assert table_after is not None
        times = [
            placed.op.kernel_ns
            for placed in matmuls_of(step_of(table_after))
            if placed.first is not None and placed.first.shape[-1] == 28672
        ]
        (predicted,) = NUMBER.findall(fix)
        assert float(predicted) * 1000 == pytest.approx(min(times), rel=0.05)


def test_more_readers_are_advised_where_the_cores_at_the_banks_compute() -> None:
    decode = region_of("qwen3_32b_bfp4.csv", "decode")
    finding = Ask("TTP316")(decode)
    assert "`num_workers_per_dram_bank=2`" in (finding.fix or "")
    assert finding.saving_ns == pytest.approx(250_000, rel=0.05)
    held = bottleneck_of(decode, {})
    assert held is not None
    assert "held up by computing on the 8 cores" in held.sentence
    assert decode.ops is not None
    matmuls = matmuls_of(step_of(decode.ops))
    assert {matmul.line.bound for matmul in matmuls} <= {Bound.COMPUTE, Bound.BOTH}


def test_a_capture_with_two_readers_is_possible() -> None:
    weights = tensor(1, 1, 5120, 25600, dtype="BFLOAT4_B", memory="DRAM_WIDTH_SHARDED")
    row, given = (tensor(1, 1, 32, many, memory="L1_WIDTH_SHARDED") for many in (5120, 25600))
    config = "MatmulMultiCoreReuseMultiCastDRAMShardedProgramConfig(in0_block_w=4"
    texts = [f"{config})", f"{config};num_workers_per_dram_bank=2)"]
    one, two = rooflines(
        table(
            *(
                op("Matmul", [row, weights], [given], ns=165_000, fidelity="LoFi", attributes=text)
                for text in texts
            ),
            arch="blackhole",
        )
    )
    assert (one.stale, two.stale) == (True, False)


def test_silu_at_the_banks_is_found_and_never_advised() -> None:
    decode = region_of("qwen27_incumbent_full_attention_ops.csv", "decode")
    finding = Ask("TTP316")(decode)
    (named,) = (each for each in finding.evidence if "SiLU elsewhere" in each.subject)
    twin = next(each for each in finding.evidence if each.subject.endswith("(2 readers)"))
    # The same matmul without it takes 65.6 µs less; the multiply takes 9.5 µs more.
    gained = (named.value or 0.0) - (twin.value or 0.0)
    assert gained == pytest.approx(65_600 - 9_500, rel=0.05)
    assert "`fused_activation`" not in (Ask("TTP310")(decode).fix or "")


def test_an_elementwise_op_on_shards_is_not_scaled_by_cores_alone() -> None:
    decode = region_of("qwen27_incumbent_full_attention_ops.csv", "decode")
    evidence = Ask("TTP305", {"share": 0.0})(decode).evidence
    predicted = next(each.value for each in evidence if each.subject.startswith("BinaryNg MUL"))
    assert predicted == pytest.approx(16_000, rel=0.2), "the next capture gave 16"


def test_only_ops_beyond_the_peak_are_named_as_stale() -> None:
    finding = Ask("TTP012")(ops_of("rt_detr.csv"))
    assert finding.value == pytest.approx(0.042, abs=0.002)
    assert all((each.value or 0.0) > 1 for each in finding.evidence)


def test_a_plan_says_what_has_no_model_and_counts_formats_that_it_makes() -> None:
    def planned(name: str, region: str) -> tuple[str, float, float]:
        subject = region_of(name, region)
        start = start_of(subject, {})
        assert start is not None
        plan = plan_of(run_rules(all_rules(), subject), start)
        return plan.start.no_model, start.ideal_ns or 0.0, plan.start.ideal_ns or 0.0

    assert "Matmul (8" in planned("north_mini_moe_rope_decode_b32.csv", "decode")[0]
    _, wide, narrow = planned("llama70b_functional.csv", "decode")
    assert narrow < 0.6 * wide


def test_experts_that_most_tokens_hit_are_no_finding() -> None:
    decode = region_of("north_mini_moe_rope_decode_b32.csv", "decode")
    finding = Ask("TTP320")(decode)
    assert finding.outcome is RuleOutcome.NOT_APPLICABLE
    assert "experts are hit" in (finding.reason or "")


def test_the_choice_of_a_router_is_no_uneven_cut() -> None:
    decode = region_of("gpt_oss_multichip.csv", "gpt_oss_multichip_decode_layer12")
    assert Ask("TTP704")(decode).outcome is RuleOutcome.CLEAN
    fix = Ask("TTP320")(decode).fix or ""
    assert "`indices=`" in fix
    assert "`nnz`" not in fix, "devices are hit by other numbers of experts"
    prefill = Ask("TTP320")(region_of("gpt_oss_multichip.csv", "gpt_oss_multichip_prefill_layer12"))
    assert "32 tokens in one tile" in (prefill.fix or "")


def test_a_matmul_without_a_config_is_given_one_first() -> None:
    finding = Ask("TTP314")(ops_of("bh_p100_dlv3.csv"))
    fix = finding.fix or ""
    assert "without a program config" in fix
    assert "packer_l1_acc" not in fix
    ops = ops_of("bh_p100_dlv3.csv").ops
    assert ops is not None
    rows = {row.number: row for row in op_rows(ops)}
    apart = [row for number, row in rows.items() if number + 1 in rows and "Matmul" in row.name]
    assert not any("RELU" in row.config for row in apart if "RELU" in rows[row.number + 1].name)


def test_a_matmul_keeps_its_config_and_the_steps_of_its_subblock() -> None:
    batched = Ask("TTP314")(region_of("north_mini_moe_rope_decode_b32.csv", "decode")).fix or ""
    assert "ReuseProgramConfig" not in batched
    assert "in 2 rounds on 100 cores" in batched
    prefill = Ask("TTP314")(region_of("qwen3_32b_multichip.csv", "multichip_prefill"))
    assert not any("per_core_N=37" in each.subject for each in prefill.evidence)


def test_narrower_weights_of_a_sharded_matmul_are_bound_by_its_few_cores() -> None:
    finding = Ask("TTP101")(region_of("qwen27_incumbent_full_attention_ops.csv", "decode"))
    assert finding.saving_ns == pytest.approx(57_000, rel=0.05)
    assert "LoFi" in (finding.fix or "")


def test_advice_promises_what_models_reach_and_removes_what_is_slow() -> None:
    slow = Ask("TTP607")(ops_of("bh_p100_dlv3.csv"))
    assert slow.saving_ns == pytest.approx(1_020_000, rel=0.02), "its best convolution: 43 %"
    prefill = region_of("qwen3_32b_multichip.csv", "multichip_prefill")
    assert not any("ReshapeView" in each.subject for each in Ask("TTP307")(prefill).evidence)
    heads = Ask("TTP307")(region_of("qwen27_incumbent_full_attention_ops.csv", "decode"))
    assert heads.saving_ns == pytest.approx(85_500, rel=0.02)
    assert "of gaps outside of replays" in (Ask("TTP309")(prefill).arithmetic or "")
    decode = region_of("qwen3_32b_multichip.csv", "multichip_decode")
    assert "drop the reshape" in (Ask("TTP202")(decode).fix or "")


def test_a_broadcast_that_is_summed_up_is_an_all_reduce() -> None:
    decode = region_of("gpt_oss_multichip.csv", "gpt_oss_multichip_decode_layer12")
    finding = Ask("TTP703")(decode)
    assert "`all_reduce`" in (finding.fix or "")
    assert finding.saving_ns == pytest.approx(52_000, rel=0.05)
