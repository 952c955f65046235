from __future__ import annotations

from tests.rules.answers import Ask, Evidence, Subject, clean, limit, not_applicable, not_measured
from tests.rules.reports import Operation, record, report
from tests.rules.tables import op, table

#: Whatever it weighs.
ask = Ask("TTP504", {"worth": 0.0})
LIMIT = limit(0.1, "of the bytes")
READ = Operation(1, "ttnn.to_torch", inputs=(1,), outputs=(2,))


def test_padding_that_crosses_is_found() -> None:
    operations = [
        READ,
        Operation(2, "ttnn.from_torch", outputs=(3,)),
        Operation(3, "ttnn.copy_host_to_device_tensor", inputs=(4, 5)),
        Operation(4, "ttnn.relu", inputs=(1,), outputs=(1,)),
    ]
    tensors = [
        record(1, 1, 1, 48, 64),  # 64 x 64 in tiles: 8192 B, of which 2048 are padding
        record(2, 1, 1, 48, 64, memory=None),
        record(3, 1, 1, 20, 32, layout="ROW_MAJOR"),  # 1280 B, none
        record(4, 1, 1, 8, 32, memory=None),
        record(5, 1, 1, 8, 32, dtype="FLOAT32"),  # 4096 B, of which 3072
    ]
    assert ask(report=report(operations, tensors)) == LIMIT.found(
        (2048 + 3072) / (8192 + 1280 + 4096),
        "37.7 % of what is sent in 2 transfers and read in 1 transfer is padding",
        [
            Evidence("ttnn.copy_host_to_device_tensor 1x1x8x32", 3072.0, "B"),
            Evidence("ttnn.to_torch 1x1x48x64", 2048.0, "B"),
        ],
    )


def test_what_crosses_in_next_to_no_time_is_clean() -> None:
    made = report([READ], [record(1, 1, 1, 48, 64)])
    assert Ask("TTP504")(report=made) == LIMIT.clean(
        0.25, reason="2.000 KiB in all: too little to matter in a transfer"
    )
    assert ask(report=made).reason == "25.0 % of what is read in 1 transfer is padding"


def test_the_limit_itself_is_clean() -> None:
    subject = Subject(report=report([READ], [record(1, 1, 1, 48, 64)]))
    assert ask.with_limits(share=0.25)(subject) == clean(0.25, limit=0.25, unit=LIMIT.unit)


def test_whole_tiles_are_clean() -> None:
    assert ask(Subject(report=report([READ], [record(1, 1, 1, 64, 64)]))) == LIMIT.clean(0.0)


def test_without_transfers_the_question_does_not_arise() -> None:
    nothing = not_applicable("the report has no transfer between host and device")
    on_host = record(1, 1, 1, 48, 64, memory=None)
    relu = Operation(1, "ttnn.relu", inputs=(1,))
    assert ask(report=report([READ], [on_host])) == nothing
    assert ask(report=report([relu], [record(1, 1, 1, 48, 64)])) == (nothing)


def test_an_op_table_does_not_tell() -> None:
    assert ask(ops=table(op("Add"))) == not_measured("needs a report database")


def test_a_tensor_of_unknown_size_is_left_out() -> None:
    reads = Operation(1, "ttnn.to_torch", inputs=(1, 2, 3))
    tensors = [record(1, 1, 1, 64, 64), record(2, 1, 1, 8, 8, dtype="NEW"), record(3, 1, 0, 8)]
    assert ask(report=report([reads], tensors)) == LIMIT.clean(0.0)
