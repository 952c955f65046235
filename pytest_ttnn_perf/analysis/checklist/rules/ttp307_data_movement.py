"""Time spent on ops that only rearrange data."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.text import counted, percent
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.analysis.checklist.savings import (
    check_savings,
    critical_ops,
    microseconds,
    step_ns,
)
from pytest_ttnn_perf.records.finding import Input, Severity
from pytest_ttnn_perf.records.ops import Category, category_of, short_code

if TYPE_CHECKING:
    from pytest_ttnn_perf.records.ops import OpTable, Signature

#: Of what moves data, what is not to be avoided by other shapes: reshards are for TTP302, Halo and
#: slices into DRAM belong to convolutions, lookups and sampling do the work of the model.
_OTHER: Final = re.compile(
    r"reshard|interleaved_?to|sharded_?to|copy|clone|halo|padded_?slice|slice_?write|embedding|"
    r"gather|scatter|sample|non_?zero",
    re.IGNORECASE,
)


@rule("TTP307", "data-movement", Severity.WARNING, Input.OPS)
def data_movement(
    step: OpTable,
    *,
    share: Limit = Limit(0.05, "of a step", "some movement stays; decode models: 0 to 3 %"),
) -> Answer:
    """Much of a step only rearranges data.

    ## What it finds
    The part of a step in ops that compute nothing: reshape, slice, concat, transpose, permute, pad,
    fill, repeat, move. Reshards and copies between memories are for TTP302, conversions of the
    layout for TTP203. Halo and the slices of convolutions, embeddings and gathers do not count.

    ## Why it matters
    Each of these reads and writes a whole tensor. In tiles, a reshape that changes the last two
    extents takes every tile apart.

    ## What to do
    Choose shapes that ops take as they come: merge heads and batch with the ops made for that, keep
    the last two extents in a reshape, concatenate in the memory where the parts are, sharded alike,
    and transpose weights once when they are loaded instead of activations in each step.

    ## What it saves
    The time of these ops, if all can go.

    ## When it is no problem
    Models that rearrange by design, such as windows in attention. Count what is left after each
    change.

    ## Where it looks
    OP CODE and the kernel time of the op table, on the slowest device.
    """
    moves = {row: op.kernel_ns for row, op in critical_ops(step) if _rearranges(op.signature)}
    if len(moves) == len(critical_ops(step)):
        return Answer.not_applicable("a step that does nothing else")
    took, ops = sum(moves.values()), counted(len(moves), "op")
    return check_savings(
        step,
        moves,
        share,
        sentence=f"{percent(took / (step_ns(step) or 1.0))} of a step only rearranges data, in "
        f"{ops}",
        arithmetic=f"the time of {ops}: {microseconds(took)}",
    )


def _rearranges(signature: Signature) -> bool:
    code = short_code(signature.op)
    return category_of(signature.op) is Category.MOVEMENT and not _OTHER.search(code)
