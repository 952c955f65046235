"""Shapes of convolutions and their shardings."""

from __future__ import annotations

import pytest

from tests.rules.answers import Ask, Evidence, Subject, clean, limit, not_applicable, not_measured
from tests.rules.convolving import called, conv, convolving, output
from tests.rules.tables import op, table

ask = Ask("TTP606")
LIMIT = limit(0.0, "of convolutions")


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
    well = table(conv(best, pixels, channels), arch=None)
    assert ask(Subject(ops=well)) == LIMIT.clean(0.0)
    for other in {"HEIGHT", "BLOCK", "WIDTH"} - {best}:
        ops = table(conv(best, pixels, channels), conv(other, pixels, channels, ns=40.0), arch=None)
        assert ask(ops=ops) == LIMIT.found(
            0.5,
            "1 of 2 convolutions may suit another sharding, by their shape",
            [Evidence(f"Conv2d 1x1x{pixels}x32, {other} → {best}", 40.0, "ns", 40 / 140)],
        )
        half = ask.with_limits(unsuited=0.5)
        assert half(ops=ops) == clean(0.5, limit=0.5, unit=LIMIT.unit)


def test_what_an_unsuited_sharding_can_cost() -> None:
    computing = 2 * 1024 * 64 * 288 / (64 * 148 / 72 * 1000)
    slow = conv("BLOCK", ns=50_000.0)._replace(fidelity="HiFi2")
    fast = conv("BLOCK", ns=computing * 1.5)._replace(fidelity="HiFi2")
    ops = table(slow, fast, conv(ns=50_000.0 - computing * 1.5))
    answer = ask(ops=ops)
    assert answer.reason == "2 of 3 convolutions may suit another sharding, by their shape"
    moved = 1024 * (32 + 64) * 2 / 288 + 2 * 2_000  # its activations, in and out
    saved = 50_000 - 2_000 - moved  # twice its computing is less than launching takes
    assert answer.evidence == (
        Evidence("Conv2d 1x1x1024x32, BLOCK → HEIGHT", saved, "ns", saved / 100_000),
    )
    assert ask.saving(ops=ops)[0] == saved


def test_by_height_all_weights_have_to_fit() -> None:
    slow = conv("BLOCK", pixels=4096, channels=1024, ns=500_000.0)._replace(fidelity="HiFi2")
    first, weights = slow.signature.inputs
    large = slow._replace(
        signature=slow.signature._replace(
            inputs=(first, weights._replace(padded=(1, 1, 512, 1024)))
        )
    )
    assert ask(ops=table(slow)).evidence[0].subject.endswith("BLOCK → HEIGHT")
    assert ask(ops=table(large)) == limit(0.02, "of a step").clean(0.0)


def test_without_an_architecture_what_the_fastest_chip_takes_counts() -> None:
    slow = conv("BLOCK", pixels=102_400, ns=400_000.0)._replace(fidelity="HiFi4", ideal_ns=1_000.0)
    computing = 2 * 102_400 * 64 * 288 / (64 * 5.5296 / 4 * 1000)
    moved = 102_400 * (32 + 64) * 2 / 288 + 2 * 2_000
    assert ask.saving(ops=table(slow, arch=None))[0] == pytest.approx(
        400_000 - 2 * computing - moved
    )


def test_a_report_without_a_table() -> None:
    made = convolving(
        (called(1), output(1, "L1_BLOCK_SHARDED")),
        (called(2), output(2)),
        (called(3), output(3, "DRAM_INTERLEAVED")),
    )
    assert ask(report=made) == LIMIT.found(
        0.5,
        "1 of 2 convolutions may suit another sharding, by their shape",
        [Evidence("ttnn.conv2d (operation 1), BLOCK → HEIGHT")],
    )


def test_inputs_that_do_not_tell() -> None:
    assert ask(ops=table(op("Unary"))) == not_applicable("no convolutions")
    assert ask(ops=table(op("Conv2dDeviceOperation"))) == not_measured(
        "the capture does not say how convolutions are sharded"
    )
