"""Unused or uneven cores, data movement, searches, loops, fusing, unexplained time."""

from __future__ import annotations

import re
from collections import defaultdict
from math import prod
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf.analysis.checklist.operands import NO_OPERANDS, stale_signatures
from pytest_ttnn_perf.analysis.checklist.products import (
    NOT_TOLD,
    TILE_ROWS,
    USED,
    available_cores,
    best_form,
    config_grid,
    evenly,
    few_cores,
    is_matmul,
    is_routed,
    matmuls_of,
    ops_on_cores,
    products_of,
    searches,
)
from pytest_ttnn_perf.analysis.checklist.savings import (
    LAUNCH_NS,
    SHARE,
    advice_for,
    check_removals,
    check_savings,
    critical_ops,
    gaps_text,
    has_operands,
    heaviest_numbers,
    launch_gaps_ns,
    op_name,
    removable,
    share_of_step,
    step_ns,
    worst_ops,
)
from pytest_ttnn_perf.analysis.ops.names import (
    flag,
    function_in,
    neighbours,
    op_and_function,
    setting,
    whole,
)
from pytest_ttnn_perf.analysis.ops.regions import find_layers
from pytest_ttnn_perf.analysis.ops.roofline import board_of, rooflines, size_of
from pytest_ttnn_perf.core.finding import Answer, Evidence, Input, Limit, Severity, rule
from pytest_ttnn_perf.core.ops import Category, Signature
from pytest_ttnn_perf.core.text import counted, duration, percent

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pytest_ttnn_perf.analysis.checklist.products import OnCores, Product
    from pytest_ttnn_perf.analysis.checklist.savings import OpPlace, Removal
    from pytest_ttnn_perf.analysis.ops.roofline import Roofline
    from pytest_ttnn_perf.analysis.readers.report_db import Report
    from pytest_ttnn_perf.core.ops import Op, OpTable, Tensor


@rule("TTP305", "unused-cores", Severity.WARNING, Input.OPS)
def unused_cores(
    step: OpTable,
    report: Report | None,
    *,
    share: Limit = SHARE,
) -> Answer:
    """Ops run on few of the cores that they could use.

    Finds each op of a step that runs on less than half of the cores that it could use. A matmul, an
    elementwise op or a norm can be cut into the tiles that it gives, attention and conversions into
    rows of tiles. Of an op whose output is sharded in L1, the cores that hold a shard count.

    ## What to do
    Matmuls: a larger `compute_with_storage_grid_size` with smaller `per_core_M` and `per_core_N`;
    with fewer rows of tiles than the grid has rows of cores, a 1D program config
    (`mcast_in0=True`); with a batch in both inputs, `MatmulMultiCoreReuseProgramConfig`. Norms:
    shard the input by width, or by block. Elementwise ops on the shards of their neighbours: fuse
    them, or give all of them more shards. RotaryEmbedding: `rotary_embedding_hf`, or
    `rotary_embedding_llama` for heads of up to 256. A grid that divides the tiles gives all cores
    as much to do.

    ## What it saves
    Time × (1 − cores ÷ possible cores), down to what such ops take at least, and to what reading
    their operands takes. Real elementwise ops of 128, 512 and 2048 tiles take 2.2, 3.8 and 14 µs at
    least. Reshards that they need on shards are subtracted: 1.4, 1.8 and 4.5 µs each.

    ## When it is no problem
    Not counted are short ops, collectives, moves, matmuls with DRAM-sharded weights, and ops with
    one core per user. Matmuls of up to 32 rows are mostly for TTP311, searches along rows for
    TTP308, short conversions for TTP203.
    """
    available = available_cores(step, report)
    if not available:
        return Answer.not_measured(NOT_TOLD)
    if not has_operands(step):
        return Answer.not_measured(NO_OPERANDS)
    if not any(step.columns.cores):
        return Answer.not_measured("the capture does not say how many cores ops ran on")
    if not any(ops_on_cores(step, available)):
        return Answer.not_applicable("no op of 5 µs or more that is to be counted")
    few = few_cores(step, report)
    took = sum(each.op.kernel_ns for each in few.values())
    saved = {row: each.saved_ns for row, each in few.items()}
    use, they = ("uses", "it") if len(few) == 1 else ("use", "they")
    sharded = ", or are not sharded" if any(each.interleaved for each in few.values()) else ""
    board = board_of(step)
    products = {each.row: each for each in matmuls_of(step)} if board else {}

    def advice(each: OnCores) -> str:
        product = products.get(each.row)
        other = board is not None and product is not None and best_form(product, board)
        return each.remedy + (", or DRAM-sharded weights (TTP311)" if other else "")

    return check_savings(
        step,
        saved,
        share,
        sentence=f"{duration(took)} of a step in {counted(len(few), 'op')} that {use} less "
        f"than {percent(USED)} of the cores {they} could{sharded}",
        arithmetic="scaled to the usable cores, but not below each op's minimum: "
        f"{duration(took)} → {duration(took - sum(saved.values()))}",
        name=lambda placed: f"{op_name(placed.op)} {few[placed.row].cores_text}",
    ).with_fix(advice_for(((advice(each), each.saved_ns) for each in few.values()), most=3))


#: What the whole grid of Blackhole saves attention, by the longest sequence: that of 8 by 8 cores
#: takes so much more. And what sums in bfloat16, and larger chunks, save.
_WHOLE_GRID: Final = {2048: 0.07, 6144: 0.24, 10**9: 0.37}
_IN_DECODE, _STREAMING, _CHUNKS = 0.085, 0.2, 0.25
_LARGE_CHUNK, _LONG = 64, 1024
_FULL_GRID: Final = 0.9


@rule("TTP317", "attention-settings", Severity.WARNING, Input.OPS)
def attention_settings(step: OpTable, *, share: Limit = SHARE) -> Answer:
    """Attention runs with settings that other chips or sizes had.

    Finds scaled dot product attention on 8 by 8 cores of a Blackhole, with sums in float32, or in
    chunks of up to 64 on 1024 tokens or more. No capture that we know loses much by it.

    ## What to do
    ```py
    config = ttnn.SDPAProgramConfig(
        compute_with_storage_grid_size=(11, 10), q_chunk_size=256, k_chunk_size=256
    )
    ```
    Chunks of 128 below 2048 tokens, 256 from there on; `fp32_dest_acc_en=False`, which selects the
    streaming kernel. In decode steps list the cores that hold the queries first in
    `sub_core_grids`.

    ## What it saves
    Of prompts on the whole grid 7 % at 1024 tokens, 24 % at 4096, 37 % at 8192; of decode steps 8.5
    %. Without float32 sums 20 %, in larger chunks 25 %.

    ## When it is no problem
    MLA may be faster on fewer cores: measure.
    """
    saved: dict[int, float] = {}
    named: dict[int, str] = {}
    for row, op in critical_ops(step):
        if not _SDPA.search(op.signature.code) or len(op.signature.inputs) < 2:
            continue
        tokens, decodes = op.signature.inputs[1].padded[-2], "Decode" in op.signature.code
        parts, left = [], 1.0
        columns, rows = config_grid(op)
        grid = _GRIDS.get(step.available_cores or 0)
        if grid and 0 < columns * rows < _FULL_GRID * grid[0] * grid[1]:
            gain = next(part for most, part in _WHOLE_GRID.items() if tokens < most)
            left *= 1 - (_IN_DECODE if decodes else gain)
            parts.append(f"grid {columns}x{rows} → {grid[0]}x{grid[1]}")
        if flag(op.attributes, "fp32_dest_acc_en") and not decodes:
            left *= 1 - _STREAMING
            parts.append("fp32_dest_acc_en off")
        if not decodes and tokens >= _LONG:
            chunk = whole(op.attributes, "k_chunk_size") or 0
            wanted = 256 if tokens >= 2 * _LONG else 128
            if chunk <= _LARGE_CHUNK:
                left *= 1 - _CHUNKS
                parts.append(f"k_chunk_size {chunk or 'unset'} → {wanted}")
        if parts:
            saved[row], named[row] = op.kernel_ns * (1 - left), ", ".join(parts)
    took = sum(step.columns.kernel_ns[row] for row in saved)
    return check_savings(
        step,
        saved,
        share,
        sentence=f"{share_of_step(step, took)} of a step goes into attention that other settings "
        "make shorter",
        arithmetic=f"{duration(took)} → {duration(took - sum(saved.values()))}: by what "
        "each setting saved elsewhere",
        name=lambda placed: f"{op_name(placed.op)} ({named[placed.row]})",
    )


_SDPA: Final = re.compile(r"^(?:SDPA|Sdpa|ScaledDotProductAttention)")
_GRIDS: Final = {110: (11, 10), 130: (13, 10)}


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

    Finds the part of a step in ops that compute nothing: reshape, slice, concat, transpose,
    permute, pad, fill, repeat, move. Each reads and writes a whole tensor; in tiles, a reshape that
    changes the last two extents takes every tile apart. Reshards and copies between memories are
    for TTP302, conversions of the layout for TTP203, sampling for TTP308.

    ## What to do
    Choose shapes that ops take as they come. Make and merge heads with the ops made for that
    (`nlp_create_qkv_heads`, `split_query_key_value_and_split_heads`, `concatenate_heads`). Keep the
    last two extents in a reshape, let a matmul transpose, and transpose weights once when they are
    loaded. Drop `ttnn.move`. Split a weight where its product is only cut apart.

    ## What it saves
    The time of these ops and, inside replays, the gaps before them, if all can go. Not counted is a
    reshape that would be a view only if rows were padded to multiples of 32.

    ## When it is no problem
    Models that rearrange by design, such as windows in attention. Not counted are Halo and the
    slices of convolutions, embeddings, gathers, and a concat that uses half of the bandwidth of
    DRAM. Ops that rearrange an input from the host, or begin or end a step, count from ten times
    their bytes by that bandwidth on.
    """
    ops, lines = critical_ops(step), rooflines(step)
    if all(_rearranges(op.signature) for _, op in ops):
        return Answer.not_applicable("a step that does nothing else")
    # From the first search behind the last product on it is sampling, for TTP308.
    products = [at for at, (_, op) in enumerate(ops) if is_matmul(op.signature)]
    tail = ops[products[-1] + 1 :] if products else ()
    found = next((at for at, (_, op) in enumerate(tail) if searches(op.signature)), len(tail))
    left_out = {row for row, _ in tail[found:]} | {
        row
        for row, op in ops
        if "concat" in op.signature.code.lower() and (lines[row].dram_fraction or 0.0) >= _FULL
    }
    moves = {row: each for row, each in removable(step, _rearranges).items() if row not in left_out}
    texts = _data_movement_texts(step, moves)
    # No view without padding the rows, in each op that works on them.
    padded = {
        row for row, op in ops if texts.get(row) == _TILED_RESHAPE and _is_ragged(op.signature)
    }
    moves = {row: each for row, each in moves.items() if row not in padded}
    took = share_of_step(step, sum(each.saved_ns for each in moves.values()))
    return check_removals(
        step,
        moves,
        share,
        noun="op",
        sentence=f"{took} of a step only rearranges data, in {counted(len(moves), 'op')}",
    ).with_fix(advice_for((texts[row], each.saved_ns) for row, each in moves.items()))


def _is_ragged(signature: Signature) -> bool:
    shapes = _shape(signature.inputs), _shape(signature.outputs)
    rows = [shape[-2] for shape in shapes if len(shape) > 1]
    # A single row can be laid out in another way by the op that makes it, and so can heads, which
    # are narrower than tokens.
    of_tokens = all(shape[-1] >= _HIDDEN for shape in shapes if shape)
    return of_tokens and 1 not in rows and any(each % _TILE for each in rows)


#: Hidden dimensions have so many columns.
_HIDDEN: Final = 512


def _rearranges(signature: Signature) -> bool:
    return signature.category is Category.MOVEMENT and not _OTHER.search(signature.code)


_DROP_MOVE: Final = "drop `ttnn.move`, which only makes room"
_CUT_BEFORE: Final = "cut what is sliced before it is computed, or give the next op its part alone"
_TRANSPOSED: Final = "let the matmul transpose: `transpose_b=True` instead of a transpose before it"
_STORED: Final = "permute weights once, when they are loaded"
_JOINED: Final = (
    "compute the parts of a concat as one: concatenate their weights when they are loaded"
)
_ROTATED: Final = (
    "replace the rotary embedding by hand (slice, negate, concat) by "
    "`ttnn.experimental.rotary_embedding_hf` or `rotary_embedding_llama`"
)
_PADDED: Final = "pad weights and inputs once, when they are made, with `ttnn.pad` on the host"
_BROADCAST: Final = (
    "do not repeat: elementwise ops broadcast, and attention takes fewer heads of keys and values"
)
#: What an op could do instead, where its neighbours say nothing.
_INSTEAD: Final = {"Concat": _JOINED, "Pad": _PADDED, "Fill": _PADDED, "Repeat": _BROADCAST}
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
_TILE: Final = 32
_OF_CONVOLUTION: Final = re.compile(r"^(?:PaddedSlice|Halo|InterleavedToSharded)|conv", re.I)
_NONE: Final = Signature("")


def _data_movement_texts(step: OpTable, moves: Mapping[int, Removal]) -> dict[int, str]:
    ops = critical_ops(step)
    signatures = [placed.op.signature for placed in ops]
    texts: dict[int, str] = {}
    for at, (row, _) in enumerate(ops):
        if row in moves:
            before, after = neighbours(at, len(ops), signatures.__getitem__)
            producer = _NONE if before is None else signatures[before]
            consumer = _NONE if after is None else signatures[after]
            texts[row] = _advice_for(signatures[at], producer, consumer)
    return texts


def _advice_for(own: Signature, producer: Signature, consumer: Signature) -> str:
    code = own.code
    if code.startswith("Reshape"):
        return _advice_for_reshape(own, producer, consumer)
    if code.startswith(("Transpose", "Permute")):
        return _advice_for_order(own, producer, consumer)
    if code.startswith("Move"):
        return _AFTER_HALO if producer.code.startswith("Halo") else _DROP_MOVE
    if code.startswith("Slice"):
        return _CUT_BEFORE
    if code.startswith("Concat") and producer.code.startswith(("Unary", "Slice")):
        return _ROTATED
    return next((text for name, text in _INSTEAD.items() if code.startswith(name)), "")


def _advice_for_reshape(own: Signature, producer: Signature, consumer: Signature) -> str:
    given, made = _shape(own.inputs), _shape(own.outputs)
    if _splits_last(given, made) and consumer.code.startswith(("Transpose", "Permute")):
        return _SPLIT_HEADS
    if _splits_last(made, given) and producer.code.startswith(("Transpose", "Permute")):
        return _MERGE_HEADS
    if not given or not made:
        return ""
    if own.inputs[0].layout != "TILE":
        short = given[-1] < _TILE and producer.code.startswith("Permute")
        return _SHORT_ROWS.format(length=given[-1]) if short else ""
    if given[-1] == made[-1] and made[-2] % _TILE and _OF_CONVOLUTION.search(consumer.code):
        return _UNTILIZE
    return _TILED_RESHAPE if given[-2:] != made[-2:] else ""


def _advice_for_order(own: Signature, producer: Signature, consumer: Signature) -> str:
    given, made = _shape(own.inputs), _shape(own.outputs)
    if is_matmul(consumer) and made and made[-2:] == given[:-3:-1]:
        return _TRANSPOSED
    return _STORED if producer is _NONE else ""


def _shape(tensors: Sequence[Tensor]) -> tuple[int, ...]:
    return tensors[0].shape if tensors else ()


def _splits_last(joined: tuple[int, ...], parts: tuple[int, ...]) -> bool:
    """Return whether a shape splits the last extent into heads.

    >>> _splits_last((1, 1, 19, 768), (1, 19, 12, 64)), _splits_last((1, 1, 64, 8), (1, 8, 8, 8))
    (True, False)
    """
    if len(joined) < 2 or len(parts) < 3 or parts[-2] == 1 or parts[-1] == 1:
        return False
    return parts[-2] * parts[-1] == joined[-1] and parts[-3] == joined[-2]


#: A search in fewer tiles is short, and two steps are slower than one.
_LEAST_TILES: Final = 16
#: Of each element of a core, in ns: real top-k takes 6 to 7, which search tiles; argmax 34, which
#: looks at one number after the other.
_SLOW_NS: Final = 15.0
_IN_TILES_NS: Final = 7.0
#: Sampling is said to take part in a step from here on: what a step is for should take most.
_MUCH: Final = 0.25
#: How many ops before and behind a search are looked at.
_FAR: Final = 12
#: Reductions that look for nothing.
_SUMS: Final = frozenset({"SUM", "MEAN", "AVG", "VAR", "STD"})
_SAMPLES: Final = re.compile(r"^(?:ArgMax|TopK|Sampling|Sort)$")
_PLACES: Final = re.compile(r"^(?:ArgMax|TopK)$")
_IN_TWO_STEPS: Final = (
    "search in two steps: shard by width, so that each core has a part of each row, then search "
    "the few results"
)
_BY_TOP_K: Final = "search tiles with `ttnn.topk` instead of numbers one after the other"


class _Slow(NamedTuple):
    """The saving of a search, its reason and remedy."""

    saved_ns: float
    why: str
    advice: str


@rule("TTP308", "slow-searches", Severity.WARNING, Input.OPS)
def slow_searches(
    step: OpTable,
    report: Report | None,
    *,
    share: Limit = SHARE,
) -> Answer:
    """Sampling, or another search along rows, takes longer than it has to.

    Finds reductions, argmax, top-k, sorting and cumulative sums that read many tiles on less than
    half of the cores that these would keep busy. Finds searches of one number after the other (more
    than 15 ns for each element of a core) and in rows that are padding. Finds two searches of one
    tensor: for the largest value, and for its place. At the end of a decode step, sampling from the
    vocabulary can take as long as all layers.

    ## What to do
    Search in two steps: reshape, or shard by width, so that each core has a part of the vocabulary,
    then search the few results. Slice to the rows in use first. Take a value from its place instead
    of reducing once more. Search tiles with top-k instead of rows with argmax.

    ## What it saves
    On few cores time × (1 − cores ÷ possible cores), down to 2 µs. Of a search of single numbers,
    what it takes beyond 7 ns for each element of a core, or the part of its rows that is padding;
    of a value that is reduced although its place is searched too, all.

    ## When it is no problem
    Searches in fewer than 16 tiles, such as experts of a router, do not count.
    """
    available = available_cores(step, report)
    if not available:
        return Answer.not_measured(NOT_TOLD)
    if not has_operands(step):
        return Answer.not_measured(NO_OPERANDS)
    ops = critical_ops(step)
    judged = {
        each.row: each
        for each in ops_on_cores(step, available)
        if searches(each.op.signature) and function_in(each.op.attributes) not in _SUMS
    }
    if not judged:
        return Answer.not_applicable("no search along rows that takes long enough")
    slow = {
        row: found
        for at, (row, _) in enumerate(ops)
        if row in judged and judged[row].possible >= _LEAST_TILES
        if (found := _why_slow(ops, at, judged[row])) is not None
    }
    took = sum(judged[row].op.kernel_ns for row in slow)
    saved = {row: each.saved_ns for row, each in slow.items()}
    searching = (
        "1 search along rows takes" if len(slow) == 1 else f"{len(slow)} searches along rows take"
    )
    products = [at for at, (_, op) in enumerate(ops) if is_matmul(op.signature)]
    tail = ops[products[-1] + 1 :] if products else ()
    samples = any(_SAMPLES.search(op.signature.code) for _, op in tail)
    part = sum(op.kernel_ns for _, op in tail) / (step_ns(step) or 1.0)
    sampled = samples and part > _MUCH and any(row in slow for row, _ in tail)
    end = f"; sampling is {percent(part)} of a step" if sampled else ""
    return check_savings(
        step,
        saved,
        share,
        sentence=f"{searching} {duration(took)}{end}",
        arithmetic=f"{duration(took)} → {duration(took - sum(saved.values()))}: on all "
        "cores, in tiles, without padding and once",
        name=lambda placed: f"{op_name(placed.op)} {slow[placed.row].why}",
    ).with_fix(advice_for(((each.advice, each.saved_ns) for each in slow.values()), most=3))


def _why_slow(ops: Sequence[OpPlace], at: int, each: OnCores) -> _Slow | None:
    op, first = each.op, each.op.signature.inputs[0]
    found: list[_Slow] = []
    twin = _twin(ops, at)
    if twin:
        why = f"{each.cores_text}, of what {twin} searches too"
        advice = f"drop the reduction: take the value from the place that {twin} finds"
        found.append(_Slow(op.kernel_ns, why, advice))
    if each.part < USED:
        found.append(_Slow(each.saved_ns, each.cores_text, _IN_TWO_STEPS))
    of_each_ns = op.kernel_ns * each.cores / prod(first.padded)
    if of_each_ns >= _SLOW_NS:
        rows, real = prod(first.shape[:-1]), _real_rows(ops, at)
        cores = counted(each.cores, "core")
        why = f"on {cores}, {of_each_ns:.0f} ns for each element of a core"
        if first.layout == "ROW_MAJOR" and real < rows:
            padding = f"{rows - real} of {counted(rows, 'row')} are padding"
            saved = op.kernel_ns * (1 - real / rows)
            found.append(_Slow(saved, f"{why}; {padding}", f"slice first: {padding}"))
        found.append(_Slow(op.kernel_ns * (1 - _IN_TILES_NS / of_each_ns), why, _BY_TOP_K))
    return max(found, key=lambda one: one.saved_ns, default=None)


def _twin(ops: Sequence[OpPlace], at: int) -> str:
    """Return the op that searches the place of the same values."""
    op = ops[at].op
    if op.signature.code != "Reduce" or "MAX" not in op_name(op):
        return ""
    own = op.signature.inputs[0]
    for _, other in ops[max(0, at - _FAR) : at + _FAR]:
        code, inputs = other.signature.code, other.signature.inputs
        alike = inputs and (inputs[0].padded, inputs[0].dtype) == (own.padded, own.dtype)
        if alike and _PLACES.search(code):
            return code
    return ""


def _real_rows(ops: Sequence[OpPlace], at: int) -> int:
    """Return how many of the rows of a search are no padding.

    Where an op takes more rows than the one before it gave, in a tensor of the same tiles, those
    beyond are padding that is taken for data.
    """
    rows = prod(ops[at].op.signature.inputs[0].shape[:-1])
    for _ in range(_FAR):
        before, _after = neighbours(at, len(ops), lambda place: ops[place].op.signature)
        if before is None or not ops[before].op.signature.inputs:
            break
        given = ops[before].op.signature.outputs[0]
        if given.layout == "TILE" and prod(given.shape[:-1]) < rows:
            return prod(given.shape[:-1])
        at = before
    return rows


#: A block of more ops that repeats is a layer of a model, and no loop.
_LONGEST_BLOCK: Final = 7
#: Longer ops are no small ones: what they take is not launching.
_SMALL_NS: Final = 20_000.0


@rule("TTP309", "loops-of-small-ops", Severity.WARNING, Input.OPS)
def loops_of_small_ops(
    step: OpTable,
    *,
    share: Limit = SHARE,
    runs: Limit = Limit(32, "runs", "a batch of 32 users; layers of a model have more ops"),
) -> Answer:
    """A loop runs the same small ops many times in a step.

    Finds a short op, or a block of up to seven of them, that runs 32 times or more in a row on
    operands of the same shapes: a loop over users, heads or experts. An op takes about 2 µs however
    little it has to do, and on the host a call takes more.

    ## What to do
    Do all turns of the loop in one op: batch users or heads in one tensor instead of slicing it,
    and use ops that take all of them, as `ttnn.experimental.paged_fill_cache` does for caches.

    ## What it saves
    Of each turn but the first, up to 2 µs for each of its ops, and inside replays the gaps before
    them; outside of replays these gaps beyond 1 µs each are named as the most. What they compute
    stays.

    ## When it is no problem
    Where turns depend on each other, as in a recurrence.
    """
    ops, whole = critical_ops(step), step_ns(step)
    numbers: dict[object, int] = {}
    kinds = [numbers.setdefault(op.signature, len(numbers)) for _, op in ops]
    loops = []
    for layers in find_layers(kinds):
        own = ops[layers.start : layers.stop]
        longest = max(op.kernel_ns for _, op in own[: layers.length])
        if layers.length <= _LONGEST_BLOCK and layers.times >= runs.value and longest <= _SMALL_NS:
            loops.append((sum(op.kernel_ns for _, op in own), own, layers.length))
    saved = {
        row: min(op.kernel_ns, LAUNCH_NS) for _, own, block in loops for row, op in own[block:]
    }
    gaps = launch_gaps_ns(step, saved)
    untraced = [op.gap_ns or 0.0 for row, op in ops if row in saved and op.replay is None]
    waited = sum(max(gap - LAUNCH_NS / 2, 0.0) for gap in untraced)
    outside = f", and at most {duration(waited)} of gaps outside of replays" if waited else ""
    count = counted(sum(len(own) for _, own, _ in loops), "op")
    evidence = []
    for took, own, block in sorted(loops, key=lambda loop: -loop[0]):
        codes = [op.signature.code for _, op in own[:block]]
        counts = {code: codes.count(code) for code in codes}
        words = (code if many == 1 else f"{many} x {code}" for code, many in counts.items())
        text = f"{len(own) // block} runs of {', '.join(words)}"
        first = heaviest_numbers((0.0, op.number) for _, op in own[:block])
        evidence.append(Evidence(text, took, "ns", took / whole if whole else None, first))
    fills = any(_FILLS.search(op.signature.op) for _, own, _ in loops for _, op in own)
    return (
        share.at_most(
            sum(saved.values()) / whole if whole else 0.0,
            f"{share_of_step(step, sum(took for took, _, _ in loops))} of a step goes into {count} "
            f"of {counted(len(loops), 'loop')} over the same small ops",
            evidence,
        )
        .saving(
            saved,
            f"up to 2 µs for each op but those of the first turn: "
            f"{duration(sum(saved.values()))}{gaps_text(gaps, len(saved))}{outside}",
            waiting_ns=gaps,
        )
        .with_fix(_FILL_AT_ONCE if fills else "")
    )


_FILLS: Final = re.compile(r"(?:update|fill)\w*cache", re.IGNORECASE)
_FILL_AT_ONCE: Final = (
    "Fill the cache for all users in one call: `ttnn.experimental.paged_fill_cache` with "
    "`batch_idx_tensor`, an index for each row (tt-metal of June 2026 or newer)."
)


#: A part of the time in which an op could not have moved or computed all that it works on.
_NEXT_TO_NOTHING: Final = 0.005
#: What other rules look at as a whole: what they leave out of it has to be.
_OF_OTHERS: Final = frozenset({Category.COLLECTIVE, Category.LAYOUT, Category.MOVEMENT})
#: These move data, and have work of their own that no rule looks at.
_WORKS: Final = re.compile(
    r"sample|embedding|non_?zero|halo|gather|scatter|fold|padded_?slice|slice_?write", re.IGNORECASE
)
#: Other rules look at ops that are closer to the roofline; shorter steps mostly launch ops.
_SLOWER, _SHORT_STEP_NS = 4, 50_000.0
#: Ops of which other rules save less than that are not explained by them.
_EXPLAINED: Final = 0.1


@rule("TTP315", "unexplained-time", Severity.INFO, Input.OPS)
def unexplained_time(
    step: OpTable,
    claimed: Mapping[int, float] | None,
    *,
    share: Limit = Limit(0.15, "of a step", "a judgement: what is worth a look by hand"),
) -> Answer:
    """Ops take much of a step, and no other rule says why.

    Finds all ops of one code together, where they take more than 15 % of a step, and other rules
    would save less than a tenth of them. Where the peaks of the chip are known, they take at least
    four times as long as moving and computing their operands.

    ## What to do
    Look at these ops by hand: their grid, program config, memory and layout, and whether another op
    or a fused one does the same. Compare with another model that runs the same op on a like tensor:
    `ttnn-perf show --ops` has the time, cores and bandwidth of each.

    ## When it is no problem
    Ops whose work does not follow from their operands, such as attention over a cache that is
    nearly full, may be as fast as they can be. Collectives are left to TTP703, conversions, moves
    and rearranging to TTP203, TTP302 and TTP307.
    """
    if claimed is None:
        return Answer.not_measured("it looks at what other rules leave: ask them as well")
    whole, lines = step_ns(step), rooflines(step)
    ops = critical_ops(step)
    if all(op.cores is None for _, op in ops):
        return Answer.not_measured("the capture does not give the cores of ops")
    tensors = (each for _, op in ops for each in (*op.signature.inputs, *op.signature.outputs))
    if all(tensor.logical is None for tensor in tensors):
        return Answer.not_measured("the capture does not say how much of its tensors is padding")
    if whole < _SHORT_STEP_NS:
        return Answer.not_applicable(f"a step takes {duration(whole)} only")
    by_code: dict[str, list[OpPlace]] = defaultdict(list)
    for placed in ops:
        signature = placed.op.signature
        works = signature.category is Category.MOVEMENT and _WORKS.search(signature.op)
        if works or signature.category not in _OF_OTHERS:
            by_code[signature.code].append(placed)
    groups = [
        _Group(code, [op for _, op in own], [lines[row] for row, _ in own])
        for code, own in by_code.items()
        if sum(claimed.get(row, 0.0) for row, _ in own)
        < _EXPLAINED * sum(op.kernel_ns for _, op in own)
    ]
    groups = [
        group
        for group in sorted(groups, key=lambda group: (-group.took_ns, group.code))
        if group.took_ns > share.value * whole
        and (group.reached is None or group.reached * _SLOWER <= 1)
    ]
    if not groups:
        return share.clean(0.0)
    took = sum(group.took_ns for group in groups)
    named = [op for group in groups for op in group.ops]
    first, *others = (f"{each.code} {percent(each.took_ns / whole)}" for each in groups)
    sentence = f"{first} of a step{''.join(f', {each}' for each in others)}: no other rule explains"
    them = "them" if others else "it"
    return share.found(took / whole, f"{sentence} {them}", worst_ops(named, of=whole))


class _Group(NamedTuple):
    """The ops of one code, with their rooflines."""

    code: str
    ops: Sequence[Op]
    lines: Sequence[Roofline]

    @property
    def took_ns(self) -> float:
        return sum(op.kernel_ns for op in self.ops)

    @property
    def reached(self) -> float | None:
        """The least time as a part of the time; None if unknown."""
        least = [
            (line.kernel_ns, max(line.dram_ns or 0.0, line.compute_ns or 0.0))
            for line in self.lines
            if not line.stale and not line.work.at_most
        ]
        # Next to nothing moves an op whose operands are in L1, but for constants.
        least = [(took, ns) for took, ns in least if ns > _NEXT_TO_NOTHING * took]
        known = sum(took for took, _ in least)
        return sum(ns for _, ns in least) / known if known > self.took_ns / 2 else None


_TOP_K: Final = re.compile(r"top_?k", re.IGNORECASE)
#: What takes the choice of a router, and how soon after it.
_TAKES: Final = re.compile(r"slice|softmax|sigmoid|untilize|scatter|gather", re.IGNORECASE)
_SOON: Final = 12


@rule("TTP320", "dense-experts", Severity.WARNING, Input.OPS)
def dense_experts(step: OpTable, *, share: Limit = SHARE) -> Answer:
    """All experts are computed, and a router chooses a few of them.

    Finds matmuls with a matrix for each expert, in a step whose router keeps the top few of as many
    experts: what the others give is multiplied with zero. Of 32 experts with the top 4 of them,
    seven eighths of the weights are read for nothing. Sparse matmuls are named for settings that
    cost time.

    ## What to do
    Compute only the experts that the router chose: `ttnn.sparse_matmul` with the router's choice as
    its sparsity, or an op that is made for experts. In a sparse matmul:
    - Lay 32 tokens in one tile: with a tile for each, every token reads its experts again.
    - `indices=` for one token, with a compact output (tt-metal of July 2026 or newer): without it,
      the slots of all experts are walked.
    - `nnz`, where it is the same for every token: a wrong one hangs.
    - Weights in bfloat4_b, where PCC bears it, and a column of tiles for each core.

    ## What it saves
    What reading the weights takes, of the experts that no token hits: of E experts with the top k,
    T tokens hit E × (1 − (1 − k ÷ E)^T). Of sparse matmuls, what exceeds reading each expert once
    at 74 % of the bandwidth; a quarter for bfloat4_b instead of bfloat8_b, and an eighth for `nnz`.

    ## When it is no problem
    Where many tokens choose: of 128 experts, 8 for each of 16 tokens hit 64 %. From half of all on
    nothing is named.
    """
    sparse = [each for each in products_of(step) if _experts(each.op) > 1]
    if sparse:
        return _sparse_experts(step, sparse, share)
    matmuls, chosen = matmuls_of(step), _kept(step)
    experts_of = {
        each.row: prod(each.weights.padded[:-2]) if each.weights else 1 for each in matmuls
    }
    router = next(
        (
            (each.op.signature.outputs[0].shape[-1], prod(each.first.shape[:-1]))
            for each in matmuls
            if each.op.signature.outputs and each.first is not None and experts_of[each.row] == 1
            if each.op.signature.outputs[0].shape[-1] in {*experts_of.values()} - {1}
        ),
        None,
    )
    if router is None or chosen is None:
        return Answer.not_applicable("no router chooses experts")
    experts, tokens = router
    if experts < 2 * chosen:  # fewer are hardly worth leaving out
        return Answer.not_applicable(f"{chosen} of {experts} experts are chosen")
    hit = 1 - (1 - chosen / experts) ** tokens
    by = counted(tokens, "token")
    if hit > _HALF:
        hits = f"{hit * experts:.0f} of {experts} experts are hit by {by}"
        return Answer.not_applicable(f"{hits}: leaving out the others gains little")
    dense = [each for each in matmuls if experts_of[each.row] == experts]
    saved = {
        each.row: min(each.op.kernel_ns, each.line.dram_ns or each.op.kernel_ns) * (1 - hit)
        for each in dense
    }
    took = sum(each.op.kernel_ns for each in dense)
    return check_savings(
        step,
        {row: ns for row, ns in saved.items() if ns > 0},
        share,
        sentence=f"{counted(len(dense), 'matmul')} over all {experts} experts, of which "
        f"the router chooses {chosen} for {by if tokens == 1 else 'each token'}",
        arithmetic=f"{duration(took)} → {duration(took - sum(saved.values()))}: {by} "
        f"{'hits' if tokens == 1 else 'hit'} {percent(hit)} of the experts",
    )


def _experts(op: Op) -> int:
    inputs = op.signature.inputs
    return prod(inputs[1].padded[:-2]) if is_routed(op.signature) and len(inputs) > 1 else 0


def _sparse_experts(step: OpTable, sparse: Sequence[Product], share: Limit) -> Answer:
    """Answer for matmuls that leave out experts already."""
    available, board = available_cores(step, None), board_of(step)
    on_mesh = len(step.devices) > 1
    saved: dict[int, float] = {}
    advice: dict[int, list[str]] = {}
    for each in sparse:
        op, experts = each.op, _experts(each.op)
        first, weights = op.signature.inputs[:2]
        slots = experts if flag(op.attributes, "is_input_a_sparse") else 1
        tokens = prod(first.shape[:-1]) // slots
        ns, named = op.kernel_ns, []
        if tokens > 1 and first.shape[-2] == 1:
            named.append("lay 32 tokens in one tile: a tile for each reads the experts again")
            if board is not None:
                ns = min(ns, size_of(weights) / board.dram_gb_s / _EXPERTS_READ)
        elif tokens == 1 and experts in op.signature.outputs[0].padded[:-2]:
            named.append("`indices=` with a compact output (tt-metal of July 2026 or newer)")
            if not on_mesh and setting(op.attributes, "nnz") == "":
                named.append("the exact `nnz`: a wrong one hangs")
                ns *= 1 - _NNZ
        if weights.dtype == "BFLOAT8_B":
            named.append("weights in bfloat4_b where PCC bears it")
            ns *= 1 - _NARROWER
        cores = evenly(weights.padded[-1] // TILE_ROWS, available)
        if cores > (op.cores or cores):
            named.append(f"`per_core_N` for {cores} instead of {op.cores} cores")
        saved[each.row], advice[each.row] = op.kernel_ns - ns, named
    took = sum(each.op.kernel_ns for each in sparse)
    left = took - sum(saved.values())
    return check_savings(
        step,
        {row: ns for row, ns in saved.items() if ns > 0},
        share,
        sentence=f"{share_of_step(step, took)} of a step goes into "
        f"{counted(len(sparse), 'sparse matmul')} over experts",
        arithmetic=f"{duration(took)} → {duration(left)} with the settings that are named",
    ).with_fix(advice_for((", ".join(advice[row]), ns) for row, ns in saved.items()))


#: What of the bandwidth real matmuls with interleaved bfloat8_b reach on Blackhole; what bfloat4_b
#: gives beside it, where requests and not bytes are the limit; and what a known count gives.
_EXPERTS_READ, _NARROWER, _NNZ = 0.74, 0.25, 0.13
#: With more of the experts hit, a sparse matmul gains less than it costs.
_HALF: Final = 0.5


def _kept(step: OpTable) -> int | None:
    """Return the narrowest width taken of a TopK result."""
    widths: list[int] = []
    ops = critical_ops(step)
    for at, (_, op) in enumerate(ops):
        if _TOP_K.search(op.signature.op) and op.signature.outputs:
            given = op.signature.outputs[0]
            widths.append(given.shape[-1])
            for _, after in ops[at + 1 : at + 1 + _SOON]:
                if _TAKES.search(after.signature.op):
                    taken = (*after.signature.inputs, *after.signature.outputs)
                    widths += [each.shape[-1] for each in taken if each.padded == given.padded]
    return min(widths, default=None)


#: Shorter ops differ by what launching them takes.
_SHORTEST_NS: Final = 5_000.0


@rule("TTP321", "slower-than-alike", Severity.WARNING, Input.OPS)
def slower_than_alike(
    step: OpTable,
    ops: OpTable,
    *,
    share: Limit = SHARE,
    times: Limit = Limit(3, "x as long", "a choice: what is less may be another memory"),
) -> Answer:
    """Ops take several times as long as the same op elsewhere in the step, on more elements.

    Finds elementwise ops and conversions between rows and tiles that take more than three times as
    long as another op of the step that computes the same, in the same formats, on as many elements
    or more. What differs is a setting: how many cores, which memory, or shards that are not even.

    ## What to do
    Give the op that is named what the quicker one has: its cores, its memory config, and shards
    that divide the tiles evenly.

    ## What it saves
    The time of the op, less the time of the quicker one.

    ## When it is no problem
    Operands that are broadcast along other dimensions can take longer.
    """
    if not has_operands(step):
        return Answer.not_measured(NO_OPERANDS)
    pairs = dict(_slow_and_quick(step, ops, times.value))
    saved = {row: slow.kernel_ns - quick.kernel_ns for row, (slow, quick) in pairs.items()}
    took = sum(slow.kernel_ns for slow, _ in pairs.values())

    def named(placed: OpPlace) -> str:
        slow, quick = (
            op_name(op) + ("" if op.cores is None else f" on {counted(op.cores, 'core')}")
            for op in pairs[placed.row]
        )
        return f"{slow} ({duration(pairs[placed.row][1].kernel_ns)} as {quick})"

    return check_savings(
        step,
        saved,
        share,
        sentence=f"{counted(len(pairs), 'op')} {'takes' if len(pairs) == 1 else 'take'} over "
        f"{times.value:g} times as long as the same op elsewhere in the step, on as many elements "
        "or more",
        arithmetic=f"{duration(took)} − {duration(took - sum(saved.values()))} at the "
        "time of the quicker ops",
        name=named,
    )


def _slow_and_quick(
    step: OpTable, ops: OpTable, times: float
) -> Iterator[tuple[int, tuple[Op, Op]]]:
    stale = stale_signatures(ops)
    kinds: dict[object, list[tuple[tuple[int, ...], OpPlace]]] = defaultdict(list)
    alike: dict[object, list[float]] = defaultdict(list)
    for placed in critical_ops(step):
        op, signature = placed.op, placed.op.signature
        tensors = (*signature.inputs, *signature.outputs)
        compares = signature.category is Category.ELEMENTWISE or "ilize" in signature.op
        if tensors and compares and signature not in stale:
            formats = tuple((tensor.dtype, tensor.layout) for tensor in tensors)
            kind = (op_and_function(signature.op, op.attributes), formats)
            kinds[kind].append((tuple(prod(tensor.padded) for tensor in tensors), placed))
            alike[signature, op.cores].append(op.kernel_ns)
    doubtful = {key for key, taken in alike.items() if max(taken) > times * min(taken)}
    for listed in kinds.values():
        items = [
            (sizes, placed)
            for sizes, placed in listed
            if (placed.op.signature, placed.op.cores) not in doubtful
        ]
        ordered = sorted(items, key=lambda item: item[1].op.kernel_ns)
        for sizes, (row, op) in items:
            for others, (_, quick) in ordered if op.kernel_ns >= _SHORTEST_NS else ():
                if quick.kernel_ns * times >= op.kernel_ns:
                    break
                if all(other >= own for other, own in zip(others, sizes, strict=True)):
                    yield row, (op, quick)
                    break
