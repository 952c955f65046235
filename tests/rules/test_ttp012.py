"""Shapes with which an op would be faster than the chip."""

from __future__ import annotations

from tests.rules.answers import Ask, Evidence, limit, not_measured
from tests.rules.tables import Op, TraceReplays, op, table, tensor

ask = Ask("TTP012")
LIMIT = limit(0.01, "of kernel time")
#: 2 MiB each: in, in and out take 21.8 us at the 288 GB/s of Wormhole.
X = tensor(1, 1, 1024, 1024)


def add(ns: float) -> Op:
    return op("BinaryNgDeviceOperation", [X, X], [X], ns=ns)


def test_an_op_that_would_move_more_than_dram_can() -> None:
    slow = op("SoftmaxDeviceOperation", [X], [X], ns=970_000.0)
    answer = ask(ops=table(add(10_000.0), add(20_000.0), slow))
    ratio = 3 * 2 * 1024 * 1024 / 288 / 10_000.0
    assert answer == LIMIT.found(
        0.03,
        "3.0 % of the kernel time goes into 2 ops with impossible recorded shapes: at these shapes "
        "they would exceed the chip's peak",
        [Evidence("2 x BinaryNg 1x1x1024x1024", ratio, "x the peak")],
    )
    assert ask.with_limits(share=0.03)(ops=table(add(10_000.0), add(20_000.0), slow)).evidence == ()


def test_an_op_without_a_time_is_not_too_fast_itself() -> None:
    answer = ask(ops=table(add(10_000.0), add(0.0)))
    assert [evidence.subject for evidence in answer.evidence] == ["BinaryNg 1x1x1024x1024"]


def test_at_the_peak_is_possible() -> None:
    assert ask(ops=table(add(21_000.0))) == LIMIT.clean(0.0)


def test_a_chip_that_is_not_known() -> None:
    answer = ask(ops=table(add(10.0), arch="quasar"))
    assert answer == not_measured("neither the chip's peaks nor what ops move is known")


def test_replays_that_lost_data() -> None:
    """An op some of whose cores were lost looks too fast, with shapes of its own."""
    lost = (TraceReplays(device=0, trace=7, replays=3, complete=False),)
    assert ask(ops=table(add(10.0), traces=lost)) == not_measured(
        "the replays of trace 7 on device 0 ran different ops (TTP002): times of theirs may be too "
        "short"
    )
