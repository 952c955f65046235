"""Data formats and math fidelity that are wider than they need be."""

from __future__ import annotations

import re
from math import prod
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from pytest_ttnn_perf.analysis.checklist.operands import (
    NO_OPERANDS,
    WORTH_BYTES,
    Weight,
    by_weight,
    if_worth,
    look_of,
    operands_of_products,
    stale_signatures,
    weights_by_row,
    weights_in_report,
    weights_in_table,
)
from pytest_ttnn_perf.analysis.checklist.products import (
    TILE_ROWS,
    best_form,
    is_convolution,
    products_of,
    sharded_form,
    unknown_chip,
)
from pytest_ttnn_perf.analysis.checklist.savings import (
    SHARE,
    check_savings,
    critical_ops,
    has_operands,
    op_name,
    share_of_step,
    worst_ops,
)
from pytest_ttnn_perf.analysis.ops.names import shape_text
from pytest_ttnn_perf.analysis.ops.regions import step_of
from pytest_ttnn_perf.analysis.ops.roofline import (
    BYTES,
    Bound,
    board_of,
    in_dram,
    is_dram_sharded,
    readers_per_bank,
    rooflines,
    size_of,
)
from pytest_ttnn_perf.core.finding import (
    TOO_SMALL,
    Answer,
    Evidence,
    Input,
    Limit,
    RuleOutcome,
    Severity,
    Subject,
    rule,
)
from pytest_ttnn_perf.core.text import counted, duration, percent, size

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pytest_ttnn_perf.analysis.checklist.products import Product
    from pytest_ttnn_perf.analysis.ops.roofline import Board
    from pytest_ttnn_perf.core.hardware import Scalar
    from pytest_ttnn_perf.core.ops import Op, OpTable, Tensor

_WIDE: Final = frozenset({"BFLOAT16", "FLOAT32"})


@rule("TTP101", "weights-not-bfloat8", Severity.WARNING, Input.REPORT, Input.OPS)
def weights_not_bfloat8(
    subject: Subject,
    *,
    share: Limit = SHARE,
    wide: Limit = Limit(
        0.1, "of weight bytes", "real models: a bfloat16 router 0.1 %, others 15 to 100 %"
    ),
    worth: Limit = WORTH_BYTES,
) -> Answer:
    """Weights are stored in bfloat16 or float32.

    Finds the share of the weights' memory in DRAM that is in bfloat16 or float32, and what reading
    it takes. As bfloat8_b it is 1.88 times less than as bfloat16, and a matmul with few rows takes
    as long as reading its weights.

    ## What to do
    Load weights with `dtype=ttnn.bfloat8_b` (convolutions: `weights_dtype` of Conv2dConfig; matmuls
    of up to 32 rows on Blackhole: with DRAM-sharded weights, TTP311, or little is gained), then
    check PCC again. Feed-forward weights often stand bfloat4_b as well, those of attention at
    times: try it on real weights, not on random ones.

    ```py
    weights = ttnn.from_torch(w, dtype=ttnn.bfloat8_b, layout=ttnn.TILE_LAYOUT, device=device)
    ```

    ## What it saves
    The bytes saved, as often as they are read, by the peak bandwidth of DRAM, and nothing of ops
    that are bound by computing. A DRAM-sharded matmul may then compute longer than it reads: what
    is left of it is as in TTP311, at its own fidelity. Where ops take far longer than both, it is
    for information. Without times, the share of the bytes decides.

    ## When it is no problem
    Small weights, as of a router or of a norm, and layers whose PCC does not stand it.
    """
    step = step_of(subject.ops) if subject.ops is not None else None
    board = board_of(step) if step is not None else None
    if step is not None and board is not None and _weight_bytes(products_of(step)):
        return _weights_of_step(step, board, share, wide, worth)
    weights, at_least = frozenset[Weight](), ""
    if subject.report is not None:
        weights = weights_in_report(subject.report)
    if not weights and step is not None:
        weights, at_least = weights_in_table(step), "at least "
    total = sum(size_of(weight.tensor) for weight in weights)
    if not total:
        operands = operands_of_products(subject)
        if operands and max(operands) < 2:
            return Answer.not_measured("no matmul or convolution gives its weights")
        none = "no weights lie in DRAM" if operands else "no matmul and no convolution ran"
        return Answer.not_applicable(none)
    found = [weight.tensor for weight in weights if weight.tensor.dtype in _WIDE]
    part = sum(map(size_of, found)) / total
    saved = sum(map(_saved_bytes, found))
    named = ((f"{shape_text(each.padded)} {each.dtype}", _saved_bytes(each)) for each in found)
    answer = wide.at_most(
        part,
        f"{percent(part)} of the weight bytes are wider than bfloat8_b: as bfloat8_b, weights "
        f"would take {at_least}{size(saved)} less",
        by_weight(named, unit="B saved"),
    )
    answer = if_worth(answer, saved, worth)
    # An op table has times: where they do not say what it saves, it may be nothing.
    known = subject.ops is None or answer.outcome is not RuleOutcome.FOUND
    return answer if known else replace(answer, severity=Severity.INFO)


def _weights_of_step(
    step: OpTable, board: Board, share: Limit, most_wide: Limit, worth: Limit
) -> Answer:
    read = products_of(step)
    wide = [each for each in read if each.weights is not None and each.weights.dtype in _WIDE]
    part = _weight_bytes(wide) / _weight_bytes(read)
    passes = max((each.line.work.passes for each in wide), default=1)
    again = f", up to {passes} times each," if passes > 1 else ""
    saved: dict[int, float] = {}
    for each in wide:
        line = each.line
        if not line.stale and not line.work.at_most and line.bound is not Bound.COMPUTE:
            beyond = max(0.0, line.kernel_ns - (line.compute_ns or 0.0))
            saved[each.row] = min(_saved_reads(each) / board.dram_gb_s, beyond)
            narrow = _sharded_in_blocks(each)
            form = narrow and sharded_form(
                narrow, board, readers=readers_per_bank(each.op.attributes)
            )
            if form:
                saved[each.row] = max(0.0, min(saved[each.row], line.kernel_ns - form.ns))
    saved = {row: ns for row, ns in saved.items() if ns}
    answer = check_savings(
        step,
        saved,
        share,
        sentence=f"{percent(part)} of the weight bytes that a step reads{again} are wider than "
        "bfloat8_b",
        arithmetic=f"{size(sum(map(_saved_reads, wide)))} less ÷ {board.dram_gb_s:g} GB/s, where "
        f"reading binds: {duration(sum(saved.values()))}",
    ).with_fix(_weights_advice([each for each in wide if each.row in saved], board))
    slow = [each for each in wide if _would_wait_for_weights(each)]
    small = sum(map(_saved_reads, slow)) < worth.value
    if answer.outcome is RuleOutcome.FOUND:
        # Another layout of the same weights makes them no smaller: both are to be done.
        return replace(answer, always_told=part > most_wide.value)
    if part <= most_wide.value:
        return answer
    if small:
        reason = f"{TOO_SMALL}: {percent(part)} of the weight bytes are wider than bfloat8_b"
        return replace(answer, reason=reason)
    hidden = most_wide.found(
        part,
        f"{percent(part)} of the {size(_weight_bytes(read))} of weights that a step reads are "
        "wider than bfloat8_b; no gain until other costs are fixed",
        worst_ops(
            (each.op for each in slow),
            lambda op: _saved_bytes(op.signature.inputs[1]),
            of=None,
            unit="B saved",
        ),
    ).with_fix(_weights_advice(slow, board))
    return replace(hidden, severity=Severity.INFO, always_told=True)


def _would_wait_for_weights(product: Product) -> bool:
    line, first = product.line, product.first
    if line.stale or line.dram_ns is None or first is None:
        return False
    padded = prod(first.padded[:-1])
    part = max(prod(first.shape[:-1]), TILE_ROWS) / padded if padded else 1.0
    return line.dram_ns > (line.compute_ns or 0.0) * min(part, 1.0)


def _weight_bytes(products: Iterable[Product]) -> float:
    return sum(size_of(each.weights) for each in products if each.weights is not None)


def _saved_reads(product: Product) -> float:
    # Each pass over its weights is shorter.
    return _saved_bytes(product.weights) * product.line.work.passes if product.weights else 0.0


def _saved_bytes(tensor: Tensor) -> float:
    return prod(tensor.padded) * (BYTES[tensor.dtype] - BYTES["BFLOAT8_B"])


def _sharded_in_blocks(product: Product) -> Product | None:
    """Return a DRAM-sharded matmul with its weights in bfloat8_b."""
    if product.weights is None or not is_dram_sharded(product.op.attributes):
        return None
    return product._replace(weights=product.weights._replace(dtype="BFLOAT8_B"))


def _weights_advice(wide: Sequence[Product], board: Board) -> str:
    where = []
    if any(is_convolution(each.op.signature) for each in wide):
        where.append("convolutions: `weights_dtype` of Conv2dConfig")
    # A matmul reads interleaved bfloat8_b slower than its bytes say.
    needs_shards = board.is_blackhole and any(
        each.first is not None
        and prod(each.first.padded[:-1]) <= TILE_ROWS
        and not is_dram_sharded(each.op.attributes)
        for each in wide
    )
    if needs_shards:
        where.append(
            "matmuls of up to 32 rows on Blackhole: with DRAM-sharded weights, TTP311, or little "
            "is gained"
        )
    best = [best_form(each, board) for each in map(_sharded_in_blocks, wide) if each is not None]
    if any(form and form.fidelity == "LoFi" for form in best):
        where.append("DRAM-sharded: with LoFi, as they compute longer than they read")
    elif any(form and form.readers > 1 for form in best):
        where.append(
            "DRAM-sharded: with `num_workers_per_dram_bank=2`, as one core computes longer"
        )
    which = f" ({'; '.join(where)})" if where else ""
    return f"Load weights with `dtype=ttnn.bfloat8_b`{which}, then check PCC again."


#: Fidelities from the fastest to the slowest: each takes one pass more than the one before it.
_ORDER: Final = ("LoFi", "HiFi2", "HiFi3", "HiFi4")
#: The fidelity that uses the bits of a weight; of bfloat16, HiFi2 drops the last bit or two.
_ENOUGH: Final = {"BFLOAT4_B": "LoFi", "BFLOAT8_B": "HiFi2", "BFLOAT16": "HiFi2"}
#: An op gets shorter with its products where these take most of its time.
_COMPUTES: Final = 0.5


@rule("TTP103", "fidelity-above-need", Severity.INFO, Input.OPS)
def fidelity_above_need(step: OpTable, *, share: Limit = SHARE) -> Answer:
    """Math fidelity is above what the weights need, in ops that compute most of their time.

    Finds matmuls and convolutions that are bound by computing, at a higher fidelity than the format
    of their second operand needs: LoFi for bfloat4_b, HiFi2 for bfloat8_b and, mostly, for
    bfloat16. HiFi4 takes four times the multiplications of LoFi, for bits that a narrow weight does
    not have.

    ## What to do
    Begin with `math_fidelity=LoFi` where weights are bfloat8_b or bfloat4_b and with HiFi2 where
    they are bfloat16, check PCC, and raise it only in the layers that lose too much.

    ## What it saves
    What computing takes at full speed on the cores that the op runs on, less what it takes at the
    lower fidelity. Ops that compute for less than half of their time do not count.

    ## When it is no problem
    Some layers lose PCC through the activations. Sums of many products in bfloat16 may need HiFi4.
    """
    products, board = products_of(step), board_of(step)
    if not products:
        return Answer.not_applicable("no matmul and no convolution ran")
    known = [each for each in products if _enough(each.op) and each.op.fidelity in _ORDER]
    if not known:
        return Answer.not_measured("no matmul or convolution gives its fidelity and its weights")
    if board is None:
        return Answer.not_measured(unknown_chip(step))
    saved: dict[int, float] = {}
    took = computing = 0.0
    for each in known:
        own, enough, line = each.op.fidelity or "", _enough(each.op), each.line
        computes = (line.compute_fraction or 0.0) >= _COMPUTES
        if computes and line.compute_ns and _ORDER.index(own) > _ORDER.index(enough):
            shorter = line.compute_ns * board.tflops[own] / board.tflops[enough]
            # Moving the operands does not get shorter.
            gain = line.compute_ns - max(shorter, line.dram_ns or 0.0)
            if gain > 0:
                saved[each.row] = gain
                took, computing = took + each.op.kernel_ns, computing + line.compute_ns
    return check_savings(
        step,
        saved,
        share,
        sentence=f"{share_of_step(step, took)} of a step goes into {counted(len(saved), 'op')} "
        "bound by computing, with a higher fidelity than the weights need",
        arithmetic=f"computing in {duration(computing - sum(saved.values()))} instead of "
        f"{duration(computing)} at full speed",
        name=lambda placed: (
            f"{op_name(placed.op)}: {placed.op.fidelity}, {_enough(placed.op)} is "
            f"enough for {placed.op.signature.inputs[1].dtype}"
        ),
    )


def _enough(op: Op) -> str:
    inputs = op.signature.inputs
    return _ENOUGH.get(inputs[1].dtype, "") if len(inputs) > 1 else ""


#: Ops that write into a tensor that stays.
_COPIES: Final = re.compile(r"copy|cache|assign", re.IGNORECASE)


@rule("TTP104", "activations-not-bfloat8", Severity.INFO, Input.OPS)
def activations_not_bfloat8(step: OpTable, ops: OpTable, *, share: Limit = SHARE) -> Answer:
    """Ops that are bound by DRAM move activations in bfloat16 or float32.

    Finds ops that use most of the bandwidth of DRAM, and take or give activations in bfloat16 or
    float32 there, mostly in long prompts and large images. Such an op takes as long as moving its
    operands, which are 1.88 times smaller as bfloat8_b, and half as large as bfloat16.

    ## What to do
    Ask ops for `dtype=ttnn.bfloat8_b` where the next op bears it: feed-forward layers, and
    convolutions between activations. Then check PCC again. Activations that fit into L1 are better
    kept there. Convert float32 to bfloat16 on the host; to sum up in float32, set
    `fp32_dest_acc_en`: the tensors stay bfloat16.

    ## What it saves
    The bytes saved, by the peak bandwidth of DRAM.

    ## When it is no problem
    Residual streams, norms and softmax, whose PCC needs bfloat16. Recurrent states, which a step
    copies back in the same shape, do not count. Two guides of Tenstorrent differ: that for language
    models keeps activations in bfloat16 and narrows weights alone, that for convolutions narrows
    both. PCC of your model decides.
    """
    board = board_of(step)
    if not has_operands(step):
        return Answer.not_measured(NO_OPERANDS)
    if board is None:
        return Answer.not_measured(unknown_chip(step))
    lines, weights = rooflines(step), weights_by_row(step)
    stale, states = stale_signatures(ops), _states(step)
    less: dict[int, float] = {}
    for row, op in critical_ops(step):
        if lines[row].bound in {Bound.DRAM, Bound.BOTH} and op.signature not in stale:
            operands = [*op.signature.inputs, *op.signature.outputs]
            if row in weights:
                del operands[1]
            less[row] = sum(
                _saved_bytes(each)
                for each in operands
                if in_dram(each) and each.dtype in _WIDE and each.shape not in states
            )
    saved = {row: each / board.dram_gb_s for row, each in less.items() if each}
    told = size(sum(less.values()))
    return check_savings(
        step,
        saved,
        share,
        sentence=f"as bfloat8_b, activations of ops that are bound by DRAM take {told} less",
        arithmetic=f"{told} ÷ {board.dram_gb_s:g} GB/s: {duration(sum(saved.values()))}",
    )


def _states(step: OpTable) -> set[tuple[int, ...]]:
    """Return shapes that a step takes in and copies back."""
    made: set[tuple[object, ...]] = set()
    taken: set[tuple[int, ...]] = set()
    copied: set[tuple[int, ...]] = set()
    for _, op in critical_ops(step):
        taken.update(each.shape for each in op.signature.inputs if look_of(each) not in made)
        if _COPIES.search(op.signature.op):
            copied.update(each.shape for each in op.signature.outputs)
        made.update(map(look_of, op.signature.outputs))
    return taken & copied


#: Compile options of tt-xla that convert to bfloat8_b, and what they are set to for it.
_CONVERSIONS: Final = {
    "enable_bfp8_conversion": "true",
    "experimental_enable_weight_bfp8_conversion": "true",
    "experimental_weight_dtype": "bfp_bf8",
}
#: Facts that tell the format of a model.
_FORMATS: Final = ("data_format", "dtype", "torch_dtype")


@rule("TTP105", "bfp8-without-bfloat16-cast", Severity.WARNING, Input.DEVICE)
def bfp8_without_bfloat16_cast(facts: Mapping[str, Scalar]) -> Answer:
    """tt-xla converts to bfloat8_b, and the model is not bfloat16.

    Finds a test that compiles with `enable_bfp8_conversion`,
    `experimental_enable_weight_bfp8_conversion` or `experimental_weight_dtype` "bfp_bf8", and whose
    model is in another format than bfloat16: it keeps float32 tensors, and casts around the ops
    that are converted. Options and format are observed, or facts: `data_format`, `dtype` or
    `torch_dtype`. Also finds a measured module whose inputs have another format than its weights.

    ## What to do
    Cast the model and its inputs first: `model.to(dtype=torch.bfloat16)`.

    ## When it is no problem
    When PCC needs float32 in the ops that are not converted.
    """

    def text(fact: Scalar) -> str:
        # As tt-xla writes it: dtypes without their module, booleans in lower case.
        return str(fact).rpartition(".")[2].lower()

    options = [name for name, on in _CONVERSIONS.items() if text(facts.get(name)) == on]
    inputs = facts.get("torch_input_dtype")
    if inputs is not None:
        return Answer.found(f"the model is {facts.get('torch_dtype')}, and its inputs are {inputs}")
    if not options:
        return Answer.not_applicable(
            "tt-xla converts nothing to bfloat8_b: neither observed nor stated"
        )
    formats = [text(facts[name]) for name in _FORMATS if facts.get(name) is not None]
    if not formats:
        return Answer.not_measured(
            "the model's format is not known: state it with facts(data_format=…)"
        )
    if "bfloat16" in formats:
        return Answer.clean()
    return Answer.found(
        f"{options[0]} is on, and the model is {formats[0]}, not bfloat16",
        evidence=(Evidence(f"{name}={facts[name]}") for name in options),
    )
