"""Row-major compute, padding of tiles, and conversions between layouts."""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import permutations
from math import ceil, prod
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.analysis.checklist.operands import (
    NO_OPERANDS,
    look_of,
)
from pytest_ttnn_perf.analysis.checklist.products import is_convolution
from pytest_ttnn_perf.analysis.checklist.savings import (
    SHARE,
    Removal,
    advice_for,
    check_removals,
    check_savings,
    critical_ops,
    has_operands,
    removable,
    share_of_step,
)
from pytest_ttnn_perf.analysis.ops.names import neighbours, shape_text, without_producer
from pytest_ttnn_perf.analysis.ops.roofline import rooflines
from pytest_ttnn_perf.analysis.readers.report_db import TILE
from pytest_ttnn_perf.core.finding import Answer, Input, Limit, Severity, rule
from pytest_ttnn_perf.core.ops import Category, OpTable, Signature, Tensor
from pytest_ttnn_perf.core.text import counted, duration, percent

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_ttnn_perf.analysis.checklist.savings import OpPlace
    from pytest_ttnn_perf.core.ops import Op

_COMPUTES: Final = frozenset({Category.MATMUL, Category.ELEMENTWISE, Category.NORM})


#: Ops that want their operands in the shape they have.
_SHAPED: Final = frozenset({Category.ATTENTION, Category.COLLECTIVE, Category.CONV})
#: The channels of an image that a convolution begins with.
_COLOURS: Final = (3, 4)
#: Ops on images, which have their channels last, however few these are.
_OF_IMAGES: Final = re.compile(
    r"padded_?slice|slice_?write|halo|pool|fold|upsample|grid_?sample", re.IGNORECASE
)
#: Columns that are few enough to say that the tensor lies the wrong way.
_FEW_COLUMNS: Final = 8
_SINGLE: Final = "lay the rows of a batch out as one matrix: reshape {shape} to {better}"
_UNMADE: Final = "have the op before make {better}, and drop the reshape from {shape}"
_NARROW: Final = (
    "bring the longest extents last, {shape} as {better}: permute states and weights once, when "
    "they are made"
)
#: Hidden dimensions have so many columns.
_HIDDEN: Final = 512
#: Fewer tiles less, and the reshape may cost as much.
_WORTH: Final = 0.25


@rule("TTP202", "tile-padding", Severity.WARNING, Input.OPS)
def tile_padding(step: OpTable, *, share: Limit = SHARE) -> Answer:
    """Tiles are filled up with padding.

    Finds ops on many matrices of less than 32 rows: each fills tiles of its own, of a single row 31
    of 32 rows are padding. And ops on narrow tensors, whose last extent is 8 or less although
    others would fill tiles: 1x32x10240x4 takes eight times the tiles of 1x4x32x10240.

    ## What to do
    Make the last two extents multiples of 32: larger batches, sequences padded once outside the
    model, heads and channels in multiples of 32, or a permutation that brings an extent of 1
    forward.

    ## What it saves
    Of each op, the part of the tiles of its largest operand that would go if all rows were one
    matrix, 1x32x18x4096 as 1x1x576x4096, or if its longest extents were the last two.

    ## When it is no problem
    Decoding with a batch of 1 leaves 31 of 32 rows empty, whatever the shapes: rows of a last tile
    do not count. Nor do ops that want such shapes (attention, matmuls of experts, convolutions,
    pooling) and what prepares their operands, images of three or four channels, weights and biases.
    """
    if not has_operands(step):
        return Answer.not_measured(NO_OPERANDS)
    ops = critical_ops(step)
    tensors = {row: _tiled(op) for row, op in ops}
    if not any(tensors.values()):
        return Answer.not_applicable("no tensor is in tiles")
    if all(each.logical is None for listed in tensors.values() for each in listed):
        return Answer.not_measured("the capture has no logical shapes")
    wanted_apart = {
        look_of(tensor)
        for _, op in ops
        if _wants_rows_apart(op)
        for tensor in (*op.signature.inputs, *op.signature.outputs)
    }
    of_images = any(is_convolution(op.signature) for _, op in ops)
    saved: dict[int, float] = {}
    shapes: dict[int, Tensor] = {}
    for row, op in ops:
        if tensors[row] and not _wants_rows_apart(op) and not rooflines(step)[row].stale:
            largest = max(tensors[row], key=lambda tensor: prod(tensor.padded))
            is_image = of_images and largest.shape[-1] in _COLOURS
            empty = 0.0 if is_image else _empty_part(largest)
            is_matmul = op.signature.category is Category.MATMUL
            # What makes rows of a batch, and takes them together again, goes with the others.
            several = largest.shape[-2:-1] != (1,) and not _is_narrow(largest)
            if several and op.signature.category not in _COMPUTES:
                continue
            if empty > 0 and (is_matmul or look_of(largest) not in wanted_apart):
                saved[row], shapes[row] = op.kernel_ns * empty, largest
    took = sum(step.columns.kernel_ns[row] for row in saved)
    part = sum(saved.values()) / took if took else 0.0

    def named(placed: OpPlace) -> str:
        tensor = shapes[placed.row]
        better = shape_text(_better(tensor) or tensor.shape)
        return f"{placed.op.signature.code} {shape_text(tensor.shape)} → {better}"

    return check_savings(
        step,
        saved,
        share,
        sentence=f"{percent(part)} of the tiles of {counted(len(saved), 'op')} on few rows or "
        f"narrow columns are not needed",
        arithmetic=f"that part of {duration(took)}: {duration(sum(saved.values()))}",
        name=named,
    ).with_fix(
        advice_for((_padding_advice(shapes[row], step.op(row)), ns) for row, ns in saved.items())
    )


def _padding_advice(tensor: Tensor, op: Op) -> str:
    unmade = _UNMADE if op.signature.code.startswith("Reshape") else _SINGLE
    text = _NARROW if _is_narrow(tensor) else unmade
    shapes = (tensor.shape, _better(tensor) or tensor.shape)
    shape, better = map(shape_text, shapes)
    return text.format(shape=shape, better=better)


def _wants_rows_apart(op: Op) -> bool:
    category, inputs = op.signature.category, op.signature.inputs
    if category is Category.MATMUL and len(inputs) > 1:
        return prod(inputs[1].padded[:-2]) > 1
    return category in _SHAPED or _OF_IMAGES.search(op.signature.op) is not None


def _tiled(op: Op) -> list[Tensor]:
    inputs = op.signature.inputs
    if op.signature.category is Category.MATMUL:
        inputs = inputs[:1]  # the others are weights and a bias
    operands = (*inputs, *op.signature.outputs)
    return [each for each in operands if each.layout == "TILE" and all(each.padded)]


def _is_narrow(tensor: Tensor) -> bool:
    shape = tensor.shape
    return len(shape) > 1 and shape[-1] <= _FEW_COLUMNS and max(shape[:-1]) >= TILE


def _better(tensor: Tensor) -> tuple[int, ...] | None:
    """Return a shape with fewer tiles; None if it is fine."""
    shape = tensor.shape
    if len(shape) < 3:
        return None
    if _is_narrow(tensor):
        pairs = permutations(range(len(shape)), 2)
        orders = (
            (
                *(each for at, each in enumerate(shape) if at not in pair),
                *(shape[at] for at in pair),
            )
            for pair in pairs
        )
        return min(orders, key=lambda order: (_tiles_of(order), order[-2]))
    # Of narrower tensors, several rows are mostly heads, which attention wants apart.
    alone = shape[-2] == 1 or (shape[-2] < TILE and shape[-1] >= _HIDDEN)
    return (1, 1, prod(shape[:-1]), shape[-1]) if alone else None


def _tiles_of(shape: tuple[int, ...]) -> int:
    return prod(shape[:-2]) * ceil(shape[-2] / TILE) * ceil(shape[-1] / TILE)


def _empty_part(tensor: Tensor) -> float:
    tiles, better = max(1, prod(tensor.padded) // (TILE * TILE)), _better(tensor)
    part = 0.0 if better is None else 1 - _tiles_of(better) / tiles
    return part if part >= _WORTH else 0.0


_CONVERSION: Final = re.compile(r"tilize|to_?layout", re.IGNORECASE)
_ON_ROWS: Final = re.compile(r"arg_?max|top_?k|sampling|pool|grid_?sample|upsample", re.IGNORECASE)


@rule("TTP203", "layout-conversions", Severity.WARNING, Input.OPS)
def layout_conversions(step: OpTable, *, share: Limit = SHARE) -> Answer:
    """Time goes into changing layouts.

    Finds the part of a step in ops that turn row-major tensors into tiles and back: tilize,
    untilize, to_layout. Each reads and writes a whole tensor and computes nothing. A slice between
    two of them that picks every other element of a row counts as well. Ops that compute on rows
    convert inside their own kernel, which costs a twentieth of their time: `ttnn-perf analyze
    layout` names them.

    ## What to do
    Keep tensors in one layout from op to op: convert weights and tables once when they are loaded,
    ask for the layout an op works in, and remove conversions between ops that both take tiles.
    De-interleave weights when they are loaded instead of slicing every other element. Send images
    row-major, with channels padded to 8 or 16.

    ## What it saves
    The time of the conversions and, inside replays, the gaps before them. Of a slow conversion of
    an input, its time less three times its bytes, without padding, by the bandwidth of DRAM.

    ## When it is no problem
    Conversions before and after ops that work on rows by nature: argmax, top-k, pooling, grid
    sampling. What comes row-major from the host, and what a step begins and ends with, is not
    counted either, unless it takes more than ten times its bytes by the bandwidth of DRAM.
    """
    ops = critical_ops(step)
    strided = {at for at in range(len(ops)) if _is_strided(ops, at)}
    found = _avoidable(step) | {ops[at].row: Removal(ops[at].op.kernel_ns) for at in strided}
    took = share_of_step(step, sum(each.saved_ns for each in found.values()))
    conversions = counted(len(found) - len(strided), "layout conversion")
    if strided:
        conversions += f" and {counted(len(strided), 'strided slice')} between them"
    return check_removals(
        step,
        found,
        share,
        noun="op" if strided else "layout conversion",
        sentence=f"{took} of a step goes into {conversions}",
    ).with_fix(_conversion_advice(step, found, strided))


def _avoidable(step: OpTable) -> dict[int, Removal]:
    ops = critical_ops(step)
    signatures = [placed.op.signature for placed in ops]
    found = dict(removable(step, _converts))
    for at, (row, _) in enumerate(ops):
        if row in found:
            places = neighbours(at, len(ops), signatures.__getitem__)
            beside = (signatures[place].code for place in places if place is not None)
            if any(map(_ON_ROWS.search, beside)):
                del found[row]
    return found


def _is_strided(ops: Sequence[OpPlace], at: int) -> bool:
    """Return whether a slice between conversions skips elements."""
    if not 0 < at < len(ops) - 1 or not ops[at].op.signature.code.startswith("Slice"):
        return False
    step = _STEP.search(ops[at].op.attributes)
    beside = (ops[at - 1].op.signature, ops[at + 1].op.signature)
    return step is not None and int(step[1]) > 1 and all(map(_converts, beside))


def _converts(signature: Signature) -> bool:
    return _CONVERSION.search(signature.op) is not None


#: The last of the steps of a slice.
_STEP: Final = re.compile(r"'step':\s*'\w*\(?\[(?:\d+[;,]\s*)*(\d+)\]")
_SLOW: Final = "convert inputs on the host, with a last extent that is a multiple of 32"
_IMAGE: Final = (
    "send images as bfloat16, row-major, with channels padded to 8 or 16, as convolutions take them"
)
_STRIDED: Final = "de-interleave the weights when loading, then slice tiles"
_TABLE: Final = "convert weights and tables once, when they are loaded"
_ALONE: Final = "ask the ops beside the conversions for the layout they give or take"


def _conversion_advice(step: OpTable, found: Mapping[int, Removal], strided: set[int]) -> str:
    ops = critical_ops(step)
    signatures = [placed.op.signature for placed in ops]
    first_seen = without_producer(signatures)
    convolves = any(map(is_convolution, signatures))
    weights: list[tuple[str, float]] = []
    between: dict[str, float] = defaultdict(float)
    for at, (row, _) in enumerate(ops):
        if row not in found:
            continue
        places = neighbours(at, len(ops), signatures.__getitem__)
        codes = [signatures[place].code for place in places if place is not None]
        if not strided.isdisjoint((at - 1, at, at + 1)):
            advice = _STRIDED
        elif found[row].slow:
            few = (signatures[at].inputs[0].logical or (TILE,))[-1] < TILE
            advice = _IMAGE if convolves and few else _SLOW
        elif first_seen[at]:
            advice = _TABLE
        elif len(codes) == 2:
            between[f"{codes[0]} and {codes[1]}"] += found[row].saved_ns
            continue
        else:
            advice = _ALONE
        weights.append((advice, found[row].saved_ns))
    most = sorted(between, key=lambda ends: (-between[ends], ends))[:2]
    kept = f"keep one layout between {', and between '.join(most)}" if most else ""
    return advice_for([*weights, (kept, sum(between.values()))])
