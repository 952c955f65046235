"""Devices that wait for the slowest one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf._base.text import counted, percent
from pytest_ttnn_perf.analysis.checklist.meshes import computing_ns, ops_on_mesh
from pytest_ttnn_perf.analysis.checklist.op_times import op_name
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.analysis.checklist.rules.ttp703_collective_share import OTHER_OPS
from pytest_ttnn_perf.analysis.checklist.savings import WORTH, microseconds, step_ns
from pytest_ttnn_perf.records.finding import Evidence, Input, Severity

if TYPE_CHECKING:
    from pytest_ttnn_perf.records.ops import OpTable


@rule("TTP704", "device-imbalance", Severity.WARNING, Input.OPS)
def device_imbalance(step: OpTable, *, excess: Limit = Limit(0.02, "of a step", WORTH)) -> Answer:
    """One device works longer than the others, which wait for it.

    ## What it finds
    How much longer the device that computes longest takes than the mean of all devices, and the ops
    in which it does. Collectives do not count as work: in them, the faster devices wait.

    ## Why it matters
    The slowest device decides how long a step takes.

    ## What to do
    Look at the ops that are named, which take longer on that device than on the others: cut
    tensors evenly, and spread experts and layers so that all devices have as much to do.

    ## What it saves
    The time by which that device exceeds the mean.

    ## When it is no problem
    Where only some devices are meant to work in the window, as in a pipeline.

    ## Where it looks
    DEVICE ID, OP CODE and the kernel time of the op table, op by op on all devices.
    """
    if len(step.devices) < 2:
        return Answer.not_applicable("one device")
    ops = ops_on_mesh(step)
    if ops is None:
        return Answer.not_measured(OTHER_OPS)
    times, whole = computing_ns(ops), step_ns(step)
    mean = sum(times.values()) / len(times)
    if not mean or not whole:
        return Answer.not_measured("no device ran anything but collectives")
    last = max(times, key=lambda device: (times[device], -device))
    above = times[last] - mean
    late = sorted(
        ((each.times_ns[last] - each.mean_ns, each) for each in ops if not each.is_collective),
        key=lambda pair: (-pair[0], pair[1].row),
    )
    # The device that takes longest is late itself, or waits for a late one in its collectives.
    held = {
        each.row: each.op.kernel_ns - (each.fastest_ns if each.is_collective else each.mean_ns)
        for each in ops
    }
    held = {row: ns for row, ns in held.items() if ns > 0}
    scale = min(1.0, above / (sum(held.values()) or 1.0))
    return excess.at_most(
        above / whole,
        f"device {last} computes {microseconds(times[last])}, {percent(above / mean)} longer than "
        f"the mean of {counted(len(times), 'device')}",
        (
            Evidence(
                f"{op_name(each.op)} on device {last}", ns, "ns", ns / whole, (each.op.number,)
            )
            for ns, each in late
            if ns > 0
        ),
    ).saving(
        {row: ns * scale for row, ns in held.items()},
        f"device {last} − mean of {len(times)}: {microseconds(times[last])} − {microseconds(mean)}",
    )
