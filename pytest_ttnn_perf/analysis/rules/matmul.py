"""Matmuls: what they could fuse, DRAM-sharded weights, blocks, configs, efficiency."""

from __future__ import annotations

import re
from math import gcd, prod
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf.analysis.checklist.products import (
    NO_MATMULS,
    TILE_ROWS,
    available_cores,
    best_form,
    best_known,
    config_grid,
    evenly,
    few_cores,
    gains_from_dram_sharding,
    grid_rows,
    inner_block,
    inner_block_for,
    is_convolution,
    is_dense_matmul,
    is_matmul,
    matmuls_of,
    no_roofline,
    output_subblock,
    program_config,
    sharded_form,
    shortfall_ns,
    unknown_chip,
    wider_blocks,
)
from pytest_ttnn_perf.analysis.checklist.savings import (
    SHARE,
    advice_for,
    as_sentence,
    check_savings,
    critical_ops,
    gaps_text,
    launch_gaps_ns,
    op_name,
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
    readers_per_bank,
    rooflines,
    size_of,
)
from pytest_ttnn_perf.core.finding import Answer, Input, Limit, Severity, rule
from pytest_ttnn_perf.core.text import counted, duration, percent

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_ttnn_perf.analysis.checklist.products import Product, ShardedForm
    from pytest_ttnn_perf.analysis.checklist.savings import OpPlace
    from pytest_ttnn_perf.analysis.ops.roofline import Board
    from pytest_ttnn_perf.analysis.readers.report_db import Report
    from pytest_ttnn_perf.core.ops import Op, OpTable


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
    """Activations and biases run as ops of their own, next to ops that could compute them.

    Finds GELU, SILU, RELU, sigmoid and tanh right behind the matmul, the convolution or the
    elementwise op whose result they take. They may also be right before the multiply that takes
    their result. Finds an activation that a matmul was asked for and its program config lacks, and
    an addition of one row right behind a matmul that has no bias. Each reads a whole tensor and
    writes it again.

    ## What to do
    Compute the activation in a neighbouring op: `fused_activation` in the program config of a
    matmul, `activation` of a convolution, `activations` of an elementwise op,
    `input_tensor_a_activations` of a multiply. Give a bias to `ttnn.linear`.

    ## What it saves
    In a matmul or a convolution, and of RELU behind an elementwise op, the time of the op, less 2.5
    µs; elsewhere about 1 µs. Inside a replay the gap before the op goes with it.

    ## When it is no problem
    Where the result is needed without the activation as well. A matmul that is bound by computing
    may lose as much as is gained: measure both. SiLU, sigmoid and tanh cost more inside a
    DRAM-sharded matmul than outside (TTP316), and are not named there.
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
        f"{duration(took)} → {duration(took - sum(saved.values()))} in a neighbouring op"
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
    slows = _slows_at_banks(function, product.attributes)
    if code.startswith("Unary") and asked is not None and asked[1] == function and not slows:
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
        if is_dense_matmul(producer.signature) and not _slows_at_banks(
            function, producer.attributes
        ):
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


def _slows_at_banks(function: str, attributes: str) -> bool:
    """Return whether a DRAM-sharded matmul computes a function on too few cores."""
    return function in _EXPONENTIAL and is_dram_sharded(attributes)


#: These take an exact exponential; the few cores at the banks have nothing to hide it behind.
_EXPONENTIAL: Final = frozenset({"SILU", "SIGMOID", "TANH"})


@rule("TTP311", "matmul-not-dram-sharded", Severity.WARNING, Input.OPS)
def matmul_not_dram_sharded(
    step: OpTable, report: Report | None, *, share: Limit = SHARE
) -> Answer:
    """Matmuls of a few rows read their weights far below the bandwidth of DRAM.

    Finds matmuls of up to 32 rows, as in decode steps, that read their weights from DRAM at less
    than 75 % of the bandwidth, without a DRAM-sharded program config. Cut to the banks of DRAM,
    each bank feeds a core next to it, or two.

    ## What to do
    Store the weights `DRAM_WIDTH_SHARDED`, shard the input by width in L1, and use
    `MatmulMultiCoreReuseMultiCastDRAMShardedProgramConfig`. On Blackhole, weights in bfloat8_b want
    LoFi or `num_workers_per_dram_bank=2`: at HiFi2 one core for each bank computes longer than it
    reads, and is slower than a 1D program config. `num_workers_per_dram_bank` is of September 2026:
    measure 1 against 2. Values for each matmul are named.

    ```py
    config = ttnn.MatmulMultiCoreReuseMultiCastDRAMShardedProgramConfig(
        in0_block_w=4, per_core_M=1, per_core_N=20, num_workers_per_dram_bank=2
    )
    ```

    ## What it saves
    The time of the matmul, less 4.5 µs + the longer of reading (bytes ÷ peak × 1.01; with more
    readers ÷ 0.9) and computing (tile products of a core × 16 cycles at LoFi ÷ clock × 1.18).
    Fitted to real ones on Blackhole, half within 2.2 %; not tried on Wormhole.

    ## When it is no problem
    A matmul that already reads its weights at 75 % of the bandwidth is not named: smaller formats
    help it more (TTP101). Nor is one whose columns are fewer tiles than there are banks. Where more
    cores alone are clearly faster, TTP305 names it. Where weights have to stay interleaved, blocks
    of twelve tiles (`in0_block_w` × `per_core_N`) come as far as they can.
    """
    matmuls, board = matmuls_of(step), board_of(step)
    if not matmuls:
        return Answer.not_applicable(NO_MATMULS)
    if all(len(each.op.signature.inputs) < 2 for each in matmuls):
        return Answer.not_measured("the capture does not give the second operands of matmuls")
    if board is None:
        return Answer.not_measured(unknown_chip(step))
    left_to_others = few_cores(step, report)
    slow = {
        each.row: (each, form)
        for each in matmuls
        if gains_from_dram_sharding(each, board) and each.row not in left_to_others
        if (form := best_form(each, board)) is not None
    }
    took = sum(each.op.kernel_ns for each, _ in slow.values())
    least = sum(form.ns for _, form in slow.values())
    read = sum(size_of(each.weights) for each, _ in slow.values() if each.weights is not None)
    rate = read / took / board.dram_gb_s if took else 0.0
    saved = {row: each.op.kernel_ns - form.ns for row, (each, form) in slow.items()}

    def named(placed: OpPlace) -> str:
        return f"{op_name(placed.op)} ({_sharded_settings(*slow[placed.row], board)})"

    return check_savings(
        step,
        saved,
        share,
        sentence=f"{counted(len(slow), 'matmul')} of up to 32 rows "
        f"{'reads' if len(slow) == 1 else 'read'} weights at {percent(rate)} of the DRAM "
        "bandwidth, without a DRAM-sharded program config",
        arithmetic=f"{duration(took)} − {duration(least)}: 4.5 µs each, and the longer of "
        f"reading at {board.dram_gb_s:g} GB/s and computing at the banks",
        name=named,
    ).with_fix(_sharding_advice([*slow.values()], board))


def _sharded_settings(matmul: Product, form: ShardedForm, board: Board) -> str:
    """Return the settings of a DRAM-sharded form, with their values."""
    weights = matmul.weights
    width = inner_block_for(matmul, board, form.readers, least=_NARROWEST)
    if width is None or weights is None:
        return ""
    inner, columns = (extent // TILE_ROWS for extent in weights.padded[-2:])
    # Cores that cut both the input and the output evenly, into shards that hold a block.
    counts = [each for each in range(1, _SHARD_CORES + 1) if gcd(inner, columns) % each == 0]
    cores = max((each for each in counts if inner // each % width == 0), default=1)
    texts = [f"in0_block_w={width}", f"per_core_N={columns // cores} on {counted(cores, 'core')}"]
    if form.readers > 1:
        texts.append(f"{form.readers} readers")
    if form.fidelity != matmul.op.fidelity:
        texts.append(form.fidelity)
    return ", ".join(texts)


#: Narrower blocks of the inner dimension are slow on most shapes.
_NARROWEST: Final = 3
#: Inputs of DRAM-sharded matmuls are sharded over so many cores at most: fewer, wider shards.
_SHARD_CORES: Final = 64


def _sharding_advice(slow: Sequence[tuple[Product, ShardedForm]], board: Board) -> str:
    """Return the missing pieces of a DRAM-sharded matmul."""
    weights = [each.weights for each, _ in slow if each.weights is not None]
    placed = [each for each in weights if "SHARDED" in each.memory]
    words = []
    if len(placed) < len(weights):
        words.append("store the weights `DRAM_WIDTH_SHARDED`")
    if any(each.first is not None and "WIDTH" not in each.first.memory for each, _ in slow):
        words.append("width-shard the input in L1")
    words.append("use `MatmulMultiCoreReuseMultiCastDRAMShardedProgramConfig`")
    text = ", ".join(words[:-1]) + (" and " if len(words) > 1 else "") + words[-1]
    text += _reader_advice([form for _, form in slow])
    if lower := {form.fidelity for each, form in slow if form.fidelity != each.op.fidelity}:
        or_two = board.is_blackhole and all(form.readers == 1 for _, form in slow)
        text += f", with {' and '.join(sorted(lower))} instead of the fidelity they have"
        text += ", or `num_workers_per_dram_bank=2`" if or_two else ""
    if placed and len(placed) == len(weights):
        text += ": the weights are sharded for it already"
    quick = [(each, *found) for each, _ in slow if (found := wider_blocks(each, board))]
    if quick:
        worst, width, least_ns = max(quick, key=lambda one: one[0].op.kernel_ns - one[2])
        text += (
            f"; with the weights as they are, `in0_block_w={width}` takes {op_name(worst.op)} "
            f"from {duration(worst.op.kernel_ns)} to {duration(least_ns)}"
        )
    return as_sentence(text)


def _reader_advice(forms: Sequence[ShardedForm]) -> str:
    more = max((form.readers for form in forms), default=1)
    return f" with `num_workers_per_dram_bank={more}`, measured against 1" if more > 1 else ""


#: SiLU on the cores at the banks takes so long for each tile of theirs; GELU a tenth of it.
_SILU_NS: Final = 960.0
#: A multiply takes that for each tile of a core, and cutting its operands anew 4.5 µs.
_IN_MULTIPLY_NS, _RESHARD_NS = 1_000.0, 4_500.0
#: Fewer tiles hide it.
_MANY_TILES: Final = 10
#: A hop of the inner dimension that no reading hides takes at least that.
_HOP_NS: Final = 200.0


@rule("TTP316", "dram-sharded-settings", Severity.WARNING, Input.OPS)
def dram_sharded_settings(step: OpTable, report: Report | None, *, share: Limit = SHARE) -> Answer:
    """DRAM-sharded matmuls take longer than other settings of theirs would.

    Finds DRAM-sharded matmuls that compute longer than they read, with SiLU fused into them, or
    with an inner block so narrow that reading it does not hide the next hop. One core for each bank
    computes: with bfloat4_b on Blackhole it is the limit even at LoFi, at 65 % of the bandwidth.

    ## What to do
    - `num_workers_per_dram_bank=2` (Blackhole, tt-metal of September 2026 or newer), where the
      columns of a bank divide among the readers; measure 1 against 2, on an activation grid of
      about 64 cores. Weights have to be padded for the readers in use: else results are wrong.
    - LoFi for weights in a block format, then check PCC again.
    - SiLU in the multiply that follows: `ttnn.mul(gate, up,
      input_tensor_a_activations=[ttnn.UnaryOpType.SILU])`, on shards of up to five tiles.
    - A larger `in0_block_w`, with wider shards of the input on fewer cores.

    ## What it saves
    The time of the matmul, less 4.5 µs + the longer of reading (bytes ÷ 90 % of the peak) and
    computing on banks × readers. SiLU: 0.96 µs for each tile of these cores, less 1 µs for each
    tile of a core of the multiply, and 4.5 µs to cut its operands anew. Narrow blocks: 0.2 µs for
    each hop less.

    ## When it is no problem
    GELU and RELU cost a tenth of SiLU. bfloat8_b at LoFi and bfloat16 at HiFi2 read at 89 to 97 %
    with one reader: nothing is left to gain. Narrow weights lose with more readers.
    """
    matmuls, board = matmuls_of(step), board_of(step)
    sharded = [each for each in matmuls if is_dram_sharded(each.op.attributes)]
    if not sharded:
        return Answer.not_applicable("no DRAM-sharded matmul")
    if board is None:
        return Answer.not_measured(unknown_chip(step))
    cores = available_cores(step, report)
    costs = {each.row: _costs(each, board, cores) for each in sharded}
    saved = {row: sum(each.ns for each in own) for row, own in costs.items() if own}
    took = sum(each.op.kernel_ns for each in sharded if each.row in saved)
    found = [each for own in costs.values() for each in own]
    reasons = dict.fromkeys(each.reason for each in found)
    return check_savings(
        step,
        saved,
        share,
        sentence=f"{len(saved)} of {counted(len(sharded), 'DRAM-sharded matmul')} "
        f"{'loses' if len(saved) == 1 else 'lose'} time: {', '.join(reasons)}",
        arithmetic=f"{duration(took)} → {duration(took - sum(saved.values()))}: 4.5 µs "
        f"each, and the longer of reading at {board.dram_gb_s:g} GB/s and computing on "
        "banks × readers",
        name=lambda placed: (
            f"{op_name(placed.op)} ({', '.join(each.setting for each in costs[placed.row])})"
        ),
    ).with_fix(advice_for(((each.advice, each.ns) for each in found), most=3))


class _Cost(NamedTuple):
    """The cost of a setting, its reason, better value and advice."""

    ns: float
    reason: str
    setting: str
    advice: str


def _costs(matmul: Product, board: Board, available: int) -> list[_Cost]:
    op, weights = matmul.op, matmul.weights
    readers = readers_per_bank(op.attributes)
    now, best = sharded_form(matmul, board, readers=readers), best_form(matmul, board)
    if weights is None or now is None or best is None:
        return []
    found: list[_Cost] = []
    inner, columns = (extent // TILE_ROWS for extent in weights.padded[-2:])
    tiles = -(-columns // (board.dram_banks * readers))
    epilogue_ns = 0.0
    if _SILU in op.attributes and tiles >= _MANY_TILES:
        epilogue_ns = tiles * _SILU_NS
        shard = whole(op.attributes, "per_core_N") or columns
        cut_ns = _RESHARD_NS + -(-columns // max(available, 1)) * _IN_MULTIPLY_NS
        ns = epilogue_ns - min(shard * _IN_MULTIPLY_NS, cut_ns)
        found.append(_Cost(ns, "SiLU on the cores at the banks", "SiLU elsewhere", _SILU_ADVICE))
    ns = op.kernel_ns - epilogue_ns - best.ns
    if best.ns * _LESS < now.ns and ns > 0:
        texts, changes = [], []
        if best.readers > readers:
            texts.append(f"{best.readers} readers")
            changes.append(
                f"set `num_workers_per_dram_bank={best.readers}` in the program config, measured "
                f"against {readers}"
            )
        if best.fidelity != op.fidelity:
            texts.append(best.fidelity)
            changes.append(f"compute with {best.fidelity}")
        why = "they compute longer than they read"
        found.append(_Cost(ns, why, ", ".join(texts), " and ".join(changes)))
    wide, wider = inner_block(op), inner_block_for(matmul, board, readers)
    if wide and wider and wider > wide and not now.computes:
        hops = inner // wide - inner // wider
        advice = "widen `in0_block_w` as named, with wider shards of the input on fewer cores"
        setting = f"in0_block_w {wide} → {wider}"
        found.append(_Cost(hops * _HOP_NS, "narrow inner blocks", setting, advice))
    return [each for each in found if each.ns > 0]


_SILU: Final = "UnaryOpType::SILU"
_SILU_ADVICE: Final = (
    "compute SiLU in the multiply that follows, on shards of up to five tiles: "
    "`ttnn.mul(..., input_tensor_a_activations=[ttnn.UnaryOpType.SILU])`"
)
#: Forms whose times differ by less are no reason to change anything.
_LESS: Final = 1.05


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
    Set the values that are named for each matmul. Few rows, weights interleaved: the least
    `in0_block_w` that divides the inner tiles and gives blocks of twelve tiles with `per_core_N`.
    Many rows: `in0_block_w` of 4 to 8, and output subblocks of up to eight tiles, or four with
    `fp32_dest_acc_en`; turn that off unless sums need float32, and `packer_l1_acc` on. A batch in
    the first input that the weights do not have (`fuse_batch=False`): reshape it into rows. Output
    blocks of fewer rows than a core has (`out_block_h` below `per_core_M`): raise it. Both inputs
    with a batch: `MatmulMultiCoreReuseProgramConfig`. A tall output of few columns: a 1D program
    config, with shards by height in L1. No program config: pass one, or `core_grid`: the chosen one
    can be four times slower, and an activation is an op of its own. Always pass
    `compute_kernel_config`: without it, bfloat16 falls to LoFi.

    ```py
    config = ttnn.init_device_compute_kernel_config(
        device.arch(),
        math_fidelity=ttnn.MathFidelity.HiFi2,
        fp32_dest_acc_en=False,
        packer_l1_acc=True,
    )
    ```

    ## What it saves
    The time of the matmul, less twice the longer of two: what its operands take at the full
    bandwidth of DRAM, and what its products take on its cores, at its fidelity. Where a value is
    named, 0.6 of the roofline; of interleaved weights on Blackhole, 60 % of the bandwidth in
    bfloat4_b, 74 % in bfloat8_b, 80 % in bfloat16.

    ## When it is no problem
    Where DEVICE ARCH is missing, PM IDEAL is the roofline. Blocks have to fit into L1.
    """
    matmuls, board = matmuls_of(step), board_of(step)
    if not matmuls:
        return Answer.not_applicable(NO_MATMULS)
    if all(each.least_ns is None for each in matmuls):
        return Answer.not_measured(no_roofline(step, "matmul"))
    on_few, available = few_cores(step, report), available_cores(step, report)
    saved: dict[int, float] = {}
    values: dict[int, str] = {}
    for each in matmuls:
        row = each.row
        if row in on_few or gains_from_dram_sharding(each, board):
            continue
        values[row], least_ns = _values(each, board, available)
        at = max(efficiency.value, _WITH_VALUES) if "block" in values[row] else efficiency.value
        ns = each.op.kernel_ns - least_ns if least_ns else shortfall_ns(each, at)
        if ns > 0 and not is_dram_sharded(each.op.attributes):
            saved[row] = ns
    slow = [each for each in matmuls if each.row in saved]
    took = sum(each.op.kernel_ns for each in slow)
    reached = sum(each.least_ns or 0.0 for each in slow) / took if took else 1.0

    def named(placed: OpPlace) -> str:
        value = values[placed.row]
        return f"{op_name(placed.op)} ({value})" if value else op_name(placed.op)

    return check_savings(
        step,
        saved,
        share,
        sentence=f"{counted(len(slow), 'matmul')} at {percent(reached)} of {best_known(step)}",
        arithmetic=f"{duration(took)} − {duration(took - sum(saved.values()))} at what "
        "matmuls of this kind reach",
        name=named,
    ).with_fix(_advice_for(slow, saved, values))


#: What of the roofline matmuls reach whose settings are right.
_WITH_VALUES: Final = 0.6
#: Inner blocks of many rows have so many tiles: fewer, and they wait for each hop.
_BLOCK: Final = range(4, 9)


def _values(matmul: Product, board: Board | None, available: int) -> tuple[str, float]:
    """Return better settings, and the time with them or 0."""
    quick = None if board is None else wider_blocks(matmul, board)
    wide = inner_block(matmul.op)
    if quick is not None:
        return f"in0_block_w {wide} → {quick[0]}", quick[1]
    op, (rows, columns) = matmul.op, _output_tiles(matmul)
    found = ["no program config"] if _has_no_config(op) else []
    inner = matmul.first.padded[-1] // TILE_ROWS if matmul.first else 0
    if wide and wide < _BLOCK.start and (rows > 1 or columns == 1):
        wider = max((each for each in _BLOCK if inner % each == 0), default=0)
        found += [f"in0_block_w {wide} → {wider}"] if wider else []
    height, width = (whole(op.attributes, *keys) or 0 for keys in _OUTPUT_BLOCKS)
    in_float32 = flag(op.attributes, "fp32_dest_acc_en") is True
    most = _SUBBLOCK_FLOAT32 if in_float32 else _SUBBLOCK
    blocks = _blocks_on_grid(matmul, available) if rows > 1 else None
    if blocks is not None:
        width, height = blocks[1]
        grid = "x".join(map(str, blocks[0]))
        found.append(f"grid {grid}, per_core_M={height}, per_core_N={width}")
    area, best = output_subblock(op), _largest_subblock(height, width, most)
    if area and best[0] * best[1] > area and area < most / 2:
        found.append(f"out_subblock {best[0]}x{best[1]}")
    if _has_no_config(op):
        return ", ".join(found), 0.0
    operands = (*op.signature.inputs, *op.signature.outputs)
    if in_float32 and all(each.dtype != "FLOAT32" for each in operands):
        found.append("fp32_dest_acc_en off")
    if flag(op.attributes, "packer_l1_acc") is False:
        found.append("packer_l1_acc on")
    return ", ".join(found), 0.0


def _has_no_config(op: Op) -> bool:
    """Return whether TTNN chooses the program config and its grid."""
    return program_config(op) == "" and not setting(op.attributes, "user_core_coord")


def _blocks_on_grid(
    matmul: Product, available: int
) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """Return a larger grid with output blocks of whole subblocks."""
    op, grid = matmul.op, _GRIDS.get(available)
    least = _MORE_CORES * (op.cores or 0)
    if grid is None or _possible_cores(matmul, available) <= least:
        return None
    rows, columns = _output_tiles(matmul)
    tall, wide = -(-rows // grid[1]), -(-columns // grid[0])
    steps = whole(op.attributes, "out_subblock_h") or 1, whole(op.attributes, "out_subblock_w")
    tall = -(-tall // steps[0]) * steps[0]
    step = steps[1] or min(wide, _SUBBLOCK_FLOAT32)
    wide = -(-wide // step) * step
    cores = -(-rows // tall) * -(-columns // wide)
    return (grid, (wide, tall)) if cores > least else None


#: The core grids of boards, by their cores.
_GRIDS: Final = {56: (8, 7), 64: (8, 8), 110: (11, 10), 130: (13, 10)}
_OUTPUT_BLOCKS: Final = (("out_block_h", "per_core_M"), ("out_block_w", "per_core_N"))


def _largest_subblock(height: int, width: int, most: int) -> tuple[int, int]:
    """Return the largest subblock of an output block that TTNN takes.

    >>> _largest_subblock(4, 6, 8), _largest_subblock(4, 2, 8)
    ((1, 6), (4, 2))
    """
    shapes = [
        (rows, columns)
        for rows in range(1, most + 1)
        for columns in range(1, most // rows + 1)
        if height and width and height % rows == 0 == width % columns
        if rows == 1 or columns == width
    ]
    return max(shapes, key=lambda shape: (shape[0] * shape[1], -shape[0]), default=(0, 0))


_CONFIG: Final = (
    "give matmuls without a program config one, on shards in L1, or `core_grid`, and "
    "`compute_kernel_config` with it: without, an activation is an op of its own"
)
_ONE_TILE: Final = (
    "a program config with a larger `in0_block_w`: `core_grid` spreads no output of one tile"
)


def _advice_for(
    slow: Sequence[Product],
    saved: Mapping[int, float],
    values: Mapping[int, str],
) -> str:
    batched = [each for each in slow if _batch(each) > 1]
    worst = max(batched, key=lambda each: saved[each.row], default=None)
    no_batch = "" if worst is None else _without_batch(worst)
    return advice_for(
        (
            no_batch if _batch(each) > 1 else _efficiency_advice(each, values[each.row]),
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


_REUSE: Final = "MatmulMultiCoreReuseProgramConfig"
_SPREAD_BATCH: Final = f"spread the batch over the cores (`{_REUSE}`), as both inputs have one"
_ONE_D: Final = "a 1D program config (`mcast_in0=True`): few rows leave rows of a 2D grid idle"
_TALL: Final = (
    "keep the 1D program config (`mcast_in0=False`), and height-shard the first input and the "
    "output in L1"
)
#: From so many times as many rows of tiles as columns on, cores in one dimension are enough.
_IS_TALL: Final = 4
#: Fewer cores more are no reason for another program config.
_MORE_CORES: Final = 1.2
#: The most tiles of an output subblock, and with sums in float32.
_SUBBLOCK, _SUBBLOCK_FLOAT32 = 8, 4


def _efficiency_advice(matmul: Product, values: str) -> str:
    if matmul.reads_again:
        return matmul.reads_again
    op, config = matmul.op, program_config(matmul.op)
    inputs = op.signature.inputs
    batched = len(inputs) > 1 and prod(inputs[1].padded[:-2]) > 1
    rows, columns = _output_tiles(matmul)
    if _has_no_config(op) and not batched:
        return _CONFIG if rows * columns > 1 else _ONE_TILE
    if batched and _REUSE not in (config or ""):
        return _SPREAD_BATCH
    turns = -(-prod(inputs[1].padded[:-2]) // (op.cores or 1)) if batched else 1
    rounds = f", in {turns} rounds on {op.cores} cores" if turns > 1 else ""
    if values or batched:
        return (
            f"set the values that are named: {values} for {op_name(op)}{rounds}" if values else ""
        )
    config = config or ""
    if 0 < rows < grid_rows(op):
        return _ONE_D
    width, height = config_grid(op)
    if "1D" in config and rows >= _IS_TALL * columns > 0 and columns < width:
        return _TALL
    in_2d = evenly(columns, width) * evenly(rows, height)
    if "1D" in config and in_2d > _MORE_CORES * (op.cores or 0):
        return f"a 2D program config instead of a 1D one: {in_2d} cores instead of {op.cores}"
    in_l1 = matmul.first is None or not in_dram(matmul.first)
    return "" if in_l1 else "give the first input an L1 memory config"


def _possible_cores(matmul: Product, available: int) -> int:
    op, (rows, columns), (width, height) = matmul.op, _output_tiles(matmul), config_grid(matmul.op)
    if is_dram_sharded(op.attributes):
        return 0
    if "1D" in (program_config(op) or ""):
        return evenly(columns if flag(op.attributes, "mcast_in0") else rows, available)
    if width * height >= available:
        return evenly(columns, width) * evenly(rows, height)
    return evenly(rows * columns, available)


def _output_tiles(matmul: Product) -> tuple[int, int]:
    if not matmul.op.signature.outputs:
        return 0, 0
    *rows, columns = matmul.op.signature.outputs[0].padded
    return prod(rows) // TILE_ROWS, columns // TILE_ROWS
