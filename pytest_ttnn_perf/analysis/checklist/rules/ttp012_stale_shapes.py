"""Ops that would be faster than the chip, were their shapes their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf._base.text import counted, percent
from pytest_ttnn_perf.analysis.captures.validity import different_replays
from pytest_ttnn_perf.analysis.checklist.op_times import heaviest_numbers, kernel_ns, op_name
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.analysis.ops.roofline import rooflines
from pytest_ttnn_perf.records.finding import Evidence, Input, Severity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_ttnn_perf.analysis.ops.roofline import Roofline
    from pytest_ttnn_perf.records.ops import OpTable


@rule("TTP012", "stale-shapes", Severity.WARNING, Input.OPS)
def stale_shapes(
    ops: OpTable,
    *,
    share: Limit = Limit(0.01, "of kernel time", "a choice: less than that changes no conclusion"),
) -> Answer:
    """Ops took less time than their shapes allow.

    ## What it finds
    Ops that would have moved more than the DRAM bandwidth of the chip, or computed more than its
    cores can, were their shapes those of the op table; and all others with the same shapes.

    ## Why it matters
    Where a program comes from the cache, some builds of the profiler write the shapes of the call
    that made it. What follows from shapes (bandwidth, FLOPs, bound, padding, bytes) is then wrong
    for these ops, and nothing ranks them by it. Their times are right.

    ## What to do
    Read the shapes of these ops in the model, not in the capture. A capture with the program cache
    off, or of the first call alone, has the shapes of every op.

    ## When it is no problem
    When nothing but times is wanted.

    ## Where it looks
    The operands, the fidelity and the cores of the op table, and the peaks of its architecture,
    with 5 % of tolerance. Of a lookup or a cache, what is read is not known, and such ops are left
    out. In replays that lost data (TTP002) it is times that are too short: they are not measured.
    """
    flaw = different_replays(ops)
    if flaw is not None:
        # Where some cores of an op lost their markers, it is its time that is not its own.
        return Answer.not_measured(f"{flaw} (TTP002): times of theirs may be too short")
    lines = rooflines(ops)
    if all(line.dram_ns is None and line.compute_ns is None for line in lines):
        return Answer.not_measured("neither the chip's peaks nor what ops move is known")
    # One without a time is like others with its shapes, and is not too fast itself.
    stale = [at for at, line in enumerate(lines) if line.stale and line.kernel_ns > 0]
    whole_ns = kernel_ns(ops)
    part = sum(ops.columns.kernel_ns[at] for at in stale) / whole_ns if whole_ns else 0.0
    told = (
        f"{percent(part)} of the kernel time goes into {counted(len(stale), 'op')} with impossible "
        "recorded shapes: at these shapes they would exceed the chip's peak"
    )
    return share.at_most(part, told, _fastest(ops, stale, lines))


def _fastest(table: OpTable, stale: Sequence[int], lines: Sequence[Roofline]) -> Sequence[Evidence]:
    """Return how far above the peak ops of one name would be, the farthest first."""
    times: dict[str, float] = {}
    numbers: dict[str, list[tuple[float, int]]] = {}
    for at in stale:
        op, line = table.op(at), lines[at]
        name = op_name(op)
        moved_ns = 0.0 if line.work.at_most else line.dram_ns or 0.0
        ratio = max(moved_ns, line.compute_ns or 0.0) / line.kernel_ns
        times[name] = max(ratio, times.get(name, 0.0))
        numbers.setdefault(name, []).append((ratio, op.number))
    ordered = sorted(times, key=lambda name: (-times[name], name))
    return [
        Evidence(
            f"{len(numbers[name])} x {name}" if len(numbers[name]) > 1 else name,
            times[name],
            "x the peak",
            ops=heaviest_numbers(numbers[name]),
        )
        for name in ordered
    ]
