"""Sums findings up: which steps of optimizing a model are done, and which to take first."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.checklist.op_times import ops_like
from pytest_ttnn_perf.model.bottleneck import BottleneckKind
from pytest_ttnn_perf.model.category import Category, category_of
from pytest_ttnn_perf.model.finding import RuleOutcome, Severity
from pytest_ttnn_perf.model.progress import ModelKind, Progress, State, Step

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pytest_ttnn_perf.model.bottleneck import Bottleneck
    from pytest_ttnn_perf.model.finding import Finding, Unanswered
    from pytest_ttnn_perf.model.ops import OpTable

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
_PCC_LIMIT: Final = "TTP901"
_PCC: Final = frozenset({_PCC_LIMIT, "TTP902", "TTP903", "TTP904"})
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
    states = {finding.code: _state(finding) for finding in listed}
    for each in unanswered:
        states.update(dict.fromkeys(each.codes, _WITHOUT_ANSWER[each.outcome]))
    by_step: dict[str, dict[str, State | None]] = defaultdict(dict)
    for code, state in states.items():
        by_step[code[3]][code] = state
    steps = {number: _step(name, by_step[str(number)]) for number, name in _STEPS.items()}
    baseline = {True: State.DONE, False: State.OPEN, None: State.NOT_MEASURED}[has_baseline]
    order = (*_FOCUS.get(kind, ()), *_STEPS) if kind is not None else tuple(_STEPS)
    first = next((number for number in order if steps[number].state is State.OPEN), None)
    return Progress(
        Step("baseline measured", baseline),
        tuple(steps.values()),
        _final_pcc({code: state for code, state in states.items() if code in _PCC}),
        kind,
        first,
        tuple(each.code for each in listed if each.fails and each.code.startswith("TTP0")),
    )


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


def _step(name: str, states: Mapping[str, State | None]) -> Step:
    known = set(states.values())
    if State.OPEN in known:
        return Step(name, State.OPEN, tuple(c for c, s in states.items() if s is State.OPEN))
    if State.DONE in known:
        unmeasured = sum(state is State.NOT_MEASURED for state in states.values())
        return Step(name, State.DONE, unmeasured=unmeasured)
    if known == {State.NOT_APPLICABLE}:
        return Step(name, State.NOT_APPLICABLE)
    return Step(name, State.NOT_MEASURED)


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
        return State.OPEN if counts else None
    return State.DONE if finding.outcome is RuleOutcome.CLEAN else _WITHOUT_ANSWER[finding.outcome]
