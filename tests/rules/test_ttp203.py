"""Conversions between rows and tiles."""

from __future__ import annotations

import pytest

from tests.rules.answers import Ask, Evidence, limit
from tests.rules.reports import Operation, record, report
from tests.rules.tables import OpTable, op, table, tensor

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
    assert ask.saving(ops=ops) == (50.0, "at most the time of 3 layout conversions: 0.1 µs")


@pytest.mark.parametrize(("ns", "share"), [(2.0, 0.02), (0.0, 0.0)])
def test_up_to_the_limit_it_is_clean(ns: float, share: float) -> None:
    ops = table(op("Matmul", ns=55.0 - ns), op(TILIZE, [INPUT], ns=ns), MATMUL)
    assert ask(ops=ops) == LIMIT.clean(share)


def test_what_comes_in_and_goes_out_has_to_be_converted() -> None:
    ops = table(op(TILIZE, [ROWS], [INPUT]), MATMUL, op(UNTILIZE, [INPUT], [ROWS]))
    assert ask(ops=ops) == LIMIT.clean(0.0)


def test_an_input_of_the_host_has_to_be_converted_unless_that_is_slow() -> None:
    rows = tensor(1, 1, 1200, 1200, layout="ROW_MAJOR")  # 20 µs to read and write it
    tiles = rows._replace(layout="TILE")

    def with_input(ns: float) -> OpTable:
        return table(
            op("Unary", [INPUT], [INPUT], ns=5e4),
            op(TILIZE, [rows], [tiles], ns=ns),
            op("Unary", [tiles], [tiles], ns=5e4),
        )

    assert ask(ops=with_input(200_000.0)) == LIMIT.clean(0.0)
    slow = with_input(210_000.0)
    assert (ask(ops=slow).reason or "").endswith(", 1 slow input conversion among them")
    assert ask.saving(ops=slow).ns == pytest.approx(150_000)
    assert (ask.fix(ops=slow) or "").startswith("Convert inputs on the host")


def test_what_to_do_is_said_of_tables_and_of_what_lies_between() -> None:
    table_of_angles = tensor(1, 1, 128, 256)
    made = tensor(1, 1, 1, 256, layout="ROW_MAJOR")
    as_rows = table_of_angles._replace(layout="ROW_MAJOR")
    ops = table(
        op("Unary", [INPUT], [INPUT], ns=900.0),
        op(UNTILIZE, [table_of_angles], [as_rows], ns=300.0),
        op("EmbeddingsDeviceOperation", [as_rows], [made], ns=100.0),
        op(TILIZE, [made], [tensor(1, 1, 32, 256)], ns=200.0),
        op("RotaryEmbeddingDeviceOperation", [tensor(1, 1, 32, 256)], [INPUT], ns=900.0),
    )
    assert ask.fix(ops=ops) == (
        "Convert weights and tables once, when they are loaded; keep one layout between "
        "Embeddings and RotaryEmbedding."
    )


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


CONVERTED = [
    Operation(1, "ttnn.matmul", outputs=(1,), device_operations=("MatmulDeviceOperation",)),
    Operation(2, "ttnn.to_layout", inputs=(1,), outputs=(2,)),
    Operation(3, "ttnn.to_layout", inputs=(2,), outputs=(3,)),
    Operation(4, "ttnn.add", inputs=(3,), device_operations=("BinaryNgDeviceOperation",)),
]
TENSORS = [
    record(1, 1, 1, 50, 100),
    record(2, 1, 1, 50, 100, layout="ROW_MAJOR"),
    record(3, 1, 1, 50, 100),
]
EDGES = [(1, 1, 2), (2, 2, 3), (3, 3, 4)]
TRIPS = limit(0, "round trips")


def test_a_round_trip_with_nothing_between_is_found_without_times() -> None:
    assert ask(report=report(CONVERTED, TENSORS, EDGES)) == TRIPS.found(
        1.0,
        "1 round trip of a layout, with nothing between",
        [
            Evidence(
                "ttnn.to_layout → ttnn.to_layout (operations 2 and 3) 1x1x50x100, "
                "TILE → ROW_MAJOR → TILE"
            )
        ],
    )


def test_what_another_op_reads_in_between_is_no_round_trip() -> None:
    assert ask(report=report(CONVERTED, TENSORS, [*EDGES, (2, 2, 4)])) == TRIPS.clean(0.0)


def test_a_conversion_one_way_is_none() -> None:
    assert ask(report=report(CONVERTED[:2], TENSORS[:2], EDGES[:1])) == TRIPS.clean(0.0)


def test_a_slice_of_every_other_element_goes_with_its_conversions() -> None:
    half = tensor(1, 1, 32, 32)
    rows = half._replace(layout="ROW_MAJOR")

    def sliced(stride: int) -> OpTable:
        attributes = f"{{'slice_end': 'Shape([32; 64])'; 'step': 'Shape([1; 1; {stride}])'}}"
        return table(
            op("Matmul", [INPUT], [INPUT], ns=500.0),
            op(UNTILIZE, [INPUT], [ROWS], ns=100.0),
            op("SliceDeviceOperation", [ROWS], [rows], ns=300.0, attributes=attributes),
            op(TILIZE, [rows], [half], ns=100.0),
            op("Unary", [half], [half], ns=100.0),
        )

    assert ask(ops=sliced(2)).reason == (
        "45.5 % of a step goes into 2 layout conversions and 1 strided slice between them"
    )
    assert ask.saving(ops=sliced(2)) == (500.0, "at most the time of 3 ops: 0.5 µs")
    assert ask.fix(ops=sliced(2)) == "De-interleave the weights when loading, then slice tiles."
    assert ask.saving(ops=sliced(1)).ns == 200.0


def test_an_image_that_is_padded_to_tiles_is_a_slow_input() -> None:
    image = tensor(1, 640, 640, 3, dtype="FLOAT32", layout="ROW_MAJOR")
    tiles = tensor(1, 640, 640, 32, dtype="FLOAT32", logical=(1, 640, 640, 3))
    ops = table(
        op(TILIZE, [image], [tiles], ns=1_212_000.0),
        op("Conv2dDeviceOperation", [tiles, INPUT], [tiles], ns=9e6),
    )
    least = 3 * 2 * 640 * 640 * 3 * 4 / 288
    assert ask.saving(ops=ops).ns == pytest.approx(1_212_000 - least)
    assert ask.fix(ops=ops) == (
        "Send images as bfloat16, row-major, with channels padded to 8 or 16, as convolutions take "
        "them."
    )
