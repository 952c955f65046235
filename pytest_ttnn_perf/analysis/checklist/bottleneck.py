"""What holds a model back: what most of its time goes into, and what kind of model it is."""

from __future__ import annotations

from collections import defaultdict
from enum import Enum
from math import prod
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct

from pytest_ttnn_perf.analysis.checklist.cores import searches
from pytest_ttnn_perf.analysis.checklist.kernels import kernels_of, roofline_of
from pytest_ttnn_perf.analysis.checklist.matmuls import TILE_ROWS, is_dense_matmul
from pytest_ttnn_perf.analysis.checklist.op_times import gaps_of, ops_like
from pytest_ttnn_perf.analysis.checklist.operands import weights_by_row
from pytest_ttnn_perf.analysis.checklist.runner import in_regions, rule_of
from pytest_ttnn_perf.analysis.checklist.savings import critical_ops, lasting_waiting, waiting_in
from pytest_ttnn_perf.analysis.ops.regions import step_of
from pytest_ttnn_perf.analysis.ops.roofline import (
    BOUND_FROM,
    Bound,
    board_of,
    is_dram_sharded,
    rooflines,
    size_of,
)
from pytest_ttnn_perf.core.finding import ModelKind, RuleOutcome
from pytest_ttnn_perf.core.ops import Category, category_of, short_code
from pytest_ttnn_perf.core.text import percent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pytest_ttnn_perf.analysis.ops.roofline import Roofline
    from pytest_ttnn_perf.analysis.readers.report_db import Report
    from pytest_ttnn_perf.analysis.readers.ttlang import TtlangLog
    from pytest_ttnn_perf.core.finding import Answer, Subject
    from pytest_ttnn_perf.core.ops import Op, OpTable, Tensor
    from pytest_ttnn_perf.core.settings import RuleSettings

    #: Returns what the rule of a code says of the subject.
    _Ask = Callable[[str], Answer]


class BottleneckKind(Enum):
    """What can be in the way, in the words of a sentence."""

    TRANSFER = "transfer-bound"
    HOST = "host-bound"
    GAPS = "gaps between ops"
    CORES = "underutilised cores"
    SMALL_TRANSFERS = "small transfers"
    TURNS = "waiting threads"
    DRAM_TRAFFIC = "excess DRAM traffic"
    MEMORY = "memory-bound"
    COMPUTE = "compute-bound"
    WEIGHTS = "weight reads"
    ONE_KIND = "one kind of op"
    MIXED = "mixed"


class Bottleneck(Struct, frozen=True):
    """A bottleneck, and the number that decided: ``value`` against ``limit``, both in ``unit``."""

    kind: BottleneckKind
    sentence: str
    value: float
    limit: float
    unit: str


_WAITING: Final = frozenset({BottleneckKind.HOST, BottleneckKind.GAPS, BottleneckKind.TRANSFER})
_MEMORY: Final = frozenset({
    BottleneckKind.MEMORY,
    BottleneckKind.DRAM_TRAFFIC,
    BottleneckKind.WEIGHTS,
})  # fmt: skip
#: What takes more than this part of a step holds it back; else several things do.
_MAJORITY: Final = 0.5
_OF_A_STEP: Final = "of a step"


def held_back(
    subject: Subject, settings: Mapping[str, RuleSettings]
) -> tuple[str | None, ModelKind | None]:
    """Say what holds each region back, a line each, and what kind of model it is.

    Both are None where nothing tells. Regions that are replayed come first: what else a capture
    holds is compilation, warm-up and prompts, whose gaps the profiler makes longer.
    """
    regions = sorted(in_regions(subject), key=lambda region: not _is_replayed(region.ops))
    lines, kinds = [], []
    for region in regions:
        bottleneck = bottleneck_of(region, settings)
        kinds.append(model_kind(region.ops, bottleneck, region.report))
        if bottleneck is not None:
            lines.append(": ".join(filter(None, (region.region, bottleneck.sentence))))
    return "\n".join(lines) or None, next(filter(None, kinds), None)


def _is_replayed(ops: OpTable | None) -> bool:
    return ops is not None and any(replay is not None for replay in ops.columns.replay)


def model_kind(
    ops: OpTable | None, bottleneck: Bottleneck | None, report: Report | None = None
) -> ModelKind | None:
    """Return what kind of model it is: what keeps it waiting counts most, then what it runs."""
    held_by = None if bottleneck is None else bottleneck.kind
    if held_by in _WAITING:
        return ModelKind.HOST_BOUND
    attention, convolution = (
        _amount(ops, report, category) for category in (Category.ATTENTION, Category.CONV)
    )
    if attention or convolution:
        return ModelKind.LLM if attention > convolution else ModelKind.CNN
    return ModelKind.MEMORY_BOUND if held_by in _MEMORY else None


def _amount(ops: OpTable | None, report: Report | None, category: Category) -> float:
    """Return how much of a model is of a category: its time, or how often a report has it."""
    if ops is not None:
        alike = ops_like(ops, lambda one: category_of(one.op) is category)
        return sum(op.kernel_ns for op in alike)
    operations = report.operations if report is not None else ()
    return sum(category_of(each.name) is category for each in operations)


#: The rules that tell a bottleneck.
_HOT_DATA_IN_DRAM: Final = "TTP303"
_UNUSED_CORES: Final = "TTP305"
_NOT_DRAM_SHARDED: Final = "TTP311"
_HOST_BOUND: Final = "TTP401"
_DEVICE_BEHIND_E2E: Final = "TTP404"
_TRANSFER_BOUND: Final = "TTP503"
_GRID_UNDERUSED: Final = "TTP801"
_SMALL_TRANSFERS: Final = "TTP803"
_KERNEL_BOUND: Final = "TTP804"
_THREADS_TAKE_TURNS: Final = "TTP808"
#: Bytes that a kernel reads for each that it writes: more than three inputs for an output.
_READS_PER_WRITE: Final = 4.0


def bottleneck_of(subject: Subject, settings: Mapping[str, RuleSettings]) -> Bottleneck | None:
    """Return what holds a subject back; None where that cannot be told.

    ``settings`` have the limits that a project sets, by the code of their rule.
    """

    def ask(code: str) -> Answer:
        rule = rule_of(code)
        if code in settings:
            rule = rule.with_limits(**settings[code].limits)
        return rule.check(subject)

    found = _of_test(subject, ask)
    if found is None and subject.kernels is not None:
        found = _of_kernels(subject.kernels, ask)
    if found is None and subject.ops is not None:
        found = _of_ops(subject, step_of(subject.ops), ask)
    return found


def _of_test(subject: Subject, ask: _Ask) -> Bottleneck | None:
    """Return what keeps devices waiting for most of the time."""
    without_profiler: Answer | None = None
    if subject.observation is not None:
        transfers = _as_bottleneck(BottleneckKind.TRANSFER, ask(_TRANSFER_BOUND))
        if transfers is not None:
            return transfers
        without_profiler = ask(_DEVICE_BEHIND_E2E)
    if without_profiler is not None and without_profiler.value is not None:
        found = _as_bottleneck(BottleneckKind.HOST, without_profiler)
        return found if found is not None and found.value > _MAJORITY else None
    replayed = _is_replayed(subject.ops)
    if subject.ops is None or not (replayed or subject.counts_gaps):
        return None
    if ask(_HOST_BOUND).outcome is not RuleOutcome.FOUND:
        return None
    return _of_gaps(step_of(subject.ops), replayed=replayed)


def _of_gaps(step: OpTable, *, replayed: bool) -> Bottleneck | None:
    """Return that most of a step is gaps; outside a replay, such as the host leaves at each op."""
    waiting = waiting_in(step) if replayed else lasting_waiting(step)
    if waiting.share <= _MAJORITY or not (replayed or waiting.before_each_op):
        return None
    kind = BottleneckKind.GAPS if replayed else BottleneckKind.HOST
    most, where = ("", "") if replayed else ("at most ", ", longer than without the profiler")
    wait = f"devices wait {most}{percent(waiting.share)} of the time for their next op{where}"
    return Bottleneck(kind, f"{kind.value}: {wait}", waiting.share, _MAJORITY, "of the time")


def _of_kernels(log: TtlangLog, ask: _Ask) -> Bottleneck | None:
    """Return what a kernel lacks: cores, larger transfers, or what its roofline says."""
    line = roofline_of(log)
    bound = None if isinstance(line, str) else line.bound
    cores = _as_bottleneck(BottleneckKind.CORES, ask(_GRID_UNDERUSED))
    if cores is not None and not _mostly_waits(log):
        return cores
    turns = _as_bottleneck(BottleneckKind.TURNS, ask(_THREADS_TAKE_TURNS))
    if turns is not None and turns.value > _MAJORITY:
        return turns  # what waits most of the time is bound by neither memory nor computing
    balance = ask(_KERNEL_BOUND)
    if balance.outcome is RuleOutcome.NOT_APPLICABLE:
        return turns
    if bound == "compute":
        return _as_bottleneck(BottleneckKind.COMPUTE, balance)
    small = _as_bottleneck(BottleneckKind.SMALL_TRANSFERS, ask(_SMALL_TRANSFERS))
    return small or _excess(log, balance) or _as_bottleneck(BottleneckKind.MEMORY, balance)


def _mostly_waits(log: TtlangLog) -> bool:
    """Tell whether most of the time goes into programs that more cores do not make faster."""
    kernels = kernels_of(log)
    if isinstance(kernels, str):
        return False
    waiting = sum(kernel.time_ns for kernel in kernels if kernel.waits)
    return waiting > _MAJORITY * sum(kernel.time_ns for kernel in kernels)


def _excess(log: TtlangLog, balance: Answer) -> Bottleneck | None:
    """Return whether a kernel that is bound by memory reads the same data again and again."""
    kernels = kernels_of(log)
    if isinstance(kernels, str) or balance.outcome is not RuleOutcome.FOUND:
        return None
    read = sum(kernel.program.dram_read.size.bytes for kernel in kernels)
    written = sum(kernel.program.dram_write.size.bytes for kernel in kernels)
    ratio = read / written if written else 0.0
    if ratio <= _READS_PER_WRITE:
        return None
    kind = BottleneckKind.DRAM_TRAFFIC
    sentence = f"{kind.value}: for each byte that they write to DRAM, programs read {ratio:.1f}"
    return Bottleneck(kind, sentence, ratio, _READS_PER_WRITE, "bytes read per byte written")


def _as_bottleneck(kind: BottleneckKind, answer: Answer) -> Bottleneck | None:
    """Return what a rule found, as a bottleneck."""
    if answer.outcome is not RuleOutcome.FOUND or answer.value is None or answer.limit is None:
        return None
    reason = (answer.reason or "").removeprefix(f"{kind.value}: ")
    sentence = f"{kind.value}: {reason}"
    return Bottleneck(kind, sentence, answer.value, answer.limit, answer.unit)


class _Part(NamedTuple):
    """An op of a step: its row, what it is called together with others, and its roofline."""

    row: int
    op: Op
    noun: str
    line: Roofline


_GAPS: Final = "gaps"
_WEIGHTS: Final = BottleneckKind.WEIGHTS.value
_MATMULS: Final = "matmuls"
#: What ops are called together.
_NOUNS: Final = {
    Category.MATMUL: _MATMULS,
    Category.CONV: "convolutions",
    Category.ATTENTION: "attention",
    Category.ELEMENTWISE: "elementwise ops",
    Category.NORM: "norms",
    Category.COLLECTIVE: "collectives",
    Category.LAYOUT: "data movement",
    Category.MOVEMENT: "data movement",
}
_SEARCHES: Final = "reductions and searches"
_OTHERS: Final = "others"


def _of_ops(subject: Subject, step: OpTable, ask: _Ask) -> Bottleneck | None:
    """Return what most of a step goes into, by what binds it or by what it is; else all of it."""
    parts = _parts(step)
    kernels_ns = sum(part.op.kernel_ns for part in parts)
    if not kernels_ns:
        return None
    gaps = gaps_of(subject)
    told = not isinstance(gaps, str) and gaps.replayed
    gaps_ns = waiting_in(step).ns if told else 0.0
    whole_ns = kernels_ns + gaps_ns
    shares: dict[str, float] = defaultdict(float)
    for part in parts:
        shares[part.noun] += part.op.kernel_ns / whole_ns
    if gaps_ns:
        shares[_GAPS] = gaps_ns / whole_ns
    most = max(shares, key=lambda noun: shares[noun])
    if most == _WEIGHTS and shares[most] > _MAJORITY:
        reads = [part for part in parts if part.noun == most]
        return _weight_reads(step, reads, shares[most], ask)
    found = _bound(step, parts, whole_ns, ask) or _on_few_cores(parts, whole_ns, ask)
    if found is not None:
        return found
    if shares[most] > _MAJORITY and most != _GAPS:
        return _one_kind([part for part in parts if part.noun == most], shares[most], whole_ns)
    sentence = f"{BottleneckKind.MIXED.value}: {_listed(shares)}"
    return Bottleneck(BottleneckKind.MIXED, sentence, shares[most], _MAJORITY, _OF_A_STEP)


def _parts(step: OpTable) -> Sequence[_Part]:
    lines, weights = rooflines(step), weights_by_row(step)
    known = board_of(step) is not None
    return [
        _Part(row, op, _noun(op, weights.get(row) if known else None), lines[row])
        for row, op in critical_ops(step)
    ]


def _noun(op: Op, weights: Tensor | None) -> str:
    """Return what an op is called together with others; ``weights`` are what it reads from DRAM."""
    signature = op.signature
    rows = prod(signature.inputs[0].padded[:-1]) if signature.inputs else 0
    if weights is not None and is_dense_matmul(signature) and rows <= TILE_ROWS:
        return _WEIGHTS
    if searches(signature):
        return _SEARCHES
    return _NOUNS.get(category_of(signature.op), "other ops")


#: How close real matmuls of few rows come to the bandwidth of DRAM: block formats less, as they are
#: unpacked on the way.
_NEAR: Final = 0.75
_NEAR_IN_BLOCKS: Final = 0.55


def _weight_reads(step: OpTable, parts: Sequence[_Part], share: float, ask: _Ask) -> Bottleneck:
    """Return that reading weights takes most of a step, and how well that goes."""
    board, weights = board_of(step), weights_by_row(step)
    assert board is not None
    took = sum(part.op.kernel_ns for part in parts)
    read = [(size_of(weights[part.row]), weights[part.row].dtype) for part in parts]
    moved = sum(size for size, _ in read)
    in_blocks = sum(size for size, dtype in read if dtype.endswith("_B")) > moved / 2
    rate = moved / took / board.dram_gb_s
    at_banks = [part for part in parts if is_dram_sharded(part.op.attributes)]
    computing = [part for part in at_banks if (part.line.compute_fraction or 0.0) >= BOUND_FROM]
    end = ""
    gains = ask(_NOT_DRAM_SHARDED).outcome is RuleOutcome.FOUND
    if rate >= (_NEAR_IN_BLOCKS if in_blocks else _NEAR) and not gains:
        end = ", near what real ones reach"
    elif sum(part.op.kernel_ns for part in computing) > took / 2:
        end = f", held up by computing on the {board.dram_banks} cores of DRAM-sharded matmuls"
    sentence = (
        f"{_WEIGHTS}: {percent(share)} of a step goes into matmuls of up to {TILE_ROWS} rows, "
        f"which read their weights at {percent(rate)} of the DRAM bandwidth{end}"
    )
    return Bottleneck(BottleneckKind.WEIGHTS, sentence, share, _MAJORITY, _OF_A_STEP)


_REACHING: Final = {
    BottleneckKind.MEMORY: f"that use {percent(BOUND_FROM)} or more of the DRAM bandwidth",
    BottleneckKind.COMPUTE: f"at {percent(BOUND_FROM)} or more of what their cores compute",
}


def _bound(step: OpTable, parts: Sequence[_Part], whole_ns: float, ask: _Ask) -> Bottleneck | None:
    """Return what most ops of a step run into: DRAM, or what their cores compute."""

    def share(*bounds: Bound) -> float:
        return sum(part.op.kernel_ns for part in parts if part.line.bound in bounds) / whole_ns

    reaching = {
        BottleneckKind.MEMORY: share(Bound.DRAM, Bound.BOTH),
        BottleneckKind.COMPUTE: share(Bound.COMPUTE, Bound.BOTH),
    }
    kind = max(reaching, key=lambda each: reaching[each])
    if reaching[kind] <= _MAJORITY:
        return None
    if kind is BottleneckKind.MEMORY and _moves_more_than_weights(step, parts):
        hot = _as_bottleneck(BottleneckKind.DRAM_TRAFFIC, ask(_HOT_DATA_IN_DRAM))
        if hot is not None:
            return hot
    sentence = f"{kind.value}: {percent(reaching[kind])} of a step goes into ops {_REACHING[kind]}"
    if kind is BottleneckKind.MEMORY and _reads_again(parts):
        sentence += ", mostly for what they have read before"
    return Bottleneck(kind, sentence, reaching[kind], _MAJORITY, _OF_A_STEP)


def _reads_again(parts: Iterable[_Part]) -> bool:
    """Tell whether most of what ops that DRAM binds move has been read before."""
    works = [part.line.work for part in parts if part.line.bound in {Bound.DRAM, Bound.BOTH}]
    moved = sum(work.dram_bytes or 0.0 for work in works)
    return sum(work.again_bytes for work in works) > moved / 2


def _moves_more_than_weights(step: OpTable, parts: Sequence[_Part]) -> bool:
    """Tell whether most of what ops that DRAM binds move are activations."""
    weights = weights_by_row(step)
    moved = [
        (
            part.line.work.dram_bytes or 0.0,
            size_of(weights[part.row]) * part.line.work.passes if part.row in weights else 0.0,
        )
        for part in parts
        if part.line.bound in {Bound.DRAM, Bound.BOTH}
    ]
    return sum(each for each, _ in moved) > 2 * sum(each for _, each in moved)


def _on_few_cores(parts: Sequence[_Part], whole_ns: float, ask: _Ask) -> Bottleneck | None:
    """Return that most of a step goes into ops that could run on more cores."""
    answer = ask(_UNUSED_CORES)
    few = [part.op.kernel_ns for part in parts if part.row in answer.savings]
    share = sum(few) / whole_ns
    if answer.outcome is not RuleOutcome.FOUND or share <= _MAJORITY:
        return None
    kind = BottleneckKind.CORES
    time = f"{percent(share)} of a step"
    sentence = f"{kind.value}: {time} goes into ops that could run on more cores"
    return Bottleneck(kind, sentence, share, _MAJORITY, _OF_A_STEP)


#: What moves less than this part of the bandwidth works in L1: a fraction would mislead.
_TOLD: Final = 0.005
#: How many kinds of ops are told.
_MOST_TOLD: Final = 5
_MOST_CODES: Final = 3


def _one_kind(parts: Sequence[_Part], share: float, whole_ns: float) -> Bottleneck:
    """Return that one kind of op takes most of a step, which ops, and what they reach."""
    codes: dict[str, float] = defaultdict(float)
    for part in parts:
        codes[short_code(part.op.signature.op)] += part.op.kernel_ns / whole_ns
    heaviest = sorted(codes, key=lambda code: (-codes[code], code))[:_MOST_CODES]
    named = ", ".join(f"{code} {percent(codes[code])}" for code in heaviest)
    which = named if len(codes) > 1 else heaviest[0]
    sentence = f"{parts[0].noun}: {percent(share)} of a step ({which}){_reached(parts)}"
    return Bottleneck(BottleneckKind.ONE_KIND, sentence, share, _MAJORITY, _OF_A_STEP)


def _reached(parts: Iterable[_Part]) -> str:
    """Say what of the peaks of a chip ops reach, where most of them tell."""
    lines = [part.line for part in parts]
    took = sum(line.kernel_ns for line in lines)
    reached = []
    for fractions, of in (
        ([(line.kernel_ns, line.compute_fraction) for line in lines], "what their cores compute"),
        ([(line.kernel_ns, line.dram_fraction) for line in lines], "the DRAM bandwidth"),
    ):
        told = [(ns, part) for ns, part in fractions if part is not None and part > _TOLD]
        if sum(ns for ns, _ in told) > took / 2:
            fraction = sum(ns * part for ns, part in told) / sum(ns for ns, _ in told)
            reached.append(f"{percent(fraction)} of {of}")
    return f", at {' and '.join(reached)}" if reached else ""


def _listed(shares: Mapping[str, float]) -> str:
    """List what a step goes into, the largest part first; together they are all of it."""
    ordered = sorted(shares, key=lambda noun: (-shares[noun], noun))
    told = [(noun, round(shares[noun] * 100)) for noun in ordered[:_MOST_TOLD]]
    texts = [f"{noun} {part} %" for noun, part in told if part]
    rest = 100 - sum(part for _, part in told)
    return ", ".join([*texts, f"{_OTHERS} {rest} %"] if rest > 0 else texts)
