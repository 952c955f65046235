"""Devices that wait for the slowest one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.text import counted, percent
from pytest_ttnn_perf.analysis.checklist.matmul_and_conv import flag
from pytest_ttnn_perf.analysis.checklist.meshes import computing_ns, ops_on_mesh
from pytest_ttnn_perf.analysis.checklist.op_times import op_name
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.analysis.checklist.rules.ttp703_collective_share import OTHER_OPS
from pytest_ttnn_perf.analysis.checklist.savings import WORTH, microseconds, step_ns
from pytest_ttnn_perf.records.finding import Evidence, Input, Severity

if TYPE_CHECKING:
    from pytest_ttnn_perf.analysis.checklist.meshes import OnMesh
    from pytest_ttnn_perf.records.ops import OpTable


@rule("TTP704", "device-imbalance", Severity.WARNING, Input.OPS)
def device_imbalance(step: OpTable, *, excess: Limit = Limit(0.02, "of a step", WORTH)) -> Answer:
    """One device works longer than the others, which wait for it.

    ## What it finds
    How much longer the device that computes longest takes than the mean of all devices, the devices
    that take as long, and the ops in which they do. Collectives do not count as work: in them, the
    faster devices wait.

    ## Why it matters
    The slowest device decides how long a step takes.

    ## What to do
    Look at the ops that are named, which take longer on that device than on the others: cut
    tensors evenly, and spread experts and layers so that all devices have as much to do. Causal
    attention over a ring of devices has more to do on those with later tokens: give each an early
    and a late part of the sequence, with `is_balanced=True`.

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
    group = _as_long(late[0][1], last) if late else (last,)
    return (
        excess.at_most(
            above / whole,
            f"{_devices(group)} {microseconds(times[last])}, {percent(above / mean)} longer than "
            f"the mean of {counted(len(times), 'device')}",
            (
                Evidence(
                    f"{op_name(each.op)}{_setting(each)} on device {last}",
                    ns,
                    "ns",
                    ns / whole,
                    (each.op.number,),
                )
                for ns, each in late
                if ns > 0
            ),
        )
        .saving(
            {row: ns * scale for row, ns in held.items()},
            f"device {last} − mean of {len(times)}: {microseconds(times[last])} − "
            f"{microseconds(mean)}",
        )
        .with_fix(_BALANCED if late and _setting(late[0][1]) else "")
    )


_BALANCED: Final = (
    "Set `is_balanced=True`, with an early and a late part of the sequence on each device: later "
    "tokens attend to more."
)
#: Devices that take nearly as long as the slowest are as late.
_NEARLY: Final = 0.9


def _as_long(each: OnMesh, last: int) -> tuple[int, ...]:
    """Return the devices on which an op takes about as long as on the last one."""
    slowest = each.times_ns[last]
    return tuple(sorted(at for at, ns in each.times_ns.items() if ns >= _NEARLY * slowest))


def _devices(numbers: tuple[int, ...]) -> str:
    if len(numbers) == 1:
        return f"device {numbers[0]} computes"
    return f"devices {', '.join(map(str, numbers[:-1]))} and {numbers[-1]} compute up to"


def _setting(each: OnMesh) -> str:
    """Return the setting that makes causal attention uneven."""
    attributes = each.op.attributes
    uneven = flag(attributes, "is_causal") and flag(attributes, "is_balanced") is False
    return " (is_causal=true, is_balanced=false)" if uneven else ""
