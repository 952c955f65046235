"""Cores in use."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_ttnn_perf.records.ttnn_report import Device
from tests.rules.answers import Ask, Evidence, Subject, found, limit, not_applicable, not_measured
from tests.rules.reports import report
from tests.rules.tables import Op, op, table, tensor

ask = Ask("TTP305")
LIMIT = limit(0.5, "of cores")
INPUT = tensor(1, 1, 32, 64)
SHARDED = (
    "{'program_config': 'MatmulMultiCoreReuseMultiCastDRAMShardedProgramConfig(per_core_M=1)'}"
)


def test_most_cores_idle() -> None:
    ops = table(
        op("LayerNormDeviceOperation", [INPUT], ns=20_000.0, cores=16),
        op("UnaryDeviceOperation", [INPUT], ns=10_000.0, cores=64),
        op("UnaryDeviceOperation", [INPUT], ns=10_000.0, cores=32),
    )
    assert ask.with_limits(share=0.6)(ops=ops) == found(
        "50.0 % of 64 cores in use, weighted by the time of 3 ops",
        value=0.5,
        limit=0.6,
        unit="of cores",
        evidence=[
            Evidence("LayerNorm 1x1x32x64", 15_000.0, "ns", 15 / 40),
            Evidence("2 x Unary 1x1x32x64", 5_000.0, "ns", 5 / 40),
        ],
    )
    assert ask(ops=ops) == LIMIT.clean(0.5)


@pytest.mark.parametrize(
    "left_out",
    [
        op("MatmulDeviceOperation", ns=90_000.0, cores=8, attributes=SHARDED),
        op("AllGatherDeviceOperation", ns=90_000.0, cores=4),
        op("UnaryDeviceOperation", ns=4_999.0, cores=1),
        op("UnaryDeviceOperation", ns=90_000.0, cores=None),
    ],
    ids=["DRAM-sharded", "collective", "short", "cores not told"],
)
def test_what_does_not_count(left_out: Op) -> None:
    ops = table(op("UnaryDeviceOperation", ns=5_000.0, cores=64), left_out)
    assert ask(ops=ops) == LIMIT.clean(1.0)


def test_nothing_that_counts() -> None:
    assert ask(ops=table(op("Unary", ns=10.0))) == not_applicable(
        "no op of 5 µs or more that is to be counted"
    )


def test_a_report_may_tell_the_cores_that_there_are() -> None:
    ops = table(op("UnaryDeviceOperation", ns=5_000.0, cores=32), available_cores=None)
    device = Device(0, 64, 8, 8, None, None, None, None, None)
    both = Subject(ops=ops, report=replace(report([]), devices=(device,)))
    assert ask(both) == LIMIT.clean(0.5)
    assert ask(ops=ops) == not_measured("the capture does not tell how many cores there are")


def test_inputs_that_do_not_tell() -> None:
    ops = table(op("UnaryDeviceOperation", ns=5_000.0, cores=None))
    assert ask(ops=ops) == not_measured("the capture does not tell how many cores ops ran on")
