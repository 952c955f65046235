"""Bottlenecks: where most of the time goes, and the kind of model."""

from __future__ import annotations

from collections import defaultdict
from enum import Enum
from math import prod
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct

from pytest_ttnn_perf.analysis.checklist.operands import weights_by_row
from pytest_ttnn_perf.analysis.checklist.products import TILE_ROWS, is_dense_matmul, searches
from pytest_ttnn_perf.analysis.checklist.runner import in_regions
from pytest_ttnn_perf.analysis.checklist.savings import (
    critical_ops,
    gaps_of,
    lasting_waiting,
    ops_like,
    waiting_in,
)
from pytest_ttnn_perf.analysis.ops.regions import step_of
from pytest_ttnn_perf.analysis.ops.roofline import (
    BOUND_FROM,
    Bound,
    board_of,
    is_dram_sharded,
    readers_per_bank,
    rooflines,
    size_of,
)
from pytest_ttnn_perf.analysis.rules.cores import unused_cores
from pytest_ttnn_perf.analysis.rules.kernels import (
    bound,
    grid_underused,
    kernels_of,
    roofline_of,
    small_transfers,
    threads_take_turns,
)
from pytest_ttnn_perf.analysis.rules.matmul import (
    dram_sharded_settings,
    low_matmul_efficiency,
    matmul_not_dram_sharded,
)
from pytest_ttnn_perf.analysis.rules.memory import hot_data_in_dram
from pytest_ttnn_perf.core.finding import RuleOutcome
from pytest_ttnn_perf.core.ops import Category, category_of
from pytest_ttnn_perf.core.text import percent
from pytest_ttnn_perf.gate.rules_on_numbers import device_behind_e2e, transfer_bound
from pytest_ttnn_perf.report.findings import ModelKind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pytest_ttnn_perf.analysis.ops.roofline import Roofline
    from pytest_ttnn_perf.analysis.readers.report_db import Report
    from pytest_ttnn_perf.analysis.readers.ttlang import TtlangLog
    from pytest_ttnn_perf.core.finding import Answer, Rule, Subject
    from pytest_ttnn_perf.core.ops import Op, OpTable, Tensor
    from pytest_ttnn_perf.core.settings import RuleSettings

    #: Returns what a rule says of the subject.
    _Ask = Callable[[Rule], Answer]


class BottleneckKind(Enum):
    """Kinds of bottlenecks, in the words of a sentence."""

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


_K = BottleneckKind
_WAITING: Final = frozenset({_K.HOST, _K.GAPS, _K.TRANSFER})
_MEMORY: Final = frozenset({_K.MEMORY, _K.DRAM_TRAFFIC, _K.WEIGHTS})
#: What takes more than this part of a step holds it back; else several things do.
_MAJORITY: Final = 0.5
#: Bytes that a kernel reads for each that it writes: more than three inputs for an output.
_READS_PER_WRITE: Final = 4.0


class Bottleneck(Struct, frozen=True):
    """A bottleneck, and the number against its limit that decided."""

    kind: BottleneckKind
    sentence: str
    value: float
    limit: float = _MAJORITY
    unit: str = "of a step"


def held_back(
    subject: Subject, settings: Mapping[str, RuleSettings]
) -> tuple[str | None, ModelKind | None]:
    """Name the bottleneck of each region, and the kind of model.

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
    """Classify a model: by its waiting first, then by its ops."""
    held_by = None if bottleneck is None else bottleneck.kind
    if held_by in _WAITING:
        return ModelKind.HOST_BOUND

    def amount(category: Category) -> float:
        if ops is not None:
            alike = ops_like(ops, lambda signature: signature.category is category)
            return sum(op.kernel_ns for op in alike)
        operations = report.operations if report is not None else ()
        return sum(category_of(each.name) is category for each in operations)

    attention, convolution = amount(Category.ATTENTION), amount(Category.CONV)
    if attention or convolution:
        return ModelKind.LLM if attention > convolution else ModelKind.CNN
    return ModelKind.MEMORY_BOUND if held_by in _MEMORY else None


def bottleneck_of(subject: Subject, settings: Mapping[str, RuleSettings]) -> Bottleneck | None:
    """Find the bottleneck of a subject; None if unknown."""

    def ask(rule: Rule) -> Answer:
        if rule.code in settings:
            rule = rule.with_limits(**settings[rule.code].limits)
        return rule.check(subject)

    found = _of_test(subject, ask)
    if found is None and subject.kernels is not None:
        found = _of_kernels(subject.kernels, ask)
    if found is None and subject.ops is not None:
        found = _of_ops(subject, step_of(subject.ops), ask)
    return found


def _as_bottleneck(kind: BottleneckKind, answer: Answer) -> Bottleneck | None:
    if answer.outcome is not RuleOutcome.FOUND or answer.value is None or answer.limit is None:
        return None
    reason = (answer.reason or "").removeprefix(f"{kind.value}: ")
    return Bottleneck(kind, f"{kind.value}: {reason}", answer.value, answer.limit, answer.unit)


def _of_test(subject: Subject, ask: _Ask) -> Bottleneck | None:
    """Return what keeps devices waiting for most of the time."""
    if subject.observation is not None:
        transfers = _as_bottleneck(_K.TRANSFER, ask(transfer_bound))
        if transfers is not None:
            return transfers
        without_profiler = ask(device_behind_e2e)
        if without_profiler.value is not None:
            found = _as_bottleneck(_K.HOST, without_profiler)
            return found if found is not None and found.value > _MAJORITY else None
    replayed = _is_replayed(subject.ops)
    if subject.ops is None or not (replayed or subject.counts_gaps):
        return None
    if isinstance(gaps_of(subject), str):
        return None
    # Outside a replay, only gaps such as the host leaves at each op.
    step = step_of(subject.ops)
    waiting = waiting_in(step) if replayed else lasting_waiting(step)
    if waiting.share <= _MAJORITY or not (replayed or waiting.before_each_op):
        return None
    kind = _K.GAPS if replayed else _K.HOST
    most, where = ("", "") if replayed else ("at most ", ", longer than without the profiler")
    wait = f"devices wait {most}{percent(waiting.share)} of the time for their next op{where}"
    return Bottleneck(kind, f"{kind.value}: {wait}", waiting.share, unit="of the time")


def _of_kernels(log: TtlangLog, ask: _Ask) -> Bottleneck | None:
    line, kernels = roofline_of(log), kernels_of(log)
    cores = _as_bottleneck(_K.CORES, ask(grid_underused))
    # More cores do not make programs faster that mostly wait.
    waiting = sum(kernel.time_ns for kernel in kernels if kernel.waits)
    if cores is not None and waiting <= _MAJORITY * sum(kernel.time_ns for kernel in kernels):
        return cores
    turns = _as_bottleneck(_K.TURNS, ask(threads_take_turns))
    if turns is not None and turns.value > _MAJORITY:
        return turns  # what waits most of the time is bound by neither memory nor computing
    balance = ask(bound)
    if balance.outcome is RuleOutcome.NOT_APPLICABLE:
        return turns
    if line is not None and line.bound == "compute":
        return _as_bottleneck(_K.COMPUTE, balance)
    small = _as_bottleneck(_K.SMALL_TRANSFERS, ask(small_transfers))
    read = sum(kernel.program.dram_read.bytes for kernel in kernels)
    written = sum(kernel.program.dram_write.bytes for kernel in kernels)
    ratio = read / written if written else 0.0
    if small is None and balance.outcome is RuleOutcome.FOUND and ratio > _READS_PER_WRITE:
        kind = _K.DRAM_TRAFFIC
        sentence = f"{kind.value}: for each byte that they write to DRAM, programs read {ratio:.1f}"
        return Bottleneck(kind, sentence, ratio, _READS_PER_WRITE, "bytes read per byte written")
    return small or _as_bottleneck(_K.MEMORY, balance)


class _Part(NamedTuple):
    """An op of a step, its group noun, and its roofline."""

    row: int
    op: Op
    noun: str
    line: Roofline


_GAPS: Final = "gaps"
_WEIGHTS: Final = BottleneckKind.WEIGHTS.value
#: What ops are called together.
_NOUNS: Final = {
    Category.MATMUL: "matmuls",
    Category.CONV: "convolutions",
    Category.ATTENTION: "attention",
    Category.ELEMENTWISE: "elementwise ops",
    Category.NORM: "norms",
    Category.COLLECTIVE: "collectives",
    Category.LAYOUT: "data movement",
    Category.MOVEMENT: "data movement",
}


def _of_ops(subject: Subject, step: OpTable, ask: _Ask) -> Bottleneck | None:
    lines, weights = rooflines(step), weights_by_row(step)
    known = board_of(step) is not None
    parts = [
        _Part(row, op, _noun(op, weights.get(row) if known else None), lines[row])
        for row, op in critical_ops(step)
    ]
    kernels_ns = sum(part.op.kernel_ns for part in parts)
    if not kernels_ns:
        return None
    gaps = gaps_of(subject)
    gaps_ns = waiting_in(step).ns if not isinstance(gaps, str) and gaps.replayed else 0.0
    whole_ns = kernels_ns + gaps_ns
    shares: dict[str, float] = defaultdict(float)
    for part in parts:
        shares[part.noun] += part.op.kernel_ns / whole_ns
    if gaps_ns:
        shares[_GAPS] = gaps_ns / whole_ns
    most = max(shares, key=shares.__getitem__)
    of_most = [part for part in parts if part.noun == most]
    if most == _WEIGHTS and shares[most] > _MAJORITY:
        return _weight_reads(step, of_most, shares[most], ask)
    found = _bound(step, parts, whole_ns, ask) or _on_few_cores(parts, whole_ns, ask)
    if found is not None:
        return found
    if shares[most] > _MAJORITY and most != _GAPS:
        return _one_kind(of_most, shares[most], whole_ns)
    return Bottleneck(_K.MIXED, f"{_K.MIXED.value}: {_listed(shares)}", shares[most])


def _noun(op: Op, weights: Tensor | None) -> str:
    signature = op.signature
    rows = prod(signature.inputs[0].padded[:-1]) if signature.inputs else 0
    if weights is not None and is_dense_matmul(signature) and rows <= TILE_ROWS:
        return _WEIGHTS
    if searches(signature):
        return "reductions and searches"
    return _NOUNS.get(signature.category, "other ops")


#: How close real matmuls of few rows come to the bandwidth of DRAM: block formats less, as they are
#: unpacked on the way.
_NEAR: Final = 0.75
_NEAR_IN_BLOCKS: Final = 0.55


def _weight_reads(step: OpTable, parts: Sequence[_Part], share: float, ask: _Ask) -> Bottleneck:
    board, weights = board_of(step), weights_by_row(step)
    assert board is not None
    took = sum(part.op.kernel_ns for part in parts)
    read = [(size_of(weights[part.row]), weights[part.row].dtype) for part in parts]
    moved = sum(size for size, _ in read)
    in_blocks = sum(size for size, dtype in read if dtype.endswith("_B")) > moved / 2
    rate = moved / took / board.dram_gb_s
    computing = [
        part
        for part in parts
        if is_dram_sharded(part.op.attributes)
        and (part.line.compute_fraction or 0.0) >= BOUND_FROM
        and (part.line.compute_ns or 0.0) > (part.line.dram_ns or 0.0)
    ]
    end = ""
    rules = (matmul_not_dram_sharded, dram_sharded_settings, low_matmul_efficiency)
    if sum(part.op.kernel_ns for part in computing) > took / 2:
        readers = max(readers_per_bank(part.op.attributes) for part in computing)
        cores = board.dram_banks * readers
        end = f", held up by computing on the {cores} cores of DRAM-sharded matmuls"
    elif rate >= (_NEAR_IN_BLOCKS if in_blocks else _NEAR) and not any(
        ask(rule).outcome is RuleOutcome.FOUND for rule in rules
    ):
        end = ", near what real ones reach"
    sentence = (
        f"{_WEIGHTS}: {percent(share)} of a step goes into matmuls of up to {TILE_ROWS} rows, "
        f"which read their weights at {percent(rate)} of the DRAM bandwidth{end}"
    )
    return Bottleneck(_K.WEIGHTS, sentence, share)


_BY_DRAM: Final = frozenset({Bound.DRAM, Bound.BOTH})
_REACHING: Final = {
    _K.MEMORY: f"that use {percent(BOUND_FROM)} or more of the DRAM bandwidth",
    _K.COMPUTE: f"at {percent(BOUND_FROM)} or more of what their cores compute",
}


def _bound(step: OpTable, parts: Sequence[_Part], whole_ns: float, ask: _Ask) -> Bottleneck | None:

    def share(bounds: frozenset[Bound]) -> float:
        return sum(part.op.kernel_ns for part in parts if part.line.bound in bounds) / whole_ns

    reaching = {
        _K.MEMORY: share(_BY_DRAM),
        _K.COMPUTE: share(frozenset({Bound.COMPUTE, Bound.BOTH})),
    }
    kind = max(reaching, key=reaching.__getitem__)
    if reaching[kind] <= _MAJORITY:
        return None
    sentence = f"{kind.value}: {percent(reaching[kind])} of a step goes into ops {_REACHING[kind]}"
    if kind is _K.MEMORY:
        weights = weights_by_row(step)
        works = [(part.row, part.line.work) for part in parts if part.line.bound in _BY_DRAM]
        moved = sum(work.dram_bytes or 0.0 for _, work in works)
        of_weights = sum(
            size_of(weights[row]) * work.passes for row, work in works if row in weights
        )
        if moved > 2 * of_weights:
            hot = _as_bottleneck(_K.DRAM_TRAFFIC, ask(hot_data_in_dram))
            if hot is not None:
                return hot
        if sum(work.again_bytes for _, work in works) > moved / 2:
            sentence += ", mostly for what they have read before"
    return Bottleneck(kind, sentence, reaching[kind])


def _on_few_cores(parts: Sequence[_Part], whole_ns: float, ask: _Ask) -> Bottleneck | None:
    answer = ask(unused_cores)
    share = sum(part.op.kernel_ns for part in parts if part.row in answer.savings) / whole_ns
    if answer.outcome is not RuleOutcome.FOUND or share <= _MAJORITY:
        return None
    time = f"{percent(share)} of a step"
    sentence = f"{_K.CORES.value}: {time} goes into ops that could run on more cores"
    return Bottleneck(_K.CORES, sentence, share)


#: What moves less than this part of the bandwidth works in L1: a fraction would mislead.
_TOLD: Final = 0.005
#: How many kinds of ops are told, and how many codes of one kind.
_MOST_TOLD: Final = 5
_MOST_CODES: Final = 3


def _one_kind(parts: Sequence[_Part], share: float, whole_ns: float) -> Bottleneck:
    codes: dict[str, float] = defaultdict(float)
    for part in parts:
        codes[part.op.signature.code] += part.op.kernel_ns / whole_ns
    heaviest = sorted(codes, key=lambda code: (-codes[code], code))[:_MOST_CODES]
    named = ", ".join(f"{code} {percent(codes[code])}" for code in heaviest)
    which = named if len(codes) > 1 else heaviest[0]
    took = sum(part.line.kernel_ns for part in parts)
    reached = []
    for fractions, of in (
        ([(part.line, part.line.compute_fraction) for part in parts], "what their cores compute"),
        ([(part.line, part.line.dram_fraction) for part in parts], "the DRAM bandwidth"),
    ):
        known = [(line.kernel_ns, part) for line, part in fractions if part and part > _TOLD]
        # What ops reach is said where most of them tell.
        if sum(ns for ns, _ in known) > took / 2:
            fraction = sum(ns * part for ns, part in known) / sum(ns for ns, _ in known)
            reached.append(f"{percent(fraction)} of {of}")
    peaks = f", at {' and '.join(reached)}" if reached else ""
    sentence = f"{parts[0].noun}: {percent(share)} of a step ({which}){peaks}"
    return Bottleneck(_K.ONE_KIND, sentence, share)


def _listed(shares: Mapping[str, float]) -> str:
    ordered = sorted(shares, key=lambda noun: (-shares[noun], noun))
    parts = [(noun, round(shares[noun] * 100)) for noun in ordered[:_MOST_TOLD]]
    texts = [f"{noun} {part} %" for noun, part in parts if part]
    rest = 100 - sum(part for _, part in parts)
    return ", ".join([*texts, f"others {rest} %"] if rest > 0 else texts)
