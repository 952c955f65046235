"""Shardings of convolutions in a row."""

from __future__ import annotations

from msgspec.structs import replace

from pytest_ttnn_perf.analysis.readers.report_db import Operation, Reshard
from tests.rules.answers import Ask, Evidence, limit, not_applicable, not_measured
from tests.rules.convolving import NOT_ASKED, called, conv, convolving, output
from tests.rules.tables import op, table

ask = Ask("TTP601")
LIMIT = limit(1, "changes")
CHANGES = [
    Evidence("Conv2d 1x1x1024x32, HEIGHT → BLOCK"),
    Evidence("Conv2d 1x1x1024x32, BLOCK → WIDTH"),
]


def test_two_changes() -> None:
    moves = [op("ReshardDeviceOperation", ns=50.0), op("InterleavedToShardedDeviceOperation", ns=5)]
    ops = table(
        conv("HEIGHT"),
        op("Reshard"),
        conv("HEIGHT"),
        moves[0],
        conv("BLOCK"),
        moves[1],
        conv("WIDTH"),
    )
    assert ask(ops=ops) == LIMIT.found(
        2.0,
        "the sharding changes 2 times from one convolution to the next, in 4 convolutions",
        CHANGES,
    )
    assert ask.saving(ops=ops) == (55.0, "the time of 2 moves between them: 0.1 µs")


def test_changes_that_take_nothing_are_clean() -> None:
    ops = table(conv("HEIGHT"), conv("BLOCK"), op("Reshard", ns=6.0), conv("WIDTH"))
    reason = "the time of 1 move between them: 0.0 µs, 2.0 % of a step"
    assert ask(ops=ops) == LIMIT.clean(2.0, reason=reason)


def test_one_change_is_clean() -> None:
    assert ask(ops=table(conv("HEIGHT"), conv("BLOCK"))) == LIMIT.clean(1.0)


def test_devices_are_rows_of_their_own() -> None:
    rows = [conv("HEIGHT"), conv("BLOCK", device=1), conv("HEIGHT"), conv("BLOCK", device=1)]
    assert ask(ops=table(*rows)) == LIMIT.clean(0.0)


def test_a_report_without_a_table() -> None:
    asked = NOT_ASKED._replace(shard_layout="BLOCK_SHARDED")
    made = convolving(
        (called(1), output(1)),
        (called(2, asked=asked), output(2, "DRAM_INTERLEAVED")),
        (called(3), output(3, "DRAM_INTERLEAVED")),
        (called(4, device_operations=("MatmulDeviceOperation",)), output(4, "L1_WIDTH_SHARDED")),
        (called(5, device_operations=()), output(5)),
    )
    assert ask(report=made) == LIMIT.found(
        2.0,
        "the sharding changes 2 times from one convolution to the next, in 3 convolutions",
        [
            Evidence("ttnn.conv2d (operation 2), HEIGHT → BLOCK"),
            Evidence("ttnn.conv2d (operation 5), BLOCK → HEIGHT"),
        ],
    )


def test_changes_of_a_report_that_a_reshard_is_named_for_are_left_to_its_rule() -> None:
    move = Operation(2, "ttnn.to_memory_config", reshard=Reshard.EXPLICIT)
    hidden = replace(called(4), reshard=Reshard.HIDDEN)
    made = convolving(
        (called(1), output(1)),
        (called(3), output(3, "L1_BLOCK_SHARDED")),
        (hidden, output(4)),
    )
    assert ask(report=made).value == 1.0
    made = replace(made, operations=(*made.operations, move))
    assert ask(report=made) == LIMIT.clean(0.0)


def test_inputs_that_do_not_tell() -> None:
    assert ask(ops=table(op("Unary"))) == not_applicable("no convolutions")
    assert ask(ops=table(op("Conv2dDeviceOperation"))) == not_measured(
        "the capture does not say how convolutions are sharded"
    )
