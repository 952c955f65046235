"""What the device that takes longest waits in a step, before which ops, and how much of that lasts.

The gaps of all devices and all replays, and when a capture tells them, are in ``op_times``.
"""

from __future__ import annotations

from itertools import accumulate
from statistics import median
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf._base.text import counted, percent
from pytest_ttnn_perf.analysis.checklist.op_times import gaps_of, worst_ops
from pytest_ttnn_perf.analysis.checklist.savings import critical_ops, step_ns
from pytest_ttnn_perf.analysis.ops.calls import COMPILING_NS
from pytest_ttnn_perf.analysis.ops.layers import find_layers
from pytest_ttnn_perf.analysis.ops.regions import once_per_table, step_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_ttnn_perf.records.finding import Evidence, Subject
    from pytest_ttnn_perf.records.ops import Op, OpTable

#: A host that sends op after op takes longer for each; in a replay few gaps are as long.
_LONG_NS: Final = 5_000.0
#: Gaps that make up that much of the waiting are those to look at.
_MOST: Final = 0.8
#: So many ops are named by their numbers.
_NAMED: Final = 3


class Gap(NamedTuple):
    """What passed before an op since the end of the one before it on the same device."""

    op: Op
    ns: float


class Waiting(NamedTuple):
    """The gaps of a step, and the time of its kernels."""

    gaps: Sequence[Gap]
    kernels_ns: float

    @property
    def ns(self) -> float:
        """How long the device waits."""
        return sum(gap.ns for gap in self.gaps)

    @property
    def share(self) -> float:
        """The part of the time in which it waits."""
        whole = self.ns + self.kernels_ns
        return self.ns / whole if whole else 0.0

    @property
    def before_each_op(self) -> bool:
        """Whether it waits before most ops, as it does for a host that sends one after another."""
        return bool(self.gaps) and median(gap.ns for gap in self.gaps) >= _LONG_NS

    @property
    def places(self) -> str:
        """Say before which ops it waits most."""
        ordered = sorted(self.gaps, key=lambda gap: -gap.ns)
        whole = self.ns
        most = _MOST * whole
        upto = enumerate(accumulate(gap.ns for gap in ordered), 1)
        some, ns = next((at, ns) for at, ns in upto if ns >= most)
        part = ns / whole if whole else 0.0
        numbers = [f"#{gap.op.number}" for gap in ordered[:some] if gap.op.number]
        named = ", ".join([*numbers[:_NAMED], *(["…"] if len(numbers) > _NAMED else [])])
        which = f" ({named})" if named else ""
        return f"{percent(part)} of that before {some} of {counted(len(ordered), 'op')}{which}"

    def beyond_ns(self, unavoidable_ns: float) -> float:
        """Return how long it waits beyond what cannot be avoided before each op."""
        return sum(max(0.0, gap.ns - unavoidable_ns) for gap in self.gaps)

    def evidence(self) -> Iterator[Evidence]:
        """Return before which ops it waits, the longest first."""
        ops = [gap.op._replace(gap_ns=gap.ns) for gap in self.gaps]
        return worst_ops(ops, lambda op: op.gap_ns or 0.0, of=self.ns + self.kernels_ns)


@once_per_table
def waiting_in(step: OpTable) -> Waiting:
    """Return the gaps of a step on the device that takes longest, but for those of compilation.

    The gap before its first op belongs to what came before it.
    """
    gaps = (Gap(op, max(op.gap_ns or 0.0, 0.0)) for _, op in critical_ops(step)[1:])
    return Waiting(tuple(gap for gap in gaps if gap.ns < COMPILING_NS), step_ns(step))


def lasting_waiting(step: OpTable) -> Waiting:
    """Return the same of a call that is under way: the host takes longer for the first layers.

    Of layers that run one after the other, none waits longer than the last.
    """
    placed = critical_ops(step)
    gaps = [max(op.gap_ns or 0.0, 0.0) for _, op in placed]
    for layers in find_layers([step.columns.signature[each.row] for each in placed]):
        if layers.is_long:
            last = layers.stop - layers.length
            for at in range(layers.start, last):
                gaps[at] = min(gaps[at], gaps[last + (at - layers.start) % layers.length])
    told = (Gap(each.op, ns) for each, ns in zip(placed[1:], gaps[1:], strict=True))
    return Waiting(tuple(gap for gap in told if gap.ns < COMPILING_NS), step_ns(step))


def told_gaps_ns(subject: Subject) -> float | None:
    """Return how long a step waits between its ops; None where a capture does not tell."""
    if subject.ops is None or isinstance(gaps_of(subject), str):
        return None
    waiting = waiting_in(step_of(subject.ops))
    return waiting.ns if waiting.gaps else None
