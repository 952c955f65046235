"""Devices that wait for the slowest one."""

from __future__ import annotations

from pytest_ttnn_perf._base.text import counted, percent
from pytest_ttnn_perf.analysis.checklist.op_times import device_ops
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.records.finding import Evidence, Input, Severity
from pytest_ttnn_perf.records.ops import Category, OpTable, category_of


@rule("TTP704", "device-imbalance", Severity.WARNING, Input.OPS)
def device_imbalance(
    ops: OpTable,
    *,
    excess: Limit = Limit(
        0.05, "above the mean", "real models: 0.1 % in step, 20 % with uneven work"
    ),
) -> Answer:
    """One device works longer than the others.

    ## What it finds
    By how much the kernel time of the slowest device exceeds the mean of all devices. Collectives
    do not count: in them, the faster devices wait for the slower ones.

    ## Why it matters
    The slowest device decides how long a step takes.

    ## What to do
    Compare the ops of the slowest device with those of another: cut tensors evenly, and spread
    experts and layers so that all devices have as much to do.

    ## When it is no problem
    Where only some devices are meant to work in the window, as in a pipeline.

    ## Where it looks
    DEVICE ID, OP CODE and the kernel time of the op table.
    """
    if len(ops.devices) < 2:
        return Answer.not_applicable("one device")
    times = _computing_ns(ops)
    mean = sum(times.values()) / len(times)
    if not mean:
        return Answer.not_measured("no device ran anything but collectives")
    slowest = max(times, key=lambda device: (times[device], -device))
    above = times[slowest] / mean - 1
    ordered = sorted(times, key=lambda device: (-times[device], device))
    return excess.at_most(
        above,
        f"device {slowest} works {percent(above)} longer than the mean of "
        f"{counted(len(times), 'device')}",
        (Evidence(f"device {device}", times[device], "ns") for device in ordered),
    )


def _computing_ns(table: OpTable) -> dict[int, float]:
    """Return the kernel time of each device, without collectives."""
    times = dict.fromkeys(table.devices, 0.0)
    for op in device_ops(table):
        if category_of(op.signature.op) is not Category.COLLECTIVE:
            times[op.device] += op.kernel_ns
    return times
