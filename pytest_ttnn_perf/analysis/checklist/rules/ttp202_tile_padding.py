"""Elements that are there only to fill tiles."""

from __future__ import annotations

from math import prod

from pytest_ttnn_perf._base.text import percent
from pytest_ttnn_perf.analysis.captures.report_calls import TILE
from pytest_ttnn_perf.analysis.checklist.operands import (
    NO_OPERANDS,
    Operand,
    by_weight,
    operands_of,
    shape_text,
)
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.records.finding import Input, Severity, Subject


@rule("TTP202", "tile-padding", Severity.WARNING, Input.OPS, Input.REPORT)
def tile_padding(
    subject: Subject,
    *,
    extra: Limit = Limit(
        0.10, "of the elements", "real models: 1 to 7 %, with short sequences 15 to 27 %"
    ),
) -> Answer:
    """Tiles are filled up with padding.

    ## What it finds
    How many more elements tiled tensors have than their shapes ask for, over everything that ops
    take and give. The evidence names the shapes that add most, with extents that fit.

    ## Why it matters
    A tile has 32 rows and 32 columns. A tensor of 19 rows takes the memory, the transfers and the
    compute of 32.

    ## What to do
    Make the last two extents multiples of 32: larger batches, sequences padded once outside the
    model, heads and channels in multiples of 32, or a permutation that brings an extent of 1
    forward.

    ## When it is no problem
    Decoding with a batch of 1 leaves 31 of 32 rows empty, whatever the shapes; up to a batch of 32
    the others cost nothing. A bias is a single row by nature.

    ## Where it looks
    The padded and logical shapes of tiled operands in the op table. Captures of before August 2025
    tell no logical shapes. A report database tells only those: there tiles are taken to be of 32 by
    32.
    """
    operands = operands_of(subject)
    tiled = [operand for operand in operands if operand.tensor.layout == "TILE"]
    known = [operand for operand in tiled if operand.tensor.logical is not None]
    wanted = sum(operand.times * prod(operand.tensor.logical or ()) for operand in known)
    if not operands:
        return Answer.not_measured(NO_OPERANDS)
    if not tiled:
        return Answer.not_applicable("no tensor is in tiles")
    if not wanted:
        return Answer.not_measured("the capture tells no logical shapes")
    padding = sum(map(_padding, known))
    return extra.at_most(
        padding / wanted,
        f"padding adds {percent(padding / wanted)} to the elements of tiled tensors",
        by_weight(
            (
                (_advice(operand), _padding(operand) / padding)
                for operand in known
                if _padding(operand)
            ),
            unit="of the padding",
        ),
    )


def _padding(operand: Operand) -> int:
    tensor = operand.tensor
    return operand.times * (prod(tensor.padded) - prod(tensor.logical or ()))


def _advice(operand: Operand) -> str:
    """Name an operand and extents that fit it better, e.g. 147 → 128 or 160."""
    shape = operand.tensor.logical or ()
    better = [f"{extent} → {_fitting(extent)}" for extent in shape[-2:] if extent % TILE]
    advice = ", ".join(better) or f"padded to {shape_text(operand.tensor.padded)}"
    return f"{operand.op} {shape_text(shape)}: {advice}"


def _fitting(extent: int) -> str:
    below = extent // TILE * TILE
    return f"{below} or {below + TILE}" if below else str(TILE)
