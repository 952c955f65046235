"""Time spent on ops that only rearrange data."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf._base.text import counted, percent
from pytest_ttnn_perf.analysis.checklist.matmul_and_conv import is_matmul
from pytest_ttnn_perf.analysis.checklist.parallelism import searches
from pytest_ttnn_perf.analysis.checklist.removals import advice_for, check_removals, removable
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.analysis.checklist.savings import critical_ops, step_ns
from pytest_ttnn_perf.analysis.ops.conversions import neighbours, without_producer
from pytest_ttnn_perf.analysis.ops.roofline import rooflines
from pytest_ttnn_perf.records.finding import Input, Severity
from pytest_ttnn_perf.records.ops import Category, category_of, short_code

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_ttnn_perf.analysis.checklist.removals import Removal
    from pytest_ttnn_perf.analysis.checklist.savings import Placed
    from pytest_ttnn_perf.analysis.ops.roofline import Roofline
    from pytest_ttnn_perf.records.ops import OpTable, Signature, Tensor

#: Of what moves data, what is not to be avoided by other shapes: reshards are for TTP302, Halo and
#: slices into DRAM belong to convolutions, lookups and sampling do the work of the model.
_OTHER: Final = re.compile(
    r"reshard|interleaved_?to|sharded_?to|copy|clone|halo|padded_?slice|slice_?write|embedding|"
    r"gather|scatter|sample|non_?zero",
    re.IGNORECASE,
)
#: A concat that uses so much of the bandwidth does what has to be done, as fast as it can.
_FULL: Final = 0.5


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
    layout for TTP203, what comes after the first search of sampling for TTP308. Halo and the
    slices of convolutions, embeddings and gathers do not count.

    ## Why it matters
    Each of these reads and writes a whole tensor. In tiles, a reshape that changes the last two
    extents takes every tile apart.

    ## What to do
    Choose shapes that ops take as they come: make and merge heads with the ops made for that
    (`nlp_create_qkv_heads`, `split_query_key_value_and_split_heads`, `concatenate_heads`), keep the
    last two extents in a reshape, let a matmul transpose, and transpose weights once when they are
    loaded. Untilize before a reshape to a width that is no multiple of 32. Do not permute to rows
    of a few elements. Drop `ttnn.move`, and set `reallocate_halo_output=False` where memory
    is not that scarce. Split a weight where its product is only cut apart. Concatenate parts that
    are sharded alike, in the memory where they are.

    ## What it saves
    The time of these ops and, inside replays, the gaps before them, if all can go.

    ## When it is no problem
    Models that rearrange by design, such as windows in attention. Count what is left after each
    change. A concat that uses half of the bandwidth of DRAM or more does not count: two tensors
    have to become one. Nor does what rearranges an input from the host, or begins or ends a step,
    unless it takes more than ten times its bytes by the bandwidth of DRAM.

    ## Where it looks
    OP CODE and the kernel time of the op table, on the slowest device.
    """
    ops = critical_ops(step)
    if all(_rearranges(op.signature) for _, op in ops):
        return Answer.not_applicable("a step that does nothing else")
    lines, sampling = rooflines(step), _sampling(ops)
    moves = {
        row: each
        for row, each in removable(step, _rearranges).items()
        if row not in sampling and not _fills_the_bandwidth(step, row, lines[row])
    }
    took, count = sum(each.saved_ns for each in moves.values()), counted(len(moves), "op")
    return check_removals(
        step,
        moves,
        share,
        noun="op",
        sentence=f"{percent(took / (step_ns(step) or 1.0))} of a step only rearranges data, in "
        f"{count}",
    ).with_fix(_advice(step, moves))


def _rearranges(signature: Signature) -> bool:
    code = short_code(signature.op)
    return category_of(signature.op) is Category.MOVEMENT and not _OTHER.search(code)


def _sampling(ops: Sequence[Placed]) -> frozenset[int]:
    """Return the rows from the first search behind the last product on: sampling, for TTP308."""
    products = [at for at, (_, op) in enumerate(ops) if is_matmul(op.signature)]
    tail = ops[products[-1] + 1 :] if products else ()
    found = next((at for at, (_, op) in enumerate(tail) if searches(op.signature)), len(tail))
    return frozenset(row for row, _ in tail[found:])


def _fills_the_bandwidth(step: OpTable, row: int, line: Roofline) -> bool:
    """Tell whether an op makes one tensor of several as fast as DRAM allows."""
    code = short_code(step.signatures[step.columns.signature[row]].op)
    return "concat" in code.lower() and (line.dram_fraction or 0.0) >= _FULL


#: What to do about an op, by the beginning of its code, where that alone tells.
_ADVICE: Final = {
    "Move": "drop `ttnn.move`, which only makes room",
    "Concat": "concatenate parts that are sharded alike, in the memory where they are",
    "Full": "fill tensors once, outside of the step",
    "Slice": "cut what is sliced before it is computed, or give the next op its part alone",
    "Split": "split the weights, so that a matmul gives each part",
}
#: What to do about what no op of the step has made.
_LOADED: Final = {
    "FillPad": "pad the weights or the input once, so that nothing has to be filled in each step",
    "Fill": "fill tensors once, outside of the step",
    "Pad": "pad the input once, outside of the model",
    "Permute": "permute what is only loaded once, outside of the step",
    "Transpose": "transpose what is only loaded once, outside of the step",
}
_NO_FORM: Final = "these ops only rearrange data: look for a form the next op takes"
_AFTER_MATMUL: Final = "split the weights whose product is cut apart, so that no slice is needed"
_AFTER_HALO: Final = "set `reallocate_halo_output=False` in `Conv2dConfig`, which leaves out moves"
_SPLIT_HEADS: Final = (
    "make the heads in one op: `ttnn.experimental.nlp_create_qkv_heads` or "
    "`ttnn.transformer.split_query_key_value_and_split_heads`"
)
_MERGE_HEADS: Final = "merge the heads in one op: `ttnn.transformer.concatenate_heads`"
_UNTILIZE: Final = (
    "untilize before the reshape to height and width: in ROW_MAJOR it is a view, in tiles a width "
    "that is no multiple of 32 moves every row"
)
_SHORT_ROWS: Final = (
    "keep a long dim last in the permute before the reshape: rows of {length} elements are moved "
    "one by one"
)
_TILED_RESHAPE: Final = (
    "a tiled reshape that keeps the last two dims is a free view; this one does not"
)
_BY_MATMUL: Final = "let the matmul transpose (`transpose_a` or `transpose_b`)"
_BROADCAST: Final = "let the next op broadcast instead of repeating"
_TILE: Final = 32
#: Ops that only arrange the heads of a product: what is cut behind them was one.
_OF_PRODUCT: Final = re.compile(r"matmul|linear|heads", re.IGNORECASE)
_OF_CONVOLUTION: Final = re.compile(r"^(?:PaddedSlice|Halo|InterleavedToSharded)|conv", re.I)


def _advice(step: OpTable, moves: Mapping[int, Removal]) -> str:
    ops = critical_ops(step)
    signatures = [placed.op.signature for placed in ops]
    first_seen = without_producer(signatures)
    weights: list[tuple[str, float]] = []
    for at, (row, _) in enumerate(ops):
        if row in moves:
            before, after = neighbours(at, len(ops), signatures.__getitem__)
            way = _Way(
                signatures[at],
                None if before is None or first_seen[at] else signatures[before],
                None if after is None else signatures[after],
            )
            weights.append((_advice_for(way, loaded=first_seen[at]), moves[row].saved_ns))
    return advice_for((text or _NO_FORM, ns) for text, ns in weights)


class _Way(NamedTuple):
    """An op that rearranges, the one that made what it takes and the one that takes what it gives.

    Shapes are logical, where a capture tells these.
    """

    own: Signature
    producer: Signature | None
    consumer: Signature | None

    @property
    def shapes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """What comes in and what goes out; empty where that is not told."""
        return _shape(self.own.inputs), _shape(self.own.outputs)

    @property
    def ends(self) -> tuple[str, str]:
        """The codes of the ops beside."""
        return _code(self.producer), _code(self.consumer)


def _code(signature: Signature | None) -> str:
    return "" if signature is None else short_code(signature.op)


def _shape(tensors: Sequence[Tensor]) -> tuple[int, ...]:
    return tensors[0].logical or tensors[0].padded if tensors else ()


def _advice_for(way: _Way, *, loaded: bool) -> str:
    """Return what can be done about an op; "" where nothing is known."""
    code = short_code(way.own.op)
    producer, consumer = way.ends
    if loaded:
        found = next((text for key, text in _LOADED.items() if code.startswith(key)), "")
        if found:
            return found
    if code.startswith("Reshape"):
        return _advice_for_reshape(way)
    if code.startswith(("Transpose", "Permute")):
        return _advice_for_order(way)
    if code.startswith("Repeat"):
        return _BROADCAST if consumer.startswith(("Binary", "Ternary")) else ""
    if code.startswith("Slice") and _OF_PRODUCT.search(producer):
        return _AFTER_MATMUL
    if code.startswith("Move") and producer.startswith("Halo"):
        return _AFTER_HALO
    return next((text for key, text in _ADVICE.items() if code.startswith(key)), "")


def _advice_for_reshape(way: _Way) -> str:
    given, made = way.shapes
    producer, consumer = way.ends
    if _splits_last(given, made) and consumer.startswith(("Transpose", "Permute")):
        return _SPLIT_HEADS
    if _splits_last(made, given) and producer.startswith(("Transpose", "Permute")):
        return _MERGE_HEADS
    if not given or not made:
        return ""
    if way.own.inputs[0].layout != "TILE":
        if given[-1] < _TILE and producer.startswith("Permute"):
            return _SHORT_ROWS.format(length=given[-1])
        return ""
    if given[-1] == made[-1] and made[-2] % _TILE and _OF_CONVOLUTION.search(consumer):
        return _UNTILIZE
    return _TILED_RESHAPE if given[-2:] != made[-2:] else ""


def _advice_for_order(way: _Way) -> str:
    given, made = way.shapes
    if len(given) < 2 or len(given) != len(made):
        return ""
    producer, consumer = way.producer, way.consumer
    if producer is not None and _splits_last(_shape(producer.inputs), _shape(producer.outputs)):
        return _SPLIT_HEADS
    if consumer is not None and _splits_last(_shape(consumer.outputs), _shape(consumer.inputs)):
        return _MERGE_HEADS
    if way.own.outputs[0].layout == "ROW_MAJOR" and made[-1] < min(_TILE, given[-1]):
        return _SHORT_ROWS.format(length=made[-1])
    swapped = given[:-2] == made[:-2] and given[-2:] == made[:-3:-1] != made[-2:]
    return _BY_MATMUL if swapped and consumer is not None and is_matmul(consumer) else ""


def _splits_last(whole: tuple[int, ...], parts: tuple[int, ...]) -> bool:
    """Tell whether the second shape has the last extent of the first in two: heads, and their size.

    >>> _splits_last((1, 1, 19, 768), (1, 19, 12, 64)), _splits_last((1, 1, 64, 8), (1, 8, 8, 8))
    (True, False)
    """
    if len(whole) < 2 or len(parts) < 3 or parts[-2] == 1 or parts[-1] == 1:
        return False
    return parts[-2] * parts[-1] == whole[-1] and parts[-3] == whole[-2]
