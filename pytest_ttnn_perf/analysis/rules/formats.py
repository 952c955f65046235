"""A conversion to bfloat8_b that starts from float32."""

from __future__ import annotations

import re
from math import prod
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from pytest_ttnn_perf.analysis.checklist.matmuls import (
    TILE_ROWS,
    is_convolution,
    products_of,
    unknown_chip,
)
from pytest_ttnn_perf.analysis.checklist.op_times import has_operands, op_name, worst_ops
from pytest_ttnn_perf.analysis.checklist.operands import (
    NO_OPERANDS,
    WORTH_BYTES,
    Weight,
    by_weight,
    if_worth,
    is_transfer,
    loading_rows,
    look_of,
    operands_of,
    operands_of_products,
    shape_text,
    stale_signatures,
    weights_by_row,
    weights_in_report,
    weights_in_table,
)
from pytest_ttnn_perf.analysis.checklist.savings import (
    WORTH,
    check_savings,
    critical_ops,
    microseconds,
    step_ns,
)
from pytest_ttnn_perf.analysis.ops.regions import step_of
from pytest_ttnn_perf.analysis.ops.roofline import (
    BYTES,
    Bound,
    board_of,
    board_of_arch,
    in_dram,
    is_dram_sharded,
    rooflines,
    size_of,
)
from pytest_ttnn_perf.core.finding import (
    Answer,
    Evidence,
    Input,
    Limit,
    RuleOutcome,
    Severity,
    Subject,
    rule,
)
from pytest_ttnn_perf.core.text import counted, percent, size

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pytest_ttnn_perf.analysis.checklist.matmuls import Product
    from pytest_ttnn_perf.analysis.checklist.savings import Placed
    from pytest_ttnn_perf.analysis.ops.roofline import Board
    from pytest_ttnn_perf.analysis.readers.report_db import Report
    from pytest_ttnn_perf.core.hardware import Scalar
    from pytest_ttnn_perf.core.ops import Op, OpTable, Signature, Tensor


# Weights in wider formats than they may need.

_WIDE: Final = frozenset({"BFLOAT16", "FLOAT32"})


@rule("TTP101", "weights-not-bfloat8", Severity.WARNING, Input.REPORT, Input.OPS)
def weights_not_bfloat8(
    subject: Subject,
    *,
    share: Limit = Limit(0.02, "of a step", WORTH),
    wide: Limit = Limit(
        0.1, "of weight bytes", "real models: a bfloat16 router 0.1 %, others 15 to 100 %"
    ),
    worth: Limit = WORTH_BYTES,
) -> Answer:
    """Weights are stored in bfloat16 or float32.

    ## What it finds
    The share of the weights' memory that is in bfloat16 or float32, and what reading it takes. As
    bfloat8_b it is 1.88 times less than as bfloat16, since 16 elements share an exponent.

    ## Why it matters
    Weights are read from DRAM at least once per use. A matmul with few rows takes as long as that.

    ## What to do
    Load weights with `dtype=ttnn.bfloat8_b` (convolutions: `weights_dtype` of Conv2dConfig; matmuls
    of up to 32 rows on Blackhole: with DRAM-sharded weights, TTP311, or little is gained), then
    check PCC again. Feed-forward weights often stand bfloat4_b as well. Interleaved bfloat8_b is
    read slower on Blackhole than interleaved bfloat16: there only weights that are cut to the banks
    of DRAM gain what follows from their bytes.

    ## What it saves
    The bytes saved, as often as they are read, by the peak bandwidth of DRAM: at most down to what
    computing takes, and nothing of ops that are bound by computing. Where that is too little of a
    step because ops take far longer than reading and computing do, it is told all the same, for
    information, if reading takes the longer of both: once these ops are fast, their weights count.

    ## When it is no problem
    Small weights, as of a router or of a norm, and layers whose PCC does not stand it.

    ## Where it looks
    The second operand of matmuls and convolutions, where it lies in DRAM, in one step of the op
    table on the slowest device. An op table does not name tensors: what looks like the result of an
    op that computes is taken for an activation, as in attention; what ops make of a tensor that
    none of them computed, by tilizing, converting or moving it, is taken for a weight. With a
    report database alone, or a chip that is not known, the share of the bytes decides, unless
    reading what could be saved takes less than launching an op.
    """
    step = step_of(subject.ops) if subject.ops is not None else None
    board = board_of(step) if step is not None else None
    if step is not None and board is not None and _weight_bytes(products_of(step)):
        return _weights_not_bfloat8_of_step(step, board, share, wide, worth)
    weights, at_least = frozenset[Weight](), ""
    if subject.report is not None:
        weights = weights_in_report(subject.report)
    if not weights and step is not None:
        weights, at_least = weights_in_table(step), "at least "
    total = sum(size_of(weight.tensor) for weight in weights)
    if not total:
        return _without_weights(subject)
    found = [weight.tensor for weight in weights if weight.tensor.dtype in _WIDE]
    part = sum(map(size_of, found)) / total
    saved_bytes = sum(map(_weights_not_bfloat8_saved_bytes, found))
    saved = f"as bfloat8_b, weights would take {at_least}{size(saved_bytes)} less"
    answer = wide.at_most(
        part,
        f"{percent(part)} of the weight bytes are wider than bfloat8_b: {saved}",
        by_weight(
            (
                (
                    f"{shape_text(tensor.padded)} {tensor.dtype}",
                    _weights_not_bfloat8_saved_bytes(tensor),
                )
                for tensor in found
            ),
            unit="B saved",
        ),
    )
    answer = if_worth(answer, saved_bytes, worth)
    # An op table has times: where they do not say what it saves, it may be nothing.
    known = subject.ops is None or answer.outcome is not RuleOutcome.FOUND
    return answer if known else replace(answer, severity=Severity.INFO)


def _weights_not_bfloat8_of_step(
    step: OpTable, board: Board, share: Limit, most_wide: Limit, worth: Limit
) -> Answer:
    read = products_of(step)
    wide = [each for each in read if each.weights is not None and each.weights.dtype in _WIDE]
    part = _weight_bytes(wide) / _weight_bytes(read)
    less = sum(map(_saved_reads, wide))
    passes = max((each.line.work.passes for each in wide), default=1)
    again = f", up to {passes} times each," if passes > 1 else ""
    saved = {each.row: _weights_not_bfloat8_saved_ns(each, board) for each in wide}
    answer = check_savings(
        step,
        {row: ns for row, ns in saved.items() if ns},
        share,
        sentence=f"{percent(part)} of the weight bytes that a step reads{again} are wider than "
        "bfloat8_b",
        arithmetic=f"{size(less)} less ÷ {board.dram_gb_s:g} GB/s, where reading binds: "
        f"{microseconds(sum(saved.values()))}",
    ).with_fix(_weights_not_bfloat8_advice([each for each in wide if saved[each.row]], board))
    if answer.outcome is RuleOutcome.FOUND or part <= most_wide.value:
        return answer
    slow = [each for each in wide if _would_wait_for_weights(each)]
    if sum(map(_saved_reads, slow)) < worth.value:
        return answer
    told = (
        f"{percent(part)} of the {size(_weight_bytes(read))} of weights that a step reads are "
        "wider than bfloat8_b; no gain until other costs are fixed"
    )
    hidden = most_wide.found(part, told, _largest(slow))
    hidden = hidden.with_fix(_weights_not_bfloat8_advice(slow, board))
    return replace(hidden, severity=Severity.INFO, always_told=True)


def _would_wait_for_weights(product: Product) -> bool:
    """Tell whether reading takes longer than computing does, where rows are not padded."""
    line, first = product.line, product.first
    if line.stale or line.dram_ns is None or first is None:
        return False
    rows, padded = prod((first.logical or first.padded)[:-1]), prod(first.padded[:-1])
    part = max(rows, TILE_ROWS) / padded if padded else 1.0
    return line.dram_ns > (line.compute_ns or 0.0) * min(part, 1.0)


def _largest(products: Iterable[Product]) -> Iterator[Evidence]:
    ops = (each.op for each in products)
    return worst_ops(
        ops,
        lambda op: _weights_not_bfloat8_saved_bytes(op.signature.inputs[1]),
        of=None,
        unit="B saved",
    )


def _weight_bytes(products: Iterable[Product]) -> float:
    return sum(size_of(each.weights) for each in products if each.weights is not None)


def _weights_not_bfloat8_saved_ns(product: Product, board: Board) -> float:
    line = product.line
    if product.weights is None or line.stale or line.work.at_most or line.bound is Bound.COMPUTE:
        return 0.0
    saved = _saved_reads(product) / board.dram_gb_s
    return min(saved, max(0.0, line.kernel_ns - (line.compute_ns or 0.0)))


def _saved_reads(product: Product) -> float:
    """Return how many bytes less a product reads: each pass over its weights is shorter."""
    return (
        _weights_not_bfloat8_saved_bytes(product.weights) * product.line.work.passes
        if product.weights
        else 0.0
    )


def _weights_not_bfloat8_advice(wide: Sequence[Product], board: Board) -> str:
    """Return what to do with the products there are."""
    where = []
    if any(is_convolution(each.op.signature) for each in wide):
        where.append("convolutions: `weights_dtype` of Conv2dConfig")
    if any(_needs_shards(each, board) for each in wide):
        where.append(
            "matmuls of up to 32 rows on Blackhole: with DRAM-sharded weights, TTP311, or little "
            "is gained"
        )
    told = f" ({'; '.join(where)})" if where else ""
    return f"Load weights with `dtype=ttnn.bfloat8_b`{told}, then check PCC again."


def _needs_shards(product: Product, board: Board) -> bool:
    """Tell whether a matmul reads interleaved bfloat8_b slower than its bytes say."""
    few_rows = product.first is not None and prod(product.first.padded[:-1]) <= TILE_ROWS
    sharded = is_dram_sharded(product.op.attributes)
    return few_rows and not sharded and board == board_of_arch("blackhole")


def _without_weights(subject: Subject) -> Answer:
    operands = operands_of_products(subject)
    if not operands:
        return Answer.not_applicable("no matmul and no convolution ran")
    if max(operands) < 2:
        return Answer.not_measured("no matmul or convolution gives its weights")
    return Answer.not_applicable("no weights lie in DRAM")


def _weights_not_bfloat8_saved_bytes(tensor: Tensor) -> float:
    return prod(tensor.padded) * (BYTES[tensor.dtype] - BYTES["BFLOAT8_B"])


# Tensors of 32 bits per element.

_FLOAT32: Final = "FLOAT32"


@rule("TTP102", "float32-tensors", Severity.WARNING, Input.OPS, Input.REPORT)
def float32_tensors(
    subject: Subject,
    *,
    share: Limit = Limit(0.02, "of a step", WORTH),
    wide: Limit = Limit(0.01, "of operand bytes", "real models: mostly below 1 %"),
    worth: Limit = WORTH_BYTES,
) -> Answer:
    """Ops work on float32 tensors.

    ## What it finds
    The share of float32 in the bytes of everything that ops take and give, padding included, and
    what it costs. A tensor counts each time that an op takes or gives it.

    ## Why it matters
    A float32 tensor takes twice the memory and the transfers of bfloat16, and matrix engines work
    on no more than 19 bits of an element.

    ## What to do
    Convert to bfloat16 on the host, or load with `dtype=ttnn.bfloat16`; begin with the first op
    that gives float32, since others follow. To sum up in float32, set `fp32_dest_acc_en` of the
    compute kernel config; the tensors stay bfloat16.

    ## What it saves
    Half of the float32 bytes in DRAM, by the peak bandwidth, and the time of conversions between
    float32 and another format.

    ## When it is no problem
    Recurrent states, logits of a loss, and other small tensors whose precision is needed. What is
    only read by the host does not count in a report.

    ## Where it looks
    The data types of all operands in one step of the op table, on the slowest device. With a
    report database alone, or a chip that is not known, the share of the bytes decides, unless
    moving what could be saved takes less than launching an op.
    """
    step = step_of(subject.ops) if subject.ops is not None else None
    board = board_of(step) if step is not None else None
    operands = operands_of(subject)
    total = sum(operand.size for operand in operands)
    if not total:
        return Answer.not_measured(NO_OPERANDS)
    if subject.ops is not None and step is not None and board is not None:
        # A capture without a window holds loading: what is converted there is no part of a step.
        loaded = frozenset() if subject.ops.windowed else loading_rows(step)
        return _float32_tensors_of_step(step, board, share, loaded)
    counted_in = None if subject.report is None else _computed_with(subject.report)
    found = [
        operand
        for operand in operands
        if operand.tensor.dtype == _FLOAT32
        and (counted_in is None or operand.number is None or operand.number in counted_in)
    ]
    saved_bytes = sum(operand.size for operand in found) / 2
    part = sum(operand.size for operand in found) / total
    answer = wide.at_most(
        part,
        f"{percent(part)} of the bytes that ops take and give are float32",
        by_weight(
            ((f"{each.op} {shape_text(each.tensor.padded)}", each.size) for each in found),
            unit="B",
        ),
    )
    return if_worth(answer, saved_bytes, worth)


def _computed_with(report: Report) -> frozenset[int]:
    """Return the tensors that an operation other than a transfer reads."""
    reading = (each for each in report.completed if not is_transfer(each))
    return frozenset(number for each in reading for number in each.inputs)


def _float32_tensors_of_step(
    step: OpTable, board: Board, share: Limit, loaded: frozenset[int]
) -> Answer:
    lines = rooflines(step)
    ops = [placed for placed in critical_ops(step) if placed.row not in loaded]
    halved: dict[int, float] = {}
    saved: dict[int, float] = {}
    conversions = 0
    for row, op in ops:
        line = lines[row]
        if _converts(op.signature):
            saved[row] = op.kernel_ns
            conversions += 1
        elif not line.stale and not line.work.at_most and line.dram_ns:
            halved[row] = _float32_bytes(op.signature) / 2
            saved[row] = min(halved[row] / board.dram_gb_s, op.kernel_ns)
    total = sum(sum(map(size_of, _operands(op.signature))) for _, op in ops)
    wide = sum(
        size_of(tensor)
        for _, op in ops
        for tensor in _operands(op.signature)
        if tensor.dtype == _FLOAT32
    )
    part = percent(wide / total if total else 0.0)
    converting = sum(saved[row] for row in saved.keys() - halved.keys())
    return check_savings(
        step,
        {row: ns for row, ns in saved.items() if ns},
        share,
        sentence=f"{part} of the bytes that ops of a step take and give are float32",
        arithmetic=f"{size(sum(halved.values()))} less ÷ {board.dram_gb_s:g} GB/s + "
        f"{microseconds(converting)} of {counted(conversions, 'conversion')}",
    )


def _operands(signature: Signature) -> tuple[Tensor, ...]:
    return (*signature.inputs, *signature.outputs)


def _float32_bytes(signature: Signature) -> float:
    return sum(
        size_of(each) for each in _operands(signature) if each.dtype == _FLOAT32 and in_dram(each)
    )


def _converts(signature: Signature) -> bool:
    """Tell whether an op turns float32 into another format of floats, or back."""
    formats = {each.dtype for each in _operands(signature)}
    floats = all("FLOAT" in each for each in formats)
    return (
        "typecast" in signature.op.lower() and _FLOAT32 in formats and len(formats) > 1 and floats
    )


# Matmuls and convolutions that compute more precisely than they may need.

#: Fidelities from the fastest to the slowest: each takes one pass more than the one before it.
_ORDER: Final = ("LoFi", "HiFi2", "HiFi3", "HiFi4")
#: The fidelity that uses the bits of a weight; of bfloat16, HiFi2 drops the last bit or two.
_ENOUGH: Final = {"BFLOAT4_B": "LoFi", "BFLOAT8_B": "HiFi2", "BFLOAT16": "HiFi2"}
#: An op gets shorter with its products where these take most of its time.
_COMPUTES: Final = 0.5


@rule("TTP103", "fidelity-above-need", Severity.INFO, Input.OPS)
def fidelity_above_need(step: OpTable, *, share: Limit = Limit(0.02, "of a step", WORTH)) -> Answer:
    """Math fidelity is above what the weights need, in ops that compute most of their time.

    ## What it finds
    Matmuls and convolutions that are bound by computing, at a higher fidelity than the format of
    their second operand needs: LoFi for bfloat4_b, HiFi2 for bfloat8_b and, mostly, for bfloat16.

    ## Why it matters
    Fidelity is the number of passes over the mantissa: HiFi4 takes four times the multiplications
    of LoFi, for bits that a narrow weight does not have.

    ## What to do
    Begin with `math_fidelity=LoFi` where weights are bfloat8_b or bfloat4_b and with HiFi2 where
    they are bfloat16, check PCC, and raise it only in the layers that lose too much. It goes into
    the compute kernel config of the op.

    ## What it saves
    What computing takes at full speed on the cores that the op runs on, less what it takes at the
    lower fidelity. Ops that compute for less than half of their time wait for something else, and
    do not count.

    ## When it is no problem
    Some layers lose PCC through the activations. Sums of many products in bfloat16 may need HiFi4.

    ## Where it looks
    MATH FIDELITY, CORE COUNT, DEVICE ARCH, the operands and the kernel time of matmuls and
    convolutions in the op table, on the slowest device. Other ops are left out: those that move
    data report a fidelity that they do not use.
    """
    products, board = products_of(step), board_of(step)
    if not products:
        return Answer.not_applicable("no matmul and no convolution ran")
    known = [each for each in products if _enough(each.op) and each.op.fidelity in _ORDER]
    if not known:
        return Answer.not_measured("no matmul or convolution gives its fidelity and its weights")
    if board is None:
        return Answer.not_measured(unknown_chip(step))
    saved = {each.row: _fidelity_above_need_saved_ns(each, board) for each in known}
    above = [each for each in known if saved[each.row]]
    took = sum(each.op.kernel_ns for each in above)
    computing = sum(each.line.compute_ns or 0.0 for each in above)
    whole = step_ns(step) or 1.0
    return check_savings(
        step,
        {each.row: saved[each.row] for each in above},
        share,
        sentence=f"{percent(took / whole)} of a step goes into {counted(len(above), 'op')} bound "
        "by computing, with a higher fidelity than the weights need",
        arithmetic=f"computing in {microseconds(computing - sum(saved.values()))} instead of "
        f"{microseconds(computing)} at full speed",
        name=_fidelity_above_need_advice,
    )


def _fidelity_above_need_saved_ns(product: Product, board: Board) -> float:
    op, line = product.op, product.line
    enough, fraction = _enough(op), line.compute_fraction
    if enough is None or fraction is None or fraction < _COMPUTES or line.compute_ns is None:
        return 0.0
    if _ORDER.index(op.fidelity or "") <= _ORDER.index(enough):
        return 0.0
    shorter = line.compute_ns * board.tflops[op.fidelity or ""] / board.tflops[enough]
    # Moving the operands does not get shorter.
    return max(0.0, line.compute_ns - max(shorter, line.dram_ns or 0.0))


def _enough(op: Op) -> str | None:
    inputs = op.signature.inputs
    return _ENOUGH.get(inputs[1].dtype) if len(inputs) > 1 else None


def _fidelity_above_need_advice(placed: Placed) -> str:
    op = placed.op
    dtype = op.signature.inputs[1].dtype
    return f"{op_name(op)}: {op.fidelity}, {_enough(op)} is enough for {dtype}"


# Activations in wider formats than they may need.

#: What ops that read and write DRAM as fast as they can are bound by.
_BY_DRAM: Final = frozenset({Bound.DRAM, Bound.BOTH})
#: Ops that write into a tensor that stays.
_COPIES: Final = re.compile(r"copy|cache|assign", re.IGNORECASE)


@rule("TTP104", "activations-not-bfloat8", Severity.INFO, Input.OPS)
def activations_not_bfloat8(
    step: OpTable, ops: OpTable, *, share: Limit = Limit(0.02, "of a step", WORTH)
) -> Answer:
    """Ops that are bound by DRAM move activations in bfloat16.

    ## What it finds
    Ops that use most of the bandwidth of DRAM, and take or give activations in bfloat16 there: in
    long prompts and large images, mostly.

    ## Why it matters
    Such an op takes as long as moving its operands. As bfloat8_b they are 1.88 times smaller.

    ## What to do
    Ask ops for `dtype=ttnn.bfloat8_b` where the next op bears it: feed-forward layers, and
    convolutions between activations. Then check PCC again. Activations that fit into L1 are better
    kept there.

    ## What it saves
    The bytes saved, by the peak bandwidth of DRAM.

    ## When it is no problem
    Residual streams, norms and softmax, whose PCC needs bfloat16. Recurrent states do as well, and
    do not count: what a step reads from before it, and copies back in the same shape.

    ## Where it looks
    The operands, DEVICE ARCH and the kernel time of the op table, on the slowest device. Weights
    are left to TTP101, float32 to TTP102. Ops with shapes that are not their own (TTP012), in any
    step of the region, do not count.
    """
    board = board_of(step)
    if not has_operands(step):
        return Answer.not_measured(NO_OPERANDS)
    if board is None:
        return Answer.not_measured(unknown_chip(step))
    lines, weights = rooflines(step), weights_by_row(step)
    stale, states = stale_signatures(ops), _states(step)
    less = {
        row: sum(
            _activations_not_bfloat8_saved_bytes(tensor)
            for tensor in _activations(op, weights.get(row))
            if _shape(tensor) not in states
        )
        for row, op in critical_ops(step)
        if lines[row].bound in _BY_DRAM and op.signature not in stale
    }
    saved = {row: each / board.dram_gb_s for row, each in less.items() if each}
    told = size(sum(less.values()))
    return check_savings(
        step,
        saved,
        share,
        sentence=f"as bfloat8_b, activations of ops that are bound by DRAM take {told} less",
        arithmetic=f"{told} ÷ {board.dram_gb_s:g} GB/s: {microseconds(sum(saved.values()))}",
    )


def _activations(op: Op, weights: Tensor | None) -> list[Tensor]:
    operands = (*op.signature.inputs, *op.signature.outputs)
    return [
        tensor
        for place, tensor in enumerate(operands)
        if in_dram(tensor) and tensor.dtype == "BFLOAT16" and not (place == 1 and weights)
    ]


def _states(step: OpTable) -> frozenset[tuple[int, ...]]:
    """Return the shapes of what a step takes from before it and copies back."""
    made: set[tuple[object, ...]] = set()
    taken: set[tuple[int, ...]] = set()
    copied: set[tuple[int, ...]] = set()
    for _, op in critical_ops(step):
        taken.update(_shape(each) for each in op.signature.inputs if look_of(each) not in made)
        if _COPIES.search(op.signature.op):
            copied.update(map(_shape, op.signature.outputs))
        made.update(map(look_of, op.signature.outputs))
    return frozenset(taken & copied)


def _shape(tensor: Tensor) -> tuple[int, ...]:
    return tensor.logical or tensor.padded


def _activations_not_bfloat8_saved_bytes(tensor: Tensor) -> float:
    return prod(tensor.padded) * (BYTES["BFLOAT16"] - BYTES["BFLOAT8_B"])


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

    ## What it finds
    A test that compiles with a conversion to bfloat8_b, and whose model is in another format than
    bfloat16.

    ## Why it matters
    The conversion starts from bfloat16, and inputs and outputs stay in the model's own format. A
    float32 model keeps float32 tensors and casts around the converted ops.

    ## What to do
    Cast the model and its inputs first: `model.to(dtype=torch.bfloat16)`.

    ## When it is no problem
    When PCC needs float32 in the ops that are not converted.

    ## Where it looks
    Of tt-xla's compile options, which are observed or stated in `ttnn_perf.facts`:
    `enable_bfp8_conversion` or `experimental_enable_weight_bfp8_conversion` as true, or
    `experimental_weight_dtype` as "bfp_bf8". The model's format is observed of a torch module that
    `measure` calls; of anything else the test states it as `data_format`, `dtype` or `torch_dtype`.
    """
    options = [name for name, on in _CONVERSIONS.items() if _text(facts.get(name)) == on]
    if not options:
        return Answer.not_applicable(
            "tt-xla converts nothing to bfloat8_b: neither observed nor stated"
        )
    formats = [_text(facts[name]) for name in _FORMATS if facts.get(name) is not None]
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


def _text(fact: Scalar) -> str:
    """Return a fact as tt-xla writes it: dtypes without their module, booleans in lower case."""
    return str(fact).rpartition(".")[2].lower()
