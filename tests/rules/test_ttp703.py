"""Time in collectives."""

from __future__ import annotations

from pytest_ttnn_perf.analysis.checklist.rule import clean, found, not_applicable, not_measured
from pytest_ttnn_perf.analysis.checklist.rules.ttp703_collective_share import collective_share
from pytest_ttnn_perf.records.finding import Evidence, Subject
from tests.rules.answers import ask
from tests.rules.tables import op, table, tensor

INPUT = tensor(1, 1, 32, 64)
GATHER = "AllGatherAsyncDeviceOperation"
UNIT = "of kernel time"


def test_much_time() -> None:
    ops = table(
        op("Matmul", ns=100.0),
        op("Matmul", ns=100.0, device=1),
        op(GATHER, [INPUT], ns=100.0),
        op(GATHER, [INPUT], ns=50.0, device=1),
        op("ReduceScatterDeviceOperation", [INPUT], ns=50.0, device=1),
    )
    assert ask(collective_share, Subject(ops=ops)) == found(
        "50.0 % of the kernel time goes into 3 collectives",
        value=0.5,
        limit=0.2,
        unit=UNIT,
        evidence=[
            Evidence("2 x AllGatherAsync 1x1x32x64", 150.0, "ns", 150 / 400),
            Evidence("ReduceScatter 1x1x32x64", 50.0, "ns", 50 / 400),
        ],
    )


def test_up_to_the_limit_is_clean() -> None:
    ops = table(op("Matmul", ns=80.0), op(GATHER, ns=20.0, device=1))
    assert ask(collective_share, Subject(ops=ops)) == clean(0.2, limit=0.2, unit=UNIT)


def test_a_fused_collective_is_a_matmul() -> None:
    fused = op("AllGatherMatmulAsyncDeviceOperation", ns=90.0)
    ops = table(fused, op("Matmul", ns=10.0, device=1))
    assert ask(collective_share, Subject(ops=ops)) == clean(0.0, limit=0.2, unit=UNIT)


def test_nothing_to_look_at() -> None:
    assert ask(collective_share, Subject()) == not_measured("needs an op table")
    assert ask(collective_share, Subject(ops=table(op(GATHER)))) == not_applicable("one device")
