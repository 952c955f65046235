"""Room in L1."""

from __future__ import annotations

from msgspec.structs import replace

from pytest_ttnn_perf.analysis.readers.report_db import BufferType, Device
from tests.rules.answers import Ask, Evidence, Subject, clean, limit, not_measured
from tests.rules.reports import Operation, Report, record, report

ask = Ask("TTP304")
LIMIT = limit(0.1, "of L1")
DEVICE = Device(0, 64, 1000, None, 1100)


def on_device(*operations: Operation, device: Device = DEVICE) -> Report:
    """Return a report of one device whose cores have 1000 bytes to give."""
    return replace(report(operations, [record(1, 1, 1, 64, 32)]), devices=(device, device))


def running(number: int, tensors: int, circular: int | None) -> Operation:
    """Return an operation with what it takes of L1."""
    return Operation(
        number,
        "ttnn.conv2d",
        inputs=(1,),
        device_operations=("Conv2dDeviceOperation",),
        cb_bytes_per_core=circular,
        bytes_per_bank={BufferType.L1: tensors, BufferType.DRAM: 10**6, BufferType.L1_SMALL: 500},
    )


def test_the_fullest_operation_is_named() -> None:
    full = on_device(running(1, 600, 350), running(2, 100, 100), running(3, 500, 410))
    assert ask(report=full) == LIMIT.found(
        1 - 950 / 1000,
        "ttnn.conv2d (operation 1) 1x1x64x32 leaves 5.0 % of a core's L1",
        [
            Evidence("ttnn.conv2d (operation 1) 1x1x64x32", 950.0, "bytes"),
            Evidence("ttnn.conv2d (operation 3) 1x1x64x32", 910.0, "bytes"),
        ],
    )


def test_exactly_enough_room_is_clean() -> None:
    asked = Subject(report=on_device(running(1, 500, 250), Operation(2, "ttnn.deallocate")))
    assert ask.with_limits(free=0.25)(asked) == clean(0.25, limit=0.25, unit="of L1")


def test_without_a_bank_size_the_limit_of_circular_buffers_counts() -> None:
    device = DEVICE._replace(l1_bank_bytes=None, cb_limit_bytes=1000)
    asked = Subject(report=on_device(running(1, 250, 250), device=device))
    assert ask(asked) == LIMIT.clean(0.5)


def test_silent_circular_buffers_are_no_room() -> None:
    asked = Subject(report=on_device(running(1, 250, 250), running(2, 100, None)))
    assert ask(asked) == not_measured(
        "circular buffers are not given by 1 of 2 operations; what is known leaves 50.0 % of L1"
    )


def test_tensors_alone_may_fill_it() -> None:
    assert ask(report=on_device(running(1, 2000, None))) == LIMIT.found(
        0.0,
        "ttnn.conv2d (operation 1) 1x1x64x32 leaves 0.0 % of a core's L1",
        [Evidence("ttnn.conv2d (operation 1) 1x1x64x32", 2000.0, "bytes")],
    )


def test_inputs_that_do_not_tell() -> None:
    assert ask(report=report([running(1, 0, 0)])) == not_measured(
        "the report does not say how much L1 a core has"
    )
    silent = Subject(report=on_device(Operation(1, "ttnn.relu")))
    assert ask(silent) == not_measured("the report does not say what ran inside its operations")
