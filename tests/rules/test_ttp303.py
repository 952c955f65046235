"""Activations that are fetched from DRAM."""

from __future__ import annotations

from tests.rules.answers import Ask, Evidence, limit, not_applicable, not_measured
from tests.rules.tables import op, table, tensor

ask = Ask("TTP303")
LIMIT = limit(0.2, "of kernel time")
INPUT = tensor(1, 1, 64, 64)
FAR = tensor(1, 1, 32, 96)
NEAR = tensor(1, 1, 32, 96, memory="L1_INTERLEAVED")
WEIGHTS = tensor(1, 1, 96, 96)


def test_time_in_ops_that_fetch() -> None:
    ops = table(
        op("UnaryDeviceOperation", [INPUT], [FAR], ns=30.0),
        op("MatmulDeviceOperation", [FAR, WEIGHTS], [NEAR], ns=40.0),
        op("MatmulDeviceOperation", [NEAR, WEIGHTS], [NEAR], ns=30.0),
    )
    assert ask(ops=ops) == LIMIT.found(
        0.4,
        "40.0 % of the kernel time goes into 1 op with activations read from DRAM",
        [Evidence("Matmul 1x1x32x96 @ 96x96", 40.0, "ns", 0.4)],
    )


def test_up_to_the_limit_is_clean() -> None:
    ops = table(
        op("UnaryDeviceOperation", [INPUT], [FAR], ns=80.0),
        op("UnaryDeviceOperation", [FAR], [NEAR], ns=20.0),
    )
    assert ask(ops=ops) == LIMIT.clean(0.2)


def test_weights_from_dram_do_not_count() -> None:
    ops = table(
        op("UnaryDeviceOperation", [INPUT], [NEAR]),
        op("MatmulDeviceOperation", [NEAR, WEIGHTS], [NEAR]),
    )
    assert ask(ops=ops) == LIMIT.clean(0.0)


def test_prefill_and_single_ops_are_let_off() -> None:
    fill = table(op("PagedFillCacheDeviceOperation", [FAR], [FAR]))
    assert ask(ops=fill) == not_applicable(
        "prefill: activations are as long as the prompt, and stream through DRAM"
    )
    single = table(op("UnaryDeviceOperation", [INPUT], [FAR]))
    assert ask(ops=single) == not_applicable("no op reads what another one made")


def test_inputs_that_do_not_tell() -> None:
    assert ask(ops=table(op("Unary"))) == not_measured(
        "the capture tells nothing of the tensors that ops take and give"
    )
