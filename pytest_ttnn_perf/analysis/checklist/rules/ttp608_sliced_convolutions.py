"""Convolutions that run slice by slice through DRAM."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.text import counted, percent
from pytest_ttnn_perf.analysis.checklist.matmul_and_conv import (
    NO_CONVOLUTIONS,
)
from pytest_ttnn_perf.analysis.checklist.products import (
    convolutions_of,
)
from pytest_ttnn_perf.analysis.checklist.removals import advice_for
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.analysis.checklist.savings import (
    WORTH,
    check_savings,
    critical_ops,
    microseconds,
    step_ns,
)
from pytest_ttnn_perf.records.finding import Input, Severity

if TYPE_CHECKING:
    from pytest_ttnn_perf.records.ops import OpTable, Signature

_SLICES: Final = re.compile(r"padded_?slice|slice_?write", re.IGNORECASE)

_CUTS: Final = re.compile(r"padded_?slice", re.IGNORECASE)


@rule("TTP608", "sliced-convolutions", Severity.INFO, Input.OPS)
def sliced_convolutions(step: OpTable, *, share: Limit = Limit(0.02, "of a step", WORTH)) -> Answer:
    """Convolutions run slice by slice through DRAM.

    ## What it finds
    The time of the ops that cut a slice out of an activation in DRAM for a convolution, and write
    its result back there.

    ## Why it matters
    What does not fit into L1 is convolved slice by slice. Each slice is read and written once more,
    and a convolution of its own is launched for it.

    ## What to do
    Make it fit: activations in bfloat8_b, `deallocate_activation`, a smaller
    `act_block_h_override`, or fewer and larger slices in `Conv2dSliceConfig`. An image of 3
    channels has 32 in TILE, and all of them are read to be cut: send it row-major, with channels
    padded to 8 or 16.

    ## What it saves
    At most the time of the ops that cut and write slices.

    ## When it is no problem
    The first convolutions of large images, which fit into no L1.

    ## Where it looks
    OP CODE (PaddedSlice, SliceWrite) and the kernel time of the op table, on the slowest device.
    """
    if not convolutions_of(step):
        return Answer.not_applicable(NO_CONVOLUTIONS)
    ops = [(row, op) for row, op in critical_ops(step) if _SLICES.search(op.signature.op)]
    slices = {row: op.kernel_ns for row, op in ops}
    took = sum(slices.values())
    return check_savings(
        step,
        slices,
        share,
        sentence=f"{percent(took / (step_ns(step) or 1.0))} of a step cuts slices for "
        "convolutions out of DRAM, and writes them back",
        arithmetic=f"at most the time of {counted(len(slices), 'op')}: {microseconds(took)}",
    ).with_fix(advice_for((_advice(op.signature), op.kernel_ns) for _, op in ops))


_FIT: Final = (
    "make it fit: activations in bfloat8_b, `deallocate_activation`, a smaller "
    "`act_block_h_override`, or fewer and larger slices in `Conv2dSliceConfig`"
)


def _advice(signature: Signature) -> str:
    """Return what would help a slice: most of what it reads may be padding of channels."""
    first = signature.inputs[0] if signature.inputs else None
    if first is None or first.layout != "TILE" or not first.logical:
        return _FIT
    channels, padded = first.logical[-1], first.padded[-1]
    if not _CUTS.search(signature.op) or channels > padded / 2:
        return _FIT
    wanted = 8 if channels <= 8 else 16
    return (
        f"send the image row-major, with channels padded to {wanted}: in TILE, {channels} are "
        f"{padded}"
    )
