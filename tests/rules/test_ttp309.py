"""Loops over the same small ops."""

from __future__ import annotations

from tests.rules.answers import Ask, Evidence, limit
from tests.rules.captures import region_of
from tests.rules.tables import Op, op, table, tensor

ask = Ask("TTP309")
LIMIT = limit(0.02, "of a step")
CACHE, USER = tensor(32, 8, 128, 128), tensor(1, 8, 32, 128)
MATMUL = op("Matmul", [USER], [USER], ns=200_000.0)
TURN = (
    op("SliceDeviceOperation", [CACHE], [USER], ns=1_500.0),
    op("UpdateKVCacheDeviceOperation", [CACHE, USER], [CACHE], ns=3_000.0),
)


def test_a_loop_over_users() -> None:
    ops = table(MATMUL, *TURN * 32, MATMUL)
    saved = 31 * (1_500 + 2_000)
    whole = 400_000 + 32 * 4_500
    answer = ask(ops=ops)
    assert answer.value == saved / whole
    assert answer.reason == "26.5 % of a step goes into 64 ops of 1 loop over the same small ops"
    subject = "32 runs of Slice, UpdateKVCache"
    assert answer.evidence == (Evidence(subject, 144_000.0, "ns", 144 / 544),)
    assert ask.saving(ops=ops) == (
        saved,
        "up to 2 µs for each op but those of the first turn: 108.5 µs",
    )


def test_inside_a_replay_gaps_go_as_well() -> None:
    traced = [row._replace(trace=0, replay=1, gap_ns=600.0) for row in (MATMUL, *TURN * 32)]
    assert ask.saving(ops=table(*traced)).ns == 31 * (1_500 + 2_000 + 2 * 600)


def test_what_is_no_loop_of_small_ops() -> None:
    few_turns = [MATMUL, *TURN * 31]
    layer = [op(f"Op{at}", [USER], [USER]) for at in range(8)]
    long: list[Op] = [row._replace(kernel_ns=30_000.0) for row in TURN]
    apart = [row for _ in range(32) for row in (MATMUL, *TURN)]
    for rows in (few_turns, layer * 40, long * 40, apart):
        assert ask(ops=table(*rows)) == LIMIT.clean(0.0)


def test_a_real_prefill_fills_the_caches_of_its_users_one_by_one() -> None:
    prefill = region_of("qwen3_32b_fused_prefill.csv")
    assert ask(prefill).evidence == ()  # much else is slower in it
    subject = ask.with_limits(share=0.0)(prefill).evidence[0].subject
    assert subject == "32 runs of 2 x Slice, 2 x UpdateKVCache"
