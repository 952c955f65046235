"""The tensors of a report that cross between host and device, as far as the report tells."""

from __future__ import annotations

import re
from math import prod
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf.checklist.operands import BYTES, device_tensor, shape_text, size_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_ttnn_perf.model.ops import Tensor
    from pytest_ttnn_perf.model.report import Operation, Report

_TO_HOST: Final = frozenset({"to_torch", "from_device", "cpu", "copy_device_to_host_tensor"})
_TO_DEVICE: Final = frozenset({"from_torch", "to_device", "copy_host_to_device_tensor"})
_LAST_NAME: Final = re.compile(r"\w+$")
_NUMBER: Final = re.compile(r"\d+")
#: How releases call the argument that names a command queue.
_QUEUES: Final = ("cq_id", "queue_id")


class Crossing(NamedTuple):
    """A tensor on its way. ``queue`` is None where the call names no command queue."""

    operation: str
    tensor: Tensor
    outward: bool
    queue: int | None

    def __str__(self) -> str:
        return f"{self.operation} {shape_text(self.tensor.logical or self.tensor.padded)}"

    @property
    def sent(self) -> float:
        """The bytes that cross."""
        return size_of(self.tensor)

    @property
    def padding(self) -> float:
        """The bytes of them that are no data."""
        return self.sent * (1 - prod(self.tensor.logical or ()) / prod(self.tensor.padded))


def crossings(report: Report) -> list[Crossing]:
    """Return the tensors that cross, in the order of the calls; one of unknown size is left out."""
    return [
        Crossing(operation.name, tensor, _name(operation) in _TO_HOST, _queue(operation))
        for operation in report.operations
        for tensor in _tensors(operation, report)
        if tensor.dtype in BYTES and all(tensor.padded)
    ]


def _tensors(operation: Operation, report: Report) -> Iterator[Tensor]:
    """Yield what a transfer takes from a device or leaves there; nothing of another operation."""
    name = _name(operation)
    if name not in _TO_HOST | _TO_DEVICE:
        return
    # A copy has both of its ends among its inputs.
    ids = operation.inputs if name in _TO_HOST or not operation.outputs else operation.outputs
    for tensor in map(device_tensor, map(report.tensors.get, dict.fromkeys(ids))):
        if tensor is not None:
            yield tensor


def _name(operation: Operation) -> str:
    found = _LAST_NAME.search(operation.name)
    return found[0] if found else ""


def _queue(operation: Operation) -> int | None:
    told = (_NUMBER.search(operation.arguments.get(name, "")) for name in _QUEUES)
    return next((int(found[0]) for found in told if found), None)
