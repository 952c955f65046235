from __future__ import annotations

import pytest

from pytest_ttnn_perf.analysis.checklist.operands import NO_OPERANDS
from tests.rules.answers import Ask, Evidence, Subject, clean, found, limit, not_measured
from tests.rules.reports import Operation, record, report
from tests.rules.tables import op, table, tensor

ask = Ask("TTP201")
LIMIT = limit(0.02, "of a step")
TILES, ROWS = tensor(1, 1, 32, 64), tensor(1, 1, 32, 64, layout="ROW_MAJOR")
BINARY = "BinaryNgDeviceOperation"


def test_ops_on_rows() -> None:
    ops = table(
        op(BINARY, [ROWS, ROWS], ns=400.0),
        op("LayerNormDeviceOperation", [ROWS], ns=200.0),
        op(BINARY, [TILES, TILES], ns=400.0),
    )
    assert ask(ops=ops) == LIMIT.found(
        0.03,
        "60.0 % of a step goes into 2 ops on row-major tensors",
        [
            Evidence("BinaryNg 1x1x32x64", 20.0, "ns", 0.02),
            Evidence("LayerNorm 1x1x32x64", 10.0, "ns", 0.01),
        ],
    )
    assert ask.saving(ops=ops) == (30.0, "5.0 % of the 0.6 µs of 2 ops")


@pytest.mark.parametrize(
    ("code", "inputs"),
    [
        (BINARY, [TILES, TILES]),
        ("LayerNormDeviceOperation", [TILES, ROWS]),
        ("Conv2dDeviceOperation", [ROWS, TILES]),
        ("Pool2D", [ROWS]),
        ("ArgMaxDeviceOperation", [ROWS]),
        ("ReshardDeviceOperation", [ROWS]),
        (BINARY, [ROWS._replace(dtype="UINT32")]),
    ],
)
def test_tiles_and_ops_made_for_rows_are_clean(code: str, inputs: list[object]) -> None:
    answer = ask(ops=table(op(code, inputs)))  # type: ignore[arg-type]
    assert answer == LIMIT.clean(0.0)


def test_a_share_at_the_limit_is_clean() -> None:
    ops = table(op(BINARY, [ROWS], ns=400.0), op(BINARY, [TILES], ns=600.0))
    assert ask(ops=ops) == LIMIT.clean(0.02)


def test_calls_in_a_report() -> None:
    calls = [
        Operation(1, "ttnn.add", inputs=(1,), device_operations=(BINARY,)),
        Operation(2, "ttnn.add", inputs=(2,), device_operations=(BINARY,)),
        # A convolution of 1 by 1: rows are what it takes.
        Operation(3, "ttnn.conv2d", inputs=(1,), device_operations=("MatmulDeviceOperation",)),
        Operation(4, "ttnn.to_layout", inputs=(1,), device_operations=("TilizeDeviceOperation",)),
    ]
    tensors = [record(1, 32, 64, layout="ROW_MAJOR"), record(2, 32, 64)]
    subject = Subject(ops=table(op(BINARY)), report=report(calls, tensors))
    assert ask(subject) == found(
        "row-major tensors in 1 of 2 compute calls",
        value=0.5,
        limit=0.02,
        unit="of compute calls",
        evidence=[Evidence("ttnn.add", 1, "calls")],
    )
    half = ask.with_limits(calls=0.5)
    assert half(subject) == clean(0.5, limit=0.5, unit="of compute calls")


def test_a_report_without_compute() -> None:
    assert ask(report=report([])) == clean(0.0, limit=0.02, unit="of compute calls")


def test_a_capture_without_operands() -> None:
    assert ask(ops=table(op(BINARY))) == not_measured(NO_OPERANDS)
