"""Conversions between rows and tiles."""

from __future__ import annotations

import pytest

from tests.rules.answers import Ask, Evidence, limit
from tests.rules.tables import op, table, tensor

ask = Ask("TTP203")
LIMIT = limit(0.02, "of a step")
INPUT = tensor(1, 1, 32, 64)
ROWS = tensor(1, 1, 32, 64, layout="ROW_MAJOR")
MATMUL = op("Matmul", ns=45.0)
TILIZE, UNTILIZE = "TilizeDeviceOperation", "UntilizeDeviceOperation"


def test_conversions_of_two_kinds() -> None:
    rows = [op(UNTILIZE, [INPUT], ns=20.0)] * 2
    ops = table(MATMUL, op(TILIZE, [INPUT], ns=10.0), *rows, op("Matmul", ns=5.0))
    assert ask(ops=ops) == LIMIT.found(
        0.5,
        "50.0 % of a step goes into 3 layout conversions",
        [
            Evidence("2 x Untilize 1x1x32x64", 40.0, "ns", 0.4),
            Evidence("Tilize 1x1x32x64", 10.0, "ns", 0.1),
        ],
    )
    assert ask.saving(ops=ops) == (50.0, "the time of 3 layout conversions: 0.1 µs")


@pytest.mark.parametrize(("ns", "share"), [(2.0, 0.02), (0.0, 0.0)])
def test_up_to_the_limit_it_is_clean(ns: float, share: float) -> None:
    ops = table(op("Matmul", ns=55.0 - ns), op(TILIZE, [INPUT], ns=ns), MATMUL)
    assert ask(ops=ops) == LIMIT.clean(share)


def test_what_comes_in_and_goes_out_has_to_be_converted() -> None:
    ops = table(op(TILIZE, [ROWS], [INPUT]), MATMUL, op(UNTILIZE, [INPUT], [ROWS]))
    assert ask(ops=ops) == LIMIT.clean(0.0)


@pytest.mark.parametrize("code", ["ArgMaxDeviceOperation", "GridSample", "Pool2D", "TopK"])
def test_ops_that_work_on_rows_need_rows(code: str) -> None:
    ops = table(
        op("Matmul", [], [INPUT]),
        op(UNTILIZE, [INPUT], [ROWS]),
        op(code, [ROWS], [ROWS]),
        op(TILIZE, [ROWS], [INPUT]),
        op("Unary", [INPUT], [INPUT]),
    )
    assert ask(ops=ops) == LIMIT.clean(0.0)


def test_one_step_of_the_slowest_device_counts() -> None:
    step = [MATMUL, op(TILIZE, [INPUT], ns=10.0), MATMUL]
    replays = [
        row._replace(device=device, trace=1, replay=replay, kernel_ns=row.kernel_ns * (1 + device))
        for replay in (1, 2, 3)
        for device in (0, 1)
        for row in step
    ]
    assert ask(ops=table(*replays)).value == 0.1
    assert ask.saving(ops=table(*replays)).ns == 20.0
