"""What to call the operations of a report, and how much of a core's L1 they take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.checklist.operands import shape_text
from pytest_ttnn_perf.model.report import BufferType

if TYPE_CHECKING:
    from pytest_ttnn_perf.model.report import Operation, Report

#: Why rules about what runs inside operations cannot tell, without their graphs.
NO_GRAPHS: Final = "the report does not tell what ran inside its operations"


def called(report: Report, operation: Operation) -> str:
    """Return an operation as people call it: its name, its number and the shape of its input."""
    tensors = (report.tensors.get(number) for number in operation.inputs)
    shapes = [shape_text(tensor.shape) for tensor in tensors if tensor and tensor.shape]
    return " ".join([f"{operation.name} (operation {operation.id})", *shapes[:1]])


def has_graphs(report: Report) -> bool:
    """Tell whether a report says of any operation what ran inside it."""
    return any(operation.device_operations for operation in report.operations)


def budget_bytes(report: Report) -> int | None:
    """Return what a core has for tensors and circular buffers together; None where not told.

    A bank is smaller than that limit where a part of L1 was set aside when the device was opened.
    """
    sizes = [
        size
        for device in report.devices
        if device.cb_limit_bytes
        for size in (device.cb_limit_bytes, device.l1_bank_bytes)
        if size
    ]
    return min(sizes, default=None)


def used_bytes(operation: Operation) -> int:
    """Return what was alive in L1 at an operation, per core; a lower bound, as not all tell."""
    return operation.bytes_per_bank.get(BufferType.L1, 0) + (operation.cb_bytes_per_core or 0)
