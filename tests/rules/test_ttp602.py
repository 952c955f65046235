"""Blocks of convolutions."""

from __future__ import annotations

import pytest

from tests.rules.answers import Ask, Evidence, Subject, clean, limit, not_applicable, not_measured
from tests.rules.convolving import NOT_ASKED, called, conv, convolving, output
from tests.rules.reports import Operation, report
from tests.rules.tables import op, table

ask = Ask("TTP602")
LIMIT = limit(0, "convolutions")
CLEAN = LIMIT.clean(0.0)


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


def test_the_largest_block_that_fits_is_named() -> None:
    made = convolving(
        (asking(1, 64), output(1, rows=384)),
        (asking(2, 32), output(2, rows=384)),
        (asking(3, 384), output(3, rows=384)),
    )
    assert ask(report=made) == LIMIT.found(
        2.0,
        "room for a larger act_block_h in 2 of 3 convolutions",
        [
            Evidence("ttnn.conv2d (operation 1), act_block_h_override 64 → 384"),
            Evidence("ttnn.conv2d (operation 2), act_block_h_override 32 → 192"),
        ],
    )


def test_a_number_of_convolutions_may_be_let_off() -> None:
    made = convolving((asking(1, 64), output(1, rows=384)))
    rule = ask.with_limits(convolutions=1)
    assert rule(report=made) == clean(1.0, limit=1, unit="convolutions")


@pytest.mark.parametrize(("tensors", "fits"), [(7000, True), (7001, False)])
def test_exactly_the_room_that_there_is(tensors: int, fits: bool) -> None:
    made = convolving((asking(1, 32, tensors=tensors), output(1, rows=64)))
    assert (ask(report=made) != CLEAN) is fits


def test_no_block_that_divides_the_rows() -> None:
    made = convolving((asking(1, 32, circular=3000), output(1, rows=160)))
    assert ask(report=made) == CLEAN


def test_rows_are_rounded_up_to_tiles() -> None:
    made = convolving((asking(1, 32), output(1, rows=48)))
    answer = ask(report=made)
    assert answer.evidence == (Evidence("ttnn.conv2d (operation 1), act_block_h_override 32 → 64"),)


def test_zero_is_the_largest_with_a_sharding_of_ones_own() -> None:
    assert ask(report=convolving((asking(1, 0), output(1, rows=64)))) == CLEAN


def test_convolutions_sharded_by_width_have_no_choice() -> None:
    made = convolving((asking(1, 32), output(1, "L1_WIDTH_SHARDED", rows=64)))
    assert ask(report=made) == not_applicable("no convolutions")
    wide = Subject(ops=table(conv("WIDTH", attributes=blocks(1, 2))))
    assert ask(wide) == not_applicable("no convolutions")


def test_a_table_alone_does_not_tell_what_fits() -> None:
    largest, small = conv(attributes=blocks(2, 2)), conv(attributes=blocks(1, 2))
    assert ask(ops=table(largest)) == CLEAN
    below = not_measured(
        "an act_block_h below the largest in 1 of 2 convolutions; whether a larger one fits "
        "is not known without the L1 of a report database"
    )
    assert ask(ops=table(largest, small)) == below
    assert ask(Subject(ops=table(largest, small), report=report([]))) == below


def test_a_report_that_leaves_something_open() -> None:
    chosen = called(1, asked=NOT_ASKED._replace(act_block_h_override=0))
    open_ = convolving((chosen, output(1, rows=64)), (asking(2, 64), output(2, rows=64)))
    assert ask(report=open_) == not_measured("the block of 1 of 2 convolutions is unknown")
    silent = convolving((asking(1, 32, circular=None), output(1, rows=64)))
    assert ask(report=silent) == not_measured(
        "an act_block_h below the largest in 1 of 1 convolution; whether a larger one fits "
        "is not known without the L1 of a report database"
    )
    assert ask(report=convolving((asking(1, 32), output(1, rows=10**18)))) == not_measured(
        "the capture does not give the blocks of convolutions"
    )
    unasked = convolving((called(1, asked=None), output(1, rows=64)))
    assert ask(report=unasked) == not_measured(
        "the capture does not give the blocks of convolutions"
    )


def test_inputs_that_do_not_tell() -> None:
    assert ask(ops=table(op("Unary"))) == not_applicable("no convolutions")
    assert ask(ops=table(conv())) == not_measured(
        "the capture does not give the blocks of convolutions"
    )
