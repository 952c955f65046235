"""The steps of optimizing a model that are done, the one to take first, and the bottleneck."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.text import percent
from pytest_ttnn_perf.analysis.checklist.kernels import kernels_of, roofline_of
from pytest_ttnn_perf.analysis.checklist.op_times import (
    ops_like,
)
from pytest_ttnn_perf.analysis.checklist.operands import weights_by_row
from pytest_ttnn_perf.analysis.checklist.rule import Limit
from pytest_ttnn_perf.analysis.checklist.runner import in_regions, rule_of
from pytest_ttnn_perf.analysis.ops.regions import step_of
from pytest_ttnn_perf.analysis.ops.roofline import BOUND_FROM, Bound, rooflines, size_of
from pytest_ttnn_perf.records.finding import ModelKind, Progress, RuleOutcome, Severity, State, Step
from pytest_ttnn_perf.records.ops import Category, category_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pytest_ttnn_perf.analysis.checklist.rule import Answer
    from pytest_ttnn_perf.records.finding import Finding, Subject, Unanswered
    from pytest_ttnn_perf.records.ops import OpTable
    from pytest_ttnn_perf.records.settings import RuleSettings
    from pytest_ttnn_perf.records.ttlang import TtlangLog

    #: Returns what the rule of a code says of the subject.
    _Ask = Callable[[str], Answer]


class BottleneckKind(Enum):
    """What can be in the way, in the words of a sentence."""

    TRANSFER = "transfer-bound"
    HOST = "host-bound"
    CORES = "underutilised cores"
    SMALL_TRANSFERS = "small transfers"
    DRAM_TRAFFIC = "excess DRAM traffic"
    MEMORY = "memory-bound"
    COMPUTE = "compute-bound"
    SLOW = "slow ops"
    WAITING = "waiting threads"


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """A bottleneck, and the number that decided: ``value`` against ``limit``, both in ``unit``."""

    kind: BottleneckKind
    sentence: str
    value: float
    limit: float
    unit: str


#: The steps, by the first digit of their rules' codes.
_STEPS: Final = {
    1: "data formats",
    2: "layouts",
    3: "memory and sharding",
    4: "trace and host",
    5: "command queues",
    6: "convolutions",
    7: "several devices",
}
#: The rules that look at what a step is about. Others of it look at settings and at what is left to
#: do: while all of these are silent, nothing that they say makes the step done.
_DECIDING: Final[Mapping[int, frozenset[str]]] = {
    1: frozenset({"TTP101", "TTP103"}),
    2: frozenset({"TTP201", "TTP203"}),
    3: frozenset({"TTP301", "TTP303", "TTP305"}),
    4: frozenset({"TTP401", "TTP402", "TTP404"}),
    5: frozenset({"TTP502", "TTP503"}),
    6: frozenset({"TTP601", "TTP602", "TTP603", "TTP606", "TTP607"}),
    7: frozenset({"TTP703", "TTP704"}),
}
_PCC_LIMIT: Final = "TTP901"
_PCC: Final = frozenset({_PCC_LIMIT, "TTP902", "TTP903", "TTP904", "TTP907"})
#: Which steps pay first, by kind of model; the others follow in their order.
_FOCUS: Final[Mapping[ModelKind, tuple[int, ...]]] = {
    ModelKind.HOST_BOUND: (4, 5),
    ModelKind.LLM: (1, 4, 5),
    ModelKind.CNN: (3, 6),
    ModelKind.MEMORY_BOUND: (3, 1),
}
_WITHOUT_ANSWER: Final = {
    RuleOutcome.NOT_MEASURED: State.NOT_MEASURED,
    RuleOutcome.NOT_APPLICABLE: State.NOT_APPLICABLE,
}
#: What a rule can say of its step, the most last.
_SAYS: Final = (None, State.NOT_APPLICABLE, State.NOT_MEASURED, State.DONE, State.OPEN)
_WAITING: Final = frozenset({BottleneckKind.HOST, BottleneckKind.TRANSFER})
_MEMORY: Final = frozenset({BottleneckKind.MEMORY, BottleneckKind.DRAM_TRAFFIC})


def progress_of(
    findings: Iterable[Finding],
    *,
    unanswered: Iterable[Unanswered] = (),
    has_baseline: bool | None,
    kind: ModelKind | None = None,
) -> Progress:
    """Return how far a model has come; ``has_baseline`` is None where nobody looked for one.

    ``kind`` is what kind of model it is; None where that is not known.
    """
    listed = tuple(findings)
    told: list[tuple[str, State | None]]
    told = [(code, _WITHOUT_ANSWER[each.outcome]) for each in unanswered for code in each.codes]
    told += [(finding.code, _state(finding)) for finding in listed]
    # Of a rule that was asked of several regions, the one where it says most counts.
    states = dict(sorted(told, key=lambda item: _SAYS.index(item[1])))
    states = {code: states[code] for code in sorted(states)}
    by_step: dict[str, dict[str, State | None]] = defaultdict(dict)
    for code, state in states.items():
        by_step[code[3]][code] = state
    steps = {
        number: _step(name, by_step[str(number)], _DECIDING[number])
        for number, name in _STEPS.items()
    }
    baseline = {True: State.DONE, False: State.OPEN, None: State.NOT_MEASURED}[has_baseline]
    order = (*_FOCUS.get(kind, ()), *_STEPS) if kind is not None else tuple(_STEPS)
    savings = _savings(listed)
    # What saves most comes first; the path of the kind decides where nothing can be said.
    open_steps = [number for number in dict.fromkeys(order) if steps[number].state is State.OPEN]
    first = max(open_steps, key=lambda number: savings[number], default=None)
    return Progress(
        Step("baseline measured", baseline),
        tuple(steps.values()),
        _final_pcc({code: state for code, state in states.items() if code in _PCC}),
        kind,
        first,
        tuple(each.code for each in listed if each.fails and each.code.startswith("TTP0")),
    )


def held_back(
    subject: Subject, settings: Mapping[str, RuleSettings]
) -> tuple[str | None, ModelKind | None]:
    """Say what holds each region back, and what kind of model it is; None where nothing tells."""
    texts, kinds = [], []
    for region in in_regions(subject):
        bottleneck = bottleneck_of(region, settings)
        kinds.append(model_kind(region.ops, bottleneck))
        if bottleneck is not None:
            texts.append(": ".join(filter(None, (region.region, bottleneck.sentence))))
    return "; ".join(texts) or None, next(filter(None, kinds), None)


def model_kind(ops: OpTable | None, bottleneck: Bottleneck | None) -> ModelKind | None:
    """Return what kind of model it is: what keeps it waiting counts most, then what it runs."""
    held_by = None if bottleneck is None else bottleneck.kind
    if held_by in _WAITING:
        return ModelKind.HOST_BOUND
    attention, convolution = _kernel_ns(ops, Category.ATTENTION), _kernel_ns(ops, Category.CONV)
    if attention or convolution:
        return ModelKind.LLM if attention > convolution else ModelKind.CNN
    return ModelKind.MEMORY_BOUND if held_by in _MEMORY else None


def _kernel_ns(ops: OpTable | None, category: Category) -> float:
    if ops is None:
        return 0.0
    return sum(op.kernel_ns for op in ops_like(ops, lambda one: category_of(one.op) is category))


def _step(
    name: str, states: Mapping[str, State | None], deciding: frozenset[str] = frozenset()
) -> Step:
    """Return a step; it is done only if one of its ``deciding`` rules could tell, if any apply."""
    known = set(states.values())
    if State.OPEN in known:
        return Step(name, State.OPEN, tuple(c for c, s in states.items() if s is State.OPEN))
    told = {states[code] for code in deciding & states.keys()} - {State.NOT_APPLICABLE}
    if State.DONE in known and told != {State.NOT_MEASURED}:
        unmeasured = sum(state is State.NOT_MEASURED for state in states.values())
        return Step(name, State.DONE, unmeasured=unmeasured)
    if known == {State.NOT_APPLICABLE}:
        return Step(name, State.NOT_APPLICABLE)
    return Step(name, State.NOT_MEASURED)


def _savings(findings: Iterable[Finding]) -> Mapping[int, float]:
    """Return the largest saving that the findings of each step would bring."""
    savings = dict.fromkeys(_STEPS, 0.0)
    for finding in findings:
        number = int(finding.code[3])
        if number in savings and _state(finding) is State.OPEN:
            savings[number] = max(savings[number], finding.saving_ns or 0.0)
    return savings


def _final_pcc(states: Mapping[str, State | None]) -> Step:
    """Return the last step: it is done only by a PCC that was compared with its limit."""
    step = _step("final PCC", states)
    if step.state is State.OPEN:
        return step
    return _step(step.name, {code: states[code] for code in states if code == _PCC_LIMIT})


def _state(finding: Finding) -> State | None:
    """Return what a rule says of its step: what was found but does not count says nothing."""
    if finding.outcome is RuleOutcome.FOUND:
        counts = finding.stands and finding.severity is not Severity.INFO
        if not counts or (finding.quiet and finding.saving_ns is None):
            return None
        return State.DONE if finding.quiet else State.OPEN  # what little is left is no step
    return State.DONE if finding.outcome is RuleOutcome.CLEAN else _WITHOUT_ANSWER[finding.outcome]


#: What binds ops is what binds a step from here.
_MOST: Final = Limit(0.5, "of kernel time", "most of it")
_REACHING: Final = {
    BottleneckKind.MEMORY: f"that use {percent(BOUND_FROM)} or more of the DRAM bandwidth",
    BottleneckKind.COMPUTE: f"at {percent(BOUND_FROM)} or more of what their cores compute",
    BottleneckKind.SLOW: "that come near neither the DRAM bandwidth nor what their cores compute",
}
#: The rules that tell a bottleneck.
_HOT_DATA_IN_DRAM: Final = "TTP303"
_UNUSED_CORES: Final = "TTP305"
_HOST_BOUND: Final = "TTP401"
_DEVICE_BEHIND_E2E: Final = "TTP404"
_TRANSFER_BOUND: Final = "TTP503"
_GRID_UNDERUSED: Final = "TTP801"
_SMALL_TRANSFERS: Final = "TTP803"
_KERNEL_BOUND: Final = "TTP804"
_THREADS_TAKE_TURNS: Final = "TTP808"
#: What must be saved of a step by what is called its bottleneck.
_LARGE: Final = 0.2
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
        found = _of_ops(subject.ops, ask)
    return found


def _of_test(subject: Subject, ask: _Ask) -> Bottleneck | None:
    """Return what keeps devices waiting."""
    without_profiler: Answer | None = None
    if subject.observation is not None:
        transfers = _as_bottleneck(BottleneckKind.TRANSFER, ask(_TRANSFER_BOUND))
        if transfers is not None:
            return transfers
        without_profiler = ask(_DEVICE_BEHIND_E2E)
    if without_profiler is not None and without_profiler.value is not None:
        return _as_bottleneck(BottleneckKind.HOST, without_profiler)
    if subject.ops is None:
        return None
    return _as_bottleneck(BottleneckKind.HOST, ask(_HOST_BOUND))


def _of_kernels(log: TtlangLog, ask: _Ask) -> Bottleneck | None:
    """Return what a kernel lacks: cores, larger transfers, or what its roofline says."""
    line = roofline_of(log)
    bound = None if isinstance(line, str) else line.bound
    cores = _as_bottleneck(BottleneckKind.CORES, ask(_GRID_UNDERUSED))
    if cores is not None:
        return cores
    balance = ask(_KERNEL_BOUND)
    if balance.outcome is RuleOutcome.NOT_APPLICABLE:
        return _as_bottleneck(BottleneckKind.WAITING, ask(_THREADS_TAKE_TURNS))
    if bound == "compute":
        return _as_bottleneck(BottleneckKind.COMPUTE, balance)
    small = _as_bottleneck(BottleneckKind.SMALL_TRANSFERS, ask(_SMALL_TRANSFERS))
    return small or _excess(log, balance) or _as_bottleneck(BottleneckKind.MEMORY, balance)


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


def _of_ops(table: OpTable, ask: _Ask) -> Bottleneck | None:
    """Return what the ops of a step run into: DRAM, what cores compute, too few cores, or none."""
    step = step_of(table)
    times = _times_by_bound(step)
    whole = sum(times.values())
    if not whole:
        return None
    by_dram = (times[Bound.DRAM] + times[Bound.BOTH]) / whole
    by_compute = (times[Bound.COMPUTE] + times[Bound.BOTH]) / whole
    bound = by_dram + by_compute - times[Bound.BOTH] / whole
    if bound > _MOST.value and by_dram >= by_compute:
        hot = None
        if _moves_more_than_weights(step):
            hot = _large(BottleneckKind.DRAM_TRAFFIC, ask(_HOT_DATA_IN_DRAM))
        return hot or _bound(BottleneckKind.MEMORY, by_dram, (BottleneckKind.COMPUTE, by_compute))
    if bound > _MOST.value:
        return _bound(BottleneckKind.COMPUTE, by_compute, (BottleneckKind.MEMORY, by_dram))
    cores = _large(BottleneckKind.CORES, ask(_UNUSED_CORES))
    slow = times[Bound.NEITHER] / whole
    return cores or (_bound(BottleneckKind.SLOW, slow) if slow > _MOST.value else None)


def _times_by_bound(step: OpTable) -> Mapping[Bound | None, float]:
    times: dict[Bound | None, float] = dict.fromkeys((*Bound, None), 0.0)
    for line in rooflines(step):
        times[line.bound] += line.kernel_ns
    return times


def _moves_more_than_weights(step: OpTable) -> bool:
    """Tell whether most of what ops that DRAM binds move are activations."""
    weights = weights_by_row(step)
    moved = [
        (line.work.dram_bytes or 0.0, size_of(weights[row]) if row in weights else 0.0)
        for row, line in enumerate(rooflines(step))
        if line.bound in {Bound.DRAM, Bound.BOTH}
    ]
    return sum(each for each, _ in moved) > 2 * sum(each for _, each in moved)


def _bound(
    kind: BottleneckKind, share: float, other: tuple[BottleneckKind, float] | None = None
) -> Bottleneck:
    """Return what binds; where that alone is not most of the time, with what else does."""
    sentence = f"{kind.value}: {percent(share)} of the kernel time goes into ops {_REACHING[kind]}"
    if other is not None and share <= _MOST.value:
        sentence += f", {percent(other[1])} into ops {_REACHING[other[0]]}"
        share += other[1]
    return Bottleneck(kind, sentence, share, _MOST.value, _MOST.unit)


def _as_bottleneck(kind: BottleneckKind, answer: Answer) -> Bottleneck | None:
    """Return what a rule found, as a bottleneck."""
    if answer.outcome is not RuleOutcome.FOUND or answer.value is None or answer.limit is None:
        return None
    reason = (answer.reason or "").removeprefix(f"{kind.value}: ")
    sentence = f"{kind.value}: {reason}"
    return Bottleneck(kind, sentence, answer.value, answer.limit, answer.unit)


def _large(kind: BottleneckKind, answer: Answer) -> Bottleneck | None:
    """Return what a rule found as a bottleneck, if it would save a good part of a step."""
    found = _as_bottleneck(kind, answer)
    return replace(found, limit=_LARGE) if found is not None and found.value > _LARGE else None
