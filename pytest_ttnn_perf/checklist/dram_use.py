"""How much of the bandwidth of DRAM ops use, as far as their operands tell."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.checklist.op_times import (
    device_ops,
    has_operands,
    kernel_ns,
    signature_numbers,
)
from pytest_ttnn_perf.checklist.operands import size_of
from pytest_ttnn_perf.checklist.residency import in_dram

if TYPE_CHECKING:
    from pytest_ttnn_perf.model.ops import OpTable, Signature

#: Bytes in a nanosecond, as tt-perf-report 1.4 has them; of Blackhole, the p150's.
_PEAK: Final = {"wormhole": 288.0, "blackhole": 512.0}
#: These read a part of what their operands hold.
_PARTIAL: Final = re.compile(r"sparse|embedding|gather|slice|cache", re.IGNORECASE)


def dram_use(table: OpTable) -> float | None:
    """Return the share of the bandwidth that ops use, weighted by their time; None if unknown.

    Every operand in DRAM counts once. An op that reads only a part of its operands counts as none
    of it, and no op as more than all of the bandwidth.
    """
    peak = _PEAK.get((table.arch or "").lower().partition("_")[0])
    time = kernel_ns(table)
    if peak is None or not time or not has_operands(table):
        return None
    numbers = signature_numbers(table)
    least_ns = {number: _bytes(table.signatures[number]) / peak for number in set(numbers)}
    rows = zip(device_ops(table), numbers, strict=True)
    return sum(min(least_ns[number], op.kernel_ns) for op, number in rows) / time


def _bytes(signature: Signature) -> float:
    if _PARTIAL.search(signature.op):
        return 0.0
    operands = (*signature.inputs, *signature.outputs)
    return sum(size_of(tensor) for tensor in operands if in_dram(tensor))
