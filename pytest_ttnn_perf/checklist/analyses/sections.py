"""Sections of analyses: what is alike is added up, and what weighs most comes first."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pytest_ttnn_perf.checklist.op_times import described
from pytest_ttnn_perf.model.analysis import Row, Section

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pytest_ttnn_perf.checklist.operands import Operand
    from pytest_ttnn_perf.model.ops import Op


class Part(NamedTuple):
    """Something with a weight, called by its label; ``times`` ops, tensors or calls make it up."""

    label: str
    weight: float
    times: int = 1


def section(
    heading: str,
    parts: Iterable[Part],
    *,
    unit: str,
    of: str,
    whole: float | None = None,
    ranked: bool = True,
) -> Section:
    """Add up the parts of one label; shares are of ``whole`` or else of all parts.

    The heaviest comes first, or if not ``ranked``, what was met first.
    """
    weights: dict[str, float] = {}
    counts: dict[str, int] = {}
    for label, weight, times in parts:
        weights[label] = weights.get(label, 0.0) + weight
        counts[label] = counts.get(label, 0) + times
    total = sum(weights.values()) if whole is None else whole
    labels = sorted(weights, key=lambda label: (-weights[label], label)) if ranked else weights
    rows = tuple(
        Row(label, weights[label], weights[label] / total if total else None, counts[label])
        for label in labels
    )
    return Section(heading, unit, rows, of)


def by_time(
    heading: str,
    ops: Iterable[Op],
    label: Callable[[Op], str] = described,
    *,
    of: str = "of kernel time",
    whole: float | None = None,
) -> Section:
    """Add up the kernel time of ops by what they are called."""
    parts = (Part(label(op), op.kernel_ns) for op in ops)
    return section(heading, parts, unit="ns", of=of, whole=whole)


def by_bytes(
    heading: str, operands: Iterable[Operand], label: Callable[[Operand], str], *, of: str
) -> Section:
    """Add up the bytes of operands by what they are called."""
    parts = (Part(label(each), each.size, each.times) for each in operands)
    return section(heading, parts, unit="B", of=of)


def lost_time(ops: Iterable[Op], *, whole: float) -> Section:
    """Add up by how much ops miss the time that the profiler's model allows them."""
    losses = ((op, op.kernel_ns - op.ideal_ns) for op in ops if op.ideal_ns is not None)
    parts = (Part(described(op), loss) for op, loss in losses if loss > 0)
    return section("time beyond the ideal", parts, unit="ns", of="of kernel time", whole=whole)
