"""Convolutions for rules, as op tables and as report databases have them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from pytest_ttnn_perf.analysis.readers.report_db import (
    BufferType,
    ConvConfig,
    Device,
    Operation,
    Shard,
)
from tests.analysis.rules.reports import record, report
from tests.analysis.rules.tables import op, tensor

if TYPE_CHECKING:
    from pytest_ttnn_perf.analysis.readers.report_db import Report, TensorRecord
    from pytest_ttnn_perf.core.ops import Op

NOT_ASKED = ConvConfig(*[None] * len(ConvConfig._fields))
#: Its cores have 10,000 bytes to give.
DEVICE = Device(0, 64, 10_000, None, 10_000)


def conv(
    sharding: str = "HEIGHT",
    pixels: int = 1024,
    channels: int = 64,
    *,
    ns: float = 100.0,
    device: int = 0,
    attributes: str = "",
) -> Op:
    """Return a convolution that gives these pixels and channels."""
    memory = f"L1_{sharding}_SHARDED"
    return op(
        "Conv2dDeviceOperation",
        [tensor(1, 1, pixels, 32, memory=memory), tensor(1, 1, 288, channels)],
        [tensor(1, 1, pixels, channels, memory=memory)],
        ns=ns,
        device=device,
        attributes=attributes,
    )


def output(
    number: int, memory: str = "L1_HEIGHT_SHARDED", rows: int | None = None, channels: int = 64
) -> TensorRecord:
    """Return what a convolution gives, in shards of some rows."""
    tensor_record = record(number, 1, 1, 1024, channels, memory=memory)
    shard = None if rows is None else Shard((rows, channels), ())
    return tensor_record._replace(shard=shard)


def called(
    number: int,
    *,
    asked: ConvConfig | None = NOT_ASKED,
    circular: int | None = None,
    tensors: int = 0,
    device_operations: tuple[str, ...] = ("HaloDeviceOperation", "Conv2dDeviceOperation"),
) -> Operation:
    """Return a call of conv2d that gives the tensor of its own number."""
    return Operation(
        number,
        "ttnn.conv2d",
        outputs=(number,),
        device_operations=device_operations,
        conv=asked,
        cb_bytes_per_core=circular,
        bytes_per_bank={BufferType.L1: tensors},
    )


def convolving(*pairs: tuple[Operation, TensorRecord]) -> Report:
    """Return a report of convolutions, each with what it gives."""
    operations, tensors = zip(*pairs, strict=True)
    return replace(report(operations, tensors), devices=(DEVICE,))
