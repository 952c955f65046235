from __future__ import annotations

from pytest_ttnn_perf._base.text import percent
from pytest_ttnn_perf.analysis.checklist.operands import NO_OPERANDS
from tests.rules.answers import Ask, Evidence, clean, limit, not_applicable, not_measured
from tests.rules.reports import Operation, record, report
from tests.rules.tables import on_host, op, table, tensor

ask = Ask("TTP202")
LIMIT = limit(0.1, "of the elements")
FULL = tensor(1, 1, 32, 64)
SHORT = tensor(1, 1, 32, 64, logical=(1, 1, 16, 64))
ODD = tensor(1, 1, 160, 64, logical=(1, 1, 147, 50))
SHARDED = tensor(1, 1, 64, 64, logical=(1, 1, 32, 64))


def test_padding_with_better_extents() -> None:
    ops = table(
        op("MatmulDeviceOperation", [SHORT], [FULL]),
        op("MatmulDeviceOperation", [SHORT], [FULL]),
        op("Conv2dDeviceOperation", [ODD]),
        op("UnaryDeviceOperation", [SHARDED]),
        on_host("(torch) cat"),
    )
    short, odd, sharded = 2 * 16 * 64, 160 * 64 - 147 * 50, 32 * 64
    wanted = 2 * 16 * 64 + 2 * 32 * 64 + 147 * 50 + 32 * 64
    padding = short + odd + sharded
    assert ask(ops=ops) == LIMIT.found(
        padding / wanted,
        f"padding adds {percent(padding / wanted)} to the elements of tiled tensors",
        [
            Evidence(
                "Conv2d 1x1x147x50: 147 → 128 or 160, 50 → 32 or 64",
                odd / padding,
                "of the padding",
            ),
            Evidence("Matmul 1x1x16x64: 16 → 32", short / padding, "of the padding"),
            Evidence("Unary 1x1x32x64: padded to 1x1x64x64", sharded / padding, "of the padding"),
        ],
    )


def test_shapes_that_fit_are_clean() -> None:
    assert ask(ops=table(op("UnaryDeviceOperation", [FULL], [FULL]))) == LIMIT.clean(0.0)


def test_padding_at_the_limit_is_clean() -> None:
    answer = ask.with_limits(extra=1.0)(ops=table(op("UnaryDeviceOperation", [SHORT])))
    assert answer == clean(1.0, limit=1.0, unit="of the elements")


def test_rows_have_no_padding_to_count() -> None:
    rows = SHORT._replace(layout="ROW_MAJOR")
    answer = ask(ops=table(op("UnaryDeviceOperation", [rows])))
    assert answer == not_applicable("no tensor is in tiles")


def test_a_capture_without_logical_shapes() -> None:
    old = FULL._replace(logical=None)
    answer = ask(ops=table(op("UnaryDeviceOperation", [old])))
    assert answer == not_measured("the capture tells no logical shapes")


def test_a_report_is_rounded_up_to_tiles() -> None:
    call = Operation(1, "ttnn.relu", inputs=(1,))
    answer = ask(report=report([call], [record(1, 50, 100)]))
    extra = (64 * 128 - 5000) / 5000
    assert (answer.value, answer.evidence) == (
        extra,
        (Evidence("ttnn.relu 50x100: 50 → 32 or 64, 100 → 96 or 128", 1.0, "of the padding"),),
    )


def test_a_capture_without_operands() -> None:
    assert ask(ops=table(op("UnaryDeviceOperation"))) == not_measured(NO_OPERANDS)
