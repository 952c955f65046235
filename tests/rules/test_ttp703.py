"""Time in collectives."""

from __future__ import annotations

from tests.rules.answers import Ask, Evidence, limit, not_applicable
from tests.rules.tables import op, table, tensor

ask = Ask("TTP703")
LIMIT = limit(0.2, "of kernel time")
INPUT = tensor(1, 1, 32, 64)
GATHER = "AllGatherAsyncDeviceOperation"


def test_much_time() -> None:
    ops = table(
        op("Matmul", ns=100.0),
        op("Matmul", ns=100.0, device=1),
        op(GATHER, [INPUT], ns=100.0),
        op(GATHER, [INPUT], ns=50.0, device=1),
        op("ReduceScatterDeviceOperation", [INPUT], ns=50.0, device=1),
    )
    assert ask(ops=ops) == LIMIT.found(
        0.5,
        "50.0 % of the kernel time goes into 3 collectives",
        [
            Evidence("2 x AllGatherAsync 1x1x32x64", 150.0, "ns", 150 / 400),
            Evidence("ReduceScatter 1x1x32x64", 50.0, "ns", 50 / 400),
        ],
    )


def test_up_to_the_limit_is_clean() -> None:
    ops = table(op("Matmul", ns=80.0), op(GATHER, ns=20.0, device=1))
    assert ask(ops=ops) == LIMIT.clean(0.2)


def test_a_fused_collective_is_a_matmul() -> None:
    fused = op("AllGatherMatmulAsyncDeviceOperation", ns=90.0)
    assert ask(ops=table(fused, op("Matmul", ns=10.0, device=1))) == LIMIT.clean(0.0)


def test_nothing_to_look_at() -> None:
    assert ask(ops=table(op(GATHER))) == not_applicable("one device")
