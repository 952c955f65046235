"""How near ops come to the time that the profiler's model of the device allows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._support.wording import counted, percent
from pytest_ttnn_perf.checklist.op_times import worst_ops
from pytest_ttnn_perf.checklist.rule import clean, found, not_applicable, not_measured

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_ttnn_perf.checklist.rule import Answer
    from pytest_ttnn_perf.model.ops import Op

_UNIT: Final = "of the ideal"


def judged_efficiency(ops: Iterable[Op], *, named: str, at_least: float, of: float) -> Answer:
    """Compare the ideal time of ops with the time that they took, all together.

    An op that beats its model counts as ideal, so that it cannot make up for another.
    ``of`` is the time that evidence is a share of.
    """
    listed = list(ops)
    if not listed:
        return not_applicable(f"no {named}s")
    modelled = [op for op in listed if op.ideal_ns is not None and op.kernel_ns > 0]
    if not modelled:
        return not_measured(f"the profiler has no model of these {named}s")
    took = sum(op.kernel_ns for op in modelled)
    reached = (took - sum(map(_lost_ns, modelled))) / took
    without = len(listed) - len(modelled)
    if reached >= at_least:
        reason = f"no model of {without} of {counted(len(listed), named)}" if without else None
        return clean(reached, limit=at_least, unit=_UNIT, reason=reason)
    return found(
        f"{counted(len(modelled), named)} at {percent(reached)} of what the profiler's model "
        "allows",
        value=reached,
        limit=at_least,
        unit=_UNIT,
        evidence=worst_ops(modelled, _lost_ns, of=of),
    )


def _lost_ns(op: Op) -> float:
    return max(0.0, op.kernel_ns - (op.ideal_ns or 0.0))
