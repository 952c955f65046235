"""Activations in bfloat16 of ops that DRAM binds."""

from __future__ import annotations

import pytest

from pytest_ttnn_perf.analysis.checklist.operands import NO_OPERANDS
from tests.rules.answers import Ask, limit, not_measured
from tests.rules.tables import op, table, tensor

ask = Ask("TTP104")
STEP = limit(0.02, "of a step")
#: 2 MiB: in and out, 14.6 µs at the bandwidth of Wormhole.
LARGE = tensor(1, 1, 1024, 1024)
LESS = 1024 * 1024 * (2 - 1.0625)


def test_ops_that_dram_binds() -> None:
    ops = table(op("UnaryDeviceOperation", [LARGE], [LARGE], ns=20_000.0))
    answer = ask(ops=ops)
    assert answer.value == pytest.approx(2 * LESS / 288 / 20_000)
    assert answer.reason == (
        "as bfloat8_b, activations of ops that are bound by DRAM take 1.875 MiB less"
    )
    assert ask.saving(ops=ops) == (
        pytest.approx(2 * LESS / 288),
        "1.875 MiB ÷ 288 GB/s: 6.8 µs",
    )


@pytest.mark.parametrize(
    "memory", ["L1_BLOCK_SHARDED", "DRAM_INTERLEAVED"], ids=["in L1", "not bound"]
)
def test_others_have_little_to_gain(memory: str) -> None:
    one = LARGE._replace(memory=memory)
    assert ask(ops=table(op("Unary", [one], [one], ns=30_000.0))) == STEP.clean(0.0)


def test_recurrent_states_do_not_count() -> None:
    state = tensor(1, 4, 512, 512)
    reads = op("UnaryDeviceOperation", [state], [state._replace(dtype="FLOAT32")], ns=30_000.0)
    adds = op("BinaryNgDeviceOperation", [state, state], [state], ns=30_000.0)
    back = op("CopyDeviceOperation", [state], [state], ns=20_000.0)
    assert ask(ops=table(adds)).value == pytest.approx(3 * LESS / 288 / 30_000)
    assert ask(ops=table(reads, adds, back)) == STEP.clean(0.0)


def test_ops_with_shapes_that_are_not_their_own_in_another_replay_do_not_count() -> None:
    rows = [
        op("UnaryDeviceOperation", [LARGE], [LARGE], ns=ns, replay=(1, at))
        for at, ns in enumerate((20_000.0, 20_000.0, 5_000.0), start=1)
    ]
    assert ask(ops=table(*rows[:2])).value == pytest.approx(2 * LESS / 288 / 20_000)
    assert ask(ops=table(*rows)) == STEP.clean(0.0)


def test_weights_are_left_to_another_rule() -> None:
    row = tensor(1, 1, 32, 1024, memory="L1_WIDTH_SHARDED")
    ops = table(op("Matmul", [row, LARGE], [row], ns=8_000.0, fidelity="HiFi2"))
    assert ask(ops=ops) == STEP.clean(0.0)


def test_what_cannot_be_told() -> None:
    assert ask(ops=table(op("Unary"))) == not_measured(NO_OPERANDS)
    assert ask(ops=table(op("Unary", [LARGE]), arch="quasar")) == not_measured(
        "the peaks of quasar are not known"
    )
