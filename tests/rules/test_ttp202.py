from __future__ import annotations

import pytest

from pytest_ttnn_perf.analysis.checklist.operands import NO_OPERANDS
from tests.rules.answers import Ask, Evidence, limit, not_applicable, not_measured
from tests.rules.reports import Operation, record, report
from tests.rules.tables import Op, op, table, tensor

ask = Ask("TTP202")
FULL = tensor(1, 1, 32, 64)
SHORT = tensor(1, 1, 32, 64, logical=(1, 1, 16, 64))
#: 32 users, each with a tile of its own for a single row.
APART = tensor(1, 32, 32, 64, logical=(1, 32, 1, 64))
STEP = limit(0.02, "of a step")


def test_single_rows_that_could_be_one_matrix() -> None:
    weights = tensor(1, 1, 64, 4096)
    ops = table(
        op("MatmulDeviceOperation", [APART, weights], [APART], ns=60_000.0),
        op("UnaryDeviceOperation", [APART], [APART], ns=20_000.0),
        op("UnaryDeviceOperation", [FULL], [FULL], ns=20_000.0),
    )
    saved = 80_000 * 31 / 32
    answer = ask(ops=ops)
    assert answer.reason == (
        "96.9 % of the tiles of 2 ops on single rows or narrow columns are not needed"
    )
    assert answer.value == pytest.approx(saved / 100_000)
    assert answer.evidence[0] == Evidence("Matmul 1x32x1x64 → 32x64", 58_125.0, "ns", 0.58125)
    assert ask.saving(ops=ops) == (saved, "that part of 80.0 µs: 77.5 µs")


def test_a_narrow_last_extent_where_another_would_fill_tiles() -> None:
    narrow = tensor(1, 32, 1024, 32, logical=(1, 32, 1024, 4))
    ops = table(op("UnaryDeviceOperation", [narrow], [narrow], ns=80_000.0))
    answer = ask(ops=ops)
    assert answer.evidence[0].subject == "Unary 1x32x1024x4 → 1x32x4x1024"
    assert answer.value == pytest.approx(7 / 8)
    assert (ask.fix(ops=ops) or "").startswith("Bring a longer extent last")
    assert (ask.fix(ops=table(op("Unary", [APART], [APART]))) or "").startswith("Lay single rows")


def test_images_have_their_channels_last() -> None:
    image = tensor(1, 640, 640, 32, logical=(1, 640, 640, 3))
    tilize = op("TilizeWithValPaddingDeviceOperation", [image], [image])
    conv = op("Conv2dDeviceOperation", [FULL, FULL], [FULL])
    assert ask(ops=table(tilize, conv)) == STEP.clean(0.0)
    sliced = op("PaddedSliceDeviceOperation", [image], [image])
    assert ask(ops=table(sliced)) == STEP.clean(0.0)


@pytest.mark.parametrize(
    "row",
    [
        op("UnaryDeviceOperation", [SHORT], [SHORT]),
        op("MatmulDeviceOperation", [APART, tensor(1, 32, 64, 64)], [APART]),
        op("SdpaDecodeDeviceOperation", [APART], [APART]),
        op("UnaryDeviceOperation", [tensor(1, 12, 32, 64, logical=(1, 12, 19, 64))]),
    ],
    ids=["one tile of rows", "a matrix for each", "attention", "more than one row"],
)
def test_padding_that_is_no_advice(row: Op) -> None:
    assert ask(ops=table(row)) == STEP.clean(0.0)


def test_what_is_brought_into_the_shape_that_experts_want_is_no_advice() -> None:
    experts = op("MatmulDeviceOperation", [APART, tensor(1, 32, 64, 64)], [APART])
    brought = op("TilizeWithValPaddingDeviceOperation", [FULL], [APART])
    assert ask(ops=table(brought)).value == pytest.approx(31 / 32)
    assert ask(ops=table(brought, experts)) == STEP.clean(0.0)


def test_rows_have_no_padding_to_count() -> None:
    rows = SHORT._replace(layout="ROW_MAJOR")
    answer = ask(ops=table(op("UnaryDeviceOperation", [rows])))
    assert answer == not_applicable("no tensor is in tiles")


def test_a_capture_without_logical_shapes() -> None:
    old = FULL._replace(logical=None)
    answer = ask(ops=table(op("UnaryDeviceOperation", [old])))
    assert answer == not_measured("the capture has no logical shapes")


OF_TILES = limit(0.1, "of what is needed")
RELU = Operation(1, "ttnn.relu", inputs=(1,), outputs=(2,), device_operations=("Unary",))


@pytest.mark.parametrize(
    ("shape", "better", "tiles", "needed"),
    [
        ((1, 32, 1, 4096), "32x4096", 32 * 128, 128),
        ((1, 32, 10240, 4), "128x10240", 32 * 320, 4 * 320),
    ],
)
def test_activations_of_a_report_that_another_order_would_make_smaller(
    shape: tuple[int, ...], better: str, tiles: int, needed: int
) -> None:
    tensors = [record(1, *shape), record(2, *shape)]
    needless = (tiles - needed) * 2048.0
    answer = ask(report=report([RELU], tensors))
    # What goes in may be a weight: only what comes out can be laid out otherwise.
    assert answer.value == pytest.approx(needless / (2 * tiles * 2048 - needless))
    before = "x".join(map(str, shape))
    assert answer.evidence == (Evidence(f"ttnn.relu {before} → {better}", needless, "B"),)


@pytest.mark.parametrize("shape", [(50, 100), (1, 12, 19, 64), (1, 1, 1, 4096), (1, 1, 64, 1)])
def test_padding_of_a_last_tile_is_no_advice(shape: tuple[int, ...]) -> None:
    tensors = [record(1, *shape), record(2, *shape)]
    free = ask.with_limits(worth=0.0)
    assert free(report=report([RELU], tensors)) == OF_TILES.clean(0.0)


def test_weights_and_what_attention_takes_keep_their_shape() -> None:
    apart = record(2, 1, 32, 1, 4096)
    attends = Operation(2, "ttnn.sdpa", inputs=(2,), device_operations=("SdpaDecode",))
    made = report([RELU, attends], [record(1, 1, 32, 1, 4096), apart], [(2, 1, 2)])
    assert ask(report=made) == OF_TILES.clean(0.0)


def test_a_few_tiles_of_a_report_are_no_advice() -> None:
    tensors = [record(1, 1, 2, 1, 32), record(2, 1, 2, 1, 32)]
    answer = ask(report=report([RELU], tensors))
    assert answer.reason == "2.000 KiB in all: too little to matter in DRAM"
    assert answer.value == pytest.approx(1 / 3)


def test_a_capture_without_operands() -> None:
    assert ask(ops=table(op("UnaryDeviceOperation"))) == not_measured(NO_OPERANDS)
