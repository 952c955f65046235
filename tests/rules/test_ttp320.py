"""Experts that are all computed."""

from __future__ import annotations

import pytest

from tests.rules.answers import Ask, not_applicable
from tests.rules.tables import Op, op, table, tensor

ask = Ask("TTP320")
#: 32 matrices of 512 by 512: 58.3 µs at the bandwidth of Wormhole.
EXPERTS = tensor(1, 32, 512, 512)
DENSE_NS = 80_000.0


def step(*, kept: int = 4, tokens: int = 1, experts: int = 32) -> list[Op]:
    """A router that chooses among 32 experts, and a matmul over some."""
    hidden = tensor(1, 1, max(tokens, 32), 512, logical=(1, 1, tokens, 512))
    scores = tensor(1, 1, max(tokens, 32), 32, logical=(1, 1, tokens, 32))
    best = tensor(1, 1, max(tokens, 32), 32, logical=(1, 1, tokens, kept))
    apart = tensor(1, experts, max(tokens, 32), 512, logical=(1, experts, tokens, 512))
    weights = EXPERTS._replace(padded=(1, experts, 512, 512), logical=(1, experts, 512, 512))
    return [
        op("MatmulDeviceOperation", [hidden, tensor(1, 1, 512, 32)], [scores], ns=10_000.0),
        op("TopKDeviceOperation", [scores], [scores], ns=5_000.0),
        op("SoftmaxDeviceOperation", [best], [best], ns=5_000.0),
        op("MatmulDeviceOperation", [apart, weights], [apart], ns=DENSE_NS),
    ]


def test_what_the_router_does_not_choose_is_computed_for_nothing() -> None:
    ops = table(*step())
    answer = ask(ops=ops)
    assert answer.reason == (
        "1 matmul over all 32 experts, of which the router chooses 4 for 1 token"
    )
    assert answer.value == pytest.approx(0.8 * 28 / 32)
    assert ask.saving(ops=ops) == (
        70_000.0,
        "80.0 µs − 10.0 µs for the experts that are chosen by 1 token",
    )


def test_many_tokens_choose_all_experts() -> None:
    """What is left is reading the weights, and what 32 matrices of 64 rows take from DRAM."""
    read = 32 * (512 * 512 + 2 * 64 * 512) * 2 / 288
    assert ask.saving(ops=table(*step(tokens=64)))[0] == pytest.approx(DENSE_NS - read)


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        (step()[:1] + step()[3:], "no router chooses experts"),
        (step(experts=8), "no router chooses experts"),
        (step(kept=20), "20 of 32 experts are chosen"),
        (step()[1:], "no router chooses experts"),
    ],
    ids=["no choice", "matrices of something else", "most are chosen", "no router"],
)
def test_steps_without_a_choice_of_few(rows: list[Op], why: str) -> None:
    assert ask(ops=table(*rows)) == not_applicable(why)
