"""Elements that are there only to fill tiles."""

from __future__ import annotations

import re
from math import ceil, prod
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.text import counted, percent
from pytest_ttnn_perf.analysis.captures.report_calls import TILE
from pytest_ttnn_perf.analysis.checklist.op_times import has_operands
from pytest_ttnn_perf.analysis.checklist.operands import (
    NO_OPERANDS,
    Operand,
    by_weight,
    look_of,
    operands_of,
    shape_text,
)
from pytest_ttnn_perf.analysis.checklist.removals import advice_for
from pytest_ttnn_perf.analysis.checklist.residency import NO_ACTIVATIONS, activation_edges
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.analysis.checklist.savings import (
    WORTH,
    check_savings,
    critical_ops,
    microseconds,
)
from pytest_ttnn_perf.analysis.ops.regions import step_of
from pytest_ttnn_perf.analysis.ops.roofline import rooflines
from pytest_ttnn_perf.records.finding import Input, Severity, Subject
from pytest_ttnn_perf.records.ops import Category, category_of, short_code

if TYPE_CHECKING:
    from pytest_ttnn_perf.records.ops import Op, OpTable, Tensor

#: Padding of less than this, in all, is not worth a word.
_LEAST_BYTES: Final = 64 * 1024
#: Ops that want their operands in the shape they have.
_SHAPED: Final = frozenset({Category.ATTENTION, Category.COLLECTIVE, Category.CONV})
#: The channels of an image that a convolution begins with.
_COLOURS: Final = (3, 4)
#: Ops on images, which have their channels last, however few these are.
_OF_IMAGES: Final = re.compile(
    r"padded_?slice|slice_?write|halo|pool|fold|upsample|grid_?sample", re.IGNORECASE
)


@rule("TTP202", "tile-padding", Severity.WARNING, Input.OPS, Input.REPORT)
def tile_padding(
    subject: Subject,
    *,
    share: Limit = Limit(0.02, "of a step", WORTH),
    extra: Limit = Limit(
        0.10, "of the elements", "real models: 1 to 7 %, with short sequences 15 to 27 %"
    ),
) -> Answer:
    """Tiles are filled up with padding.

    ## What it finds
    Ops on many matrices of a single row, as a batch of 32 that is laid out as 32 matrices of one
    row: each fills tiles of its own, 31 of 32 rows of which are padding. And ops on narrow tensors,
    whose last extent is 8 or less although another would fill tiles: 1x32x10240x4 takes eight times
    the tiles of 1x32x4x10240. With a report database alone, how many more elements tiled
    activations have than their shapes ask for.

    ## Why it matters
    A tile has 32 rows and 32 columns. A tensor of 19 rows takes the memory, the transfers and the
    compute of 32.

    ## What to do
    Make the last two extents multiples of 32: larger batches, sequences padded once outside the
    model, heads and channels in multiples of 32, or a permutation that brings an extent of 1
    forward.

    ## What it saves
    Of each op, the part of the tiles of its largest operand that would go if all rows were one
    matrix, 1x32x1x4096 as 1x1x32x4096, or if its longest extent were the last.

    ## When it is no problem
    Decoding with a batch of 1 leaves 31 of 32 rows empty, whatever the shapes: rows of a last tile
    cost nothing, and do not count. Ops of attention, and matmuls with a matrix for each of these
    rows, as of experts, want them apart, and convolutions and pooling want channels last: they do
    not count, nor does what brings their operands into that shape, nor images of three or four
    channels. A bias is a single row by nature. Of a report, weights and biases do not count, nor
    does padding of less than 64 KiB in all.

    ## Where it looks
    The padded and logical shapes of tiled operands and the kernel time of the op table, on the
    slowest device. Captures of before August 2025 tell no logical shapes. A report database tells
    only those: there tiles are taken to be of 32 by 32.
    """
    if subject.ops is not None and has_operands(subject.ops):
        return _of_step(step_of(subject.ops), share)
    return _of_report(subject, extra)


def _of_report(subject: Subject, limit: Limit) -> Answer:
    report = subject.report
    operands = operands_of(subject)
    if report is None or not operands:
        return Answer.not_measured(NO_OPERANDS)
    tiled = [each for each in operands if each.tensor.layout == "TILE"]
    if not tiled:
        return Answer.not_applicable("no tensor is in tiles")
    if not any(each.tensor.logical for each in tiled):
        return Answer.not_measured("the capture tells no logical shapes")
    # What no operation computed is a weight, a bias or an input: its shape is given.
    names = {operation.id: operation.name for operation in report.operations}
    known = [
        Operand(names[edge.consumer], tensor, 1, given=False)
        for edge, tensor in activation_edges(report)
        if tensor.layout == "TILE" and tensor.logical
    ]
    wanted = sum(prod(each.tensor.logical or ()) for each in known)
    padding = sum(map(_padding, known))
    size = sum(each.size * _padding(each) / prod(each.tensor.padded) for each in known)
    if not wanted:
        return Answer.not_applicable(NO_ACTIVATIONS)
    if size < _LEAST_BYTES:
        return limit.clean(0.0)
    return limit.at_most(
        padding / wanted,
        f"padding adds {percent(padding / wanted)} to the elements of tiled activations",
        by_weight(
            ((_advice(each), _padding(each) / padding) for each in known if _padding(each)),
            unit="of the padding",
        ),
    )


def _of_step(step: OpTable, share: Limit) -> Answer:
    tensors = {row: _tiled(op) for row, op in critical_ops(step)}
    if not any(tensors.values()):
        return Answer.not_applicable("no tensor is in tiles")
    if all(each.logical is None for listed in tensors.values() for each in listed):
        return Answer.not_measured("the capture tells no logical shapes")
    apart = _wanted_apart(step)
    of_images = any(category_of(op.signature.op) is Category.CONV for _, op in critical_ops(step))
    saved: dict[int, float] = {}
    shapes: dict[int, Tensor] = {}
    for row, op in critical_ops(step):
        if tensors[row] and not _wants_rows_apart(op) and not rooflines(step)[row].stale:
            largest = max(tensors[row], key=lambda tensor: prod(tensor.padded))
            is_image = of_images and (largest.logical or largest.padded)[-1] in _COLOURS
            empty = 0.0 if is_image else 1 - _needed_tiles(largest) / _tiles(largest)
            is_matmul = category_of(op.signature.op) is Category.MATMUL
            if empty > 0 and (is_matmul or look_of(largest) not in apart):
                saved[row], shapes[row] = op.kernel_ns * empty, largest
    took = sum(step.columns.kernel_ns[row] for row in saved)
    part = sum(saved.values()) / took if took else 0.0
    return check_savings(
        step,
        saved,
        share,
        sentence=f"{percent(part)} of the tiles of {counted(len(saved), 'op')} on single rows or "
        f"narrow columns are not needed",
        arithmetic=f"that part of {microseconds(took)}: {microseconds(sum(saved.values()))}",
        name=lambda placed: f"{short_code(placed.op.signature.op)} {_folded(shapes[placed.row])}",
    ).with_fix(
        advice_for(
            (_NARROW if _is_narrow(shapes[row]) else _SINGLE, ns) for row, ns in saved.items()
        )
    )


def _wanted_apart(step: OpTable) -> set[tuple[object, ...]]:
    """Return what tensors look like that an op of the step wants with their rows apart."""
    return {
        look_of(tensor)
        for _, op in critical_ops(step)
        if _wants_rows_apart(op)
        for tensor in (*op.signature.inputs, *op.signature.outputs)
    }


def _wants_rows_apart(op: Op) -> bool:
    category, inputs = category_of(op.signature.op), op.signature.inputs
    if category is Category.MATMUL and len(inputs) > 1:
        return prod(inputs[1].padded[:-2]) > 1
    return category in _SHAPED or _OF_IMAGES.search(op.signature.op) is not None


def _tiled(op: Op) -> list[Tensor]:
    inputs = op.signature.inputs
    if category_of(op.signature.op) is Category.MATMUL:
        inputs = inputs[:1]  # the others are weights and a bias
    operands = (*inputs, *op.signature.outputs)
    return [each for each in operands if each.layout == "TILE" and all(each.padded)]


def _tiles(tensor: Tensor) -> int:
    return max(1, prod(tensor.padded) // (TILE * TILE))


#: Columns that are few enough to say that the tensor lies the wrong way.
_FEW_COLUMNS: Final = 8
_SINGLE: Final = "lay single rows out as one matrix, 1x32x1x4096 as 1x1x32x4096"
_NARROW: Final = (
    "bring a longer extent last, 1x32x10240x4 as 1x32x4x10240: permute states and weights once, "
    "when they are made"
)


def _is_narrow(tensor: Tensor) -> bool:
    shape: tuple[int, ...] = tensor.logical or tensor.padded
    return len(shape) > 1 and shape[-1] <= _FEW_COLUMNS and max(shape[:-1]) >= TILE


def _better(tensor: Tensor) -> tuple[int, ...] | None:
    """Return a shape of fewer tiles for the same elements; None where it has as it should."""
    shape: tuple[int, ...] = tensor.logical or tensor.padded
    if len(shape) < 3:
        return None
    if _is_narrow(tensor):
        place = max(range(len(shape)), key=lambda at: (shape[at], at))
        others = [extent for at, extent in enumerate(shape) if at != place]
        return (*others, shape[place])
    return (prod(shape[:-1]), shape[-1]) if shape[-2] == 1 else None


def _needed_tiles(tensor: Tensor) -> int:
    """Return the tiles of a tensor in a better shape, if there is one."""
    better = _better(tensor)
    if better is None:
        return _tiles(tensor)
    rows, columns = prod(better[:-1]), better[-1]
    return min(_tiles(tensor), ceil(rows / TILE) * ceil(columns / TILE))


def _folded(tensor: Tensor) -> str:
    shape: tuple[int, ...] = tensor.logical or tensor.padded
    return f"{shape_text(shape)} → {shape_text(_better(tensor) or shape)}"


def _padding(operand: Operand) -> int:
    tensor = operand.tensor
    return operand.times * (prod(tensor.padded) - prod(tensor.logical or ()))


def _advice(operand: Operand) -> str:
    """Name an operand and extents that fill its tiles, e.g. 147 → 160."""
    shape = operand.tensor.logical or ()
    better = [f"{extent} → {_fitting(extent)}" for extent in shape[-2:] if extent % TILE]
    advice = ", ".join(better) or f"padded to {shape_text(operand.tensor.padded)}"
    return f"{operand.op} {shape_text(shape)}: {advice}"


def _fitting(extent: int) -> int:
    # Never less: the elements are there.
    return ceil(extent / TILE) * TILE
