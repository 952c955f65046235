"""Shapes of convolutions and their shardings."""

from __future__ import annotations

import pytest

from pytest_ttnn_perf.analysis.checklist.rule import clean, found, not_applicable, not_measured
from pytest_ttnn_perf.analysis.checklist.rules.ttp606_conv_sharding_unsuited import (
    conv_sharding_unsuited,
)
from pytest_ttnn_perf.records.finding import Evidence, Subject
from tests.rules.answers import ask
from tests.rules.convolving import called, conv, convolving, output
from tests.rules.tables import op, table

UNIT = "of convolutions"


@pytest.mark.parametrize(
    ("pixels", "channels", "best"),
    [
        (1024, 256, "HEIGHT"),
        (1023, 256, "BLOCK"),
        (256, 1023, "BLOCK"),
        (256, 1024, "WIDTH"),
    ],
)
def test_by_shape(pixels: int, channels: int, best: str) -> None:
    suited = Subject(ops=table(conv(best, pixels, channels)))
    assert ask(conv_sharding_unsuited, suited) == clean(0.0, limit=0.0, unit=UNIT)
    for other in {"HEIGHT", "BLOCK", "WIDTH"} - {best}:
        ops = table(conv(best, pixels, channels), conv(other, pixels, channels, ns=40.0))
        assert ask(conv_sharding_unsuited, Subject(ops=ops)) == found(
            "a shape for another sharding in 1 of 2 convolutions",
            value=0.5,
            limit=0.0,
            unit=UNIT,
            evidence=[Evidence(f"Conv2d 1x1x{pixels}x32, {other} → {best}", 40.0, "ns", 40 / 140)],
        )
        half = conv_sharding_unsuited.with_limits(share=0.5)
        assert ask(half, Subject(ops=ops)) == clean(0.5, limit=0.5, unit=UNIT)


def test_a_report_without_a_table() -> None:
    made = convolving(
        (called(1), output(1, "L1_BLOCK_SHARDED")),
        (called(2), output(2)),
        (called(3), output(3, "DRAM_INTERLEAVED")),
    )
    assert ask(conv_sharding_unsuited, Subject(report=made)) == found(
        "a shape for another sharding in 1 of 2 convolutions",
        value=0.5,
        limit=0.0,
        unit=UNIT,
        evidence=[Evidence("ttnn.conv2d (operation 1), BLOCK → HEIGHT")],
    )


def test_inputs_that_do_not_tell() -> None:
    rule = conv_sharding_unsuited
    assert ask(rule, Subject()) == not_measured("needs an op table or a report database")
    assert ask(rule, Subject(ops=table(op("Unary")))) == not_applicable("no convolutions")
    assert ask(rule, Subject(ops=table(op("Conv2dDeviceOperation")))) == not_measured(
        "the capture does not tell how convolutions are sharded"
    )
