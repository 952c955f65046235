"""The same op on all devices of a mesh: what links take of it, and what waiting for each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pytest_ttnn_perf.analysis.checklist.savings import critical_ns
from pytest_ttnn_perf.analysis.ops.regions import once_per_table
from pytest_ttnn_perf.records.ops import Category, category_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_ttnn_perf.records.ops import Op, OpTable


class OnMesh(NamedTuple):
    """An op of the device that takes longest, and how long it took on each device."""

    row: int
    op: Op
    times_ns: Mapping[int, float]

    @property
    def is_collective(self) -> bool:
        """Whether devices exchange data in it."""
        return category_of(self.op.signature.op) is Category.COLLECTIVE

    @property
    def fastest_ns(self) -> float:
        """How long it took where nobody waited: on the device that came last."""
        return min(self.times_ns.values())

    @property
    def mean_ns(self) -> float:
        """The mean of all devices."""
        return sum(self.times_ns.values()) / len(self.times_ns)


@once_per_table
def ops_on_mesh(step: OpTable) -> Sequence[OnMesh] | None:
    """Return the ops of the slowest device with their times on all; None if these ran others."""
    columns = step.columns
    by_device: dict[int, list[int]] = {}
    for row, (device, host) in enumerate(zip(columns.device, columns.host, strict=True)):
        if not host:
            by_device.setdefault(device, []).append(row)
    codes = [
        [step.signatures[columns.signature[row]].op for row in rows] for rows in by_device.values()
    ]
    if any(each != codes[0] for each in codes):
        return None
    slowest = list(critical_ns(step))
    return tuple(
        OnMesh(
            row,
            step.op(row),
            {device: columns.kernel_ns[rows[at]] for device, rows in by_device.items()},
        )
        for at, row in enumerate(slowest)
    )


def computing_ns(ops: Sequence[OnMesh]) -> dict[int, float]:
    """Return how long each device computes in a step, without collectives."""
    times = dict.fromkeys(ops[0].times_ns, 0.0) if ops else {}
    for each in ops:
        if not each.is_collective:
            for device, ns in each.times_ns.items():
                times[device] += ns
    return times
