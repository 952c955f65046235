"""What each device does, and what devices spend on exchanging data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.checklist.analyses.judged import judged
from pytest_ttnn_perf.checklist.analyses.kind import Kind
from pytest_ttnn_perf.checklist.analyses.sections import by_time
from pytest_ttnn_perf.checklist.op_times import described, device_ops
from pytest_ttnn_perf.checklist.rules.ttp703_collective_share import CollectiveShare
from pytest_ttnn_perf.checklist.rules.ttp704_device_imbalance import DeviceImbalance
from pytest_ttnn_perf.model.category import Category, category_of
from pytest_ttnn_perf.model.subject import Input

if TYPE_CHECKING:
    from pytest_ttnn_perf.checklist.analyses.kind import Numbers
    from pytest_ttnn_perf.model.ops import Op
    from pytest_ttnn_perf.model.subject import Subject


def _look(subject: Subject) -> Numbers:
    assert subject.ops is not None
    ops = list(device_ops(subject.ops))
    exchanging = [op for op in ops if category_of(op.signature.op) is Category.COLLECTIVE]
    computing = [op for op in ops if category_of(op.signature.op) is not Category.COLLECTIVE]
    apart = computing if exchanging else []
    return judged(
        subject,
        {"collectives": CollectiveShare, "slowest device": DeviceImbalance},
        by_time("devices", ops, _device),
        by_time("devices without collectives", apart, _device, of="of such time"),
        by_time("collectives", exchanging, described, whole=sum(op.kernel_ns for op in ops)),
    )


def _device(op: Op) -> str:
    return f"device {op.device}"


DEVICES: Final = Kind("devices", "kernel time by device, and collectives", (Input.OPS,), _look)
