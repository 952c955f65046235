"""Elements that are there only to fill tiles."""

from __future__ import annotations

import re
from math import ceil, prod
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.text import counted, percent
from pytest_ttnn_perf.analysis.captures.report_calls import TILE, in_tiles
from pytest_ttnn_perf.analysis.checklist.op_times import has_operands
from pytest_ttnn_perf.analysis.checklist.operands import (
    NO_OPERANDS,
    WORTH_BYTES,
    Operand,
    by_weight,
    computed_in_report,
    if_worth,
    look_of,
    operands_of,
    shape_text,
)
from pytest_ttnn_perf.analysis.checklist.removals import advice_for
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.analysis.checklist.savings import (
    WORTH,
    check_savings,
    critical_ops,
    microseconds,
)
from pytest_ttnn_perf.analysis.ops.regions import step_of
from pytest_ttnn_perf.analysis.ops.roofline import rooflines, size_of
from pytest_ttnn_perf.records.finding import Input, Severity, Subject
from pytest_ttnn_perf.records.ops import Category, category_of, short_code

if TYPE_CHECKING:
    from pytest_ttnn_perf.records.ops import Op, OpTable, Tensor
    from pytest_ttnn_perf.records.ttnn_report import Report

#: Ops that want their operands in the shape they have.
_SHAPED: Final = frozenset({Category.ATTENTION, Category.COLLECTIVE, Category.CONV})
#: The channels of an image that a convolution begins with.
_COLOURS: Final = (3, 4)
#: Ops on images, which have their channels last, however few these are.
_OF_IMAGES: Final = re.compile(
    r"padded_?slice|slice_?write|halo|pool|fold|upsample|grid_?sample", re.IGNORECASE
)
#: Tiles of a report that hold a quarter of what they could, or less, are worth another shape.
_MOSTLY_EMPTY: Final = 4


@rule("TTP202", "tile-padding", Severity.WARNING, Input.OPS, Input.REPORT)
def tile_padding(
    subject: Subject,
    *,
    share: Limit = Limit(0.02, "of a step", WORTH),
    extra: Limit = Limit(0.10, "of what is needed", "a choice: a report has no times"),
    worth: Limit = WORTH_BYTES,
) -> Answer:
    """Tiles are filled up with padding.

    ## What it finds
    Ops on many matrices of a single row, as a batch of 32 that is laid out as 32 matrices of one
    row: each fills tiles of its own, 31 of 32 rows of which are padding. And ops on narrow tensors,
    whose last extent is 8 or less although another would fill tiles: 1x32x10240x4 takes eight times
    the tiles of 1x32x4x10240. With a report database alone, activations whose tiles are mostly
    empty, and how much less they would take with another of their extents last, and all others as
    rows of one matrix.

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
    only those: there tiles are taken to be of 32 by 32, and padding that is moved in less than
    launching an op takes is no finding.
    """
    if subject.ops is not None and has_operands(subject.ops):
        return _of_step(step_of(subject.ops), share)
    if subject.report is None:
        return Answer.not_measured(NO_OPERANDS)
    return _of_report(subject, subject.report, extra, worth)


def _of_report(subject: Subject, report: Report, extra: Limit, worth: Limit) -> Answer:
    operands = operands_of(subject)
    if not operands:
        return Answer.not_measured(NO_OPERANDS)
    tiled = [each for each in operands if each.tensor.layout == "TILE" and all(each.tensor.padded)]
    if not tiled:
        return Answer.not_applicable("no tensor is in tiles")
    # A weight or a bias is as it is; what was computed can be laid out otherwise.
    laid_out = computed_in_report(report) - _shaped(report)
    found = [each for each in tiled if each.number in laid_out and _is_mostly_empty(each.tensor)]
    whole = sum(each.size for each in tiled)
    needless = sum(map(_needless_bytes, found))
    part = needless / (whole - needless)
    told = f"{percent(needless / whole)} of the bytes in tiles are padding that another order of "
    named = ((f"{each.op} {_rearranged(each.tensor)}", _needless_bytes(each)) for each in found)
    answer = extra.at_most(part, f"{told}extents would save", by_weight(named, unit="B"))
    return if_worth(answer, needless, worth)


def _shaped(report: Report) -> frozenset[int]:
    """Return the tensors that attention takes or gives, which wants them in the shape they have."""
    return frozenset(
        number
        for call in report.completed
        if any(category_of(name) in _SHAPED for name in (call.name, *call.device_operations))
        for number in (*call.inputs, *call.outputs)
    )


def _is_mostly_empty(tensor: Tensor) -> bool:
    """Tell whether tiles of a tensor are mostly empty, along one side or along both together."""
    shape = tensor.logical or tensor.padded
    rows, columns = (1, 1, *shape)[-2:]
    return prod(tensor.padded[-2:]) >= _MOSTLY_EMPTY * rows * columns


def _best_matrix(tensor: Tensor) -> tuple[int, int]:
    """Return the rows and columns in which a tensor fills fewest tiles, one extent as columns."""
    shape = tensor.logical or tensor.padded
    matrices = [(prod(shape) // extent, extent) for extent in reversed(shape)]
    return min(matrices, key=lambda matrix: prod(in_tiles(matrix)))


def _rearranged(tensor: Tensor) -> str:
    shape = tensor.logical or tensor.padded
    return f"{shape_text(shape)} → {shape_text(_best_matrix(tensor))}"


def _needless_bytes(operand: Operand) -> float:
    tensor = operand.tensor
    best = tensor._replace(padded=in_tiles(_best_matrix(tensor)))
    return operand.times * max(0.0, size_of(tensor) - size_of(best))


def _of_step(step: OpTable, share: Limit) -> Answer:
    tensors = {row: _tiled(op) for row, op in critical_ops(step)}
    if not any(tensors.values()):
        return Answer.not_applicable("no tensor is in tiles")
    if all(each.logical is None for listed in tensors.values() for each in listed):
        return Answer.not_measured("the capture has no logical shapes")
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
