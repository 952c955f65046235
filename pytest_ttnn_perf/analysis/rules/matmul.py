"""Matmuls: what they could fuse, DRAM-sharded weights, blocks, configs, efficiency."""

from __future__ import annotations

import re
from math import prod
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.analysis.checklist.products import (
    COMPUTE_AT,
    NO_MATMULS,
    READ_AT,
    TILE_ROWS,
    USED,
    available_cores,
    best_known,
    check_shortfall,
    config_grid,
    dram_sharded_ns,
    evenly,
    few_cores,
    gains_from_dram_sharding,
    grid_rows,
    has_small_blocks,
    inner_block,
    is_convolution,
    is_dense_matmul,
    is_matmul,
    matmuls_of,
    no_roofline,
    ops_on_cores,
    output_subblock,
    program_config,
    shortfall_ns,
    unknown_chip,
)
from pytest_ttnn_perf.analysis.checklist.savings import (
    SHARE,
    advice_for,
    as_sentence,
    check_savings,
    critical_ops,
    gaps_text,
    launch_gaps_ns,
    share_of_step,
)
from pytest_ttnn_perf.analysis.ops.names import (
    flag,
    function_in,
    neighbours,
    setting,
    shape_text,
    whole,
)
from pytest_ttnn_perf.analysis.ops.roofline import (
    board_of,
    in_dram,
    is_dram_sharded,
    rooflines,
    size_of,
)
from pytest_ttnn_perf.core.finding import Answer, Input, Limit, Severity, rule
from pytest_ttnn_perf.core.text import counted, microseconds, percent

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_ttnn_perf.analysis.checklist.products import Product
    from pytest_ttnn_perf.analysis.checklist.savings import OpPlace
    from pytest_ttnn_perf.analysis.ops.roofline import Board
    from pytest_ttnn_perf.analysis.readers.report_db import Report
    from pytest_ttnn_perf.core.ops import OpTable


#: What matmuls, convolutions and multiplies can compute on their way.
_FUSABLE: Final = frozenset({"GELU", "SILU", "RELU", "RELU6", "SIGMOID", "TANH"})
#: What an activation or a bias adds to the product that computes it: real ones 2.6 µs.
_IN_PRODUCT_NS: Final = 2_500.0
#: What is left to gain where an elementwise op computes it: real ones take as long together as
#: apart, 1.8 to 1.9 µs for each tile of a core, and fetch the tensor once.
_ELSEWHERE_NS: Final = 1_000.0
#: Elementwise ops compute it while they write, in no time.
_FREE: Final = "RELU"
_ASKED: Final = re.compile(r"user_fused_activation'?\s*[=:]\s*'?[^;]*op_type=UnaryOpType::(\w+)")
_ONE_ROW: Final = re.compile(r"subtile_broadcast_type'?\s*[=:]\s*'?(?:\w+::)?ROW_B\b")
_IN_MULTIPLY: Final = (
    "compute the activation in the multiply that follows: "
    "`ttnn.mul(..., input_tensor_a_activations=[ttnn.UnaryOpType.{function}])`"
)
_IN_BINARY: Final = (
    "compute the activation in the op before it: `activations=[ttnn.UnaryOpType.{function}]`"
)
_IN_MATMUL: Final = "compute the activation in the matmul: `fused_activation` of its program config"
_IN_CONVOLUTION: Final = "compute the activation in the convolution: `activation` of `Conv2dConfig`"
_BIAS: Final = "add the bias in the matmul: `bias` of `ttnn.linear`"


@rule("TTP310", "unfused-activations", Severity.WARNING, Input.OPS)
def unfused_activations(step: OpTable, *, share: Limit = SHARE) -> Answer:
    """Activations and biases run as ops of their own, beside ops that could compute them.

    Finds GELU, SILU, RELU, sigmoid and tanh right behind the matmul, the convolution or the
    elementwise op whose result they take, or right before the multiply that takes theirs; an
    activation that a matmul was asked for and its program config lacks; an addition of one row
    right behind a matmul that has no bias. Each reads a whole tensor and writes it again.

    ## What to do
    Compute the activation in a neighbouring op: `fused_activation` in the program config of a
    matmul, `activation` of a convolution, `activations` of an elementwise op,
    `input_tensor_a_activations` of a multiply. Give a bias to `ttnn.linear`.

    ## What it saves
    In a matmul or a convolution, and of RELU behind an elementwise op, the time of the op, less 2.5
    µs; elsewhere about 1 µs. Inside a replay the gap before the op goes with it.

    ## When it is no problem
    Where the result is needed without the activation as well. A matmul that is bound by computing
    may lose as much as is gained: measure both.
    """
    ops, lines = critical_ops(step), rooflines(step)
    found: dict[int, tuple[str, float]] = {}
    for at, (row, _) in enumerate(ops):
        fused = _next_to_product(ops, at) or (None if lines[row].stale else _activation(ops, at))
        if fused is not None and fused[1] > 0:
            found[row] = fused
    saved = {row: ns for row, (_, ns) in found.items()}
    took = sum(op.kernel_ns for row, op in ops if row in found)
    gaps = launch_gaps_ns(step, saved)
    biases = sum(advice == _BIAS for advice, _ in found.values())
    counts = {"activation": len(found) - biases, "bias addition": biases}
    kinds = " and ".join(counted(count, noun) for noun, count in counts.items() if count)
    arithmetic = (
        f"{microseconds(took)} → {microseconds(took - sum(saved.values()))} in a neighbouring op"
        f"{gaps_text(gaps, len(saved))}"
    )
    time = share_of_step(step, took)
    sentence = f"{time} of a step goes into {kinds} that a neighbouring op could compute"
    answer = check_savings(step, saved, share, sentence=sentence, arithmetic=arithmetic)
    answer = answer.saving(saved, arithmetic, waiting_ns=gaps)
    return answer.with_fix(advice_for(found.values()))


def _next_to_product(ops: Sequence[OpPlace], at: int) -> tuple[str, float] | None:
    if not at or not is_matmul(ops[at - 1].op.signature):
        return None
    own, product = ops[at].op, ops[at - 1].op
    code, function = own.signature.code, function_in(own.attributes)
    in_product_ns = own.kernel_ns - _IN_PRODUCT_NS
    asked = _ASKED.search(product.attributes)
    if code.startswith("Unary") and asked is not None and asked[1] == function:
        has_it = setting(product.attributes, "fused_activation")
        return None if has_it else (_IN_MATMUL, in_product_ns)
    adds = code.startswith("Binary") and function == "ADD" and _ONE_ROW.search(own.attributes)
    return (_BIAS, in_product_ns) if adds and len(product.signature.inputs) == 2 else None


def _activation(ops: Sequence[OpPlace], at: int) -> tuple[str, float] | None:
    own = ops[at].op
    function = function_in(own.attributes)
    if not own.signature.code.startswith("Unary") or function not in _FUSABLE:
        return None
    before, after = neighbours(at, len(ops), lambda place: ops[place].op.signature)
    producer = ops[before].op if before is not None and at - before <= 2 else None
    consumer = ops[after].op if after is not None and after - at <= 2 else None
    in_binary = _IN_BINARY.format(function=function)
    follows_binary = producer is not None and producer.signature.code.startswith("Binary")
    if producer is not None and not setting(producer.attributes, "fused_activation"):
        in_product_ns = own.kernel_ns - _IN_PRODUCT_NS
        if is_dense_matmul(producer.signature):
            return _IN_MATMUL, in_product_ns
        if is_convolution(producer.signature):
            return _IN_CONVOLUTION, in_product_ns
        if function == _FREE and follows_binary:
            return in_binary, in_product_ns
    left_ns = min(own.kernel_ns, _ELSEWHERE_NS)
    multiplies = consumer is not None and "MUL" in function_in(consumer.attributes)
    if consumer is not None and multiplies and consumer.signature.code.startswith("Binary"):
        return _IN_MULTIPLY.format(function=function), left_ns
    return (in_binary, left_ns) if follows_binary else None


@rule("TTP311", "matmul-not-dram-sharded", Severity.WARNING, Input.OPS)
def matmul_not_dram_sharded(
    step: OpTable, report: Report | None, *, share: Limit = SHARE
) -> Answer:
    """Matmuls of a few rows read their weights far below the bandwidth of DRAM.

    Finds matmuls of up to 32 rows, as in decode steps, that read their weights from DRAM at less
    than 75 % of the bandwidth, without a DRAM-sharded program config. Cut to the banks of DRAM,
    each bank feeds a core next to it.

    ## What to do
    Store the weights `DRAM_WIDTH_SHARDED`, keep the input in L1, and use
    `MatmulMultiCoreReuseMultiCastDRAMShardedProgramConfig`; with bfloat8_b and bfloat4_b, HiFi2, or
    LoFi where these cores compute longer than they read at HiFi2: one for each bank computes.

    ## What it saves
    The time of the matmul, less what it takes with DRAM-sharded weights: reading these at 90 % of
    the peak bandwidth, or computing at 80 % of the peak of one core for each bank, whichever is
    longer, and 5 µs. These figures were fitted to real ones on Blackhole, and not tried on
    Wormhole.

    ## When it is no problem
    A matmul that already reads its weights at 75 % of the bandwidth is not named: smaller formats
    help it more (TTP101). Where more cores alone are clearly faster, TTP305 names it.
    """
    matmuls, board = matmuls_of(step), board_of(step)
    if not matmuls:
        return Answer.not_applicable(NO_MATMULS)
    if all(len(each.op.signature.inputs) < 2 for each in matmuls):
        return Answer.not_measured("the capture does not give the second operands of matmuls")
    if board is None:
        return Answer.not_measured(unknown_chip(step))
    left_to_others = few_cores(step, report)
    slow = [
        each
        for each in matmuls
        if gains_from_dram_sharding(each, board) and each.row not in left_to_others
    ]
    took = sum(each.op.kernel_ns for each in slow)
    least = sum(dram_sharded_ns(each, board) or 0.0 for each in slow)
    read = sum(size_of(each.weights) for each in slow if each.weights is not None)
    rate = read / took / board.dram_gb_s if took else 0.0
    cores = ops_on_cores(step, available_cores(step, report), shortest_us=0.0)
    few = {each.row for each in cores if each.part < USED}
    on_few = sum(each.row in few for each in slow) * 2 > len(slow)
    return check_savings(
        step,
        {each.row: gains_from_dram_sharding(each, board) for each in slow},
        share,
        sentence=f"{counted(len(slow), 'matmul')} of up to 32 rows "
        f"{'reads' if len(slow) == 1 else 'read'} weights at {percent(rate)} of the DRAM "
        "bandwidth, without a DRAM-sharded program config",
        arithmetic=f"{microseconds(took)} − {microseconds(least)}: {percent(READ_AT)} of "
        f"{board.dram_gb_s:g} GB/s or {percent(COMPUTE_AT)} of {board.dram_banks} cores, and 5 µs",
    ).with_fix(_sharding_advice(slow, board, on_few=on_few))


def _sharding_advice(slow: Sequence[Product], board: Board, *, on_few: bool) -> str:
    """Return the missing pieces of a DRAM-sharded matmul."""
    weights = [each.weights for each in slow if each.weights is not None]
    placed = [each for each in weights if "SHARDED" in each.memory]
    faster = [(each.op.fidelity, _fast_enough(each, board)) for each in slow]
    lower = {wanted for own, wanted in faster if wanted not in {None, own}}
    words = []
    if len(placed) < len(weights):
        words.append("store the weights `DRAM_WIDTH_SHARDED`")
    if any(in_dram(each.first) for each in slow if each.first is not None):
        words.append("keep the input in L1")
    words.append("use `MatmulMultiCoreReuseMultiCastDRAMShardedProgramConfig`")
    text = ", ".join(words[:-1]) + (" and " if len(words) > 1 else "") + words[-1]
    if lower:
        wanted = "LoFi" if "LoFi" in lower else "HiFi2"
        text += f", with {wanted} instead of the fidelity they have"
    if placed and len(placed) == len(weights):
        text += ": the weights are sharded for it already"
    if on_few:
        text += "; more cores alone (TTP305) gain nearly as much"
    return as_sentence(text)


#: Tried where its own computes longer than reading takes, the more exact one first.
_FIDELITIES: Final = ("HiFi2", "LoFi")


def _fast_enough(matmul: Product, board: Board) -> str | None:
    weights, flops = matmul.weights, matmul.line.work.flops
    if weights is None or not flops or not weights.dtype.endswith("_B"):
        return None
    reading_ns = size_of(weights) / board.dram_gb_s / READ_AT
    for fidelity in dict.fromkeys((matmul.op.fidelity or "", *_FIDELITIES)):
        tflops = board.tflops.get(fidelity, 0.0) * board.dram_banks
        if tflops and flops / (tflops * 1000) / COMPUTE_AT <= reading_ns:
            return fidelity
    return "LoFi"


@rule("TTP314", "low-matmul-efficiency", Severity.WARNING, Input.OPS)
def low_matmul_efficiency(
    step: OpTable,
    report: Report | None,
    *,
    share: Limit = SHARE,
    efficiency: Limit = Limit(
        0.5, "of the roofline", "ttnn-visualizer-cli calls less low; real models: 2 to 89 %"
    ),
) -> Answer:
    """Matmuls take much longer than they have to.

    Finds matmuls that take more than twice what the chip allows for their operands and their cores,
    and for which TTP305 and TTP311 have no reason.

    ## What to do
    Begin with the matmuls that are named, which lose most time. Very small blocks (`in0_block_w` or
    `out_subblock_h` × `out_subblock_w` below two tiles): raise `in0_block_w` to a larger divisor of
    the inner dimension in tiles, and the subblock to up to eight tiles, or four with
    `fp32_dest_acc_en`. No program config: start from the one that TTNN chooses, and try larger
    blocks and grids. A batch in the first input that the weights do not have (`fuse_batch=False`):
    reshape it into rows. Output blocks of fewer rows than a core has (`out_block_h` below
    `per_core_M`): raise it. Both inputs with a batch: use `MatmulMultiCoreReuseProgramConfig`. A
    tall output of few columns: keep a 1D program config, and shard the first input and the output
    by height in L1. An input in DRAM: L1.

    ## What it saves
    The time of the matmul, less twice the longer of two: what its operands take at the full
    bandwidth of DRAM, and what its products take on the cores that it runs on, at its fidelity.

    ## When it is no problem
    Small matmuls end before the device is up to speed. Where DEVICE ARCH is missing, PM IDEAL
    stands in for the roofline. A sharded first input limits `in0_block_w` to a divisor of its
    shard's width, and blocks have to fit into L1.
    """
    matmuls, board = matmuls_of(step), board_of(step)
    if not matmuls:
        return Answer.not_applicable(NO_MATMULS)
    if all(each.least_ns is None for each in matmuls):
        return Answer.not_measured(no_roofline(step, "matmul"))
    on_few = few_cores(step, report)
    slow = [
        each
        for each in matmuls
        if shortfall_ns(each, efficiency.value)
        and each.row not in on_few
        and not gains_from_dram_sharding(each, board)
    ]
    took = sum(each.op.kernel_ns for each in slow)
    reached = sum(each.least_ns or 0.0 for each in slow) / took if took else 1.0
    sentence = f"{counted(len(slow), 'matmul')} at {percent(reached)} of {best_known(step)}"
    saved = {each.row: shortfall_ns(each, efficiency.value) for each in slow}
    answer = check_shortfall(step, slow, share, efficiency, sentence=sentence)
    return answer.with_fix(_advice_for(slow, saved, available_cores(step, report)))


_BLOCKS: Final = (
    "raise `in0_block_w` to a larger divisor of the inner dimension in tiles, and the subblock to "
    "up to eight tiles, or four with `fp32_dest_acc_en`"
)
_CONFIG: Final = (
    "give matmuls without a program config one: start from the one that TTNN chooses, and try "
    "larger blocks and grids"
)


def _advice_for(slow: Sequence[Product], saved: Mapping[int, float], available: int) -> str:
    batched = [each for each in slow if _batch(each) > 1]
    worst = max(batched, key=lambda each: saved[each.row], default=None)
    no_batch = "" if worst is None else _without_batch(worst)
    return advice_for(
        (
            no_batch if _batch(each) > 1 else _efficiency_advice(each, available),
            saved[each.row],
        )
        for each in slow
    )


def _batch(matmul: Product) -> int:
    first, inputs = matmul.first, matmul.op.signature.inputs
    if first is None or len(inputs) < 2 or prod(inputs[1].padded[:-2]) > 1:
        return 1
    fused = flag(matmul.op.attributes, "fuse_batch")
    return prod(first.padded[:-2]) if fused is False else 1


def _without_batch(matmul: Product) -> str:
    shape = matmul.op.signature.inputs[0].shape
    folded = (1, 1, prod(shape[:-1]), shape[-1])
    return (
        f"no batch in the first input: reshape it to rows ({shape_text(shape)} → "
        f"{shape_text(folded)}, `fuse_batch=True`), or the weights are read {_batch(matmul)} times"
    )


_SPREAD_BATCH: Final = (
    "spread the batch over the cores (`MatmulMultiCoreReuseProgramConfig`), as both inputs have one"
)
_ONE_D: Final = "a 1D program config (`mcast_in0=True`): few rows leave rows of a 2D grid idle"
_TALL: Final = (
    "keep the 1D program config (`mcast_in0=False`), and height-shard the first input and the "
    "output in L1"
)
#: From so many times as many rows of tiles as columns on, cores in one dimension are enough.
_IS_TALL: Final = 4
#: Fewer cores more are no reason for another program config.
_MORE_CORES: Final = 1.1
#: The most tiles of an output subblock, and with sums in float32.
_SUBBLOCK, _SUBBLOCK_FLOAT32 = 8, 4


def _efficiency_advice(matmul: Product, available: int) -> str:
    if matmul.reads_again:
        return matmul.reads_again
    op, config = matmul.op, program_config(matmul.op)
    if has_small_blocks(op):
        return _BLOCKS
    if config == "":
        return _CONFIG
    config = config or ""
    inputs = op.signature.inputs
    if len(inputs) > 1 and prod(inputs[1].padded[:-2]) > 1:
        return _SPREAD_BATCH
    rows, columns = _output_tiles(matmul)
    if 0 < rows < grid_rows(op):
        return _ONE_D
    width, height = config_grid(op)
    if "1D" in config and rows >= _IS_TALL * columns > 0 and columns < width:
        return f"{_TALL}, and raise `in0_block_w`" if _can_be_wider(matmul) else _TALL
    in_2d = evenly(columns, width) * evenly(rows, height)
    if "1D" in config and in_2d > _MORE_CORES * (op.cores or 0):
        return f"a 2D program config instead of a 1D one: {in_2d} cores instead of {op.cores}"
    return _larger(matmul, available)


def _larger(matmul: Product, available: int) -> str:
    """Return what of a matmul can be larger; "" where nothing can."""
    op = matmul.op
    parts: list[str] = []
    if _possible_cores(matmul, available) > _MORE_CORES * (op.cores or 0):
        parts.append("a larger grid")
    if _can_be_wider(matmul):
        parts.append("larger `in0_block_w`")
    area, of_core = output_subblock(op), [whole(op.attributes, key) or 1 for key in _PER_CORE]
    most = _SUBBLOCK_FLOAT32 if flag(op.attributes, "fp32_dest_acc_en") else _SUBBLOCK
    if area is not None and area < min(most, prod(of_core)):
        parts.append("larger output subblocks")
    told = [f"try {', '.join(parts)}"] if parts else []
    if matmul.first is not None and in_dram(matmul.first):
        told.append("give the first input an L1 memory config")
    return ", and ".join(told)


def _possible_cores(matmul: Product, available: int) -> int:
    op, (rows, columns), (width, height) = matmul.op, _output_tiles(matmul), config_grid(matmul.op)
    if is_dram_sharded(op.attributes):
        return 0
    if "1D" in (program_config(op) or ""):
        return evenly(columns if flag(op.attributes, "mcast_in0") else rows, available)
    if width * height >= available:
        return evenly(columns, width) * evenly(rows, height)
    return evenly(rows * columns, available)


_PER_CORE: Final = ("per_core_M", "per_core_N")


def _output_tiles(matmul: Product) -> tuple[int, int]:
    if not matmul.op.signature.outputs:
        return 0, 0
    *rows, columns = matmul.op.signature.outputs[0].padded
    return prod(rows) // TILE_ROWS, columns // TILE_ROWS


def _can_be_wider(matmul: Product) -> bool:
    wide = inner_block(matmul.op)
    return (
        wide is not None
        and matmul.first is not None
        and (wide < matmul.first.padded[-1] // TILE_ROWS)
    )
