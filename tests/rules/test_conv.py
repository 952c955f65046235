"""Rules on convolutions."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from pytest_ttnn_perf.analysis.readers.report_db import Operation, Reshard
from tests.rules.answers import Ask, Evidence, Subject, limit, not_applicable, not_measured
from tests.rules.convolving import NOT_ASKED, called, conv, convolving, output
from tests.rules.reports import report
from tests.rules.tables import op, table, tensor

ttp601 = Ask("TTP601")


LIMIT = limit(1, "changes")


def test_changes_that_take_nothing_are_clean() -> None:
    ops = table(conv("HEIGHT"), conv("BLOCK"), op("Reshard", ns=6.0), conv("WIDTH"))
    reason = "the time of 1 move between them: 0.0 µs, 2.0 % of a step"
    assert ttp601(ops=ops) == LIMIT.clean(2.0, reason=reason)


def test_one_change_is_clean() -> None:
    assert ttp601(ops=table(conv("HEIGHT"), conv("BLOCK"))) == LIMIT.clean(1.0)


def test_changes_of_a_report_that_a_reshard_is_named_for_are_left_to_its_rule() -> None:
    move = Operation(2, "ttnn.to_memory_config", reshard=Reshard.EXPLICIT)
    hidden = replace(called(4), reshard=Reshard.HIDDEN)
    made = convolving(
        (called(1), output(1)),
        (called(3), output(3, "L1_BLOCK_SHARDED")),
        (hidden, output(4)),
    )
    assert ttp601(report=made).value == 1.0
    made = replace(made, operations=(*made.operations, move))
    assert ttp601(report=made) == LIMIT.clean(0.0)


ttp602 = Ask("TTP602")


LIMIT_602 = limit(0, "convolutions")


CLEAN = LIMIT_602.clean(0.0)


def blocks(tiles: int, most: int) -> str:
    """Return what the attributes say of blocks."""
    return (
        f"{{'block_config': 'Conv2dBlockConfig(act_block_h_ntiles={tiles};act_block_w_ntiles=2)'; "
        f"'parallelization_config': 'Conv2dParallelizationConfig(grid_size=(x=5;y=4);"
        f"per_core_out_matrix_height_ntile={most};per_core_out_matrix_width_ntile=2)'}}"
    )


def asking(number: int, rows: int, circular: int | None = 1000, tensors: int = 0) -> Operation:
    """Return a convolution that was asked to work on some rows at a time."""
    asked = NOT_ASKED._replace(act_block_h_override=rows, shard_layout="HEIGHT_SHARDED")
    return called(number, asked=asked, circular=circular, tensors=tensors)


@pytest.mark.parametrize(("tensors", "fits"), [(7000, True), (7001, False)])
def test_exactly_the_room_that_there_is(tensors: int, fits: bool) -> None:
    made = convolving((asking(1, 32, tensors=tensors), output(1, rows=64)))
    assert (ttp602(report=made) != CLEAN) is fits


def test_zero_is_the_largest_with_a_sharding_of_ones_own() -> None:
    assert ttp602(report=convolving((asking(1, 0), output(1, rows=64)))) == CLEAN


def test_a_table_alone_does_not_tell_what_fits() -> None:
    largest, small = conv(attributes=blocks(2, 2)), conv(attributes=blocks(1, 2))
    assert ttp602(ops=table(largest)) == CLEAN
    below = not_measured(
        "an act_block_h below the largest in 1 of 2 convolutions; whether a larger one fits "
        "is not known without the L1 of a report database"
    )
    assert ttp602(ops=table(largest, small)) == below
    assert ttp602(Subject(ops=table(largest, small), report=report([]))) == below


UNIT = "of convolutions"


LIMIT_603 = limit(0.0, UNIT)


BOTH = pytest.mark.parametrize(
    ("ask", "key", "noun"),
    [
        (Ask("TTP603"), "enable_act_double_buffer", "activations"),
        (Ask("TTP604"), "enable_weights_double_buffer", "weights"),
    ],
    ids=["TTP603", "TTP604"],
)


def switched(key: str) -> tuple[str, str]:
    """Return the attributes that switch something on, and off."""
    return f"{{'{key}': 'true'}}", f"{{'{key}': 'false'}}"


#: What 1024 pixels of 64 channels take to compute, at HiFi2 on 64 cores of Wormhole; what reading
#: their weights takes.
COMPUTE_NS = 2 * 1024 * 64 * 288 / (64 * 148 / 72 * 1000)


READ_NS = 288 * 64 * 2 / 288


@BOTH
def test_no_convolution_gets_beyond_the_best_of_its_like(ask: Ask, key: str, noun: str) -> None:
    on, off = switched(key)
    with_it = conv("BLOCK", attributes=on, ns=COMPUTE_NS * 3)._replace(fidelity="HiFi2")
    without = conv("BLOCK", attributes=off, ns=COMPUTE_NS * 3.5)._replace(fidelity="HiFi2")
    own = COMPUTE_NS if noun == "activations" else READ_NS
    saved = ask.saving(ops=table(with_it, without))[0]
    assert saved == pytest.approx(min(own, COMPUTE_NS * 0.5))


@BOTH
def test_a_report_without_a_table(ask: Ask, key: str, noun: str) -> None:
    on, off = (NOT_ASKED._replace(**{key: switch}) for switch in (True, False))  # type: ignore[arg-type]
    block = "L1_BLOCK_SHARDED"
    made = convolving(
        (called(1, asked=on), output(1, block)), (called(2, asked=off), output(2, block))
    )
    assert ask(report=made) == LIMIT_603.found(
        0.5,
        f"{noun} not double-buffered in 1 of 2 convolutions",
        [Evidence("ttnn.conv2d (operation 2)")],
    )
    untold = not_measured(f"the capture does not say whether {noun} are double-buffered")
    assert ask(ops=table(conv("BLOCK"))) == untold
    assert ask(report=convolving((called(1, asked=None), output(1, block)))) == untold


ttp605 = Ask("TTP605")


LIMIT_605 = limit(0, "batch norms")


NORM = op("BatchNormOperation", [tensor(1, 64, 32, 32)], ns=70.0)


def test_batch_norms_that_run() -> None:
    ops = table(conv(), NORM, conv(), NORM)
    assert ttp605(ops=ops) == LIMIT_605.found(
        2,
        "2 batch norms beside 2 convolutions",
        [Evidence("2 x BatchNorm 1x64x32x32", 140.0, "ns", 140 / 340)],
    )
    assert ttp605.with_limits(batch_norms=2)(ops=ops).value == 2


def test_a_report_without_a_table_605() -> None:
    convolution = convolving((called(1), output(1)))
    operations = (*convolution.operations, Operation(2, "ttnn.batch_norm"))
    assert ttp605(Subject(report=report(operations))) == LIMIT_605.found(
        1, "1 batch norm beside 1 convolution", [Evidence("ttnn.batch_norm (operation 2)")]
    )


ttp606 = Ask("TTP606")


LIMIT_606 = limit(0.0, "of convolutions")


def test_without_an_architecture_what_the_fastest_chip_takes_counts() -> None:
    slow = conv("BLOCK", pixels=102_400, ns=400_000.0)._replace(fidelity="HiFi4", ideal_ns=1_000.0)
    computing = 2 * 102_400 * 64 * 288 / (64 * 5.5296 / 4 * 1000)
    moved = 102_400 * (32 + 64) * 2 / 288 + 2 * 2_000
    assert ttp606.saving(ops=table(slow, arch=None))[0] == pytest.approx(
        400_000 - 2 * computing - moved
    )


def test_a_report_without_a_table_606() -> None:
    made = convolving(
        (called(1), output(1, "L1_BLOCK_SHARDED")),
        (called(2), output(2)),
        (called(3), output(3, "DRAM_INTERLEAVED")),
    )
    assert ttp606(report=made) == LIMIT_606.found(
        0.5,
        "1 of 2 convolutions may suit another sharding, by their shape",
        [Evidence("ttnn.conv2d (operation 1), BLOCK → HEIGHT")],
    )


def test_inputs_that_do_not_tell() -> None:
    assert ttp606(ops=table(op("Unary"))) == not_applicable("no convolutions")
    assert ttp606(ops=table(op("Conv2dDeviceOperation"))) == not_measured(
        "the capture does not say how convolutions are sharded"
    )


slow, sliced = Ask("TTP607"), Ask("TTP608")


LARGE = 102_400


def test_an_ideal_of_the_profiler_counts_for_the_cores_in_use() -> None:
    """PM IDEAL is that of all cores of a chip; on 16, none is faster than those of Blackhole."""
    row = conv(pixels=LARGE, ns=2_000_000.0)._replace(fidelity="HiFi4", cores=16, ideal_ns=1_000.0)
    least = 2 * LARGE * 64 * 288 / (16 * 5.5296 / 4 * 1000)
    assert slow.saving(ops=table(row, arch=None))[0] == pytest.approx(2_000_000 - 2 * least)


def test_slices_of_an_image_in_tiles_read_mostly_padding() -> None:
    image = tensor(1, 384, 1280, 32, logical=(1, 384, 1280, 3))
    cut = op("PaddedSliceDeviceOperation", [image], ns=50_000.0)
    told = "Send the image row-major, with channels padded to 8: in TILE, 3 are 32."
    assert sliced.fix(ops=table(conv(ns=50_000.0), cut)) == told
    rows = image._replace(layout="ROW_MAJOR")
    cut = op("PaddedSliceDeviceOperation", [rows], ns=50_000.0)
    assert (sliced.fix(ops=table(conv(ns=50_000.0), cut)) or "").startswith("Make it fit")
